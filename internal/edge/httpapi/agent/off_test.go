package agent

import (
	"errors"
	"testing"

	"github.com/atoll-run/atoll/internal/core/agent"
)

// TestWarnsOfToolsThatAreOff: an agent that names a built-in which the server has turned off is
// stored with a warning, by either name of the tool. A server of its own by that name is another.
func TestWarnsOfToolsThatAreOff(t *testing.T) {
	h := &Handlers{Off: func(kind agent.ToolType) error {
		if kind == agent.WebSearch {
			return errors.New("web_search is off")
		}
		return nil
	}}
	out := h.agentOf(&agent.Agent{Definition: agent.Definition{
		Tools: []agent.Tool{{Type: agent.Sandbox}, {Type: agent.WebSearch}, {Type: agent.MCP, Server: "web-search"}, {Type: agent.FetchURL}},
	}})
	if len(out.Warnings) != 2 || out.Warnings[0].Path != "tools[1]" || out.Warnings[1].Message != "web_search is off. The agent works without it." {
		t.Errorf("%+v", out.Warnings)
	}
	out = h.agentOf(&agent.Agent{Definition: agent.Definition{
		Tools: []agent.Tool{{Type: agent.MCP, Server: "web-search"}}, Servers: []agent.Server{{Name: "web-search", URL: "https://a.example"}},
	}})
	if len(out.Warnings) != 0 {
		t.Errorf("of a server of its own: %+v", out.Warnings)
	}
}

// TestBoundsOfTurns: an agent shows the bounds of its turns as they were given, and keeps them in
// changes of others.
func TestBoundsOfTurns(t *testing.T) {
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
		if out := agentOf(a); *out.MaxSteps != 7 || *out.RetryForMS != 0 || *out.Compaction.Mode != "auto" || *out.Compaction.AtTokens != 5000 {
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
