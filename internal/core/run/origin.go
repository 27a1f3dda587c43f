package run

import (
	"cmp"
	"strings"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/execution"
)

// TurnID returns the id under which clients know the run: its response, or its session's turn,
// which includes delegated work.
func (r *Run) TurnID() string {
	if r.Session == "" {
		return "resp_" + strings.TrimPrefix(string(r.ID), "run_")
	}
	return "turn_" + strings.TrimPrefix(string(cmp.Or(r.Top, r.ID)), "run_")
}

// Origin attributes a tool call. q is the run's current request.
func (r *Run) Origin(q *Request, tool string) execution.Origin {
	o := execution.Origin{Session: r.Sandbox, Turn: r.TurnID(), Tool: tool}
	if r.Session != "" {
		o.Agent, o.Session = q.agent(), r.Session
	}
	return o
}

// agent returns the id of the agent that answers q; "" for a response.
func (q *Request) agent() string {
	if q == nil {
		return ""
	}
	if q.Agent == "" && q.Thread != nil { // an earlier version started the run
		return q.Thread.Member.Agent
	}
	return q.Agent
}

// row returns an audit row with the run's attribution.
func (r *Run) row(q *Request) audit.Row {
	o := r.Origin(q, "")
	return audit.Row{
		TraceID: execution.NewTraceID(), Tenant: r.Tenant, Key: r.Key, Environment: r.Environment,
		Agent: o.Agent, SessionID: o.Session, Turn: o.Turn,
	}
}
