package response

import (
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// ErrElsewhere rejects a decision from another environment than the response's.
var ErrElsewhere = fault.New(fault.Conflict, "the response belongs to another environment: use a key of that environment")

// Resume continues a response in the background after the last decision on its calls, with the same
// model and tools. It returns the id of the new response.
func (h *Handlers) Resume(c *httpapi.Call, id run.ID, said []run.Said) (run.ID, error) {
	before, err := h.Store.Run(c.Context(), c.Caller.Tenant.ID, id)
	if err != nil {
		return "", err
	}
	if before.Environment != c.Caller.Environment.ID {
		return "", ErrElsewhere
	}
	if !before.Status.Continuable() {
		return "", fault.New(fault.Conflict, "the response is %s; only one that has completed can be continued", before.Status)
	}
	s, err := h.Loop.State(c.Context(), id)
	if err != nil {
		return "", err
	}
	r := &run.Run{ID: run.NewID(), Tenant: before.Tenant, Key: c.Caller.Key.ID, Environment: before.Environment, Sandbox: before.Sandbox, Keep: before.Keep}
	q, err := decided(s, said)
	if err != nil {
		return "", err
	}
	for _, name := range q.Models {
		if err := h.Gate.CheckModel(c.Context(), r.Tenant, name); err != nil {
			return "", err
		}
	}
	if err := h.Gate.Open(); err != nil {
		return "", err
	}
	if err := h.Gate.CheckSpace(c.Context(), c.Caller, true); err != nil {
		return "", err
	}
	if err := h.Gate.Admit(c.Context(), c.Starter(), q.Models[0]); err != nil {
		return "", err
	}
	_, err = h.Loop.Begin(c.Context(), r, q, h.MaxUnderWay, nil)
	return r.ID, err
}

// decided builds the model request that follows the decisions on a response's calls.
func decided(s *run.State, said []run.Said) (*run.Request, error) {
	var set Settings
	if err := json.Unmarshal(s.Request.Settings, &set); err != nil {
		return nil, err
	}
	q := *s.Request
	q.Input = slices.Clone(s.Remembered())
	q.Before, q.Approved, q.Output, q.Choice, q.Publish, q.Verdicts = len(q.Input), nil, nil, model.ToolChoice{}, true, said
	set.PreviousResponseID, set.InputItems, set.Background, set.Approvals = idOf(s.ID), 0, true, nil
	var p parser
	for i := range said {
		d := &said[i]
		if at := slices.IndexFunc(s.Output, func(it run.Item) bool { return it.ID == d.Item && it.Approval != nil }); at >= 0 {
			d.Call = s.Output[at].Approval.CallID
		}
		at := lastCall(q.Input, d.Call)
		if at < 0 {
			return nil, fault.New(fault.Conflict, "the response no longer waits for the call of %q", d.Tool)
		}
		set.Approvals = append(set.Approvals, Approval{Request: d.Item, Approve: d.Approve, Reason: d.Reason})
		if d.Approve {
			q.Approved = append(q.Approved, run.Approved{Call: d.Call, Approval: d.Item})
			continue
		}
		p.refuse(&q, &set, at, d.Reason)
	}
	if err := checkCalls(&q); err != nil {
		return nil, err
	}
	var err error
	q.Settings, err = json.Marshal(set)
	return &q, err
}
