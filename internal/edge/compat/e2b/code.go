package e2b

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/wire"
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

// names are what E2B calls a language, where that is not our name.
var names = map[string]language.Name{"javascript": "node", "js": "node", "python3": "python", "shell": "bash"}

// languageOf finds a language that has contexts.
func languageOf(name *string) (language.Name, error) {
	if name == nil || *name == "" {
		return language.Default, nil
	}
	l := language.Name(strings.ToLower(*name))
	if ours, ok := names[string(l)]; ok {
		l = ours
	}
	if !slices.Contains(language.ContextNames(), l) {
		return "", unsupported("language %.40q is not supported by this server; code runs in %s", *name, language.Join(language.ContextNames(), ", ", " or "))
	}
	return l, nil
}

func contextOf(c *codecontext.Context) Context {
	l := string(c.ID.Language())
	if l == "node" {
		l = "javascript"
	}
	return Context{ID: string(c.ID), Language: l, Dir: c.Dir}
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
	l, err := languageOf(in.Language)
	if err != nil {
		return out, err
	}
	dir := ""
	if in.Dir != nil {
		dir = home(*in.Dir)
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
	l, err := languageOf(in.Language)
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
	held     [process.Terminal][]byte
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
	for s := range r.held {
		if err := r.text(process.Stream(s), true); err != nil {
			return err
		}
	}
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
	r.held[e.Stream] = append(r.held[e.Stream], e.Text...)
	return r.text(e.Stream, false)
}

// text sends the output of a stream. The beginning of a character waits for its end, unless
// it is all.
func (r *run) text(s process.Stream, all bool) error {
	whole := len(r.held[s])
	if !all {
		whole = wire.WholeRunes(r.held[s])
	}
	if whole == 0 {
		return nil
	}
	text := string(r.held[s][:whole])
	r.held[s] = append(r.held[s][:0], r.held[s][whole:]...)
	return r.send(Line{Type: s.String(), Text: &text, Timestamp: time.Now().UnixNano()})
}

// forms are E2B's names of media types.
var forms = map[string]string{
	"text/plain": "text", "text/html": "html", "text/markdown": "markdown", "image/svg+xml": "svg", "image/png": "png", "image/jpeg": "jpeg",
	"application/pdf": "pdf", "text/latex": "latex", "application/json": "json", "application/javascript": "javascript", "e2b/data": "data", "e2b/chart": "chart",
}

// resultOf is a line with a value in the forms there are of it.
func resultOf(v *codecontext.Display) map[string]jsontext.Value {
	line, extra := map[string]jsontext.Value{"type": jsontext.Value(`"result"`), "is_main_result": jsontext.Value("false")}, map[string]jsontext.Value{}
	if v.Result {
		line["is_main_result"] = jsontext.Value("true")
	}
	for media, data := range v.Data {
		if form, ok := forms[media]; ok {
			line[form] = data
		} else {
			extra[media] = data
		}
	}
	if text, ok := line["text"]; ok {
		line["text"] = unquoted(text)
	}
	if len(extra) > 0 {
		if text, err := json.Marshal(extra, json.Deterministic(true)); err == nil {
			line["extra"] = text
		}
	}
	return line
}

// unquoted takes the quotes of a string's representation off, as E2B does.
func unquoted(text jsontext.Value) jsontext.Value {
	var s string
	if json.Unmarshal(text, &s) != nil || len(s) < 2 || s[0] != s[len(s)-1] || s[0] != '\'' && s[0] != '"' {
		return text
	}
	out, err := json.Marshal(s[1 : len(s)-1])
	if err != nil {
		return text
	}
	return out
}
