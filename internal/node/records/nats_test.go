package records_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/atoll-run/atoll/internal/control/executors"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/infra/bus"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/node/records"
	"github.com/atoll-run/atoll/test/atolltest"
)

// natsServer is a NATS server that can be stopped and started again where it was.
type natsServer struct {
	t   *testing.T
	opt server.Options
	s   *server.Server
}

func startNATS(t *testing.T) *natsServer {
	t.Helper()
	n := &natsServer{t: t, opt: server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true, JetStreamMaxStore: 16 << 30, MaxPayload: 8 << 20}}
	n.start()
	t.Cleanup(n.stop)
	return n
}

func (n *natsServer) start() {
	n.t.Helper()
	opt := n.opt
	s, err := server.NewServer(&opt)
	must(n.t, err)
	s.Start()
	if !s.ReadyForConnections(20 * time.Second) {
		n.t.Fatal("NATS does not start")
	}
	n.s, n.opt.Port = s, opt.Port
}

func (n *natsServer) stop() {
	n.s.Shutdown()
	n.s.WaitForShutdown()
}

func (n *natsServer) bus(name string) *bus.Bus {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), 30*time.Second)
	defer cancel()
	b, err := bus.Open(ctx, bus.Config{URL: n.s.ClientURL(), Name: name, Log: slog.New(slog.DiscardHandler)})
	must(n.t, err)
	n.t.Cleanup(func() { _ = b.Close() })
	return b
}

// gateway folds events until it is stopped. Some of its acknowledgements are lost: it fails after it
// has applied an event.
func (n *natsServer) gateway(name string, events *executors.Events, away func() bool) (stop func()) {
	b := n.bus(name)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			err := b.NodeEvents(ctx, func(ctx context.Context, executor string, seq uint64, event []byte) error {
				if away() {
					return fault.New(fault.Unavailable, "the database is away")
				}
				if err := events.Fold(ctx, executor, seq, event); err != nil {
					return err
				}
				if rand.N(20) == 0 {
					return fault.New(fault.Unavailable, "the gateway dies")
				}
				return nil
			})
			if err != nil { // NATS is not up yet
				time.Sleep(50 * time.Millisecond)
			}
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	n.t.Cleanup(stop)
	return stop
}

// Executors work while executors, gateways, NATS and the database fail again and again. In the end
// gateways have the last state of each sandbox, and each charge and contact once.
func TestEverythingFails(t *testing.T) {
	everywhere(t, func(t *testing.T, db *store.DB) {
		n := startNATS(t)
		var mu sync.Mutex
		databaseAway := false
		away := func() bool { mu.Lock(); defer mu.Unlock(); return databaseAway }
		log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
		events := &executors.Events{Store: db.NodeEvents(), Prices: usage.DefaultPrices(), Log: log}
		stopOne := n.gateway("gw_1", events, away)
		n.gateway("gw_2", events, away)

		r := newRig(t, db, nil)
		r.stop()
		writer := n.bus(self).NodeEventWriter()
		dead := &struct {
			sync.Mutex
			now bool
		}{}
		r.change = func(c *records.Config) {
			c.Publisher = publisherFunc(func(ctx context.Context, seq uint64, event []byte) error {
				dead.Lock()
				defer dead.Unlock()
				if dead.now {
					return fault.New(fault.Unavailable, "the process is dead")
				}
				return writer.Publish(ctx, seq, event)
			})
		}
		r.open()

		rnd := rand.New(rand.NewPCG(1, 2))
		live := map[string]*sandbox.Sandbox{}
		last := map[runtime.ID]sandbox.State{}
		seconds, bytes, contacts := 0.0, int64(0), []string{}
		for i := range atolltest.Count(150, 4000) {
			name := fmt.Sprint("sandbox-", rnd.IntN(6))
			sb := live[name]
			switch op := rnd.IntN(100); {
			case sb == nil && away():
				continue // it would wait for gateways to learn that the name is free
			case sb == nil:
				sb = draft(name)
				there, err := r.Create(t.Context(), grant, sb)
				if fault.KindOf(err) == fault.Unavailable && err != nil {
					continue // gateways do not know yet that the name is free
				}
				must(t, err)
				if there != nil {
					t.Fatalf("%s is %s", name, there.ID)
				}
				sb.State = sandbox.Running
				must(t, r.Save(t.Context(), sb))
				live[name] = sb
			case op < 40 && sb.State == sandbox.Running:
				d, b := time.Duration(rnd.IntN(1e9)+1)*time.Microsecond, rnd.Int64N(1e6)
				d = d % (10 * time.Second)
				if d == 0 {
					d = 1
				}
				r.charge(sb, d.Truncate(time.Microsecond)+time.Microsecond, b)
				seconds += (d.Truncate(time.Microsecond) + time.Microsecond).Seconds()
				bytes += b
			case op < 50:
				host := fmt.Sprint("host-", i)
				must(t, r.Contacted(t.Context(), sb, sb.MeteredAt, []string{host}))
				contacts = append(contacts, host)
			case op < 65 && sb.State == sandbox.Running:
				r.save(sb, func() { must(t, sb.FallAsleep(sandbox.OnDisk, fmt.Sprint(i))) })
			case op < 80 && sb.State == sandbox.Sleeping:
				must(t, sb.Move(sandbox.Running, ""))
				sb.MeteredAt = sb.MeteredAt.Add(time.Second)
				must(t, r.Wake(t.Context(), grant, sb))
			case op < 85:
				r.save(sb, func() { sb.Detail = fmt.Sprint(i) })
			case op < 88:
				must(t, events.FoldRecord(t.Context(), self, sb))
			case op < 92:
				r.save(sb, func() { must(t, sb.Move(sandbox.Destroyed, "")) })
				delete(live, name)
			case op < 95:
				dir := r.copy()
				dead.Lock()
				dead.now = true
				dead.Unlock()
				r.end()
				_ = r.Close(expired())
				dead.Lock()
				dead.now = false
				dead.Unlock()
				r.dir = dir
				r.open()
			case op < 97 && i%2 == 0:
				n.stop()
				time.Sleep(20 * time.Millisecond)
				n.start()
			case op < 99:
				mu.Lock()
				databaseAway = !databaseAway
				mu.Unlock()
				if i > 150 {
					stopOne()
				}
			}
			last[sb.ID] = sb.State
		}
		mu.Lock()
		databaseAway = false
		mu.Unlock()
		r.settled()
		atolltest.Until(t, 90*time.Second, "gateways know all", func() bool {
			for id, state := range last {
				if r.recorded(id).State != state {
					return false
				}
			}
			return len(r.contacts()) >= len(contacts) && r.total().bytesOut >= bytes
		})
		time.Sleep(300 * time.Millisecond) // for what comes twice
		r.wantTotal(seconds, bytes)
		got := r.contacts()
		slices.Sort(got)
		slices.Sort(contacts)
		if !slices.Equal(got, contacts) {
			t.Errorf("contacts %q, want %q", got, contacts)
		}
		for _, sb := range live {
			have := r.recorded(sb.ID)
			if have.Detail != sb.Detail || have.Sleep != sb.Sleep || have.Revision != sb.Revision {
				t.Errorf("record %+v, want %+v", have, sb)
			}
		}
		t.Logf("%d sandboxes, %v s, %d bytes", len(last), seconds, bytes)
	})
}

type publisherFunc func(ctx context.Context, seq uint64, event []byte) error

func (f publisherFunc) Publish(ctx context.Context, seq uint64, event []byte) error {
	return f(ctx, seq, event)
}
