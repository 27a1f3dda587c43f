package directory_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/control/directory"
	"github.com/atoll-run/atoll/internal/control/placement"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/noderpc"
	"github.com/atoll-run/atoll/internal/infra/noderpc/noderpctest"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
)

// executor is a machine whose answers a test chooses.
type executor struct {
	sandbox.Node
	name   string
	ensure func(ctx context.Context, e *executor, sb *sandbox.Sandbox) (*sandbox.Sandbox, bool, error)
	get    func(sb *sandbox.Sandbox) // changes its other answers
	asked  atomic.Int32
	client sandbox.Node // of the machine, over a connection
	cut    func()       // ends the connection and the machine
}

func (e *executor) Ensure(ctx context.Context, grant *sandbox.Grant, session, name string, _ *sandbox.Spec) (*sandbox.Sandbox, bool, error) {
	e.asked.Add(1)
	return e.ensure(ctx, e, e.sandbox(grant, session, name))
}

func (e *executor) Sleep(_ context.Context, grant *sandbox.Grant, session, name string) (*sandbox.Sandbox, error) {
	sb := e.sandbox(grant, session, name)
	e.get(sb)
	return sb, nil
}

func (e *executor) sandbox(grant *sandbox.Grant, session, name string) *sandbox.Sandbox {
	return &sandbox.Sandbox{ID: runtime.NewID(), Tenant: grant.Tenant, Environment: grant.Environment, Session: session, Name: name, Key: grant.Key, Executor: e.name, State: sandbox.Running}
}

// serve serves e over a connection with certificates.
func (e *executor) serve(t *testing.T) {
	t.Helper()
	a := noderpctest.NewAuthority(t)
	l, dial := a.Listen(a.Config("machine"), a.Config("gateway"), "machine")
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- noderpc.NewServer(e, slog.New(slog.DiscardHandler)).Serve(ctx, l) }()
	conns := make(chan net.Conn, 16)
	c := noderpc.New(noderpc.Config{Log: slog.New(slog.DiscardHandler), Dial: func(ctx context.Context) (net.Conn, error) {
		conn, err := dial(ctx)
		if err == nil {
			conns <- conn
		}
		return conn, err
	}})
	e.client = c
	e.cut = func() {
		l.Close()
		for len(conns) > 0 {
			(<-conns).Close()
		}
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		cancel()
		<-served
	})
}

// peers are the machines of a test.
type peers []*executor

func (p peers) Node(_ context.Context, name string) (sandbox.Node, error) {
	for _, e := range p {
		if e.name == name {
			return e.client, nil
		}
	}
	return nil, fault.New(fault.Unavailable, "the machine %s is away", name)
}

// Candidates has placement try the machines in their order.
func (p peers) Candidates(context.Context) (all []placement.Candidate, err error) {
	for i, e := range p {
		all = append(all, placement.Candidate{Executor: e.name, Sandboxes: i})
	}
	return all, nil
}

func creates(_ context.Context, _ *executor, sb *sandbox.Sandbox) (*sandbox.Sandbox, bool, error) {
	return sb, true, nil
}

func fails(err error) func(context.Context, *executor, *sandbox.Sandbox) (*sandbox.Sandbox, bool, error) {
	return func(context.Context, *executor, *sandbox.Sandbox) (*sandbox.Sandbox, bool, error) {
		return nil, false, err
	}
}

// TestPlacement checks which errors of a machine have a gateway try the next one.
func TestPlacement(t *testing.T) {
	p := &tenant.Principal{Tenant: tenant.Tenant{ID: "ten_a"}, Environment: tenant.Environment{ID: "env_a"}, Key: tenant.Key{ID: "key_a"}}
	db := storetest.SQLite(t)
	elsewhere := &sandbox.Sandbox{ID: runtime.NewID(), Tenant: "ten_a", Environment: "env_a", Session: "s", Name: "there", Executor: "exe_3", State: sandbox.Running}
	record := func(ctx context.Context, e *executor, sb *sandbox.Sandbox) (*sandbox.Sandbox, bool, error) {
		if there, err := db.Sandboxes().Create(ctx, elsewhere, sandbox.Quota{}); there != nil || err != nil {
			t.Error(there, err)
		}
		return nil, false, &sandbox.ElsewhereError{Sandbox: elsewhere, Executor: "exe_1"} // the records know better
	}
	for _, test := range []struct {
		name   string
		first  func(context.Context, *executor, *sandbox.Sandbox) (*sandbox.Sandbox, bool, error)
		on     string // the executor that creates it; "" for an error
		kind   fault.Kind
		says   string
		second int32 // calls of the second machine
		folds  bool
	}{
		{name: "created", first: creates, on: "exe_1", folds: true},
		{name: "full", first: fails(fault.New(fault.Unavailable, "this server is full")), on: "exe_2", second: 1, folds: true},
		{name: "invalid", first: fails(fault.New(fault.Invalid, "no such image")), kind: fault.Invalid, says: "no such image"},
		{name: "quota", first: fails(sandbox.TooMany(1, 1)), kind: fault.Exhausted, says: "limit reached"},
		{name: "internal", first: fails(errors.New("boom")), kind: fault.Internal, says: "boom"},
		{name: "cut", first: func(ctx context.Context, e *executor, sb *sandbox.Sandbox) (*sandbox.Sandbox, bool, error) {
			e.cut()
			<-ctx.Done()
			return nil, false, ctx.Err()
		}, kind: fault.Unavailable, says: "may have run"},
		{name: "away", first: nil, on: "exe_2", second: 1, folds: true},
		{name: "there", first: record, on: "exe_3", folds: true},
		{name: "tenant", first: func(_ context.Context, _ *executor, sb *sandbox.Sandbox) (*sandbox.Sandbox, bool, error) {
			sb.Tenant = "ten_b"
			return sb, true, nil
		}, kind: fault.Internal, says: "another tenant"},
		{name: "name", first: func(_ context.Context, _ *executor, sb *sandbox.Sandbox) (*sandbox.Sandbox, bool, error) {
			sb.Name = "other"
			return sb, true, nil
		}, kind: fault.Internal, says: "another tenant"},
		{name: "lies", first: fails(&sandbox.ElsewhereError{Sandbox: elsewhere, Executor: "exe_2"}), kind: fault.Unavailable, says: "Retry in a second"},
	} {
		t.Run(test.name, func(t *testing.T) {
			all := peers{{name: "exe_1", ensure: test.first}, {name: "exe_2", ensure: creates}, {name: "exe_3", ensure: creates}}
			for _, e := range all {
				e.serve(t)
			}
			if test.first == nil {
				all[0].cut()
			}
			var folded []string
			d := directory.New(directory.Config{Peers: all, Store: db.Sandboxes(), Fold: func(_ context.Context, executor string, sb *sandbox.Sandbox) error {
				folded = append(folded, executor+" "+sb.Name)
				return nil
			}})
			sb, _, err := d.Ensure(t.Context(), p, "s", test.name, &sandbox.Spec{})
			if test.on != "" {
				if err != nil || sb.Executor != test.on {
					t.Errorf("%+v, %v", sb, err)
				}
			} else if err == nil || fault.KindOf(err) != test.kind || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v of kind %d, want %q of kind %d", err, fault.KindOf(err), test.says, test.kind)
			}
			if got := all[1].asked.Load(); got != test.second {
				t.Errorf("the second machine got %d calls, want %d", got, test.second)
			}
			if (len(folded) == 1) != test.folds || test.folds && folded[0] != test.on+" "+test.name {
				t.Errorf("folded %q", folded)
			}
		})
	}
}

// TestPlacementRefused checks the error if no machine takes a sandbox, and that a canceled call
// stops.
func TestPlacementRefused(t *testing.T) {
	p := &tenant.Principal{Tenant: tenant.Tenant{ID: "ten_a"}, Environment: tenant.Environment{ID: "env_a"}, Key: tenant.Key{ID: "key_a"}}
	store := storetest.SQLite(t).Sandboxes()
	busy := &fault.Error{Kind: fault.Unavailable, Msg: "this server is full. Retry later", RetryAfter: 20 * time.Second}
	full := peers{{name: "exe_1", ensure: fails(busy)}, {name: "exe_2", ensure: fails(busy)}}
	for _, e := range full {
		e.serve(t)
	}
	for what, test := range map[string]struct {
		peers peers
		says  string
		after time.Duration
	}{
		"none": {nil, "no executor is available for new sandboxes; retry", 5 * time.Second},
		"full": {full, "no executor is available for new sandboxes; one of them answered: this server is full. Retry later", busy.RetryAfter},
	} {
		_, _, err := directory.New(directory.Config{Peers: test.peers, Store: store}).Ensure(t.Context(), p, "s", "x", &sandbox.Spec{})
		e, ok := errors.AsType[*fault.Error](err)
		if !ok || e.Kind != fault.Unavailable || !strings.HasPrefix(e.Msg, test.says) || e.RetryAfter != test.after {
			t.Errorf("%s: %+v", what, e)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopping := peers{{name: "exe_1", ensure: func(context.Context, *executor, *sandbox.Sandbox) (*sandbox.Sandbox, bool, error) {
		cancel()
		return nil, false, busy
	}}, {name: "exe_2", ensure: creates}}
	for _, e := range stopping {
		e.serve(t)
	}
	if _, _, err := directory.New(directory.Config{Peers: stopping, Store: store}).Ensure(ctx, p, "s", "x", nil); err == nil || stopping[1].asked.Load() != 0 {
		t.Errorf("a canceled call: %v", err)
	}
}

// TestForeign checks that answers of a machine about sandboxes of others are neither returned nor
// recorded.
func TestForeign(t *testing.T) {
	p := &tenant.Principal{Tenant: tenant.Tenant{ID: "ten_a"}, Environment: tenant.Environment{ID: "env_a"}, Key: tenant.Key{ID: "key_a"}}
	store := storetest.SQLite(t).Sandboxes()
	e := &executor{name: "exe_1"}
	e.serve(t)
	mine := e.sandbox(sandbox.GrantOf(p), "s", "x")
	if there, err := store.Create(t.Context(), mine, sandbox.Quota{}); there != nil || err != nil {
		t.Fatal(there, err)
	}
	folds := 0
	d := directory.New(directory.Config{Peers: peers{e}, Store: store, Fold: func(context.Context, string, *sandbox.Sandbox) error { folds++; return errors.New("away") }})
	e.get = func(*sandbox.Sandbox) {}
	if sb, err := d.Sleep(t.Context(), p, "s", "x"); err != nil || sb.Name != "x" || folds != 1 {
		t.Fatal(sb, err, folds)
	}
	for what, change := range map[string]func(*sandbox.Sandbox){
		"tenant":      func(sb *sandbox.Sandbox) { sb.Tenant = "ten_b" },
		"environment": func(sb *sandbox.Sandbox) { sb.Environment = "env_b" },
		"executor":    func(sb *sandbox.Sandbox) { sb.Executor = "exe_2" },
	} {
		e.get = change
		if sb, err := d.Sleep(t.Context(), p, "s", "x"); sb != nil || fault.KindOf(err) != fault.Internal || folds != 1 {
			t.Errorf("%s: %+v, %v, folded %d", what, sb, err, folds)
		}
	}
	neighbour := *p
	neighbour.Environment.ID = "env_b"
	for _, name := range []string{"x", string(mine.ID), string(runtime.NewID())} {
		if _, err := d.Get(t.Context(), &neighbour, "s", name); fault.KindOf(err) != fault.NotFound || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
