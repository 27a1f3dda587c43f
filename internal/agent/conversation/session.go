package conversation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/atoll-run/atoll/internal/agent/admission"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/vault"
)

// NewSession describes a session to create.
type NewSession struct {
	Agent       string // id or slug
	Version     *int   // nil for the current one
	Environment *string
	About       session.About // mounts without a path get the default one
	Budget      session.Budget
	Vaults      []vault.ID
	Webhook     *string
}

// Create creates a session.
func (s *Service) Create(ctx context.Context, p *tenant.Principal, in *NewSession) (*session.Session, error) {
	if !tenant.Name.MatchString(in.Agent) || len(in.Agent) > 64 {
		return nil, agent.ErrNotFound
	}
	a, err := s.Agents.Get(ctx, p.Tenant.ID, in.Agent)
	if err == nil && a.Archived() {
		err = agent.ErrArchived
	}
	if err == nil && in.Version != nil {
		a, err = s.Agents.At(ctx, a.Tenant, string(a.ID), *in.Version)
	}
	if err != nil {
		return nil, err
	}
	if in.Environment != nil {
		if p, err = s.enter(ctx, p, *in.Environment); err != nil {
			return nil, err
		}
	}
	if err := ruleOf(p, first(a)).asks(p); err != nil {
		return nil, err
	}
	id := session.NewID()
	out := &session.Session{
		ID: id, Tenant: a.Tenant, Key: p.Key.ID, Environment: p.Environment.ID, Agent: a.ID, Version: a.Version,
		Sandbox: "sbx_" + string(id[len("sess_"):]), About: in.About, Budget: in.Budget,
	}
	if err := out.About.Check(); err != nil {
		return nil, err
	}
	if err := s.checkMounts(ctx, out.Tenant, &a.Definition, out.About.Mounts); err != nil {
		return nil, err
	}
	if out.Vaults, err = s.checkVaults(ctx, out.Tenant, in.Vaults); err != nil {
		return nil, err
	}
	if in.Webhook != nil {
		if err := s.CheckWebhook(ctx, *in.Webhook); err != nil {
			return nil, err
		}
		out.Webhook = session.Webhook{URL: *in.Webhook, Secret: p.Key.WebhookSecret}
	}
	if err := s.Store.Create(ctx, out, s.Max, change(p, id, "created")); err != nil {
		return nil, err
	}
	return out, nil
}

// checkVaults returns vaults that a session may use: the tenant's own, which are not archived.
func (s *Service) checkVaults(ctx context.Context, t tenant.ID, in []vault.ID) (out []vault.ID, err error) {
	if len(in) > vault.MaxOfSession {
		return nil, invalid("vault_ids must have at most %d entries", vault.MaxOfSession)
	}
	for i, id := range in {
		path := fmt.Sprintf("vault_ids[%d]", i)
		if slices.Contains(out, id) {
			return nil, invalid("%s: duplicate %q", path, id)
		}
		none := fault.New(fault.NotFound, "%s: vault %.80q not found", path, id)
		if !id.Valid() {
			return nil, none
		}
		v, err := s.Vaults.Get(ctx, t, id)
		switch {
		case fault.KindOf(err) == fault.NotFound:
			return nil, none
		case err != nil:
			return nil, err
		case v.Archived():
			return nil, fault.New(fault.Conflict, "%s: the vault is archived", path)
		}
		out = append(out, id)
	}
	return out, nil
}

// Change changes the title, the metadata and the budget of a session. Nil fields, and zero limits of
// Budget, keep their values.
type Change struct {
	Title    *string
	Metadata *map[string]json.RawMessage
	Budget   session.Budget
}

// Update changes a session.
func (s *Service) Update(ctx context.Context, p *tenant.Principal, id session.ID, in *Change) (*session.Session, error) {
	of, err := s.Find(ctx, p.Tenant.ID, id)
	if err != nil {
		return nil, err
	}
	about := of.About
	if in.Title != nil {
		about.Title = *in.Title
	}
	if in.Metadata != nil {
		about.Metadata = *in.Metadata
	}
	if err := about.Check(); err != nil {
		return nil, err
	}
	budget, err := raise(of.Budget, in.Budget)
	if err != nil {
		return nil, err
	}
	return s.Store.Update(ctx, of.Tenant, of.ID, about, budget, change(p, of.ID, "changed"))
}

// raise returns a budget with the limits of another one, none of which may be lower.
func raise(was, to session.Budget) (session.Budget, error) {
	for _, l := range []struct {
		name    string
		was, to int64
	}{{"tokens", was.Tokens, to.Tokens}, {"cost_usd", int64(was.Cost), int64(to.Cost)}} {
		if l.to != 0 && (l.was == 0 || l.to < l.was) {
			return was, invalid("budget.%s can only be raised: it cannot be lowered, or added to a session without one", l.name)
		}
	}
	return session.Budget{Tokens: max(was.Tokens, to.Tokens), Cost: max(was.Cost, to.Cost)}, nil
}

// Archive archives a session, and ends its sandboxes.
func (s *Service) Archive(ctx context.Context, p *tenant.Principal, id session.ID) (*session.Session, error) {
	of, err := s.Find(ctx, p.Tenant.ID, id)
	if err != nil {
		return nil, err
	}
	left, err := s.waiting(ctx, of)
	if err != nil {
		return nil, err
	}
	if of, err = s.Store.Archive(ctx, of.Tenant, of.ID, change(p, of.ID, "archived")); err != nil {
		return nil, err
	}
	s.leave(ctx, p, of, left)
	return of, nil
}

// Delete deletes a session with its events, its runs and its sandboxes.
func (s *Service) Delete(ctx context.Context, p *tenant.Principal, id session.ID) error {
	of, err := s.Find(ctx, p.Tenant.ID, id)
	if err != nil {
		return err
	}
	left, err := s.waiting(ctx, of)
	if err != nil {
		return err
	}
	if err := s.Store.Delete(ctx, of.Tenant, of.ID, change(p, of.ID, "deleted")); err != nil {
		return err
	}
	s.leave(ctx, p, of, left)
	return nil
}

// Start creates a session whose first turn begins with a batch. If the batch is rejected, no session
// remains.
func (s *Service) Start(ctx context.Context, caller *admission.Caller, in *NewSession, first *Batch) (*session.Session, error) {
	of, err := s.Create(ctx, caller.Principal, in)
	if err != nil {
		return nil, err
	}
	taken, err := s.Take(ctx, caller, of, first)
	if err != nil {
		ctx = context.WithoutCancel(ctx)
		if undone := s.Store.Delete(ctx, of.Tenant, of.ID, change(caller.Principal, of.ID, "deleted")); undone != nil {
			s.Log.WarnContext(ctx, "cannot delete a session whose first message was rejected", "session", of.ID, "error", undone)
		} else {
			s.leave(ctx, caller.Principal, of, nil)
		}
		return nil, err
	}
	if of, err = s.Store.Get(ctx, of.Tenant, of.ID); err == nil {
		of.Run = taken.Turn // also if it has ended since
	}
	return of, err
}
