package sandbox

import (
	"context"
	"net/http"
	"time"

	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Bounds of a run of code.
const (
	runTimeout = 30 * time.Second
	runOutput  = 10 << 20 // of each stream
)

// runContext runs code in a context.
func (h *Handlers) runContext(c *httpapi.Call, in *RunCode) error {
	timeout, err := millis("timeout_ms", in.TimeoutMS, 1)
	if err != nil {
		return err
	}
	if timeout == 0 {
		timeout = runTimeout
	}
	if limit := h.Policies.Policy(c.Caller).MaxTimeout; timeout > limit {
		return fault.Limit("timeout", time.Time{}, "timeout_ms exceeds your plan's maximum of %d", limit.Milliseconds())
	}
	if err := c.Draining(); err != nil {
		return err
	}
	_, err = inContexts(c, h, func(contexts codecontext.Contexts, u sandbox.Handle) (nothing, error) {
		id, err := codecontext.ParseID(c.Path("context"))
		if err != nil {
			return nothing{}, err
		}
		return nothing{}, run(c, u, contexts, id, codecontext.Request{Code: *in.Code, Timeout: timeout, MaxOutput: min(runOutput, c.Caller.Plan.MaxOutput)})
	})
	return err
}

func run(c *httpapi.Call, u sandbox.Handle, contexts codecontext.Contexts, id codecontext.ID, req codecontext.Request) error {
	ctx, stop := c.Living(c.Context())
	defer stop()
	out := &codeAnswer{c: c, streamed: httpapi.Accepts(c.R.Header, httpapi.NDJSON) || httpapi.Accepts(c.R.Header, httpapi.EventStream)}
	defer out.end()
	c.Trail.Asks(req.Code)
	c.Trail.Late = true // the row tells how the run ended
	began := time.Now()
	res, err := contexts.Run(ctx, id, req, out.take)
	if err := LeaveRun(ctx, c.Trail, id, res, err); err != nil {
		return out.fail(err)
	}
	if err != nil {
		if why := u.Stopped(ctx); why != nil {
			err = why
		}
	} else if res.Status == codecontext.Ended {
		err = u.Killed(ctx, *res.Exit)
	}
	if err != nil {
		return out.fail(err)
	}
	return out.finish(res, sandbox.RunHint(u, res, began, out.tails[process.Stderr], out.tails[process.Stdout]))
}

// LeaveRun leaves the audit row of a run.
func LeaveRun(ctx context.Context, t *httpapi.Trail, id codecontext.ID, res *codecontext.Result, failed error) error {
	t.Row.SetRun(id, res, failed)
	return t.Leave(ctx, nil)
}

// codeAnswer is the answer to a run of code: all at once, or as it comes.
type codeAnswer struct {
	c        *httpapi.Call
	streamed bool
	events   *httpapi.Events // once a streamed answer has begun
	out      [process.Terminal][]byte
	tails    [process.Terminal]execution.Tail
	values   []CodeValue
}

func (a *codeAnswer) take(e codecontext.Event) error {
	if a.streamed && a.events == nil {
		a.events = a.c.Events(CodeEvent{Type: "keepalive"})
	}
	switch {
	case e.Display != nil && a.streamed:
		v := valueOf(e.Display)
		return a.events.Send(CodeEvent{Type: "value", Value: &v})
	case e.Display != nil:
		a.values = append(a.values, valueOf(e.Display))
	case len(e.Text) > 0:
		a.tails[e.Stream].Add(e.Text)
		a.out[e.Stream] = append(a.out[e.Stream], e.Text...)
		if a.streamed {
			return a.flush(e.Stream, false)
		}
	}
	return nil
}

// flush sends the output of a stream; the beginning of a character waits for its
// end unless it is all.
func (a *codeAnswer) flush(stream process.Stream, all bool) error {
	whole := len(a.out[stream])
	if !all {
		whole = wire.WholeRunes(a.out[stream])
	}
	if whole == 0 {
		return nil
	}
	err := a.events.Send(CodeEvent{Type: "output", Stream: stream.String(), Data: string(a.out[stream][:whole])})
	a.out[stream] = append(a.out[stream][:0], a.out[stream][whole:]...)
	return err
}

// fail is for a run that is not known to have ended.
func (a *codeAnswer) fail(err error) error {
	if a.events == nil {
		return err
	}
	_, body := httpapi.Render(err)
	return a.events.Send(CodeEvent{Type: "result", Code: body.Error, Text: body.Message})
}

func (a *codeAnswer) finish(res *codecontext.Result, hint string) error {
	body := resultOf(res)
	body.Hint = hint
	if a.events == nil {
		body.Stdout, body.Stderr = string(a.out[process.Stdout]), string(a.out[process.Stderr])
		body.Values = append(body.Values, a.values...)
		return httpapi.WriteJSON(a.c.W, http.StatusOK, body)
	}
	for _, stream := range []process.Stream{process.Stdout, process.Stderr} {
		if err := a.flush(stream, true); err != nil {
			return err
		}
	}
	return a.events.Send(CodeEvent{Type: "result", Result: body})
}

func (a *codeAnswer) end() {
	if a.events != nil {
		a.events.End()
	}
}
