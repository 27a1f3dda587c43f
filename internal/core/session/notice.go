package session

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Webhook is where the state of a session is told. It does not change.
type Webhook struct {
	URL    string
	Secret string // signs; "" for unsigned
}

// NoticeKind is what a Notice tells.
type NoticeKind string

// Kinds of notices.
const (
	TellsIdle   NoticeKind = "idle"
	TellsAction NoticeKind = "requires_action"
	TellsError  NoticeKind = "error"
	TellsEnd    NoticeKind = "terminated" // archived or deleted
)

// Notice is a message about a session's state.
type Notice struct {
	Tenant  tenant.ID
	Session ID
	Agent   agent.ID
	Webhook Webhook
	Kind    NoticeKind
	Seq     int64 // of the event that says so; of the last one when it is terminated
	At      time.Time
	End     run.Status // of the turn
	Waits   []run.Wait
	Failure *run.TurnFailure
}

// ID names the message, the same at every attempt.
func (n *Notice) ID() string {
	id := fmt.Sprintf("evt_%s_%d", strings.TrimPrefix(string(n.Session), "sess_"), n.Seq)
	if n.Kind == TellsEnd {
		id += "_" + string(TellsEnd)
	}
	return id
}

// Notice is what events of a session say to its webhook; nil for nothing.
func (s *Session) Notice(events []run.SessionEvent) *Notice {
	if s.Webhook.URL == "" || len(events) == 0 {
		return nil
	}
	last := &events[len(events)-1]
	if last.Status == nil || last.Status.Running {
		return nil
	}
	n := &Notice{Tenant: s.Tenant, Session: s.ID, Agent: s.Agent, Webhook: s.Webhook, Kind: TellsIdle, Seq: last.Seq, At: last.At, End: last.Status.End, Waits: last.Status.Waits}
	for i := range events {
		if f := events[i].Failure; f != nil {
			n.Failure = f
		}
	}
	switch {
	case len(n.Waits) > 0:
		n.Kind = TellsAction
	case n.End == run.Failed:
		n.Kind = TellsError
	}
	return n
}

// Termination is what is told when a session is archived or deleted; nil for nothing.
func (s *Session) Termination(at time.Time) *Notice {
	if s.Webhook.URL == "" {
		return nil
	}
	return &Notice{Tenant: s.Tenant, Session: s.ID, Agent: s.Agent, Webhook: s.Webhook, Kind: TellsEnd, Seq: s.Events, At: at}
}

// EventID names an event of a session, or of a thread.
func EventID[I ~string](id I, seq int64) string {
	_, digits, _ := strings.Cut(string(id), "_")
	return fmt.Sprintf("sevt_%s_%d", digits, seq)
}

// Stops are the reasons why a turn stopped, by the status of its end.
var Stops = map[run.Status]string{
	run.Completed: "end_turn", run.RequiresAction: "requires_action", run.Cancelled: "interrupted", run.Expired: "expired", run.Incomplete: "limit", run.Failed: "error",
}

var eventPattern = regexp.MustCompile(`^sevt_([0-9a-f]{32})_([1-9][0-9]{0,9})$`)

// EventSeq returns the place in a session, or a thread, of the event with an id.
func EventSeq(of ID, id string) (seq int64, ok bool) {
	m := eventPattern.FindStringSubmatch(id)
	if _, digits, _ := strings.Cut(string(of), "_"); m == nil || m[1] != digits {
		return 0, false
	}
	seq, err := strconv.ParseInt(m[2], 10, 64)
	return seq, err == nil
}
