package service

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestPublishedClientOnAgents drives Anthropic's client as it is published through all that it
// knows of agents.
func TestPublishedClientOnAgents(t *testing.T) {
	s := shared(t)
	key := s.Tenant(t, "managed", "enterprise")
	lendModel(t, s, "managed", "http://127.0.0.1:9/v1", "tools", "reasoning")
	out := python(t, filepath.Join("clients", "managed_agents_client.py"), "ATOLL_URL="+s.URL, "ATOLL_KEY="+key)
	if said := strings.Join(strings.Fields(out), " "); said != "create update read archive refused async" {
		t.Errorf("it said %q", said)
	}
}
