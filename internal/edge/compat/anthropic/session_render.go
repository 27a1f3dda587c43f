package anthropic

import (
	stdjson "encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/vault"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// renderer shows sessions of one answer.
type renderer struct {
	d      *Handlers
	c      *httpapi.Call
	agents map[string]*agent.Agent // by id and version
}

// agent finds the version that a session keeps.
func (r *renderer) agent(s *session.Session) (*agent.Agent, error) {
	return r.version(s.Tenant, s.Agent, s.Version)
}

func (r *renderer) version(t tenant.ID, id agent.ID, version int) (*agent.Agent, error) {
	key := string(id) + "/" + strconv.Itoa(version)
	if a := r.agents[key]; a != nil {
		return a, nil
	}
	a, err := r.d.Agents.At(r.c.Context(), t, string(id), version)
	r.agents[key] = a
	return a, err
}

func (r *renderer) session(s *session.Session) (out Session, err error) {
	a, err := r.agent(s)
	if err != nil {
		return out, err
	}
	total, err := r.d.Conversations.Store.Total(r.c.Context(), s.Tenant, s.ID)
	if err != nil {
		return out, err
	}
	out = Session{
		ID: string(s.ID), Type: "session", Agent: SessionAgent{ThreadAgent: threadAgentOf(a)}, EnvironmentID: s.Environment, Title: httpapi.OrNull(s.About.Title), Metadata: map[string]string{}, Status: "idle",
		VaultIDs: httpapi.Each(s.Vaults, func(id vault.ID) string { return string(id) }), Usage: usageOf(&total), CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt, Warnings: []Warning{},
	}
	if out.Agent.Multiagent, err = r.roster(a); err != nil {
		return out, err
	}
	if out.OutcomeEvaluations, err = r.outcomes(s); err != nil {
		return out, err
	}
	end := time.Now()
	switch {
	case s.Archived():
		out.Status, out.ArchivedAt, end = "terminated", &s.ArchivedAt, s.ArchivedAt
	case s.Run != "":
		out.Status = "running"
	}
	out.Stats = Stats{out.Usage.ActiveSeconds, max(end.Sub(s.CreatedAt), 0).Seconds()}
	if s.Budget.Cost > 0 {
		out.Budget = &Budget{"limit", amountOf(s.Budget.Cost)}
	}
	const unsaid = "it is set, and this form cannot show it; it holds"
	if s.Budget.Tokens > 0 {
		out.Warnings = append(out.Warnings, Warning{"budget.tokens", unsaid})
	}
	if s.Webhook.URL != "" {
		out.Warnings = append(out.Warnings, Warning{"webhook_url", unsaid})
	}
	var more bool
	if out.Resources, more = resourcesOf(s); more {
		out.Warnings = append(out.Warnings, Warning{"mounts", unsaid})
	}
	for _, key := range slices.Sorted(maps.Keys(s.About.Metadata)) {
		if text, ok := plain(s.About.Metadata[key]); ok {
			out.Metadata[key] = text
		} else {
			out.Warnings = append(out.Warnings, Warning{"metadata." + key, "it is set, and this form cannot show it; it stays in a change"})
		}
	}
	return out, nil
}

func threadAgentOf(a *agent.Agent) ThreadAgent {
	v := agentOf(a)
	return ThreadAgent{
		ID: v.ID, Type: v.Type, Version: v.Version, Name: v.Name, Description: v.Description, System: v.System, Model: v.Model, Tools: v.Tools, MCPServers: v.MCPServers,
		Skills: v.Skills, ExecutionIdentity: v.ExecutionIdentity,
	}
}

func usageOf(t *run.Total) SessionUsage {
	return SessionUsage{
		InputTokens: fresh(&t.Usage), OutputTokens: t.Usage.Output, CacheRead: t.Usage.CacheRead, CacheCreation: CacheCreation{FiveMinutes: t.Usage.CacheWrite},
		ActiveSeconds: t.Active.Seconds(), ListCost: amountOf(t.Cost), CostUSD: t.Cost.Dollars(),
	}
}

// amountOf is money in whole cents.
func amountOf(m model.Money) Amount {
	return Amount{strconv.FormatInt(int64(math.Round(m.Dollars()*100)), 10), "USD"}
}

// fresh is the input that was neither read from a cache nor written to it: this form counts
// those apart.
func fresh(u *model.Usage) int64 { return max(u.Input-u.CacheRead-u.CacheWrite, 0) }

// metadata makes of the pairs there are those that are asked for: null removes one.
func (in *SessionFields) metadata(now map[string]stdjson.RawMessage) (map[string]stdjson.RawMessage, error) {
	out := maps.Clone(now)
	if out == nil {
		out = map[string]stdjson.RawMessage{}
	}
	if len(in.Metadata) == 0 || in.Metadata.Kind() == 'n' {
		return out, nil
	}
	var of struct {
		Metadata map[string]*string `json:"metadata"`
	}
	if err := only("metadata", in.Metadata, &of); err != nil {
		return nil, err
	}
	for key, value := range of.Metadata {
		if value == nil {
			delete(out, key)
			continue
		}
		text, err := stdjson.Marshal(*value)
		if err != nil {
			return nil, err
		}
		out[key] = text
	}
	return out, nil
}
