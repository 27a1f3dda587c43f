package response

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/agent/pooltool"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

func (h *Handlers) create(c *httpapi.Call, in *CreateResponse) error {
	r, q, err := h.prepare(c.Context(), c.Caller, in)
	if err != nil {
		return err
	}
	if r.Keep > 0 {
		c.About(idOf(r.ID))
	} else {
		c.Unkept()
	}
	background, streamed := in.Background != nil && *in.Background, in.Stream != nil && *in.Stream
	q.Publish = background || streamed
	if err := h.Gate.Open(); err != nil {
		return err
	}
	if err := h.Gate.CheckSpace(c.Context(), c.Caller, r.Keep > 0); err != nil {
		return err
	}
	if err := h.Gate.Admit(c.Context(), c.Starter(), q.Models[0]); err != nil {
		return err
	}
	done, err := h.Loop.Begin(c.Context(), r, q, h.MaxUnderWay, nil)
	if err != nil {
		return err
	}
	if !background {
		// The response goes with the client that waits for it.
		stop := context.AfterFunc(c.Context(), func() {
			if err := h.Loop.Cancel(context.WithoutCancel(c.Context()), r.Tenant, r.ID); err != nil && fault.KindOf(err) != fault.Conflict {
				c.Log().Warn("a response whose client is gone goes on", "response", idOf(r.ID), "error", err)
			}
		})
		defer stop()
	}
	switch {
	case streamed:
		err := h.stream(c, r.ID, -1)
		if err == nil {
			h.forget(c, r)
		}
		return err
	case background:
		return h.accept(c, r.ID)
	}
	if err := h.wait(c.Context(), r, done); err != nil {
		return err
	}
	c.TellRates(h.Gate.Left(c.Caller, q.Models[0]))
	err = h.answer(c, r.ID)
	h.forget(c, r)
	return err
}

// forget removes a response that is not to be kept, once its caller has it.
func (h *Handlers) forget(c *httpapi.Call, r *run.Run) {
	if r.Keep > 0 {
		return
	}
	if err := h.Loop.Delete(context.WithoutCancel(c.Context()), r); err != nil {
		c.Log().Warn("a response that is not kept stays for a while", "response", idOf(r.ID), "error", err)
	}
}

// prepare returns the run of a request.
func (h *Handlers) prepare(ctx context.Context, caller *tenant.Principal, in *CreateResponse) (*run.Run, *run.Request, error) {
	p := &parser{
		ctx: ctx, tenant: caller.Tenant.ID, seal: h.Seal, web: h.Web, mcp: h.MCP, env: &caller.Environment,
		find: h.finder(ctx, caller.Tenant.ID),
	}
	q, set, err := p.parse(in)
	if err != nil {
		return nil, nil, err
	}
	q.RetryFor, q.Within = h.RetryFor, h.Within
	if err := h.checkInterpreter(ctx, caller, q); err != nil {
		return nil, nil, err
	}
	if caller.May(tenant.ScopeTools) {
		sandboxtool.Tell(q.Tools, h.Services, func(t *run.Tool) bool { return sandboxtool.RunsCode(t) || pooltool.RunsCode(t) })
	}
	for _, name := range q.Models {
		if err := h.Gate.CheckModel(ctx, caller.Tenant.ID, name); err != nil {
			return nil, nil, err
		}
	}
	r := &run.Run{ID: run.NewID(), Tenant: caller.Tenant.ID, Key: caller.Key.ID, Environment: caller.Environment.ID}
	if set.Store {
		r.Keep = h.Keep
	}
	r.Sandbox = run.SandboxOf(r.ID)
	var before *run.State
	if set.PreviousResponseID != "" {
		if before, err = h.continues(ctx, r, q, set.PreviousResponseID); err != nil {
			return nil, nil, err
		}
	}
	if err := h.prepareMCP(p, r, q, before); err != nil {
		return nil, nil, err
	}
	for _, check := range []func() error{
		q.CheckTools, func() error { return checkChoice(q) },
		func() error { return p.approve(q, set, before) }, func() error { return checkCalls(q) },
	} {
		if err := check(); err != nil {
			return nil, nil, err
		}
	}
	q.Settings, err = json.Marshal(set)
	return r, q, err
}

// continues puts the conversation of an earlier response before the input, and returns its
// state.
func (h *Handlers) continues(ctx context.Context, r *run.Run, q *run.Request, previous string) (*run.State, error) {
	none := fault.New(fault.NotFound, "previous_response_id: there is no such response")
	id, ok := runOf(previous)
	if !ok {
		return nil, none
	}
	before, err := h.Store.Run(ctx, r.Tenant, id)
	if fault.KindOf(err) == fault.NotFound || err == nil && (before.Keep == 0 || before.Session != "") {
		return nil, none
	}
	if err != nil {
		return nil, err
	}
	if !before.Status.Continuable() {
		return nil, fault.New(fault.Conflict, "previous_response_id: the response is %s; only one that has completed can be continued", before.Status)
	}
	s, err := h.Loop.State(ctx, id)
	if err != nil {
		return nil, err
	}
	r.Sandbox = before.Sandbox
	earlier := slices.Clip(s.Remembered())
	q.Input, q.Before = append(earlier, q.Input...), len(earlier)
	return s, nil
}

// checkCalls refuses what providers refuse: results without calls, and calls without
// results.
func checkCalls(q *run.Request) error {
	open := map[string]bool{}
	for i := range q.Input {
		it := &q.Input[i]
		switch {
		case it.Call != nil:
			open[it.Call.ID] = true
		case it.Result != nil:
			if _, ok := open[it.Result.CallID]; !ok {
				return invalid("input has a function_call_output or custom_tool_call_output with call_id %q, and no call with it; add the call before it", it.Result.CallID)
			}
			open[it.Result.CallID] = false
		}
	}
	for _, a := range q.Approved {
		open[a.Call] = false // the run begins with it
	}
	for id, lacks := range open {
		if lacks {
			return invalid("input has no %s for call_id %q; add one", outputType(q.Input, id), id)
		}
	}
	return nil
}

// wait waits for the end of a run, wherever it is driven.
func (h *Handlers) wait(ctx context.Context, r *run.Run, done <-chan struct{}) error {
	select {
	case <-done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return h.Loop.Wait(ctx, r.Tenant, r.ID)
}

// answer sends a response as it is now.
func (h *Handlers) answer(c *httpapi.Call, id run.ID) error {
	out, err := h.response(c, id)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(c.W, http.StatusOK, out)
}

// accept sends a response as it was when it began, so that it says the same however fast
// the model is.
func (h *Handlers) accept(c *httpapi.Call, id run.ID) error {
	s, err := h.begun(c.Context(), id)
	if err != nil {
		return err
	}
	out, err := h.renderer(c).response(s)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(c.W, http.StatusOK, out)
}

// begun is a run as it was when it began. It may have ended since.
func (h *Handlers) begun(ctx context.Context, id run.ID) (*run.State, error) {
	s, err := h.Loop.State(ctx, id)
	if err != nil {
		return nil, err
	}
	s.Output, s.End, s.Model = nil, nil, ""
	return s, nil
}

// find returns the state of a response of the caller's.
func (h *Handlers) find(c *httpapi.Call) (*run.Run, error) {
	unknown := fault.New(fault.NotFound, "no such response")
	id, ok := runOf(c.Path("response_id"))
	if !ok {
		return nil, unknown
	}
	r, err := h.Store.Run(c.Context(), c.Caller.Tenant.ID, id)
	if fault.KindOf(err) == fault.NotFound || err == nil && (r.Keep == 0 || r.Session != "") {
		return nil, unknown
	}
	return r, err
}

func (h *Handlers) renderer(c *httpapi.Call) *renderer {
	return &renderer{
		tenant: c.Caller.Tenant.ID, seal: h.Seal, outputs: asksOutputs(c), acts: strings.HasPrefix(c.R.URL.Path, agentPath),
	}
}

func (h *Handlers) response(c *httpapi.Call, id run.ID) (*Response, error) {
	s, err := h.Loop.State(c.Context(), id)
	if err != nil {
		return nil, err
	}
	return h.renderer(c).response(s)
}
