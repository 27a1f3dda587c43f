package agents_test

import (
	"errors"
	"testing"

	"github.com/atoll-run/atoll/internal/agent/agents"
	"github.com/atoll-run/atoll/internal/core/agent"
)

// TestWarnsOfToolsThatAreOff: an agent that names a built-in which the server has turned off is
// stored with a warning, by either name of the tool. A server of its own by that name is another.
func TestWarnsOfToolsThatAreOff(t *testing.T) {
	s := &agents.Service{Off: func(kind agent.ToolType) error {
		if kind == agent.WebSearch {
			return errors.New("web_search is off")
		}
		return nil
	}}
	out := s.Warnings(&agent.Agent{Definition: agent.Definition{
		Tools: []agent.Tool{{Type: agent.Sandbox}, {Type: agent.WebSearch}, {Type: agent.MCP, Server: "web-search"}, {Type: agent.FetchURL}},
	}})
	if len(out) != 2 || out[0].Path != "tools[1]" || out[1].Message != "web_search is off. The agent works without it." {
		t.Errorf("%+v", out)
	}
	out = s.Warnings(&agent.Agent{Definition: agent.Definition{
		Tools: []agent.Tool{{Type: agent.MCP, Server: "web-search"}}, Servers: []agent.Server{{Name: "web-search", URL: "https://a.example"}},
	}})
	if len(out) != 0 {
		t.Errorf("of a server of its own: %+v", out)
	}
}
