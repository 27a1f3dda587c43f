package executor

import (
	"context"
	"testing"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// oneUpload has one file for every id.
type oneUpload struct{}

func (oneUpload) Whole(context.Context, string, execution.FileRef) ([]byte, error) {
	return []byte("x"), nil
}

// TestNewSandboxGetsCopies: a sandbox that was made for a job without files has none, also where
// the sandbox before it had some.
func TestNewSandboxGetsCopies(t *testing.T) {
	x := &Executor{cfg: Config{Uploads: oneUpload{}}}
	u := &turn{}
	place := func(sandbox Claimed, files ...execution.FileRef) int {
		t.Helper()
		job := &task{x: x, turn: u, sandbox: sandbox, ctx: t.Context(), job: execution.Job{Turn: "a", Files: files}}
		if err := job.loadSkills(); err != nil {
			t.Fatal(err)
		}
		defer job.placed()
		return len(job.skills)
	}
	sandbox := struct{ Claimed }{}
	file := execution.FileRef{ID: "file_1", Path: "/mnt/session/a"}
	if n := place(nil, file); n != 1 {
		t.Errorf("%d files for a new sandbox", n)
	}
	if n := place(sandbox, file); n != 0 {
		t.Errorf("%d files for one that has them", n)
	}
	if n := place(nil); n != 0 {
		t.Errorf("%d files for a job without any", n)
	}
	if n := place(sandbox, file); n != 1 {
		t.Errorf("%d files for the sandbox of a job without any", n)
	}
	u = nil
	if n := place(sandbox, file); n != 1 {
		t.Errorf("%d files for a sandbox of its own, where the turn continues elsewhere", n)
	}
}
