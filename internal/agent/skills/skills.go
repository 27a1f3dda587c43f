// Package skills holds the use cases of the skills that tenants upload.
package skills

import (
	"context"
	"fmt"

	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Service holds the skills of all tenants.
type Service struct {
	Store  skill.Store
	Limits skill.Limits // of each tenant
}

// Find returns a skill of a tenant.
func (s *Service) Find(ctx context.Context, t tenant.ID, idOrName string) (*skill.Skill, error) {
	if !skill.ID(idOrName).Valid() && skill.CheckName("", idOrName) != nil {
		return nil, skill.ErrNotFound
	}
	return s.Store.Get(ctx, t, idOrName)
}

// Version returns a version of a skill, by its ID or number, or "latest".
func (s *Service) Version(ctx context.Context, t tenant.ID, idOrName, version string) (*skill.Version, error) {
	k, err := s.Find(ctx, t, idOrName)
	if err != nil {
		return nil, err
	}
	return skill.Resolve(ctx, s.Store, k, version)
}

// Versions returns a page of the versions of a skill, newest first.
func (s *Service) Versions(ctx context.Context, t tenant.ID, idOrName string, p skill.Page) (page []skill.Version, next string, err error) {
	k, err := s.Find(ctx, t, idOrName)
	if err != nil {
		return nil, "", err
	}
	return s.Store.Versions(ctx, k.Tenant, k.ID, p)
}

// Create creates a skill with its first version. title may be empty.
func (s *Service) Create(ctx context.Context, p *tenant.Principal, title string, b *skill.Bundle) (*skill.Skill, error) {
	k := &skill.Skill{ID: skill.NewID(), Tenant: p.Tenant.ID, Title: title, Latest: skill.Version{ID: skill.NewVersionID()}}
	return k, s.Store.Create(ctx, k, b, s.Limits, event(p, k.ID, "", "version 1"))
}

// AddVersion adds a version to k and returns it.
func (s *Service) AddVersion(ctx context.Context, p *tenant.Principal, k *skill.Skill, b *skill.Bundle) (*skill.Version, error) {
	k.Latest = skill.Version{ID: skill.NewVersionID()}
	return &k.Latest, s.Store.AddVersion(ctx, k, b, s.Limits, event(p, k.ID, "", "version "+string(k.Latest.ID)))
}

// Archive stops new versions of a skill and new uses.
func (s *Service) Archive(ctx context.Context, p *tenant.Principal, idOrName string) (*skill.Skill, error) {
	k, err := s.Find(ctx, p.Tenant.ID, idOrName)
	if err != nil {
		return nil, err
	}
	return s.Store.Archive(ctx, k.Tenant, k.ID, event(p, k.ID, "", "archived"))
}

// Delete deletes a skill with its versions and returns its ID.
func (s *Service) Delete(ctx context.Context, p *tenant.Principal, idOrName string) (skill.ID, error) {
	k, err := s.Find(ctx, p.Tenant.ID, idOrName)
	if err != nil {
		return "", err
	}
	return k.ID, s.Store.Delete(ctx, k.Tenant, k.ID, event(p, k.ID, k.Name, "deleted"))
}

// DeleteVersion deletes a version of a skill and returns its ID.
func (s *Service) DeleteVersion(ctx context.Context, p *tenant.Principal, idOrName, version string) (skill.VersionID, error) {
	v, err := s.Version(ctx, p.Tenant.ID, idOrName, version)
	if err != nil {
		return "", err
	}
	return v.ID, s.Store.DeleteVersion(ctx, p.Tenant.ID, v.Skill, v.ID, event(p, v.Skill, fmt.Sprintf("version %d", v.Number), "deleted"))
}

// event records a change of a skill.
func event(p *tenant.Principal, id skill.ID, old, now string) tenant.PolicyEvent {
	return p.Event("skill/"+string(id), old, now)
}
