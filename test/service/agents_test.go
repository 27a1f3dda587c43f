package service

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// The requests of the original contract's document as they stand there, but for the host and
// the key.
var (
	contractAgents = []string{
		`{
        "name": "Customer Support Agent",
        "slug": "support-agent",
        "model": {
            "name": "claude-sonnet-4",
            "max_tokens": 4096,
            "temperature": 0.7
        },
        "system": "You are a helpful customer support agent for an e-commerce platform.\nYou can look up orders, process returns, and answer product questions.\nAlways be polite and concise.",
        "tools": [
            {"type": "mcp", "server": "web-search"},
            {"type": "mcp", "server": "database-query"}
        ],
        "mcp_servers": [
            {
                "name": "web-search",
                "url": "https://mcp.sandbase.ai/web-search"
            }
        ]
    }`,
		`{"name":"Customer Support Agent","slug":"support-agent","model":{"name":"claude-sonnet-4","max_tokens":4096,"temperature":0.7},"system":"You are a helpful customer support agent...","tools":[{"type":"mcp","server":"web-search"}]}`,
		`{
  "name": "Safe Assistant",
  "slug": "safe-assistant",
  "model": {"name": "claude-sonnet-4"},
  "system": "You are a helpful assistant with limited capabilities.",
  "tools": [
    {"type": "mcp", "server": "web-search"},
    {"type": "mcp", "server": "calculator"}
  ],
  "metadata": {
    "tool_policy": {
      "allow_list": ["web-search", "calculator"],
      "deny_list": ["database-query", "file-write"],
      "require_confirmation": ["web-search"]
    }
  }
}`,
		`{"name": "All settings", "slug": "all-settings",
  "model": {
    "name": "claude-sonnet-4",
    "max_tokens": 4096,
    "temperature": 0.7,
    "top_p": 0.9,
    "stop": ["\n\nHuman:"]
  }
}`,
	}
	contractCommands = []string{
		`curl -X POST https://api.sandbase.ai/default/v1/agents \
  -H "Authorization: Bearer sk-sb-YOUR_KEY" \
  -H "Content-Type: application/json" \
  -d '{
    "name": "Customer Support Agent",
    "slug": "support-agent",
    "model": {"name": "claude-sonnet-4", "max_tokens": 4096},
    "system": "You are a helpful customer support agent...",
    "tools": [{"type": "mcp", "server": "web-search"}]
  }'`,
		`curl https://api.sandbase.ai/default/v1/agents \
  -H "Authorization: Bearer sk-sb-YOUR_KEY"`,
		`curl https://api.sandbase.ai/default/v1/agents/agt_abc123 \
  -H "Authorization: Bearer sk-sb-YOUR_KEY"`,
		`curl -X POST https://api.sandbase.ai/default/v1/agents/agt_abc123/archive \
  -H "Authorization: Bearer sk-sb-YOUR_KEY"`,
	}
)

type agentAnswer struct {
	ID, Slug   string
	Version    int
	ArchivedAt *string `json:"archived_at"`
	ToolPolicy struct {
		Allow []string `json:"allow_list"`
	} `json:"tool_policy"`
	Warnings []struct{ Path string }
}

// agents sends the contract's requests for agents, and races.
func (d *described) agents(t *testing.T) {
	const base = "/default/v1/agents"
	var a agentAnswer
	free := func() { // the document makes the same agent three times
		d.Must(t, d.key, http.MethodPatch, base+"/"+a.ID, map[string]any{"version": a.Version, "slug": ""}).Into(t, http.StatusOK, &a)
	}
	for i, body := range contractAgents {
		a = agentAnswer{}
		d.Must(t, d.key, http.MethodPost, base, json.RawMessage(body)).Into(t, http.StatusCreated, &a)
		if !strings.HasPrefix(a.ID, "agt_") || a.Version != 1 {
			t.Errorf("request %d: %+v", i, a)
		}
		switch a.Slug {
		case "support-agent":
			free()
		case "safe-assistant":
			if len(a.ToolPolicy.Allow) != 2 || len(a.Warnings) != 1 || a.Warnings[0].Path != "tools[1].server" {
				t.Errorf("%+v", a)
			}
		}
	}
	run := func(i int, into any) {
		t.Helper()
		script := strings.NewReplacer("https://api.sandbase.ai", d.URL, "sk-sb-YOUR_KEY", d.key, "agt_abc123", a.ID, "curl ", "curl -sS ").Replace(contractCommands[i])
		out, err := exec.CommandContext(t.Context(), "sh", "-c", script).Output()
		if err == nil {
			err = json.Unmarshal(out, into)
		}
		if err != nil {
			t.Fatalf("%s: %v: %s", contractCommands[i], err, out)
		}
	}
	a = agentAnswer{}
	run(0, &a)
	var list struct{ Data []agentAnswer }
	run(1, &list)
	if len(list.Data) < 5 || list.Data[0].ID != a.ID {
		t.Errorf("%+v", list)
	}
	var got agentAnswer
	run(2, &got)
	if got.ID != a.ID || got.Slug != "support-agent" {
		t.Errorf("%+v", got)
	}
	d.Must(t, d.key, http.MethodPatch, base+"/"+a.ID, json.RawMessage(`{"system": "Updated system prompt...", "version": 1}`)).Into(t, http.StatusOK, &got)
	if got.Version != 2 {
		t.Errorf("%+v", got)
	}
	t.Run("race", func(t *testing.T) { d.agentRace(t, a.ID) })
	run(3, &got)
	if got.ArchivedAt == nil {
		t.Errorf("%+v", got)
	}
	run(3, &got) // again is no error
}

// agentRace has 50 writers change the same version, ten times, and make agents of the same slug:
// one of them wins each time.
func (d *described) agentRace(t *testing.T, id string) {
	for version := 2; version < 12; version++ {
		d.oneWins(t, http.MethodPatch, "/v1/agents/support-agent", fmt.Sprintf("version %d", version+1), func(i int) any {
			return map[string]any{"version": version, "system": fmt.Sprint(version, i)}
		})
	}
	var all struct{ Data []agentAnswer }
	d.Must(t, d.key, http.MethodGet, "/v1/agents/"+id+"/versions", nil).Into(t, http.StatusOK, &all)
	if len(all.Data) != 12 {
		t.Errorf("there are %d versions, want 12", len(all.Data))
	}
	d.oneWins(t, http.MethodPost, "/v1/agents", "raced", func(i int) any {
		return map[string]any{"name": fmt.Sprint(i), "slug": "raced", "model": map[string]string{"name": "claude-sonnet-4"}}
	})
}

// oneWins makes 50 requests at once, of which one succeeds and all others are told of a conflict.
func (d *described) oneWins(t *testing.T, method, path, conflict string, body func(i int) any) {
	t.Helper()
	var won, lost atomic.Int32
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			res, err := d.Call(t.Context(), d.key, method, path, body(i), nil)
			switch {
			case err != nil:
				t.Error(err)
			case res.Status == http.StatusOK || res.Status == http.StatusCreated:
				won.Add(1)
			case res.Status == http.StatusConflict && strings.Contains(string(res.Body), conflict):
				lost.Add(1)
			default:
				t.Errorf("%d %s", res.Status, res.Body)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || lost.Load() != 49 {
		t.Errorf("%s %s: %d have won, %d lost", method, path, won.Load(), lost.Load())
	}
}
