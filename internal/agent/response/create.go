package response

import (
	"context"

	"slices"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/agent/admission"
	"github.com/atoll-run/atoll/internal/agent/interpreter"
	"github.com/atoll-run/atoll/internal/agent/mcptool"
	"github.com/atoll-run/atoll/internal/agent/pooltool"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/core/container"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

func invalid(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

// Request describes a response to create.
type Request struct {
	*run.Request
	Settings  *Settings
	Servers   []mcptool.Server // whose tools the model gets
	Known     []mcptool.Known  // lists of tools that the client carries
	Asked     []string         // ids of items that asked for approvals, which the client carries
	Approvals []Approval       // the client's decisions
}

// Started is a response that has started.
type Started struct {
	Run   *run.Run
	Model string // whose rates it counts against
	done  <-chan struct{}
}

// Create starts a response.
func (s *Service) Create(ctx context.Context, caller *admission.Caller, in *Request) (*Started, error) {
	r, err := s.prepare(ctx, caller.Principal, in)
	if err != nil {
		return nil, err
	}
	return s.start(ctx, caller, r, in.Request)
}

// start starts a run that the caller may start.
func (s *Service) start(ctx context.Context, caller *admission.Caller, r *run.Run, q *run.Request) (*Started, error) {
	if err := s.Gate.Open(); err != nil {
		return nil, err
	}
	if err := s.Gate.CheckSpace(ctx, caller.Principal, r.Keep > 0); err != nil {
		return nil, err
	}
	if err := s.Gate.Admit(ctx, caller, q.Models[0]); err != nil {
		return nil, err
	}
	done, err := s.Runs.Begin(ctx, r, q, s.MaxUnderWay, nil)
	return &Started{r, q.Models[0], done}, err
}

// prepare completes a request, and returns its run.
func (s *Service) prepare(ctx context.Context, caller *tenant.Principal, in *Request) (*run.Run, error) {
	q, set := in.Request, in.Settings
	q.RetryFor, q.Within = s.RetryFor, s.Within
	if err := s.checkInterpreter(ctx, caller, q); err != nil {
		return nil, err
	}
	if caller.May(tenant.ScopeTools) {
		sandboxtool.Tell(q.Tools, s.Services, func(t *run.Tool) bool { return sandboxtool.RunsCode(t) || pooltool.RunsCode(t) })
	}
	for _, name := range q.Models {
		if err := s.Gate.CheckModel(ctx, caller.Tenant.ID, name); err != nil {
			return nil, err
		}
	}
	r := &run.Run{ID: run.NewID(), Tenant: caller.Tenant.ID, Key: caller.Key.ID, Environment: caller.Environment.ID}
	if set.Store {
		r.Keep = s.Keep
	}
	r.Sandbox = run.SandboxOf(r.ID)
	var before *run.State
	var err error
	if set.PreviousResponseID != "" {
		if before, err = s.continues(ctx, r, q, set.PreviousResponseID); err != nil {
			return nil, err
		}
	}
	if err := s.listTools(ctx, r, in, before); err != nil {
		return nil, err
	}
	for _, check := range []func() error{q.CheckTools, q.CheckChoice, func() error { return in.approve(before) }, func() error { return checkCalls(q) }} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	q.Settings, err = json.Marshal(set)
	return r, err
}

// listTools adds the tools of MCP servers. before is the state of the response that the request
// continues; nil for none.
func (s *Service) listTools(ctx context.Context, r *run.Run, in *Request, before *run.State) error {
	known := in.Known
	if before != nil {
		known = append(known, knownFrom(before)...)
	}
	if len(in.Servers)+len(known) == 0 {
		return nil
	}
	return s.MCP.Prepare(ctx, r, in.Request, in.Servers, known)
}

// knownFrom is what an earlier run knew of servers, but of those that have other tools now.
func knownFrom(s *run.State) (known []mcptool.Known) {
	for i := range s.Request.Remotes {
		r := &s.Request.Remotes[i]
		if !slices.ContainsFunc(s.Output, func(it run.Item) bool { return it.Use != nil && it.Use.Server == r.Label && it.Use.Changed }) {
			known = append(known, mcptool.Known{Label: r.Label, Tools: r.Tools, Sealed: r.Sealed})
		}
	}
	return known
}

// continues puts the conversation of an earlier response before the input, and returns its
// state.
func (s *Service) continues(ctx context.Context, r *run.Run, q *run.Request, previous string) (*run.State, error) {
	none := fault.New(fault.NotFound, "previous_response_id: response %.80q not found", previous)
	id, ok := RunOf(previous)
	if !ok {
		return nil, none
	}
	before, err := s.Records.Run(ctx, r.Tenant, id)
	if fault.KindOf(err) == fault.NotFound || err == nil && (before.Keep == 0 || before.Session != "") {
		return nil, none
	}
	if err != nil {
		return nil, err
	}
	if !before.Status.Continuable() {
		return nil, fault.New(fault.Conflict, "previous_response_id: the response is %s; only one that has completed can be continued", before.Status)
	}
	state, err := s.Runs.State(ctx, id)
	if err != nil {
		return nil, err
	}
	r.Sandbox = before.Sandbox
	earlier := slices.Clip(state.Remembered())
	q.Input, q.Before = append(earlier, q.Input...), len(earlier)
	return state, nil
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
			return invalid("input has no %s for call_id %q; add one", OutputType(q.Input, id), id)
		}
	}
	return nil
}

// Types of the items that answer calls of a client's tools.
const (
	FunctionOutput = "function_call_output"
	CustomOutput   = "custom_tool_call_output"
)

// callOf returns the last call with an id, since providers can repeat ids; nil without one.
func callOf(items []model.Item, id string) *model.Call {
	for _, it := range slices.Backward(items) {
		if it.Call != nil && it.Call.ID == id {
			return it.Call
		}
	}
	return nil
}

// OutputType returns the type of the item that answers a call.
func OutputType(items []model.Item, id string) string {
	if c := callOf(items, id); c != nil && c.Custom {
		return CustomOutput
	}
	return FunctionOutput
}

// ErrNoContainer rejects a container that does not exist, at a path of the request.
func ErrNoContainer(path string) error {
	return fault.New(fault.NotFound, "%s.container: not found, or expired", path)
}

// checkInterpreter checks that the caller may use code_interpreter, with the container that
// the request names.
func (s *Service) checkInterpreter(ctx context.Context, caller *tenant.Principal, q *run.Request) error {
	i := slices.IndexFunc(q.Tools, func(t run.Tool) bool { return t.Handler == interpreter.Name })
	if i < 0 {
		return nil
	}
	if s.Containers == nil {
		return invalid("tools has code_interpreter, and this server has no containers")
	}
	if !caller.May(tenant.ScopeSandboxes) {
		return fault.New(fault.Forbidden, "code_interpreter needs a key with the scope %s", tenant.ScopeSandboxes)
	}
	if err := sandbox.CheckCaller(caller); err != nil {
		return err
	}
	var o interpreter.Options
	if err := json.Unmarshal(q.Tools[i].Options, &o); err != nil || o.Container == "" {
		return err
	}
	id, _ := o.Container.Sandbox()
	sb, err := s.Containers.Get(ctx, caller, container.Session, string(id))
	if err != nil && fault.KindOf(err) != fault.NotFound {
		return err
	}
	if err == nil {
		if _, ok := container.Of(sb); ok && container.Alive(sb) {
			return nil
		}
	}
	return ErrNoContainer("code_interpreter")
}
