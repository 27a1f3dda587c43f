package sandboxes

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

const id = "sb-0123456789abcdef"

// fake has one sandbox, whose programs have ended for a reason.
type fake struct {
	Sandboxes
	spec    *sandbox.Spec
	by      *tenant.Principal
	change  sandbox.Change
	stopped error
}

func (f *fake) Get(context.Context, *tenant.Principal, string, string) (*sandbox.Sandbox, error) {
	return &sandbox.Sandbox{ID: id, Session: "s"}, nil
}

func (f *fake) Ensure(_ context.Context, p *tenant.Principal, session, name string, spec *sandbox.Spec) (*sandbox.Sandbox, bool, error) {
	f.by, f.spec = p, spec
	return &sandbox.Sandbox{ID: id, Session: session, Name: name}, true, nil
}

func (f *fake) Update(_ context.Context, _ *tenant.Principal, _, _ string, c sandbox.Change) (*sandbox.Sandbox, error) {
	f.change = c
	return &sandbox.Sandbox{ID: id}, nil
}

func (f *fake) Use(context.Context, *tenant.Principal, string, string) (sandbox.Handle, error) {
	return &handle{of: f}, nil
}

type handle struct {
	sandbox.Handle
	of *fake
}

func (*handle) Sandbox() *sandbox.Sandbox       { return &sandbox.Sandbox{ID: id, Session: "s"} }
func (h *handle) Stopped(context.Context) error { return h.of.stopped }
func (*handle) Close()                          {}

// open returns a service with one sandbox, and the audit rows that it leaves.
func open(t *testing.T, change func(*Config)) (*Service, *fake, func() *Trail, *[]sandbox.Call) {
	t.Helper()
	f, rows := &fake{}, &[]sandbox.Call{}
	cfg := Config{Sandboxes: f, EnterPool: func(_ context.Context, p *tenant.Principal, pool string) (*tenant.Principal, error) {
		in := *p
		in.Environment.ID = "of " + pool
		return &in, nil
	}}
	if change != nil {
		change(&cfg)
	}
	trail := func() *Trail {
		return NewTrail(func(_ context.Context, _ *tenant.Principal, row sandbox.Call) error {
			*rows = append(*rows, row)
			return nil
		}, sandbox.Call{})
	}
	return New(cfg), f, trail, rows
}

func caller() *tenant.Principal {
	p := &tenant.Principal{}
	p.Environment.ID, p.Environment.Name = "env_1", "main"
	p.Environment.Permissions.Network = runtime.NetworkPolicy{Mode: runtime.NetworkUnrestricted}
	return p
}

func TestLocate(t *testing.T) {
	s, _, _, _ := open(t, nil)
	bound := caller()
	bound.Token = &tenant.Token{Sandbox: tenant.TokenSandbox{ID: id, Session: "default", Name: "x"}}
	for name, c := range map[string]struct {
		p                          *tenant.Principal
		session                    *string
		want, in, environment, err string
	}{
		"the default session": {caller(), nil, "x", "default", "env_1", ""},
		"a session":           {caller(), new("s"), "x", "s", "of s", ""},
		"no session":          {caller(), new(""), "", "", "", "session"},
		"of a token":          {bound, nil, id, "default", "env_1", ""},
		"another of its name": {bound, new("s"), "x", "s", "of s", ""},
	} {
		r, err := s.Locate(t.Context(), c.p, nil, c.session, "x")
		if c.err != "" {
			if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || r.Name != c.want || r.Session != c.in || r.Caller.Environment.ID != c.environment {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

func TestCreate(t *testing.T) {
	var down error
	s, f, trail, rows := open(t, func(c *Config) { c.Draining = func() error { return down } })
	t1 := trail()
	_, _, err := s.Create(t.Context(), caller(), t1, &NewSandbox{Name: "x", Environment: new("other")})
	if fault.KindOf(err) != fault.Forbidden || t1.Leave(t.Context(), err) != nil || len(*rows) != 1 || !(*rows)[0].Refused {
		t.Errorf("another environment: %v, %+v", err, *rows)
	}
	if _, _, err := s.Create(t.Context(), caller(), nil, &NewSandbox{Name: "x", Spec: sandbox.Spec{Env: map[string]string{"A=B": "c"}}}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a wrong variable: %v", err)
	}
	blocked := func(runtime.NetworkPolicy) (*runtime.NetworkPolicy, error) { return &runtime.NetworkPolicy{}, nil }
	sb, created, err := s.Create(t.Context(), caller(), nil, &NewSandbox{Session: new("s"), Name: "x", Environment: new("of s"), Network: blocked})
	if err != nil || !created || sb.Session != "s" || f.by.Environment.ID != "of s" || f.spec.Network == nil || !f.spec.Network.Blocked() {
		t.Errorf("%+v %t %v: %+v", sb, created, err, f.spec)
	}
	down = fault.New(fault.Unavailable, "shutting down")
	if _, _, err := s.Create(t.Context(), caller(), nil, &NewSandbox{Name: "x"}); err != down {
		t.Errorf("while the server shuts down: %v", err)
	}
}

func TestUpdateNetwork(t *testing.T) {
	s, f, _, _ := open(t, nil)
	r := Ref{Caller: caller(), Name: "x"}
	if _, err := s.Update(t.Context(), r, Change{Network: Everything}); err != nil || f.change.Network == nil || f.change.Network.Mode != runtime.NetworkUnrestricted {
		t.Errorf("%+v, %v", f.change, err)
	}
	if _, err := s.Update(t.Context(), r, Change{}); err != nil || f.change.Network != nil {
		t.Errorf("%+v, %v", f.change, err)
	}
}

// TestEndedDuringUse: the caller learns why its sandbox ended, and where to look if that is
// unknown.
func TestEndedDuringUse(t *testing.T) {
	s, f, trail, rows := open(t, nil)
	gone := func(*Use) error { return process.ErrGone }
	row := trail()
	err := s.Within(t.Context(), s.Refer(t.Context(), caller(), row, "s", "x"), gone)
	if fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "/v1/sandboxes/"+id) {
		t.Error(err)
	}
	if row.Leave(t.Context(), err) != nil || len(*rows) != 1 || (*rows)[0].Refused || (*rows)[0].Metadata["sandbox_id"] != id {
		t.Errorf("%+v", *rows)
	}
	f.stopped = fault.New(fault.Exhausted, "no memory is left")
	if err := s.Within(t.Context(), Ref{Caller: caller(), Name: "x"}, gone); err != f.stopped {
		t.Error(err)
	}
}

func TestExtendDeadline(t *testing.T) {
	s, f, _, _ := open(t, nil)
	soon := time.Now().Add(time.Minute)
	for name, c := range map[string]struct {
		sb              sandbox.Sandbox
		timeout, sleeps bool
	}{
		"expires earlier": {sandbox.Sandbox{SleepAfter: -1, ExpiresAt: &soon}, true, false},
		"never expires":   {sandbox.Sandbox{SleepAfter: -1}, false, false},
		"sleeps earlier":  {sandbox.Sandbox{SleepAfter: time.Minute}, false, true},
		"sleeps later":    {sandbox.Sandbox{SleepAfter: 2 * time.Hour}, false, false},
	} {
		f.change = sandbox.Change{}
		if err := s.ExtendDeadline(t.Context(), Ref{Caller: caller()}, &c.sb, time.Hour); err != nil || (f.change.Timeout != nil) != c.timeout || (f.change.SleepAfter != nil) != c.sleeps {
			t.Errorf("%s: %+v, %v", name, f.change, err)
		}
	}
}
