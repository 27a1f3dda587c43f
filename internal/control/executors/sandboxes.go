package executors

import (
	"context"
	"strings"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/remote/control"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// own returns the record of an executor's sandbox, also of a destroyed one.
func (s *Service) own(ctx context.Context, from string, tenantID tenant.ID, id runtime.ID) (*sandbox.Sandbox, error) {
	if tenantID == "" || !id.Valid() {
		return nil, sandbox.ErrNotFound
	}
	sb, err := s.cfg.Sandboxes.Get(ctx, tenantID, id)
	if err == nil && sb.Executor != from {
		return nil, sandbox.ErrNotFound
	}
	return sb, err
}

// owns reports whether an executor has a sandbox that is not destroyed.
func (s *Service) owns(ctx context.Context, from string, id runtime.ID) (bool, error) {
	executor, err := s.cfg.Sandboxes.Locate(ctx, id)
	if fault.KindOf(err) == fault.NotFound {
		return false, nil
	}
	return err == nil && executor == from, err
}

// Create records a sandbox of the executor for a pass, within the quota of the tenant. The sandbox
// gets the tenant, environment and key of the pass. Repeating the call for the same sandbox has no
// effect.
func (s *Service) Create(ctx context.Context, from string, in control.Placed) (control.Created, error) {
	grant, err := s.Grant(ctx, from, in.Pass)
	if err != nil {
		return control.Created{}, err
	}
	sb := &in.Sandbox
	sb.Tenant, sb.Environment, sb.Key, sb.Executor, sb.Endings = grant.Tenant, grant.Environment, grant.Key, from, nil
	if err := checkNew(sb); err != nil {
		return control.Created{}, err
	}
	there, err := s.cfg.Sandboxes.Create(ctx, sb, grant.Quota())
	switch {
	case err != nil:
		return control.Created{}, err
	case there == nil:
		return control.Created{At: sb.CreatedAt}, nil
	case there.Executor != from:
		return control.Created{There: &sandbox.Sandbox{
			ID: there.ID, Tenant: there.Tenant, Environment: there.Environment, Session: there.Session, Name: there.Name, Executor: there.Executor,
		}}, nil
	case there.ID == sb.ID && there.State == sandbox.Creating:
		return control.Created{At: there.CreatedAt}, nil
	}
	return control.Created{There: there}, nil
}

// checkNew checks a new record, and cuts its texts.
func checkNew(sb *sandbox.Sandbox) error {
	if !sb.ID.Valid() || sb.State != sandbox.Creating || sb.Stored != nil {
		return fault.New(fault.Invalid, "the executor reported a new sandbox without an id, or not as %q; run the same version on all servers", sandbox.Creating)
	}
	if err := sandbox.CheckSession(sb.Session); err != nil {
		return err
	}
	if err := sandbox.CheckName(sb.Name); err != nil {
		return err
	}
	saved, err := reported(sb)
	if err == nil {
		sb.CopySaved(saved)
	}
	return err
}

// Wake records a sandbox of the executor that becomes resident, within the quota of the tenant. Only
// events and the record decide up to when it is charged. Repeating the call has no effect.
func (s *Service) Wake(ctx context.Context, from string, in control.Placed) error {
	record, err := s.own(ctx, from, in.Sandbox.Tenant, in.Sandbox.ID)
	if err != nil {
		return err
	}
	if in.Pass.Tenant != record.Tenant || in.Pass.Environment != record.Environment {
		return sandbox.ErrNoValidKey
	}
	grant, err := s.Grant(ctx, from, in.Pass)
	if err != nil {
		return err
	}
	awake, err := reported(&in.Sandbox)
	switch {
	case err != nil:
		return err
	case awake.State != sandbox.Running:
		return fault.New(fault.Invalid, "the executor reported that a sandbox wakes and is %q; run the same version on all servers", awake.State)
	}
	record.CopySaved(awake)
	return s.cfg.Sandboxes.Wake(ctx, record, grant.Quota())
}

// maxText limits details and reasons of executors, in bytes.
const maxText = 4096

// reported returns the fields of a record that an executor may change, as it reports them. It cuts
// long texts and times in the future. Values that would falsify sums or harm readers are an Invalid
// fault.
func reported(sb *sandbox.Sandbox) (*sandbox.Sandbox, error) {
	if err := sb.CheckSaved(); err != nil {
		return nil, err
	}
	out := &sandbox.Sandbox{ID: sb.ID}
	out.CopySaved(sb)
	out.Detail, out.ImageWarning, out.UsedAt = short(sb.Detail), short(sb.ImageWarning), past(sb.UsedAt)
	return out, nil
}

// short cuts a text of an executor.
func short(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "")
}

// Delete deletes the record of a sandbox of the executor whose creation failed.
func (s *Service) Delete(ctx context.Context, from string, id runtime.ID) error {
	owns, err := s.owns(ctx, from, id)
	if err != nil || !owns {
		return err
	}
	return s.cfg.Sandboxes.Delete(ctx, id)
}

// CheckBudget returns an Exhausted fault if a tenant with a sandbox of the executor has used up its
// budget for the month.
func (s *Service) CheckBudget(ctx context.Context, from string, tenantID tenant.ID) error {
	holds, err := s.holds(ctx, from, tenantID, "")
	if err != nil || !holds {
		return err
	}
	return s.cfg.Sandboxes.CheckBudget(ctx, tenantID)
}
