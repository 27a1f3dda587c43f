package e2b

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Execute is the body that runs code.
type Execute struct {
	Code     string            `json:"code"`
	Context  *string           `json:"context_id,omitzero"`
	Language *string           `json:"language,omitzero"`
	Env      map[string]string `json:"env_vars,omitzero"`
}

// NewContext is the body that makes a code context.
type NewContext struct {
	Language *string `json:"language,omitzero"`
	Dir      *string `json:"cwd,omitzero"`
}

// Context is a code context.
type Context struct {
	ID       string `json:"id"`
	Language string `json:"language"`
	Dir      string `json:"cwd"`
}

// Line is a line of the answer to a run: what its type names.
type Line struct {
	Type      string  `json:"type"`
	Text      *string `json:"text,omitzero"`
	Timestamp int64   `json:"timestamp,omitzero"` // Unix nanoseconds
	Name      *string `json:"name,omitzero"`
	Value     *string `json:"value,omitzero"`
	Traceback *string `json:"traceback,omitzero"`
}

const contextsPath = "/contexts"

func (d *Handlers) code() []httpapi.Operation {
	return sourced([]httpapi.Operation{
		{Method: http.MethodPost, Path: "/execute", Audit: "context", Body: &httpapi.Body{JSON: Execute{}}, Serve: httpapi.WritesFrom(d.execute)},
	})
}

// contexts are the operations about code contexts that run no code.
func (d *Handlers) contexts() []httpapi.Operation {
	const one = contextsPath + "/{context}"
	return sourced([]httpapi.Operation{
		{Method: http.MethodGet, Path: contextsPath, Serve: httpapi.Returns(d.listContexts)},
		{Method: http.MethodPost, Path: contextsPath, Audit: "context_create", Body: &httpapi.Body{JSON: NewContext{}, Optional: true}, Serve: created(d.createContext)},
		{Method: http.MethodDelete, Path: one, Audit: "context_delete", Serve: httpapi.Does(d.deleteContext)},
		{Method: http.MethodPost, Path: one + "/restart", Audit: "context_restart", Body: &httpapi.Body{JSON: Empty{}, Optional: true}, Serve: httpapi.Does(d.restartContext)},
		{Method: http.MethodPost, Path: one + "/interrupt", Audit: "context_interrupt", Body: &httpapi.Body{JSON: Empty{}, Optional: true}, Serve: httpapi.Does(d.interruptContext)},
	})
}

func sourced(ops []httpapi.Operation) []httpapi.Operation {
	for i := range ops {
		ops[i].Params = []httpapi.Param{{Name: "source"}} // clients may say what they run in
	}
	return ops
}

func contextOf(c *codecontext.Context) Context {
	return Context{ID: string(c.ID), Language: sandboxes.LanguageName(c.ID.Language()), Dir: c.Dir}
}

// inContexts runs f with the contexts of the sandbox that a request is about.
func (d *Handlers) inContexts(ctx context.Context, c *httpapi.Call, f func(*sandboxes.Use, codecontext.Contexts) error) error {
	return d.within(ctx, c, func(u *sandboxes.Use) error {
		all, err := u.Contexts()
		if err != nil {
			return err
		}
		return f(u, all)
	})
}

// onContext is inContexts for a request about one of them.
func (d *Handlers) onContext(c *httpapi.Call, f func(codecontext.Contexts, codecontext.ID) error) error {
	return d.inContexts(c.Context(), c, func(_ *sandboxes.Use, all codecontext.Contexts) error {
		c.Trail.Asks(c.Path("context"))
		id, err := codecontext.ParseID(c.Path("context"))
		if err != nil {
			return err
		}
		return f(all, id)
	})
}

func (d *Handlers) listContexts(c *httpapi.Call) (out []Context, err error) {
	err = d.inContexts(c.Context(), c, func(_ *sandboxes.Use, all codecontext.Contexts) error {
		list, err := all.List(c.Context())
		out = httpapi.Each(list, contextOf)
		return err
	})
	return out, err
}

func (d *Handlers) createContext(c *httpapi.Call, in *NewContext) (out Context, err error) {
	l, err := sandboxes.ContextLanguage(in.Language)
	if err != nil {
		return out, err
	}
	dir := ""
	if in.Dir != nil {
		dir = sandboxes.Home(*in.Dir)
	}
	err = d.inContexts(c.Context(), c, func(_ *sandboxes.Use, all codecontext.Contexts) error {
		c.Trail.Asks(string(l))
		made, err := all.Create(c.Context(), l, dir)
		if err == nil {
			out = contextOf(made)
		}
		return err
	})
	return out, err
}

func (d *Handlers) deleteContext(c *httpapi.Call) error {
	return d.onContext(c, func(all codecontext.Contexts, id codecontext.ID) error { return all.Delete(c.Context(), id) })
}

func (d *Handlers) restartContext(c *httpapi.Call) error {
	return d.onContext(c, func(all codecontext.Contexts, id codecontext.ID) error {
		_, err := all.Restart(c.Context(), id)
		return err
	})
}

func (d *Handlers) interruptContext(c *httpapi.Call) error {
	return d.onContext(c, func(all codecontext.Contexts, id codecontext.ID) error { return all.Interrupt(c.Context(), id) })
}

// execute runs code, for as long as the plan allows: clients have time-outs of their own,
// and go away when they are over, which interrupts the code.
func (d *Handlers) execute(c *httpapi.Call, in *Execute) error {
	if len(in.Env) > 0 {
		return unsupported("env_vars of a run are not supported by this server: give envs when the sandbox is created, or set them in code")
	}
	l, err := sandboxes.ContextLanguage(in.Language)
	if err != nil {
		return err
	}
	id := codecontext.ID(l)
	if in.Context != nil && *in.Context != "" {
		if id, err = codecontext.ParseID(*in.Context); err != nil {
			return err
		}
	}
	if err := c.Draining(); err != nil {
		return err
	}
	ctx, stop := c.Living(c.Context())
	defer stop()
	return d.inContexts(ctx, c, func(u *sandboxes.Use, all codecontext.Contexts) error {
		r := &run{c: c, contexts: all, id: id}
		defer r.end()
		return r.run(ctx, u, &sandboxes.CodeRun{Context: id, Code: in.Code, Timeout: d.sandboxes.MaxCodeTimeout(c.Caller), InTurn: true})
	})
}

// run is one run of code.
type run struct {
	c        *httpapi.Call
	contexts codecontext.Contexts
	id       codecontext.ID
	events   *httpapi.Events // nil before the first event
}

func (r *run) run(ctx context.Context, u *sandboxes.Use, code *sandboxes.CodeRun) error {
	res, err := u.RunCode(ctx, r.contexts, code, r.take)
	if err != nil {
		if r.events == nil {
			return err
		}
		return r.failed("ExecutionError", httpapi.Reason(err))
	}
	r.begin()
	switch {
	case res.Status == codecontext.Ended:
		why := "the code ended its interpreter; what it had defined is gone"
		if res.Killed != nil {
			why = httpapi.Reason(res.Killed)
		}
		if _, err := r.contexts.Restart(ctx, r.id); err != nil {
			why += "; it was not started again: " + httpapi.Reason(err)
		}
		err = r.failed("ContextEnded", why)
	case res.Error != nil:
		err = r.send(Line{Type: "error", Name: &res.Error.Name, Value: &res.Error.Value, Traceback: new(strings.Join(res.Error.Traceback, "\n"))})
	case res.Status == codecontext.TimedOut:
		err = r.failed("TimeoutError", "the code ran for longer than the plan allows")
	case res.Status == codecontext.Interrupted:
		err = r.failed("KeyboardInterrupt", "the code was interrupted")
	case res.Status == codecontext.Failed:
		err = r.failed("ExecutionError", "the code ended with an error")
	}
	if err != nil {
		return err
	}
	return r.send(Line{Type: "end_of_execution"})
}

func (r *run) begin() {
	if r.events == nil {
		r.events = r.c.Events(Line{Type: "keepalive"})
	}
}

func (r *run) end() {
	if r.events != nil {
		r.events.End()
	}
}

func (r *run) send(l any) error { return r.events.Send(l) }

func (r *run) failed(name, value string) error {
	return r.send(Line{Type: "error", Name: &name, Value: &value, Traceback: new(name + ": " + value)})
}

func (r *run) take(e codecontext.Event) error {
	r.begin()
	if e.Display != nil {
		return r.send(resultOf(e.Display))
	}
	if len(e.Text) == 0 {
		return nil
	}
	return r.send(Line{Type: e.Stream.String(), Text: new(string(e.Text)), Timestamp: time.Now().UnixNano()})
}

// resultOf is a line with a value in the forms there are of it.
func resultOf(v *codecontext.Display) map[string]jsontext.Value {
	line, extra := sandboxes.Forms(v)
	line["type"], line["is_main_result"] = jsontext.Value(`"result"`), jsontext.Value(strconv.FormatBool(v.Result))
	if len(extra) > 0 {
		if text, err := json.Marshal(extra, json.Deterministic(true)); err == nil {
			line["extra"] = text
		}
	}
	return line
}
