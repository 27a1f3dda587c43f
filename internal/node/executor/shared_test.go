package executor_test

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/node/executor"
	"github.com/atoll-run/atoll/test/atolltest"
)

// breaking has the kernels of its first claims break before their programs begin.
type breaking struct {
	executor.Sandboxes
	left int
	late bool // after they were found fit
}

func (b *breaking) Claim(ctx context.Context, j *execution.Job) (executor.Claimed, execution.StartReason, error) {
	c, why, err := b.Sandboxes.Claim(ctx, j)
	if err != nil || b.left == 0 {
		return c, why, err
	}
	b.left--
	if b.late {
		return &breaks{c, c.(executor.Shared)}, why, nil
	}
	err = b.Remove(ctx, c.Folder())
	<-c.Done()
	return c, why, err
}

// breaks is a kernel whose guest refuses the program.
type breaks struct {
	executor.Claimed
	executor.Shared
}

func (b *breaks) Run(context.Context, execution.Program, execution.Sink) (execution.Outcome, error) {
	return execution.Outcome{}, errors.New("refused")
}

// TestABrokenKernelCostsNoExecution runs a job of which the kernel that others of its key
// share breaks before its program begins: once, when it gets another, and every time.
func TestABrokenKernelCostsNoExecution(t *testing.T) {
	for name, c := range map[string]struct {
		breaking
		want execution.Status
	}{
		"before it is looked at": {breaking{left: 1}, execution.Success},
		"after that":             {breaking{left: 1, late: true}, execution.Success},
		"twice":                  {breaking{left: 2}, execution.Blocked},
	} {
		t.Run(name, func(t *testing.T) {
			b := &c.breaking
			m := start(t, folderFor(t), options{sandboxes: func(s executor.Sandboxes) executor.Sandboxes { b.Sandboxes = s; return b }})
			j := job("print(1)")
			j.Key, j.Isolation = "key", execution.IsolationKey
			r := m.run(t, j)
			if r.Status != c.want || r.NotStarted != (c.want != execution.Success) {
				t.Errorf("%+v", r)
			}
			if c.want == execution.Success && (string(r.Stdout) != "1\n" || r.Isolation != execution.IsolationKey) {
				t.Errorf("%+v", r)
			}
			if n := strings.Count(m.messages.String(), "the job gets another"); n != 1 {
				t.Errorf("it got another kernel %d times", n)
			}
			if b.left > 0 {
				t.Errorf("%d kernels were not asked for", b.left)
			}
		})
	}
}

// stores keeps blobs, but for one time at which it breaks down.
type stores struct {
	executor.Blobs
	broken atomic.Bool
}

func (s *stores) Put(ctx context.Context, name string, r io.Reader) error {
	if s.broken.Load() {
		panic("no blob is stored")
	}
	return s.Blobs.Put(ctx, name, r)
}

// TestABrokenJobTakesItsKernelAlong has a job break down after its program has ended, while its
// journal still has it. Until then the files of its key's programs come from the kernel they share.
func TestABrokenJobTakesItsKernelAlong(t *testing.T) {
	dir := folderFor(t)
	blobs := &stores{Blobs: folder(filepath.Join(dir, "blobs"))}
	m := start(t, dir, options{blobs: blobs})
	ofKey := func() execution.Result {
		j := job("open('out', 'x').write('1')")
		j.Key, j.Isolation, j.Input.Outputs = "key", execution.IsolationKey, []string{"out"}
		return m.run(t, j)
	}
	for _, start := range []execution.Start{execution.StartCold, execution.StartWarm} {
		if r := ofKey(); r.Start != start || r.Status != execution.Success || len(r.Files.Files) != 1 {
			t.Errorf("%+v", r)
		}
		atolltest.Until(t, 20*time.Second, "the kernel waits", func() bool { return m.count(t, "atoll_shared_kernels_idle") == 1 })
	}
	blobs.broken.Store(true)
	if r := ofKey(); r.Status != execution.Failed || r.NotStarted {
		t.Errorf("%+v", r)
	}
	atolltest.Until(t, 20*time.Second, "the kernel goes", func() bool { return len(atolltest.Trace(dir).Sandboxes()) == 0 })
}
