package sessiontest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/session"
)

// Sandboxes checks that named sandboxes of sessions are made for those that there are, so many
// and no more, and go with them.
func Sandboxes(t *testing.T, s session.Store, boxes sandbox.Store) {
	ctx := t.Context()
	mine, other := made("ten_1"), made("ten_1")
	must(t, s.Create(ctx, mine, 0))
	must(t, s.Create(ctx, other, 0))
	add := func(of session.ID, name string, change func(*sandbox.Sandbox)) error {
		now := time.Now().UTC().Truncate(time.Microsecond)
		sb := &sandbox.Sandbox{
			ID: runtime.NewID(), Tenant: "ten_1", Environment: "env_1", Session: string(of), Name: name, Key: "key_1", Executor: "exe_1", Image: "default",
			State: sandbox.Creating, CreatedAt: now, UsedAt: now, MeteredAt: now,
		}
		if change != nil {
			change(sb)
		}
		_, err := boxes.Create(ctx, sb, sandbox.Quota{})
		return err
	}
	for name, c := range map[string]struct {
		of     session.ID
		change func(*sandbox.Sandbox)
		want   fault.Kind
	}{
		"one that never was":      {session.NewID(), nil, fault.NotFound},
		"another tenant's":        {mine.ID, func(sb *sandbox.Sandbox) { sb.Tenant = "ten_2" }, fault.NotFound},
		"of another environment":  {mine.ID, func(sb *sandbox.Sandbox) { sb.Environment = "env_2" }, fault.Conflict},
		"a name that is no id":    {"sess_mine", nil, 0},
		"that of one in no agent": {"s", nil, 0},
	} {
		err := add(c.of, "x", c.change)
		if (err == nil) != (c.want == 0) || err != nil && fault.KindOf(err) != c.want {
			t.Errorf("%s: %v, want kind %d", name, err, c.want)
		}
	}
	var wg sync.WaitGroup
	var room, full atomic.Int64
	for i := range 2 * session.MaxSandboxes {
		wg.Go(func() {
			switch err := add(mine.ID, fmt.Sprint("n", i), nil); {
			case err == nil:
				room.Add(1)
			case fault.KindOf(err) == fault.Exhausted:
				full.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if room.Load() != session.MaxSandboxes || full.Load() != session.MaxSandboxes {
		t.Errorf("%d were made and %d refused", room.Load(), full.Load())
	}
	must(t, add(other.ID, "default", nil))
	bereft := func(want int) {
		t.Helper()
		if got, err := boxes.ListWithoutEnvironment(ctx, "exe_1"); err != nil || len(got) != want {
			t.Errorf("%d are to go, %v; want %d", len(got), err, want)
		}
	}
	bereft(0)
	_, err := s.Archive(ctx, "ten_1", mine.ID)
	must(t, err)
	bereft(session.MaxSandboxes)
	if err := add(mine.ID, "late", nil); fault.KindOf(err) != fault.Conflict {
		t.Errorf("one of an archived session: %v", err)
	}
	must(t, s.Delete(ctx, "ten_1", other.ID))
	bereft(session.MaxSandboxes + 1)
}
