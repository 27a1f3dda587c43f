package sandbox

import (
	"net/http"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// runContext runs code in a context.
func (h *Handlers) runContext(c *httpapi.Call, in *RunCode) error {
	timeout, err := sandboxes.Millis("timeout_ms", in.TimeoutMS, 1)
	if err != nil {
		return err
	}
	if timeout, err = h.Service.CodeTimeout(c.Caller, timeout); err != nil {
		return err
	}
	if err := c.Draining(); err != nil {
		return err
	}
	_, err = onContext(c, h, func(all codecontext.Contexts, id codecontext.ID, u *sandboxes.Use) (nothing, error) {
		return nothing{}, run(c, u, all, &sandboxes.CodeRun{Context: id, Code: *in.Code, Timeout: timeout, Hinted: true})
	})
	return err
}

func run(c *httpapi.Call, u *sandboxes.Use, all codecontext.Contexts, r *sandboxes.CodeRun) error {
	ctx, stop := c.Living(c.Context())
	defer stop()
	out := &codeAnswer{c: c, streamed: httpapi.Accepts(c.R.Header, httpapi.NDJSON) || httpapi.Accepts(c.R.Header, httpapi.EventStream)}
	defer out.end()
	res, err := u.RunCode(ctx, all, r, out.take)
	switch {
	case err != nil:
		return out.fail(err)
	case res.Killed != nil:
		return out.fail(res.Killed)
	}
	return out.finish(res)
}

// codeAnswer is the answer to a run of code: all at once, or as it comes.
type codeAnswer struct {
	c        *httpapi.Call
	streamed bool
	events   *httpapi.Events // once a streamed answer has begun
	out      [process.Terminal][]byte
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
	case len(e.Text) > 0 && a.streamed:
		return a.events.Send(CodeEvent{Type: "output", Stream: e.Stream.String(), Data: string(e.Text)})
	case len(e.Text) > 0:
		a.out[e.Stream] = append(a.out[e.Stream], e.Text...)
	}
	return nil
}

// fail is for a run that is not known to have ended.
func (a *codeAnswer) fail(err error) error {
	if a.events == nil {
		return err
	}
	_, body := httpapi.Render(err)
	return a.events.Send(CodeEvent{Type: "result", Code: body.Error, Text: body.Message})
}

func (a *codeAnswer) finish(res *sandboxes.CodeResult) error {
	body := resultOf(res.Result)
	body.Hint = res.Hint
	if a.events == nil {
		body.Stdout, body.Stderr = string(a.out[process.Stdout]), string(a.out[process.Stderr])
		body.Values = append(body.Values, a.values...)
		return httpapi.WriteJSON(a.c.W, http.StatusOK, body)
	}
	return a.events.Send(CodeEvent{Type: "result", Result: body})
}

func (a *codeAnswer) end() {
	if a.events != nil {
		a.events.End()
	}
}
