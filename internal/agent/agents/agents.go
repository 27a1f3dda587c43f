// Package agents holds the use cases of agents: it checks and stores their versions, and resolves the
// skills and agents that they name. Every API calls the same Service.
package agents

import (
	"context"
	"fmt"
	"reflect"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Service holds the agents of all tenants.
type Service struct {
	Store  agent.Store
	Skills skill.Store
	// Models finds the models that a tenant may use.
	Models interface {
		Show(ctx context.Context, id tenant.ID, idOrName string) (model.Record, error)
	}
	Limits agent.Limits // of each tenant
	// Off returns an error for a built-in tool that this server has turned off; nil if it has every tool.
	Off func(t agent.ToolType) error
}

const maxRef = 64 // characters of an id or slug

func isRef(idOrSlug string) bool { return tenant.Name.MatchString(idOrSlug) && len(idOrSlug) <= maxRef }

// Find returns the current version of a tenant's agent.
func (s *Service) Find(ctx context.Context, t tenant.ID, idOrSlug string) (*agent.Agent, error) {
	if !isRef(idOrSlug) {
		return nil, agent.ErrNotFound
	}
	return s.Store.Get(ctx, t, idOrSlug)
}

// At returns a version of a tenant's agent.
func (s *Service) At(ctx context.Context, t tenant.ID, idOrSlug string, version int) (*agent.Agent, error) {
	if !isRef(idOrSlug) {
		return nil, agent.ErrNotFound
	}
	return s.Store.At(ctx, t, idOrSlug, version)
}

// Versions returns a page of the versions of a tenant's agent, newest first.
func (s *Service) Versions(ctx context.Context, t tenant.ID, idOrSlug string, p agent.Page) (page []agent.Agent, next string, err error) {
	if !isRef(idOrSlug) {
		return nil, "", agent.ErrNotFound
	}
	return s.Store.Versions(ctx, t, idOrSlug, p)
}

// Visible returns the current version of a tenant's agent, or the part of another tenant's template that
// the tenant may see. A template is found by its ID only.
func (s *Service) Visible(ctx context.Context, t tenant.ID, idOrSlug string) (*agent.Agent, error) {
	a, err := s.Find(ctx, t, idOrSlug)
	id := agent.ID(idOrSlug)
	if fault.KindOf(err) != fault.NotFound || !id.Valid() {
		return a, err
	}
	if a, err = s.Store.Template(ctx, id); err != nil {
		return nil, err
	}
	return a.Shared(), nil
}

// Create creates a private agent. edit sets what the caller says of it.
func (s *Service) Create(ctx context.Context, p *tenant.Principal, edit func(*agent.Agent) error) (*agent.Agent, error) {
	a := &agent.Agent{ID: agent.NewID(), Tenant: p.Tenant.ID, Visibility: agent.Private}
	return s.insert(ctx, p, a, edit, numbered(1))
}

// Copy creates a private agent from an agent or template that the caller may see.
func (s *Service) Copy(ctx context.Context, p *tenant.Principal, idOrSlug string, edit func(*agent.Agent) error) (*agent.Agent, error) {
	from, err := s.Visible(ctx, p.Tenant.ID, idOrSlug)
	if err != nil {
		return nil, err
	}
	return s.insert(ctx, p, from.Copy(p.Tenant.ID), edit, "copy of "+string(from.ID))
}

func (s *Service) insert(ctx context.Context, p *tenant.Principal, a *agent.Agent, edit func(*agent.Agent) error, how string) (*agent.Agent, error) {
	if err := edit(a); err != nil {
		return nil, err
	}
	if err := s.check(ctx, a, true); err != nil {
		return nil, err
	}
	return a, s.Store.Create(ctx, a, s.Limits, event(p, a.ID, "", how))
}

// Change is a change of an agent.
type Change struct {
	Version *int // that the change is based on; nil for the current one
	// Edit makes the change. Service.Change may call it again for a later version.
	Edit func(*agent.Agent) error
	// Model says that the change concerns the model, or what needs a capability of it. Other changes
	// succeed even if the model no longer exists.
	Model bool
}

// maxTries bounds how often a change of the current version is made while other changes win.
const maxTries = 5

// Change makes another version of an agent and returns it. A change of nothing makes no version.
func (s *Service) Change(ctx context.Context, p *tenant.Principal, idOrSlug string, c Change) (*agent.Agent, error) {
	for try := 1; ; try++ {
		a, err := s.changeOnce(ctx, p, idOrSlug, c)
		if c.Version != nil || try == maxTries || fault.KindOf(err) != fault.Conflict {
			return a, err
		}
	}
}

func (s *Service) changeOnce(ctx context.Context, p *tenant.Principal, idOrSlug string, c Change) (*agent.Agent, error) {
	before, err := s.Find(ctx, p.Tenant.ID, idOrSlug)
	switch {
	case err != nil:
		return nil, err
	case before.Archived():
		return nil, agent.ErrArchived
	case c.Version != nil && *c.Version != before.Version:
		return nil, agent.VersionConflict(before.Version)
	}
	after := *before
	if err := c.Edit(&after); err != nil {
		return nil, err
	}
	if reflect.DeepEqual(before, &after) {
		return before, nil
	}
	if err := s.check(ctx, &after, c.Model); err != nil {
		return nil, err
	}
	after.Version++
	return &after, s.Store.Update(ctx, &after, s.Limits, event(p, after.ID, numbered(before.Version), numbered(after.Version)))
}

// check rejects an invalid agent, and with its model a model that is unknown or lacks a capability.
func (s *Service) check(ctx context.Context, a *agent.Agent, withModel bool) error {
	if err := a.Check(); err != nil || !withModel {
		return err
	}
	m, err := s.Models.Show(ctx, a.Tenant, a.Definition.Model.Name)
	if fault.KindOf(err) == fault.NotFound {
		return invalid("model.name: there is no model %q: GET /v1/models lists what there is", a.Definition.Model.Name)
	}
	if err != nil {
		return err
	}
	return a.Definition.CheckModel(&m)
}

// Archive stops changes of an agent and new sessions.
func (s *Service) Archive(ctx context.Context, p *tenant.Principal, idOrSlug string) (*agent.Agent, error) {
	a, err := s.Find(ctx, p.Tenant.ID, idOrSlug)
	if err != nil {
		return nil, err
	}
	return s.Store.Archive(ctx, a.Tenant, string(a.ID), event(p, a.ID, numbered(a.Version), "archived"))
}

// Delete deletes an agent without sessions, with its versions, and returns its ID.
func (s *Service) Delete(ctx context.Context, p *tenant.Principal, idOrSlug string) (agent.ID, error) {
	a, err := s.Find(ctx, p.Tenant.ID, idOrSlug)
	if err != nil {
		return "", err
	}
	return a.ID, s.Store.Delete(ctx, a.Tenant, a.ID, event(p, a.ID, numbered(a.Version), "deleted"))
}

// Warnings returns the parts of an agent that have no effect, here or anywhere.
func (s *Service) Warnings(a *agent.Agent) []agent.Warning {
	out := a.Definition.Warnings()
	if s.Off == nil {
		return out
	}
	for i := range a.Definition.Tools {
		if why := s.Off(a.Definition.Kind(&a.Definition.Tools[i])); why != nil {
			out = append(out, agent.Warning{Path: fmt.Sprintf("tools[%d]", i), Message: why.Error() + ". The agent works without it."})
		}
	}
	return out
}

func numbered(version int) string { return fmt.Sprintf("version %d", version) }

// event records a change of an agent.
func event(p *tenant.Principal, id agent.ID, old, now string) tenant.PolicyEvent {
	return p.Event("agent/"+string(id), old, now)
}

func invalid(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }
