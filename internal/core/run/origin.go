package run

import (
	"cmp"
	"strings"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/execution"
)

// TurnID is what clients call a run: the turn of a session, with the work that it handed on, or
// a response.
func (r *Run) TurnID() string {
	if r.Session == "" {
		return "resp_" + strings.TrimPrefix(string(r.ID), "run_")
	}
	return "turn_" + strings.TrimPrefix(string(cmp.Or(r.Top, r.ID)), "run_")
}

// Origin says whose work a call of a tool is; q is what the run is asked at that moment.
func (r *Run) Origin(q *Request, tool string) execution.Origin {
	o := execution.Origin{Session: r.Sandbox, Turn: r.TurnID(), Tool: tool}
	if r.Session != "" {
		o.Agent, o.Session = q.agent(), r.Session
	}
	return o
}

// agent is the id of the agent that q is asked of; "" for a response.
func (q *Request) agent() string {
	if q == nil {
		return ""
	}
	if q.Agent == "" && q.Thread != nil { // of a run that an earlier version began
		return q.Thread.Member.Agent
	}
	return q.Agent
}

// row is an audit row of a run.
func (r *Run) row(q *Request) audit.Row {
	o := r.Origin(q, "")
	return audit.Row{
		TraceID: execution.NewTraceID(), Tenant: r.Tenant, Key: r.Key, Environment: r.Environment,
		Agent: o.Agent, SessionID: o.Session, Turn: o.Turn,
	}
}
