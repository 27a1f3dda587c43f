// Package bus carries what gateways and executors say to each other over NATS:
// jobs to an executor with room, cancellations to the executor that has the
// run, output logs, and results that outlive every process.
//
// Gateways use Runner, Log (to read), Await and Results; executors use Serve
// and Log (to write). NATS runs inside this process unless Config has a URL;
// nothing else differs.
package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
)

// Config says where the bus is and how much it may keep.
type Config struct {
	// URL names NATS servers, separated by commas, with user and password where
	// they are needed. Empty: a server inside this process, which no other
	// process can reach.
	URL         string
	Credentials string // path of a NATS credentials file; "" for none
	CA          string // path of certificates that the servers' are checked against; "" for the system's
	Cert, Key   string // paths of this client's certificate and key; "" for none

	Dir  string // folder of the server inside this process; made 0700
	Name string // this process, unique on the bus: letters, digits, - and _

	// Installation separates the subjects and streams of installations that use the same
	// NATS account; "" on a server inside this process.
	Installation string

	// Replicas of every stream, on a NATS cluster. 0 makes new streams with one replica and
	// leaves existing streams as they are.
	Replicas int

	MaxBytes    int64         // of all output logs together; 0 is 4 GiB. The oldest goes first
	MaxRunBytes int64         // of one execution's log; 0 is 64 MiB. The oldest goes first
	MaxAge      time.Duration // of output logs; 0 is a day

	Log *slog.Logger

	probeEvery, probeTime time.Duration // of monitor; 0 for its defaults
	discoverFor           time.Duration // of FindInstallation; 0 for its default
	// Times of NodeEvents; 0 for its defaults.
	eventWait, eventPause, eventRetry time.Duration

	calls callTimes // zero for callDefaults

	// Inject and Extract carry a trace context in headers; nil for none.
	Inject  func(ctx context.Context) map[string]string
	Extract func(ctx context.Context, headers map[string]string) context.Context
}

// isToken reports whether s can be a part of a subject: it is 1 to 80 letters, digits, -
// and _. It is asked for each event, too often for a regular expression.
func isToken(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return len(s) > 0 && len(s) <= 80
}

// Bus is one process's connection.
type Bus struct {
	cfg    Config
	names  names
	server *inProcess          // nil when it is elsewhere
	ctl    *nats.Conn          // what is short: jobs, answers, results
	data   *nats.Conn          // logs, so that nothing short waits behind them
	js     jetstream.JetStream // on ctl
	turns  jetstream.KeyValue
	starts jetstream.Stream
	log    *Log
	opened atomic.Bool           // all of the above is there
	sick   atomic.Pointer[error] // why the streams store nothing
	unfit  atomic.Pointer[error] // why the server that ctl came back to cannot be used
	closed context.Context       // ends with Close
	close  context.CancelFunc

	unfitData atomic.Pointer[error] // unfit of data

	mu       sync.Mutex
	epoch    context.Context // see connection
	newEpoch context.CancelFunc

	waits waits
	news  News

	lastFull atomic.Pointer[refused]

	fetching atomic.Int32 // calls that fetch large answers

	origins sync.Map // trace id of a run of this process -> the gateway that waits
	tenants sync.Map // trace id of a run of this process -> its tenant
}

// Open connects, and waits for the server as long as ctx allows.
func Open(ctx context.Context, cfg Config) (_ *Bus, err error) {
	if !isToken(cfg.Name) {
		return nil, fmt.Errorf("bus: name %q must be letters, digits, - and _", cfg.Name)
	}
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = 4 << 30
	}
	if cfg.MaxRunBytes == 0 {
		cfg.MaxRunBytes = 64 << 20
	}
	if cfg.MaxAge == 0 {
		cfg.MaxAge = 24 * time.Hour
	}
	if cfg.probeEvery == 0 {
		cfg.probeEvery, cfg.probeTime = probeEvery, probeTime
	}
	if cfg.calls == (callTimes{}) {
		cfg.calls = callDefaults
	}
	if cfg.Installation != "" && !isToken(cfg.Installation) {
		return nil, fmt.Errorf("bus: installation %q must be letters, digits, - and _", cfg.Installation)
	}
	b := &Bus{cfg: cfg, names: namesOf(cfg.Installation)}
	b.closed, b.close = context.WithCancel(context.Background())
	b.waits.open = map[string]*Waiter{}
	b.news = News{b: b, watched: map[string]*watched{}}
	b.log = &Log{b: b, pipes: map[string]*pipe{}, readers: map[string][]*follower{}, subs: map[string]*nats.Subscription{}}
	b.log.shares = &shares{l: b.log, tenants: map[string]*share{}, maxLogs: maxLogs}
	b.epoch, b.newEpoch = context.WithCancel(b.closed)
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("bus: %w", err), b.Close())
		}
	}()
	if cfg.URL == "" {
		if b.server, err = embed(ctx, cfg); err != nil {
			return nil, err
		}
	}
	if b.ctl, err = b.connect(ctx, controlConn); err != nil {
		return nil, err
	}
	if b.data, err = b.connect(ctx, dataConn); err != nil {
		return nil, err
	}
	if b.js, err = jetstream.New(b.ctl); err != nil {
		return nil, err
	}
	if b.log.js, err = jetstream.New(b.data); err != nil {
		return nil, err
	}
	if err := checkJetStream(ctx, b.js); err != nil {
		return nil, err
	}
	if b.turns, err = b.ensure(ctx); err != nil {
		return nil, err
	}
	if b.starts, err = b.js.Stream(ctx, b.names.startsStream); err != nil {
		return nil, err
	}
	if b.log.stream, err = b.log.js.Stream(ctx, b.names.outputs); err != nil {
		return nil, err
	}
	if err := b.log.hear(); err != nil {
		return nil, err
	}
	b.opened.Store(true)
	b.log.senders.Go(b.monitor)
	return b, nil
}

// Close lets go of the bus, and ends the server inside this process. Call it
// after every Executor and Results has ended. What Append has taken is stored
// first, unless that takes more than a moment.
func (b *Bus) Close() error {
	b.log.flush(5 * time.Second)
	b.close()
	var errs []error
	for _, nc := range []*nats.Conn{b.ctl, b.data} {
		if nc == nil {
			continue
		}
		if nc.IsConnected() {
			errs = append(errs, nc.FlushTimeout(5*time.Second))
		}
		nc.Close()
	}
	b.waits.done.Wait()
	b.log.senders.Wait()
	if b.server != nil {
		b.server.stop()
	}
	return errors.Join(errs...)
}

// Ready returns nil while the bus can be used, else an Unavailable fault.
func (b *Bus) Ready() error {
	for _, nc := range []*nats.Conn{b.ctl, b.data} {
		if !nc.IsConnected() {
			return unavailable(errors.New("connection is " + nc.Status().String()))
		}
	}
	for _, err := range []*error{b.unfit.Load(), b.unfitData.Load(), b.sick.Load()} {
		if err != nil && *err != nil {
			return unavailable(*err)
		}
	}
	return nil
}

// tenantOf returns the tenant of a run of this process, "" if it is not known.
func (b *Bus) tenantOf(traceID string) string {
	tenant, _ := b.tenants.Load(traceID)
	name, _ := tenant.(string)
	return name
}

// Log is the output logs.
func (b *Bus) Log() *Log { return b.log }

// Runner is the executors as gateways see them.
func (b *Bus) Runner() execution.Runner { return runner{b} }

// unavailable is the fault of a bus that cannot be reached.
func unavailable(err error) error {
	return fault.Wrap(fault.Unavailable, err, "the message bus cannot be reached; retry in a few seconds")
}
