package container_test

import (
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/container"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

func TestIDs(t *testing.T) {
	sb := runtime.NewID()
	if got, ok := container.IDOf(sb).Sandbox(); !ok || got != sb {
		t.Errorf("%s is of %s, %t", container.IDOf(sb), got, ok)
	}
	for _, id := range []container.ID{"", "cntr_", "cntr_12", "sb-0123456789abcdef", "cntr_0123456789ABCDEF", "cntr_0123456789abcdef0"} {
		if _, ok := id.Sandbox(); ok {
			t.Errorf("%q is taken for an id", id)
		}
	}
}

func TestFileIDs(t *testing.T) {
	c, other := container.IDOf(runtime.NewID()), container.IDOf(runtime.NewID())
	for _, at := range []string{"/home/user/a.csv", "/home/user/folder/ü b.png", "/home/user/\xff"} {
		id := container.FileIDOf(c, at)
		if got, ok := id.Path(c); !ok || got != at {
			t.Errorf("%s is %q, %t", id, got, ok)
		}
		if _, ok := id.Path(other); ok {
			t.Errorf("%s is one of another container too", id)
		}
	}
	for _, id := range []container.FileID{"", "cfile_", "cfile_00000000", "cfile_00000000!", container.FileIDOf(c, "/home/user/../../etc/passwd"), container.FileIDOf(c, "/etc/passwd")} {
		if at, ok := id.Path(c); ok {
			t.Errorf("%q is taken for an id, of %s", id, at)
		}
	}
}

func TestSettings(t *testing.T) {
	p := &tenant.Principal{}
	p.Plan.MaxSandboxLife = time.Hour
	s := container.Settings{Name: "a", Minutes: 90}
	spec, err := s.Spec(p)
	if err != nil || spec.Timeout != time.Hour {
		t.Fatalf("%+v, %v", spec, err)
	}
	sb := &sandbox.Sandbox{Session: container.Session, Env: spec.Env, CreatedAt: time.Now().Add(-50 * time.Minute)}
	if got, ok := container.Of(sb); !ok || got != s {
		t.Errorf("%+v, %t", got, ok)
	}
	if left := *s.Used(p, sb, time.Minute).Timeout; left > 10*time.Minute || left < 9*time.Minute {
		t.Errorf("it lives for %v more", left)
	}
	sb.Session = "mine"
	if _, ok := container.Of(sb); ok {
		t.Error("a sandbox of another session is a container")
	}
}
