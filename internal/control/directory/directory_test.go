package directory_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/control/directory"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// machine has no sandboxes, and can be asked for those.
type machine struct{ sandbox.Node }

var errNone = fault.New(fault.NotFound, "sandbox not found")

func (machine) Use(context.Context, *sandbox.Grant, string, string) (sandbox.Handle, error) {
	return nil, errNone
}

func (machine) Get(context.Context, *sandbox.Grant, string, string) (*sandbox.Sandbox, error) {
	return nil, errNone
}

func (machine) Destroy(context.Context, *sandbox.Grant, string, string) (*sandbox.Sandbox, error) {
	return nil, errNone
}

// TestRecordable has a caller whose calls the trail has no room for look at sandboxes and
// end them, and nothing else.
func TestRecordable(t *testing.T) {
	full := fault.Limit("audit_rows", time.Time{}, "the audit trail is full")
	d := directory.New(directory.Config{Local: machine{}, Recordable: func(context.Context, *tenant.Principal) error { return full }})
	ctx, p := t.Context(), &tenant.Principal{Environment: tenant.Environment{ID: "env_a"}}
	refused := map[string]error{}
	_, refused["use"] = d.Use(ctx, p, "s", "x")
	_, _, refused["ensure"] = d.Ensure(ctx, p, "s", "x", nil)
	_, refused["update"] = d.Update(ctx, p, "s", "x", sandbox.Change{})
	_, refused["sleep"] = d.Sleep(ctx, p, "s", "x")
	_, refused["fork"] = d.Fork(ctx, p, "s", "x", 1)
	_, refused["snapshot"] = d.Snapshot(ctx, p, "s", "x", 0)
	for what, err := range refused {
		if !errors.Is(err, full) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := d.Get(ctx, p, "s", "x"); !errors.Is(err, errNone) {
		t.Errorf("get: %v", err)
	}
	if err := d.Destroy(ctx, p, "s", "x"); !errors.Is(err, errNone) {
		t.Errorf("destroy: %v", err)
	}
	if _, err := directory.New(directory.Config{Local: machine{}}).Use(ctx, p, "s", "x"); !errors.Is(err, errNone) {
		t.Errorf("without a bound: %v", err)
	}
}

// TestCallersWithoutSandboxes checks that a disabled tenant and a key without an environment are
// refused before any machine is asked.
func TestCallersWithoutSandboxes(t *testing.T) {
	d := directory.New(directory.Config{Local: machine{}})
	ctx := t.Context()
	env := tenant.Environment{ID: "env_a"}
	for says, p := range map[string]*tenant.Principal{
		"disabled":       {Environment: env, Tenant: tenant.Tenant{DisabledAt: new(time.Now())}},
		"no environment": {},
	} {
		refused := map[string]error{}
		_, refused["use"] = d.Use(ctx, p, "s", "x")
		_, refused["get"] = d.Get(ctx, p, "s", "x")
		_, refused["list"] = d.List(ctx, p, "s")
		_, _, refused["ensure"] = d.Ensure(ctx, p, "s", "x", nil)
		refused["destroy"] = d.Destroy(ctx, p, "s", "x")
		for what, err := range refused {
			if fault.KindOf(err) != fault.Forbidden || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v, want %q", what, err, says)
			}
		}
	}
}
