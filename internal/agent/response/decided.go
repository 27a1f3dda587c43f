package response

import (
	"context"

	"slices"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/agent/admission"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
)

// Approval is a client's answer to an item mcp_approval_request. It is kept with the run, for
// its input items.
type Approval struct {
	Path    string `json:"-"`
	Request string `json:"approval_request_id"`
	Approve bool   `json:"approve"`
	Reason  string `json:"reason,omitzero"`
}

// ErrElsewhere rejects a decision from another environment than the response's.
var ErrElsewhere = fault.New(fault.Conflict, "the response belongs to another environment: use a key of that environment")

// Resume continues a response in the background after the last decision on its calls, with the same
// model and tools. It returns the id of the new response.
func (s *Service) Resume(ctx context.Context, caller *admission.Caller, id run.ID, said []run.Said) (run.ID, error) {
	before, err := s.Records.Run(ctx, caller.Tenant.ID, id)
	if err != nil {
		return "", err
	}
	if before.Environment != caller.Environment.ID {
		return "", ErrElsewhere
	}
	if !before.Status.Continuable() {
		return "", fault.New(fault.Conflict, "the response is %s; only one that has completed can be continued", before.Status)
	}
	state, err := s.Runs.State(ctx, id)
	if err != nil {
		return "", err
	}
	r := &run.Run{ID: run.NewID(), Tenant: before.Tenant, Key: caller.Key.ID, Environment: before.Environment, Sandbox: before.Sandbox, Keep: before.Keep}
	q, err := decided(state, said)
	if err != nil {
		return "", err
	}
	for _, name := range q.Models {
		if err := s.Gate.CheckModel(ctx, r.Tenant, name); err != nil {
			return "", err
		}
	}
	_, err = s.start(ctx, caller, r, q)
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
	set.PreviousResponseID, set.InputItems, set.Background, set.Approvals = ID(s.ID), 0, true, nil
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
		refuse(&q, &set, at, d.Reason)
	}
	if err := checkCalls(&q); err != nil {
		return nil, err
	}
	var err error
	q.Settings, err = json.Marshal(set)
	return &q, err
}

// approve makes calls that the client has approved the beginning of a run, and gives the
// others a result that says so. before is the state of the response that the run continues;
// nil for none.
func (in *Request) approve(before *run.State) error {
	q, s := in.Request, in.Settings
	open := map[string]string{} // ids of calls, by the items that asked for their approval
	for _, id := range in.Asked {
		open[id] = id
	}
	if before != nil {
		for i := range before.Output {
			if it := &before.Output[i]; it.Approval != nil {
				open[it.ID] = it.Approval.CallID
			}
		}
	}
	for _, a := range in.Approvals {
		call, ok := open[a.Request]
		at := lastCall(q.Input, call)
		if !ok || at < 0 {
			return invalid("%s.approval_request_id names no mcp_approval_request that waits for an answer", a.Path)
		}
		delete(open, a.Request)
		s.Approvals = append(s.Approvals, a)
		q.Verdicts = append(q.Verdicts, run.Said{Item: a.Request, Call: call, Tool: q.Input[at].Call.Name, Approve: a.Approve, Reason: a.Reason})
		if !a.Approve {
			refuse(q, s, at, a.Reason)
			continue
		}
		c := q.Input[at].Call
		if !slices.ContainsFunc(q.Tools, func(t run.Tool) bool { return t.Name == c.Name && t.Server != "" }) {
			return invalid("%s approves a call of %s, which no server among tools has", a.Path, c.Name)
		}
		q.Approved = append(q.Approved, run.Approved{Call: call, Approval: a.Request})
	}
	for id, call := range open {
		if lastCall(q.Input, call) >= 0 {
			return invalid("input has no mcp_approval_response for %q", id)
		}
	}
	return nil
}

// lastCall is the place of the last call of an id if it has no result; -1 otherwise.
func lastCall(items []model.Item, id string) int {
	for at, it := range slices.Backward(items) {
		if it.Result != nil && it.Result.CallID == id {
			return -1
		}
		if it.Call != nil && it.Call.ID == id {
			return at
		}
	}
	return -1
}

// refuse gives the call at a place a result, after the calls that were asked for with it.
func refuse(q *run.Request, s *Settings, at int, reason string) {
	text := "The user did not allow this call, so it was not made."
	if reason != "" {
		text += " The user's reason: " + reason
	}
	result := model.Item{Result: &model.Result{CallID: q.Input[at].Call.ID, Failed: true, Parts: []model.Part{{Kind: model.PartText, Text: text}}}}
	at++
	for at < len(q.Input) && (q.Input[at].Call != nil || q.Input[at].Result != nil) {
		at++
	}
	if at > len(q.Input)-s.InputItems {
		s.InputItems++
	}
	q.Input = slices.Insert(q.Input, at, result)
}
