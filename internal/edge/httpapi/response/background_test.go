package response_test

import (
	"context"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/httpapitest"
)

// slow is a store whose logs are read once their runs have ended.
type slow struct {
	run.Store
	t *testing.T
}

func (s *slow) Log(ctx context.Context, id run.ID) (entries []run.Entry, err error) {
	atolltest.Until(s.t, 30*time.Second, "the run has ended", func() bool {
		entries, err = s.Store.Log(ctx, id)
		return err != nil || len(entries) > 0 && entries[len(entries)-1].Ended != nil
	})
	return entries, err
}

// TestBackground: what began in the background is in progress for the client that began it,
// though it may have ended before the answer is written.
func TestBackground(t *testing.T) {
	s := open(t, func(c *loop.Config) { c.Store = &slow{c.Store, t} })
	r := ask(t, s, 200, "POST", "/v1/responses", `{"model": "echo", "input": "x", "background": true}`)
	want(t, r, "in_progress", "")
	if r["usage"] != nil || r["completed_at"] != nil || r["background"] != true || r["model"] != "echo" {
		t.Errorf("got %s", show(r))
	}
	want(t, ask(t, s, 200, "GET", "/v1/responses/"+r["id"].(string), ""), "completed", "completed message x")
}

// TestBackgroundStream: a background response can be streamed from its first event on.
func TestBackgroundStream(t *testing.T) {
	s := open(t)
	all := events(t, httpapitest.Ask(s, "POST", "/v1/responses", `{"model": "echo", "input": "x", "background": true, "stream": true}`))
	if first, last := all[0], all[len(all)-1]; first["type"] != "response.created" || last["type"] != "response.completed" {
		t.Errorf("from %s to %s", show(first), show(last))
	}
}
