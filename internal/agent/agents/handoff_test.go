package agents_test

import (
	"testing"

	"github.com/atoll-run/atoll/internal/agent/agents"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
)

// TestKeptHandoff checks that Keep takes the texts of the last entry for an agent, because an
// orchestrator may list an agent twice.
func TestKeptHandoff(t *testing.T) {
	db := storetest.SQLite(t)
	of := storetest.Operator(t, db)
	s := &agents.Service{Store: db.Agents()}
	a := &agent.Agent{ID: agent.NewID(), Tenant: of, Visibility: agent.Private, Version: 1, Definition: agent.Definition{Name: "Clerk"}}
	if err := s.Store.Create(t.Context(), a, agent.Limits{Agents: 1, Versions: 1}, tenant.PolicyEvent{Tenant: of, Field: "agent", New: "version 1"}); err != nil {
		t.Fatal(err)
	}
	before := []agent.Handoff{{Agent: a.ID, Name: "first"}, {Agent: a.ID, Name: "last", Trigger: "orders"}}
	out, err := s.ResolveHandoffs(t.Context(), of, []agents.Handoff{{Agent: string(a.ID), Keep: true}}, before)
	if err != nil || len(out) != 1 || out[0].Name != "last" || out[0].Trigger != "orders" {
		t.Errorf("%+v, %v", out, err)
	}
}
