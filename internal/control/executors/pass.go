package executors

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Grant returns the current grant of a pass, with a new proof. It returns ErrNoValidKey also if the
// executor may not act for the pass's key.
//
// A valid proof suffices. After it has expired, the executor also needs a sandbox in the
// environment. Without a proof, for example after a restart of the executor, the key must have
// created that sandbox.
func (s *Service) Grant(ctx context.Context, from string, pass sandbox.Pass) (*sandbox.Grant, error) {
	if pass.Tenant == "" || pass.Environment == "" || pass.Key == "" {
		return nil, sandbox.ErrNoValidKey
	}
	if genuine, valid := s.check(from, &pass); !valid {
		key := pass.Key
		if genuine {
			key = "" // any sandbox in the environment
		}
		holds, err := s.cfg.Sandboxes.Holds(ctx, from, pass.Tenant, pass.Environment, key)
		if err != nil {
			return nil, err
		}
		if !holds {
			return nil, sandbox.ErrNoValidKey
		}
	}
	grant, err := s.cfg.Grants.Grant(ctx, pass.Tenant, pass.Key, pass.Environment)
	if err != nil {
		return nil, err
	}
	return grant.ProvenTo(from, s.cfg.Signer, time.Now().Add(sandbox.ProofTTL)), nil
}

// check reports whether a gateway gave an executor the proof of a pass, and whether that is valid.
func (s *Service) check(from string, pass *sandbox.Pass) (genuine, valid bool) {
	genuine = pass.Genuine(from, s.cfg.Signer)
	return genuine, genuine && time.Now().Before(pass.ProofUntil)
}

// holds reports whether an executor has a sandbox of a tenant, in an environment unless that is "".
func (s *Service) holds(ctx context.Context, from string, tenantID tenant.ID, environment string) (bool, error) {
	if tenantID == "" {
		return false, nil
	}
	return s.cfg.Sandboxes.Holds(ctx, from, tenantID, environment, "")
}

// enters reports whether an executor may read what belongs to a pass's environment, or to its
// tenant if that is "": it has a sandbox there, or a valid proof.
func (s *Service) enters(ctx context.Context, from string, pass *sandbox.Pass, environment string) (bool, error) {
	if _, valid := s.check(from, pass); valid {
		return true, nil
	}
	return s.holds(ctx, from, pass.Tenant, environment)
}
