package executor_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/node/executor"
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
