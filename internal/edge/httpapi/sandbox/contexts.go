package sandbox

import (
	"context"
	"net/http"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

func (h *Handlers) contexts() []httpapi.Operation {
	const (
		get, post, del = http.MethodGet, http.MethodPost, http.MethodDelete
		contexts       = sandboxPath + "/contexts"
		one            = contexts + "/{context}"
	)
	id := httpapi.Param{Name: "context", In: httpapi.InPath, Doc: "Its context_id; " + language.Join(language.ContextNames(), ", ", " or ") + " for the context of that language which the first run creates.", Example: string(language.Default)}
	context := []httpapi.Answer{httpapi.OK(CodeContext{}, "The context.")}
	running := httpapi.Refusal(http.StatusConflict, "conflict: the context is running code, or has ended; or the sandbox is lost.")
	ops := []httpapi.Operation{
		{
			Method: get, Path: contexts, ID: "listContexts", Summary: "List code contexts", Description: "Lists the contexts that were not deleted, including those whose interpreter has ended.", Params: onOne(),
			Answers: []httpapi.Answer{httpapi.OK(CodeContexts{}, "Oldest first.")}, Serve: httpapi.Returns(h.listContexts),
		},
		{
			Method: post, Path: contexts, ID: "createContext", Summary: "Start a code context", Description: "An interpreter that keeps what each run defines. A sandbox has at most 32. The context with the name of a language need not be made: its first run starts it.", Audit: "context_create", Params: onOne(),
			Body:    httpapi.JSON(NewContext{Language: new(language.ContextName(language.Default)), Dir: new("/home/user")}),
			Answers: []httpapi.Answer{httpapi.Located(CodeContext{}, "It takes code.")}, Serve: httpapi.Takes(h.createContext),
		},
		{Method: get, Path: one, ID: "getContext", Summary: "Get a code context", Description: "Its language, folder, and whether it runs something right now. A context that has `ended` has to be restarted.", Params: onOne(id), Answers: context, Serve: httpapi.Returns(h.getContext)},
		{Method: del, Path: one, ID: "deleteContext", Summary: "End a code context", Description: "Its interpreter is ended, with all that it defined.", Audit: "context_delete", Params: onOne(id), Answers: []httpapi.Answer{gone}, Serve: httpapi.Does(h.deleteContext)},
		{
			Method: post, Path: one + "/run", ID: "runContext", Summary: "Run code in a context", Description: "It waits until the code has ended, at most `timeout_ms`. Code that fails is no error of the call: `status` and `error` say what happened. A context runs one piece at a time; another one returns 409. With `Accept: application/x-ndjson` or `text/event-stream` output and values come as they are made.", Audit: "context", Params: onOne(id),
			Body: httpapi.JSON(RunCode{Code: new("x = 41\nx + 1"), TimeoutMS: new(wire.Millis(10_000))}),
			Answers: []httpapi.Answer{{
				Status: http.StatusOK, Body: CodeResult{}, Media: []httpapi.Media{{Type: httpapi.NDJSON, Body: CodeEvent{}}, {Type: httpapi.EventStream, Body: CodeEvent{}}},
				Doc: "How it ended; code that failed is no error of the call. With Accept for a stream, each piece of output and each value is a line as it comes.",
			}},
			Serve: httpapi.WritesFrom(h.runContext),
		},
		{Method: post, Path: one + "/interrupt", ID: "interruptContext", Summary: "Interrupt what a context runs", Description: "As Ctrl-C does: Python code gets `KeyboardInterrupt`. Definitions stay. The call does not wait until the code ends. If no code runs, the call has no effect; so an interrupt that arrives before the code starts is lost.", Audit: "context_interrupt", Params: onOne(id), Answers: []httpapi.Answer{httpapi.NoContent("It is done.")}, Serve: httpapi.Does(h.interruptContext)},
		{Method: post, Path: one + "/restart", ID: "restartContext", Summary: "Start a context again, with nothing defined", Description: "The interpreter is ended and started again under the same id.", Audit: "context_restart", Params: onOne(id), Answers: context, Serve: httpapi.Returns(h.restartContext)},
	}
	for i := range ops {
		ops[i].Answers = append(ops[i].Answers, running)
	}
	return ops
}

// inContexts runs f with the contexts of the sandbox that a request is about, which it
// wakes if it sleeps.
func inContexts[T any](c *httpapi.Call, h *Handlers, f func(codecontext.Contexts, *sandboxes.Use) (T, error)) (out T, err error) {
	r, err := h.ref(c)
	if err != nil {
		return out, err
	}
	c.Trail.Asks(c.Path("context"))
	return sandboxes.With(c.Context(), h.Service, r, func(u *sandboxes.Use) (out T, err error) {
		all, err := u.Contexts()
		if err != nil {
			return out, err
		}
		return f(all, u)
	})
}

// onContext is inContexts for the context that a request is about.
func onContext[T any](c *httpapi.Call, h *Handlers, f func(codecontext.Contexts, codecontext.ID, *sandboxes.Use) (T, error)) (T, error) {
	return inContexts(c, h, func(all codecontext.Contexts, u *sandboxes.Use) (out T, err error) {
		id, err := codecontext.ParseID(c.Path("context"))
		if err != nil {
			return out, err
		}
		return f(all, id, u)
	})
}

func (h *Handlers) listContexts(c *httpapi.Call) (CodeContexts, error) {
	return inContexts(c, h, func(contexts codecontext.Contexts, _ *sandboxes.Use) (CodeContexts, error) {
		all, err := contexts.List(c.Context())
		return CodeContexts{httpapi.Each(all, contextOf)}, err
	})
}

func (h *Handlers) createContext(c *httpapi.Call, in *NewContext) (CodeContext, error) {
	return inContexts(c, h, func(contexts codecontext.Contexts, u *sandboxes.Use) (out CodeContext, err error) {
		c.Trail.Asks(string(*in.Language))
		dir := ""
		if in.Dir != nil {
			dir = *in.Dir
		}
		made, err := contexts.Create(c.Context(), language.Name(*in.Language), dir)
		if err != nil {
			return out, err
		}
		c.W.Header().Set("Location", sandboxesPath+"/"+string(u.Sandbox().ID)+"/contexts/"+string(made.ID))
		return contextOf(made), nil
	})
}

// oneContext serves an operation on a context that returns the context.
func (h *Handlers) oneContext(c *httpapi.Call, do func(codecontext.Contexts, context.Context, codecontext.ID) (*codecontext.Context, error)) (CodeContext, error) {
	return onContext(c, h, func(all codecontext.Contexts, id codecontext.ID, _ *sandboxes.Use) (out CodeContext, err error) {
		found, err := do(all, c.Context(), id)
		if err != nil {
			return out, err
		}
		return contextOf(found), nil
	})
}

func (h *Handlers) getContext(c *httpapi.Call) (CodeContext, error) {
	return h.oneContext(c, codecontext.Contexts.Get)
}

func (h *Handlers) restartContext(c *httpapi.Call) (CodeContext, error) {
	return h.oneContext(c, codecontext.Contexts.Restart)
}

type nothing struct{}

func (h *Handlers) deleteContext(c *httpapi.Call) error {
	_, err := onContext(c, h, func(all codecontext.Contexts, id codecontext.ID, _ *sandboxes.Use) (nothing, error) {
		return nothing{}, all.Delete(c.Context(), id)
	})
	return err
}

func (h *Handlers) interruptContext(c *httpapi.Call) error {
	_, err := onContext(c, h, func(all codecontext.Contexts, id codecontext.ID, _ *sandboxes.Use) (nothing, error) {
		return nothing{}, all.Interrupt(c.Context(), id)
	})
	return err
}
