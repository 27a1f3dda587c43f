package service

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/test/scriptedmodel"
)

// contractSessions are the requests of the original contract's document for sessions,
// environments, skills and agents that hand work on, as they stand there but for the host and
// the key, in its order. Ids that start with agt_ are put in by the test. status is the answer
// of this version: 400 is for what it does not have.
var contractSessions = []struct {
	name, path string
	status     int
	body       string
}{
	{"session", "/default/v1/sessions", http.StatusCreated, `{
        "agent_id": "agt_abc123",
        "metadata": {
            "user_id": "user_456",
            "channel": "web"
        }
    }`},
	{"message", "/default/v1/sessions/SESSION/events", http.StatusOK, `{
        "type": "message",
        "role": "user",
        "content": "I want to return order #12345"
    }`},
	{"hand-offs", "/default/v1/agents", http.StatusCreated, `{
        "name": "Orchestrator Agent",
        "slug": "orchestrator",
        "model": {"name": "claude-sonnet-4", "max_tokens": 4096},
        "system": "You are a project manager that delegates tasks to specialists.",
        "handoffs": [
            {
                "agent_id": "agt_research_001",
                "name": "Research Agent",
                "description": "Handles deep research tasks and fact-checking",
                "trigger": "when the user asks for research or fact-checking"
            },
            {
                "agent_id": "agt_code_002",
                "name": "Code Agent",
                "description": "Writes and reviews code",
                "trigger": "when the user needs code written or reviewed"
            }
        ]
    }`},
	{"orchestrator", "/default/v1/agents", http.StatusCreated, `{"name": "Orchestrator", "model": {"name": "claude-sonnet-4"}, "handoffs": [{"agent_id": "agt_research_001", "name": "Research Agent"}],
  "multiagent": {
    "mode": "orchestrator",
    "max_delegations": 5,
    "parallel": false,
    "context_sharing": "summary",
    "timeout_per_handoff_ms": 60000
  }
}`},
	{"swarm", "/default/v1/agents", http.StatusCreated, `{
        "name": "Support Triage",
        "slug": "support-triage",
        "model": {"name": "claude-sonnet-4", "max_tokens": 4096},
        "system": "You handle initial customer inquiries. Route to specialists as needed.",
        "handoffs": [
            {"agent_id": "agt_billing", "name": "Billing Agent"},
            {"agent_id": "agt_technical", "name": "Technical Agent"},
            {"agent_id": "agt_escalation", "name": "Escalation Agent"}
        ],
        "multiagent": {
            "mode": "swarm",
            "max_delegations": 3,
            "context_sharing": "full"
        }
    }`},
	{"skills", "/default/v1/agents", http.StatusCreated, `{
        "name": "Research Agent",
        "slug": "research-agent",
        "model": {"name": "claude-sonnet-4", "max_tokens": 8192},
        "system": "You are a deep research agent that produces comprehensive reports.",
        "skills": [
            "structured-planning",
            "reflection-loop",
            "long-running-state"
        ],
        "tools": [
            {"type": "mcp", "server": "web-search"},
            {"type": "mcp", "server": "browser-use"}
        ]
    }`},
	{"configured skills", "/default/v1/agents", http.StatusCreated, `{"name": "Skilled", "model": {"name": "claude-sonnet-4"},
  "skills": [
    "structured-planning",
    {
      "name": "reflection-loop",
      "config": {
        "max_iterations": 3,
        "quality_threshold": 0.8
      }
    },
    {
      "name": "long-running-state",
      "config": {
        "checkpoint_interval_ms": 30000,
        "max_state_size_kb": 512
      }
    }
  ]
}`},
	{"other skills", "/default/v1/agents", http.StatusCreated, `{"name": "Skilled", "model": {"name": "claude-sonnet-4"}, "skills": ["web-browsing", "code-execution", "file-management"]}`},
	{"permissions", "/default/v1/environments", http.StatusCreated, `{
        "name": "Restricted Research Env",
        "config": {
            "type": "cloud",
            "base_template": "tpl_code_interpreter",
            "resources": {
                "cpu": 2,
                "memory_mb": 2048,
                "timeout": 600
            },
            "permissions": {
                "network": {
                    "enabled": true,
                    "allowed_hosts": ["api.sandbase.ai", "*.wikipedia.org"],
                    "blocked_ports": [22, 25]
                },
                "filesystem": {
                    "writable_paths": ["/home/user", "/tmp"],
                    "read_only_paths": ["/data"],
                    "blocked_paths": ["/etc/shadow", "/root"]
                },
                "process": {
                    "allow_exec": true,
                    "blocked_commands": ["rm -rf /", "shutdown"],
                    "max_processes": 10
                }
            }
        }
    }`},
	{"profile", "/default/v1/environments", http.StatusCreated, `{"name": "Profile",
  "config": {
    "type": "cloud",
    "base_template": "tpl_code_interpreter",
    "resources": {"cpu": 2, "memory_mb": 2048, "timeout": 300},
    "permission_profile": "restricted"
  }
}`},
	{"session in an environment", "/default/v1/sessions", http.StatusCreated, `{"agent_id": "agt_abc123", "environment_id": "ENVIRONMENT"}`},
}

// TestContractOfSessions sends the contract's requests, and has what they make do what it says.
func TestContractOfSessions(t *testing.T) {
	s := shared(t)
	p := httptest.NewServer(&scriptedmodel.Provider{Next: func(r scriptedmodel.Request) (scriptedmodel.Turn, bool) {
		said, _ := conversation(r.Body)
		return scriptedmodel.Say("You said: " + said), true
	}})
	t.Cleanup(p.Close)
	lendModel(t, s, "claude-sonnet-4", p.URL)
	s.Tenant(t, "contract", "enterprise")
	admin := s.AdminKey(t)
	s.Must(t, admin, http.MethodPatch, "/v1/admin/tenants/contract", map[string]any{"network_enabled": true}).Into(t, http.StatusOK, nil)
	var made struct{ Key string }
	s.Must(t, admin, http.MethodPost, "/v1/admin/tenants/contract/keys", map[string]any{"name": "wide", "environment": "main", "scopes": []string{"execute", "read", "tools", "environments"}}).Into(t, http.StatusCreated, &made)
	put := []string{}
	for _, id := range []string{"agt_abc123", "agt_research_001", "agt_code_002", "agt_billing", "agt_technical", "agt_escalation"} {
		var a struct{ ID string }
		s.Must(t, made.Key, http.MethodPost, "/default/v1/agents", map[string]any{"name": id, "model": map[string]string{"name": "claude-sonnet-4"}}).Into(t, http.StatusCreated, &a)
		put = append(put, id, a.ID)
	}
	for _, r := range contractSessions {
		ids := strings.NewReplacer(put...)
		a := s.Must(t, made.Key, http.MethodPost, ids.Replace(r.path), json.RawMessage(ids.Replace(r.body)))
		if a.Status != r.status {
			t.Errorf("%s: %d %s, want %d", r.name, a.Status, a.Body, r.status)
			continue
		}
		var got struct {
			ID, Content string
			Environment string `json:"environment_id"`
			Metadata    map[string]string
		}
		if err := json.Unmarshal(a.Body, &got); err != nil {
			t.Fatalf("%s: %v: %s", r.name, err, a.Body)
		}
		switch r.name {
		case "session":
			if !strings.HasPrefix(got.ID, "sess_") || got.Metadata["user_id"] != "user_456" || got.Metadata["channel"] != "web" {
				t.Errorf("%s: %s", r.name, a.Body)
			}
			put = append(put, "SESSION", got.ID)
		case "message":
			if got.Content != "You said: I want to return order #12345" {
				t.Errorf("%s: %s", r.name, a.Body)
			}
		case "permissions":
			put = append(put, "ENVIRONMENT", got.ID)
		case "session in an environment":
			if want := put[len(put)-1]; got.Environment != want {
				t.Errorf("%s: %s, want %s", r.name, a.Body, want)
			}
		}
	}
}
