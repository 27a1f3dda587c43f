package service

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
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

// publishedSessions drives Anthropic's clients as they are published through what they know of
// sessions, on a server with the model scripted.
func publishedSessions(t *testing.T, s *atolltest.Server) {
	env := []string{"ATOLL_URL=" + s.URL, "ATOLL_KEY=" + s.Tenant(t, "published", "pro")}
	admin, tenant := s.AdminKey(t), "/v1/admin/tenants/published"
	s.Must(t, admin, http.MethodPatch, tenant, map[string]any{"network_enabled": true}).Into(t, http.StatusOK, nil)
	var owner struct{ Key string }
	s.Must(t, admin, http.MethodPost, tenant+"/keys", map[string]any{"name": "owner", "environment": "main", "scopes": []string{"environments"}}).Into(t, http.StatusCreated, &owner)
	if said := program(t, filepath.Join("clients", "managed_sessions.mjs"), env...); said != "sessions\nevents\ntools\nend\n" {
		t.Errorf("the client for TypeScript said %q", said)
	}
	out := python(t, filepath.Join("clients", "managed_sessions_client.py"), append(env, "ATOLL_OWNER="+owner.Key)...)
	if said := strings.Join(strings.Fields(out), " "); said != "resources environments events deltas custom_tools outcome budget confirmation interrupt refused async" {
		t.Errorf("it said %q", said)
	}
}
