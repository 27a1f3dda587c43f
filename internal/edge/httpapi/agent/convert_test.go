package agent

import (
	"testing"

	"github.com/atoll-run/atoll/internal/agent/agents"
	"github.com/atoll-run/atoll/internal/core/agent"
)

// TestBoundsOfTurns: an agent shows the bounds of its turns as they were given, and keeps them in
// changes of others.
func TestBoundsOfTurns(t *testing.T) {
	h := &Handlers{Service: &agents.Service{}}
	a := &agent.Agent{Visibility: agent.Private, Definition: agent.Definition{Name: "a", Model: agent.Model{Name: "m"}}}
	for _, change := range []AgentChange{
		{MaxSteps: new(7), RetryForMS: new(int64(0)), Compaction: &AgentCompaction{Mode: new("auto"), AtTokens: new(int64(5000))}},
		{Name: new("b")},
	} {
		if err := change.change(a); err != nil {
			t.Fatal(err)
		}
		if err := a.Check(); err != nil {
			t.Fatal(err)
		}
		if out := h.agentOf(a); *out.MaxSteps != 7 || *out.RetryForMS != 0 || *out.Compaction.Mode != "auto" || *out.Compaction.AtTokens != 5000 {
			t.Errorf("%+v shows %+v", change, out)
		}
	}
	for _, change := range []AgentChange{
		{MaxSteps: new(-1)}, {RetryForMS: new(int64(-1))}, {RetryForMS: new(int64(agent.MaxRetryFor + 1))},
		{Compaction: &AgentCompaction{Mode: new("auto"), AtTokens: new(int64(0))}}, {Compaction: &AgentCompaction{Mode: new("off"), AtTokens: new(int64(5000))}},
	} {
		b := *a
		if err := change.change(&b); err == nil && b.Check() == nil {
			t.Errorf("%+v is taken", change)
		}
	}
}
