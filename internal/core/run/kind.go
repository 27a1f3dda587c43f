package run

import (
	"slices"

	"github.com/atoll-run/atoll/internal/core/model"
)

// ToldKind is a kind of session event. Its text is the type of the event in Atoll's own API.
type ToldKind string

// Kinds of events.
const (
	ToldMessage  ToldKind = "message"
	ToldThinking ToldKind = "thinking"
	ToldCall     ToldKind = "tool_use"
	ToldResult   ToldKind = "tool_result"
	ToldDecision ToldKind = "tool_confirmation"
	ToldError    ToldKind = "error"
	ToldWarning  ToldKind = "warning" // the turn continues despite a failure
	ToldUsage    ToldKind = "usage"
	ToldStatus   ToldKind = "status"
	ToldFile     ToldKind = "file" // a tool gave the client a file

	// Events of skills.
	ToldPlan     ToldKind = "plan"
	ToldReview   ToldKind = "review"
	ToldDocument ToldKind = "state"
	ToldReminder ToldKind = "reminder"

	// Events of outcomes.
	ToldOutcome    ToldKind = "user.define_outcome"
	ToldEvaluating ToldKind = "outcome_evaluation_start"
	ToldGrading    ToldKind = "outcome_evaluation_ongoing" // the check passed, or Atoll asks a grader again
	ToldEvaluated  ToldKind = "outcome_evaluation_end"

	// Events of handoffs.
	ToldOpened     ToldKind = "thread_created"
	ToldSent       ToldKind = "thread_message_sent"
	ToldReceived   ToldKind = "thread_message_received"
	ToldIdle       ToldKind = "thread_idle"
	ToldTerminated ToldKind = "thread_terminated"
	ToldSummary    ToldKind = "context_summary"
	ToldCompacted  ToldKind = "context_compacted" // the start of the conversation was summarized
	ToldSpeaker    ToldKind = "speaker"

	// Events that only compatible APIs send.
	ToldRequest   ToldKind = "model_request" // Atoll asked a model
	ToldAnswer    ToldKind = "model_answer"  // the model's answer ended
	ToldInterrupt ToldKind = "interrupt"     // the client interrupted the turn or its wait for answers
)

// kind describes a kind of event.
type kind struct {
	name ToldKind
	// origins are the origins that Told.Sort tells apart.
	origins []string
	// compat says that only compatible APIs send the event.
	compat bool
}

// kinds describes all kinds, in the order of the API's reference. The filters of events, their
// streams and the OpenAPI document derive from it.
var kinds = []kind{
	{name: ToldMessage, origins: []string{string(model.User), string(model.Assistant), string(model.System)}},
	{name: ToldThinking},
	{name: ToldCall, origins: []string{ByServer, ByClient}},
	{name: ToldResult, origins: []string{ByServer, ByClient}},
	{name: ToldDecision},
	{name: ToldError},
	{name: ToldWarning},
	{name: ToldUsage},
	{name: ToldStatus, origins: []string{Begun}},
	{name: ToldFile},
	{name: ToldPlan},
	{name: ToldReview},
	{name: ToldDocument},
	{name: ToldReminder},
	{name: ToldOutcome},
	{name: ToldEvaluating},
	{name: ToldGrading},
	{name: ToldEvaluated},
	{name: ToldOpened},
	{name: ToldSent},
	{name: ToldReceived},
	{name: ToldIdle},
	{name: ToldTerminated},
	{name: ToldSummary},
	{name: ToldCompacted},
	{name: ToldSpeaker},
	{name: ToldRequest, compat: true},
	{name: ToldAnswer, compat: true},
	{name: ToldInterrupt, compat: true},
}

// ToldKinds returns the kinds of events that Atoll's own API sends.
func ToldKinds() (out []ToldKind) {
	for i := range kinds {
		if !kinds[i].compat {
			out = append(out, kinds[i].name)
		}
	}
	return out
}

// Choices returns the texts of ToldKinds.
func (ToldKind) Choices() (out []string) {
	for _, k := range ToldKinds() {
		out = append(out, string(k))
	}
	return out
}

// Sorts returns the sorts of a kind: without an origin, and with each of its origins.
func (k ToldKind) Sorts() []Sort {
	out := []Sort{Sort(k)}
	if i := slices.IndexFunc(kinds, func(known kind) bool { return known.name == k }); i >= 0 {
		for _, by := range kinds[i].origins {
			out = append(out, k.By(by))
		}
	}
	return out
}
