package response

import (
	"context"
	"regexp"
	"slices"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// maxReferred limits the responses whose items an input can refer to, because Items reads each
// one completely.
const maxReferred = 256

// outputID matches the id of an output item; it contains the run's id.
var outputID = regexp.MustCompile(`^[a-z]+_([0-9a-f]{32})[0-9a-f]{4,}$`)

// Items returns a function that converts the id of an output item to its items of the conversation.
// An item is not found while its run continues, or if the run is not kept.
func (s *Service) Items(ctx context.Context, t tenant.ID) func(id string) ([]model.Item, error) {
	none := fault.New(fault.NotFound, "item not found")
	states := map[run.ID]*run.State{} // a conversation has many items of few responses
	return func(id string) ([]model.Item, error) {
		match := outputID.FindStringSubmatch(id)
		if match == nil {
			return nil, none
		}
		name := run.ID("run_" + match[1])
		state, ok := states[name]
		if !ok {
			if len(states) == maxReferred {
				return nil, invalid("input has items of more than %d responses", maxReferred)
			}
			r, err := s.Records.Run(ctx, t, name)
			if fault.KindOf(err) == fault.NotFound || err == nil && (r.Keep == 0 || !r.Status.Final()) {
				return nil, none
			}
			if err != nil {
				return nil, err
			}
			if state, err = s.Runs.State(ctx, name); err != nil {
				return nil, err
			}
			states[name] = state
		}
		at := slices.IndexFunc(state.Output, func(it run.Item) bool { return it.ID == id })
		if at < 0 {
			return nil, none
		}
		return conversed(state, at), nil
	}
}

// conversed returns the items of the conversation that an output item stands for.
func conversed(s *run.State, at int) []model.Item {
	it := &s.Output[at]
	switch {
	case it.Message != nil:
		return []model.Item{{Message: it.Message}}
	case it.Reasoning != nil:
		return []model.Item{{Reasoning: it.Reasoning}}
	case it.Call != nil:
		return []model.Item{{Call: it.Call}}
	}
	call := calledBy(it)
	before := 0 // providers may use an id again
	for i := range s.Output[:at] {
		if calledBy(&s.Output[i]) == call {
			before++
		}
	}
	var calls, results []model.Item
	for _, said := range s.Conversation[len(s.Request.Input):] {
		switch {
		case said.Call != nil && said.Call.ID == call:
			calls = append(calls, said)
		case said.Result != nil && said.Result.CallID == call:
			results = append(results, said)
		}
	}
	if before >= len(calls) || before >= len(results) {
		return nil // it is shown of another call, such as a list of tools
	}
	return []model.Item{calls[before], results[before]}
}

// calledBy returns the id of the call that an item shows; "" if it shows none.
func calledBy(it *run.Item) string {
	switch {
	case it.Code != nil:
		return it.Code.CallID
	case it.Use != nil:
		return it.Use.CallID
	}
	return ""
}
