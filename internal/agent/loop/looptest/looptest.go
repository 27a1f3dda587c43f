// Package looptest makes calls of tools in tests, as the loop does.
package looptest

import (
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
)

// Call returns the call with number 7 of a run in a turn's sandbox.
func Call(of *run.Request, said []model.Item, tool, arguments string) *loop.Call {
	return &loop.Call{
		Run: &run.Run{ID: run.ID("run_" + strings.Repeat("a", 32)), Sandbox: "sbx_1"}, Number: 7, Request: of, Conversation: said,
		Call: model.Call{ID: "call_1", Name: tool, Arguments: arguments},
	}
}

// Do makes a call. rejected is the reason if the call cannot be made; any other error fails the test.
func Do(t testing.TB, h loop.Handler, c *loop.Call) (out *loop.Outcome, rejected error) {
	t.Helper()
	it, err := h.Show(c)
	if err != nil {
		return nil, err
	}
	c.Item = it
	if out, err = h.Do(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return out, nil
}

// Ended returns an execution that printed stdout and ended with a status.
func Ended(status execution.Status, stdout string) execution.Execution {
	return execution.Execution{Status: status, Stdout: []byte(stdout), Windows: 1, CompletedAt: time.Unix(1_700_000_000, 0)}
}

// Text returns the text that the model reads.
func Text(out *loop.Outcome) string { return out.Result.Parts[0].Text }
