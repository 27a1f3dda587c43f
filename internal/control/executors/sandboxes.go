package executors

import (
	"context"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/remote/control"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Limits of what executors report.
const (
	maxEndings = 64
	maxText    = 4096 // bytes of a detail or reason; longer ones are cut
	maxState   = 128  // bytes of a name in the blob store
	maxCPU     = 1e5
	maxBytes   = 1 << 50
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
	return checkReported(sb)
}

// checkReported rejects values of an executor that would falsify sums or harm readers.
func checkReported(sb *sandbox.Sandbox) error {
	if err := checkLimits(sb.Limits, sb.Disk); err != nil {
		return err
	}
	if sb.Stored != nil {
		return checkStored(sb.Stored)
	}
	return nil
}

// checkLimits rejects limits that no machine has.
func checkLimits(l runtime.Limits, disk int64) error {
	if l.CPU > 0 && l.CPU <= maxCPU && l.Memory > 0 && l.Memory <= maxBytes && disk >= 0 && disk <= maxBytes { // not for NaN
		return nil
	}
	return fault.New(fault.Invalid, "the executor reported %g cores, %d bytes of memory and %d bytes of disk, which cannot be; run the same version on all servers", l.CPU, l.Memory, disk)
}

// checkStored rejects a copy in the blob store that has no name for an object of its tenant, or
// fewer than 0 bytes.
func checkStored(c *sandbox.StoredCopy) error {
	if c.State == "" || len(c.State) > maxState || strings.ContainsAny(c.State, "/\\\x00") || strings.HasPrefix(c.State, ".") || c.Bytes < 0 || c.Bytes > maxBytes || c.Disk < 0 {
		return fault.New(fault.Invalid, "the executor reported the stored state %.80q with %d bytes, which cannot be; run the same version on all servers", c.State, c.Bytes)
	}
	return nil
}

// Wake records a sandbox of the executor that becomes resident, within the quota of the tenant.
// Repeating the call has no effect.
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
	if err := update(record, &in.Sandbox); err != nil {
		return err
	}
	if at := past(in.Sandbox.MeteredAt); at.After(record.MeteredAt) {
		record.MeteredAt = at
	}
	return s.cfg.Sandboxes.Wake(ctx, record, grant.Quota())
}

// Save records the changes of a sandbox of the executor: state, sleep, copy in the blob store,
// detail, image, limits, permissions, mounts and times. Only the record decides about its identity,
// variables and charges. Repeating the call has no effect.
func (s *Service) Save(ctx context.Context, from string, sb *sandbox.Sandbox) error {
	record, err := s.own(ctx, from, sb.Tenant, sb.ID)
	if err != nil {
		return err
	}
	if err := update(record, sb); err != nil {
		return err
	}
	return s.cfg.Sandboxes.Save(ctx, record)
}

var (
	states = []sandbox.State{sandbox.Creating, sandbox.Running, sandbox.Sleeping, sandbox.Lost, sandbox.Destroyed}
	sleeps = []sandbox.Sleep{sandbox.Frozen, sandbox.OnDisk, sandbox.Stored}
)

// update changes record as an executor reports it. A restart changes image and limits.
func update(record, to *sandbox.Sandbox) error {
	switch {
	case !slices.Contains(states, to.State), (to.State == sandbox.Sleeping) != slices.Contains(sleeps, to.Sleep), to.State != sandbox.Sleeping && to.Sleep != "":
		return fault.New(fault.Invalid, "the executor reported the sandbox state %.40q, sleep %.40q, which cannot be; run the same version on all servers", to.State, to.Sleep)
	case to.State == sandbox.Creating && record.State != sandbox.Creating: // its record could be deleted
		return fault.New(fault.Conflict, "the sandbox %q is %s, so it cannot become %s", record.Name, record.State, to.State)
	}
	if err := checkReported(to); err != nil {
		return err
	}
	record.State, record.Sleep, record.Stored, record.Detail = to.State, to.Sleep, to.Stored, short(to.Detail)
	record.Image, record.ImageWarning, record.Limits, record.Disk = to.Image, short(to.ImageWarning), to.Limits, to.Disk
	record.Permissions, record.Connected, record.Mounts = to.Permissions, to.Connected, to.Mounts
	record.SleepAfter, record.UsedAt, record.ExpiresAt = to.SleepAfter, past(to.UsedAt), to.ExpiresAt
	record.Revision = min(to.Revision, sandbox.MaxRevision)
	return nil
}

// short cuts a text of an executor.
func short(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "")
}

// SaveEndings records the endings of a sandbox of the executor.
func (s *Service) SaveEndings(ctx context.Context, from string, id runtime.ID, endings []sandbox.Ending) error {
	owns, err := s.owns(ctx, from, id)
	if err != nil {
		return err
	}
	if !owns {
		return sandbox.ErrNotFound
	}
	endings = slices.Clone(endings[max(0, len(endings)-maxEndings):])
	for i := range endings {
		endings[i].Reason, endings[i].Dimension = short(endings[i].Reason), short(endings[i].Dimension)
	}
	return s.cfg.Sandboxes.SaveEndings(ctx, id, endings)
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
