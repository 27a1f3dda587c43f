package sandboxes

import (
	"context"
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/node/disk"
)

// overfull is a sandbox whose files take more than its limit.
type overfull struct {
	Live
	folder string
}

func (l overfull) Folder() string { return l.folder }

func (overfull) Usage(context.Context) (runtime.Usage, error) {
	return runtime.Usage{CPUSeconds: 1}, nil
}

func (overfull) Measure(_ context.Context, limit int64) (int64, error) {
	return limit + 1, disk.ErrOverLimit
}

// TestRefusedCopyChangesNothing: a program that has copies refused all the time does not
// switch its sandbox's disk limit off.
func TestRefusedCopyChangesNothing(t *testing.T) {
	t.Parallel()
	sb := &sandbox.Sandbox{Name: "x", Disk: 1 << 20, Limits: runtime.Limits{Memory: 1 << 20}}
	m := &Manager{cfg: Config{AdmitDisk: func() error { return nil }}}
	e := &entry{sb: sb}
	live := overfull{folder: t.TempDir()}
	h := &Handle{sb: sb, m: m, e: e, live: live}
	looked := false
	copies := func() hostCopies {
		if looked { // the files were measured since
			a := &copyAllowance{h: h, ctx: t.Context()}
			if _, err := a.more(0); fault.KindOf(err) != fault.Exhausted {
				t.Errorf("a copy beyond the limit: %v", err)
			}
			a.end()
		}
		looked = true
		return e.copying
	}
	w := watch{silentSince: -1}
	if err := w.check(t.Context(), live, sb, true, false, copies); fault.KindOf(err) != fault.Exhausted {
		t.Errorf("a sandbox beyond its limit, with a copy refused meanwhile: %v", err)
	}
}
