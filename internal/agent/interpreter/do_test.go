package interpreter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/container"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

func TestCall(t *testing.T) {
	m := newMachine()
	o, err := m.call(t, t.Context(), "print('out')", false, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if out := outputOf(t, o); out.Logs != "out\n" || out.Container != container.IDOf(m.sb.ID) || o.Item.Status != run.ItemCompleted || o.Result.Failed {
		t.Errorf("%+v %+v", out, o)
	}
	if told := o.Result.Parts[0].Text; told != "output:\nout\n\n" {
		t.Errorf("the model is told %q", told)
	}
	if len(m.rows) != 1 || m.rows[0].Status != audit.OK || string(m.rows[0].Command) != "print('out')" || m.rows[0].Metadata["sandbox_id"] != string(m.sb.ID) {
		t.Errorf("the trail has %+v", m.rows)
	}
	if m.life < container.DefaultMinutes*time.Minute {
		t.Errorf("the container lives for %v", m.life)
	}
	if m.keys[0] != "run_0123456789abcdef0123456789abcdef/3" {
		t.Errorf("its key is %s", m.keys[0])
	}
}

// TestBegun has calls that another process may have made.
func TestBegun(t *testing.T) {
	for name, test := range map[string]struct {
		gone    bool // there is no container
		collect error
		did     string
		want    error
	}{
		"no container":  {gone: true, did: "", want: loop.ErrUnknown},
		"no trace":      {collect: codecontext.ErrNoTrace, did: "collect close", want: loop.ErrUnknown},
		"not begun":     {collect: codecontext.ErrNotBegun, did: "collect run close"},
		"collected":     {did: "collect close"},
		"not reachable": {collect: fault.New(fault.Unavailable, "the machine is away"), did: "collect close", want: fault.New(fault.Unavailable, "")},
	} {
		m := newMachine()
		if !test.gone {
			if _, err := m.call(t, t.Context(), "1", false, Options{}); err != nil {
				t.Fatal(err)
			}
		}
		m.did = nil
		m.collect = func(ctx context.Context, sink codecontext.Sink) (*codecontext.Result, error) {
			if test.collect != nil {
				return nil, test.collect
			}
			return says("out\n")(ctx, sink)
		}
		o, err := m.call(t, t.Context(), "1", true, Options{})
		if did := strings.Join(m.did, " "); did != test.did {
			t.Errorf("%s: it did %q", name, did)
		}
		if test.want != nil {
			if !errors.Is(err, test.want) && fault.KindOf(err) != fault.KindOf(test.want) {
				t.Errorf("%s: %v", name, err)
			}
		} else if err != nil || outputOf(t, o).Logs != "out\n" {
			t.Errorf("%s: %+v, %v", name, o, err)
		}
	}
}

// TestClaim: the code is claimed once there is a container, and before it is run; where
// there is one already, nothing is.
func TestClaim(t *testing.T) {
	m := newMachine()
	claim := func() error { m.do("claim"); return nil }
	for _, want := range []string{"make claim run close", "run close"} {
		m.did = nil
		if _, err := m.claimed(t, t.Context(), "1", claim); err != nil {
			t.Fatal(err)
		}
		if did := strings.Join(m.did, " "); did != want {
			t.Errorf("it did %q, want %q", did, want)
		}
	}
	m, refused := newMachine(), errors.New("the lease is lost")
	if _, err := m.claimed(t, t.Context(), "1", func() error { return refused }); !errors.Is(err, refused) || strings.Join(m.did, " ") != "make close" {
		t.Errorf("without a claim: %v, %v", err, m.did)
	}
}

// TestEnd: code that another process has begun is interrupted, and none is begun.
func TestEnd(t *testing.T) {
	for name, test := range map[string]struct {
		gone bool
		err  error // of collecting; nil for code that runs until it is interrupted
		did  string
	}{
		"running":      {did: "collect interrupt close"},
		"not begun":    {err: codecontext.ErrNotBegun, did: "collect close"},
		"no trace":     {err: codecontext.ErrNoTrace, did: "collect close"},
		"no container": {gone: true},
	} {
		m := newMachine()
		if !test.gone {
			if _, err := m.call(t, t.Context(), "1", false, Options{}); err != nil {
				t.Fatal(err)
			}
		}
		m.did = nil
		m.collect = func(ctx context.Context, _ codecontext.Sink) (*codecontext.Result, error) {
			if test.err != nil {
				return nil, test.err
			}
			<-ctx.Done()
			m.do("interrupt")
			return &codecontext.Result{Status: codecontext.Interrupted}, nil
		}
		out, err := m.handler().End(t.Context(), callOf(t, "1", true, Options{}))
		if did := strings.Join(m.did, " "); out != nil || err != nil || did != test.did {
			t.Errorf("%s: %+v, %v; it did %q", name, out, err, did)
		}
	}
}

// TestEndOfContext: code is interrupted when its run is cancelled, and goes on when another
// process goes on with the run.
func TestEndOfContext(t *testing.T) {
	for _, cause := range []error{errors.New("cancelled"), fmt.Errorf("%w: stopping", loop.ErrLeft)} {
		m := newMachine()
		ctx, cancel := context.WithCancelCause(t.Context())
		m.run = func(ctx context.Context, sink codecontext.Sink) (*codecontext.Result, error) {
			_ = sink(codecontext.Event{})
			cancel(cause)
			<-ctx.Done()
			if errors.Is(context.Cause(ctx), codecontext.ErrDetached) {
				return nil, codecontext.ErrDetached
			}
			return &codecontext.Result{Status: codecontext.Interrupted}, nil
		}
		_, err := m.call(t, ctx, "1", false, Options{})
		if !errors.Is(err, cause) {
			t.Errorf("%v: %v", cause, err)
		}
		if left := errors.Is(cause, loop.ErrLeft); left != (len(m.rows) == 0) {
			t.Errorf("%v: the trail has %+v", cause, m.rows)
		}
	}
}

func TestEndsOfCode(t *testing.T) {
	for name, test := range map[string]struct {
		res    *codecontext.Result
		err    error
		stops  error
		status run.ItemStatus
		told   string
	}{
		"error":       {res: &codecontext.Result{Status: codecontext.Failed, Error: &codecontext.Error{Name: "E", Traceback: []string{"Traceback", "E: no"}}}, status: run.ItemCompleted, told: "E: no"},
		"no network":  {res: &codecontext.Result{Status: codecontext.Failed, Error: &codecontext.Error{Name: "gaierror", Value: "Temporary failure in name resolution"}}, status: run.ItemCompleted, told: "Hint: the environment has no network"},
		"time-out":    {res: &codecontext.Result{Status: codecontext.TimedOut}, status: run.ItemFailed, told: "interrupted after"},
		"interrupt":   {res: &codecontext.Result{Status: codecontext.Interrupted}, status: run.ItemIncomplete, told: "interrupted"},
		"exit":        {res: &codecontext.Result{Status: codecontext.Ended, Exit: &process.Exit{Code: 3}}, status: run.ItemFailed, told: "exit code 3"},
		"out of room": {res: &codecontext.Result{Status: codecontext.Ended, Exit: &process.Exit{Code: 137}}, stops: errors.New("memory limit"), status: run.ItemFailed, told: "memory limit"},
		"gone":        {err: process.ErrGone, stops: errors.New("disk limit"), status: run.ItemFailed, told: "disk limit"},
	} {
		m := newMachine()
		m.stops = test.stops
		m.run = func(_ context.Context, sink codecontext.Sink) (*codecontext.Result, error) {
			_ = sink(codecontext.Event{})
			return test.res, errors.Join(test.err, sink(codecontext.Event{Text: []byte("some")}))
		}
		o, err := m.call(t, t.Context(), "1", false, Options{})
		if err != nil || o.Item.Status != test.status || !o.Result.Failed || !strings.Contains(o.Result.Parts[0].Text, test.told) || !strings.HasPrefix(outputOf(t, o).Logs, "some") {
			t.Errorf("%s: %+v, %v", name, o, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	m := newMachine()
	m.scopes = []tenant.Scope{tenant.ScopeExecute}
	o, err := m.call(t, t.Context(), "1", false, Options{})
	if err != nil || o.Item.Status != run.ItemFailed || !o.Refused || len(m.did) > 0 || !strings.Contains(o.Result.Parts[0].Text, "scope") {
		t.Errorf("without the scope: %+v, %v", o, err)
	}
	m = newMachine()
	if _, err := m.call(t, t.Context(), "1", false, Options{}); err != nil {
		t.Fatal(err)
	}
	named := Options{Container: container.IDOf(m.sb.ID)}
	if o, err := m.call(t, t.Context(), "1", false, named); err != nil || o.Result.Failed || o.Refused {
		t.Errorf("a container that is named: %+v, %v", o, err)
	}
	m.sb.State = sandbox.Lost
	if o, err := m.call(t, t.Context(), "1", false, named); err != nil || !strings.Contains(o.Result.Parts[0].Text, "expired") {
		t.Errorf("one that is lost: %+v, %v", o, err)
	}
	m = newMachine()
	m.record = fault.New(fault.Unavailable, "no room")
	if _, err := m.call(t, t.Context(), "1", false, Options{}); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a row that cannot be written: %v", err)
	}
}

// TestIdle: an interpreter that has ended is started again, and one that runs another's code
// is waited for.
func TestIdle(t *testing.T) {
	for _, exit := range []*process.Exit{{Code: 1}, nil} {
		m := newMachine()
		m.exit = exit
		tries := 0
		m.run = func(ctx context.Context, sink codecontext.Sink) (*codecontext.Result, error) {
			if tries++; tries == 1 {
				return nil, fault.New(fault.Conflict, "not now")
			}
			return says("out\n")(ctx, sink)
		}
		o, err := m.call(t, t.Context(), "1", false, Options{})
		if err != nil || outputOf(t, o).Logs != "out\n" || strings.Contains(o.Result.Parts[0].Text, "started again") != (exit != nil) {
			t.Errorf("%+v, %v", o, err)
		}
	}
}
