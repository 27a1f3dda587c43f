package run

import (
	"slices"

	"github.com/atoll-run/atoll/internal/core/model"
)

// EventKind is a kind of session event. Its text is the type of the event in Atoll's own API.
type EventKind string

// Kinds of events.
const (
	EventMessage  EventKind = "message"
	EventThinking EventKind = "thinking"
	EventCall     EventKind = "tool_use"
	EventResult   EventKind = "tool_result"
	EventDecision EventKind = "tool_confirmation"
	EventError    EventKind = "error"
	EventWarning  EventKind = "warning" // the turn continues despite a failure
	EventUsage    EventKind = "usage"
	EventStatus   EventKind = "status"
	EventFile     EventKind = "file" // a tool gave the client a file

	// Events of skills.
	EventPlan     EventKind = "plan"
	EventReview   EventKind = "review"
	EventDocument EventKind = "state"
	EventReminder EventKind = "reminder"

	// Events of outcomes.
	EventOutcome    EventKind = "user.define_outcome"
	EventEvaluating EventKind = "outcome_evaluation_start"
	EventGrading    EventKind = "outcome_evaluation_ongoing" // the check passed, or Atoll asks a grader again
	EventEvaluated  EventKind = "outcome_evaluation_end"

	// Events of handoffs.
	EventOpened     EventKind = "thread_created"
	EventSent       EventKind = "thread_message_sent"
	EventReceived   EventKind = "thread_message_received"
	EventIdle       EventKind = "thread_idle"
	EventTerminated EventKind = "thread_terminated"
	EventSummary    EventKind = "context_summary"
	EventCompacted  EventKind = "context_compacted" // the start of the conversation was summarized
	EventSpeaker    EventKind = "speaker"

	// Events that only compatible APIs send.
	EventRequest   EventKind = "model_request" // Atoll asked a model
	EventAnswer    EventKind = "model_answer"  // the model's answer ended
	EventInterrupt EventKind = "interrupt"     // the client interrupted the turn or its wait for answers
)

// kind describes a kind of event.
type kind struct {
	name EventKind
	// origins are the origins that SessionEvent.Sort tells apart.
	origins []string
	// compat says that only compatible APIs send the event.
	compat bool
}

// kinds describes all kinds, in the order of the API's reference. The filters of events, their
// streams and the OpenAPI document derive from it.
var kinds = []kind{
	{name: EventMessage, origins: []string{string(model.User), string(model.Assistant), string(model.System)}},
	{name: EventThinking},
	{name: EventCall, origins: []string{ByServer, ByClient}},
	{name: EventResult, origins: []string{ByServer, ByClient}},
	{name: EventDecision},
	{name: EventError},
	{name: EventWarning},
	{name: EventUsage},
	{name: EventStatus, origins: []string{Begun}},
	{name: EventFile},
	{name: EventPlan},
	{name: EventReview},
	{name: EventDocument},
	{name: EventReminder},
	{name: EventOutcome},
	{name: EventEvaluating},
	{name: EventGrading},
	{name: EventEvaluated},
	{name: EventOpened},
	{name: EventSent},
	{name: EventReceived},
	{name: EventIdle},
	{name: EventTerminated},
	{name: EventSummary},
	{name: EventCompacted},
	{name: EventSpeaker},
	{name: EventRequest, compat: true},
	{name: EventAnswer, compat: true},
	{name: EventInterrupt, compat: true},
}

// EventKinds returns the kinds of events that Atoll's own API sends.
func EventKinds() (out []EventKind) {
	for i := range kinds {
		if !kinds[i].compat {
			out = append(out, kinds[i].name)
		}
	}
	return out
}

// Choices returns the texts of EventKinds.
func (EventKind) Choices() (out []string) {
	for _, k := range EventKinds() {
		out = append(out, string(k))
	}
	return out
}

// Sorts returns the sorts of a kind: without an origin, and with each of its origins.
func (k EventKind) Sorts() []Sort {
	out := []Sort{Sort(k)}
	if i := slices.IndexFunc(kinds, func(known kind) bool { return known.name == k }); i >= 0 {
		for _, by := range kinds[i].origins {
			out = append(out, k.By(by))
		}
	}
	return out
}
