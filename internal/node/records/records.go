package records

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

const (
	// endedTime bounds how long Create waits until gateways know that an earlier sandbox of the name
	// is destroyed, and freedTime likewise for quotas.
	endedTime = 10 * time.Second
	freedTime = 2 * time.Second

	discardTime = 10 * time.Second // for a gateway to delete a record
)

// Create implements sandbox.Records. Gateways learn that a sandbox is destroyed a moment later than
// the machine, so Create retries when they name one that is destroyed.
func (j *Journal) Create(ctx context.Context, grant *sandbox.Grant, s *sandbox.Sandbox) (*sandbox.Sandbox, error) {
	s.Revision = 1
	if err := j.begun(s); err != nil {
		return nil, err
	}
	var there *sandbox.Sandbox
	err := j.retry(ctx, s.Tenant, func() (again bool, err error) {
		there, err = j.cfg.Records.Create(ctx, grant, s)
		if err == nil && there != nil && there.ID == s.ID { // an earlier try was recorded, and its answer lost
			s.CreatedAt, s.UsedAt, s.MeteredAt = there.CreatedAt, there.UsedAt, there.MeteredAt
			there = nil
		}
		return err == nil && there != nil && j.over(there), err
	})
	switch {
	case err == nil && there == nil:
		return nil, j.keep(s.ID, func(kept *sandbox.Sandbox) { *kept = *s.Clone() })
	case err == nil || answered(err):
		j.drop(s.ID)
	default:
		_ = j.discard(s.ID) // which logs why it fails
	}
	return there, err
}

// begun notes a sandbox before a gateway does. Without a further note it was never created.
func (j *Journal) begun(s *sandbox.Sandbox) error {
	b, err := sandbox.EncodeRecord(s)
	if err != nil {
		return err
	}
	j.mu.Lock()
	if err = j.room(0, false); err != nil {
		j.mu.Unlock()
		return err
	}
	at, err := j.file.write(frame{kind: kept, payload: b})
	if err == nil {
		j.records[s.ID] = &entry{sb: s.Clone()}
	}
	j.mu.Unlock()
	if err != nil {
		return err
	}
	return j.settle(at)
}

// keep notes a record that a gateway has recorded. The note survives the end of the process. After a
// power failure the note before it counts, which recovery can handle.
func (j *Journal) keep(id runtime.ID, change func(s *sandbox.Sandbox)) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.records[id]
	if e == nil {
		return sandbox.ErrNotFound
	}
	next := e.sb.Clone()
	change(next)
	b, err := sandbox.EncodeRecord(next)
	if err != nil {
		return err
	}
	if _, err := j.file.write(frame{kind: kept, payload: b}); err != nil {
		return err
	}
	e.sb, e.asked = next, false
	return nil
}

// drop forgets a sandbox that was never created.
func (j *Journal) drop(id runtime.ID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.dropLocked(id)
}

func (j *Journal) dropLocked(id runtime.ID) {
	delete(j.records, id)
	if _, err := j.file.write(frame{kind: dropped, payload: []byte(id)}); err != nil {
		j.cfg.Log.Error("cannot forget a sandbox that was not created; the next start of the executor does it", "sandbox_id", string(id), "error", err)
	}
}

// discard has gateways delete the record of a sandbox whose creation failed, whatever they know of it.
// If it returns an error, the sandbox is still listed as being created.
func (j *Journal) discard(id runtime.ID) error {
	j.mu.Lock()
	at, err := j.report(id, &sandbox.Event{Discard: true}, "", true)
	if err == nil {
		j.dropLocked(id)
	}
	j.mu.Unlock()
	if err == nil {
		err = j.settle(at)
	}
	if err != nil {
		j.cfg.Log.Error("cannot report that a sandbox was not created; the next start of the executor does it", "sandbox_id", string(id), "error", err)
	}
	return err
}

// over reports whether a sandbox of a gateway's answer was this executor's and exists no more.
func (j *Journal) over(there *sandbox.Sandbox) bool {
	if there.Executor != j.cfg.Executor {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.records[there.ID]
	return e == nil || e.sb.State == sandbox.Destroyed
}

// answered reports whether err is a gateway's decision. After other errors, the gateway may have done
// what it was asked.
func answered(err error) bool {
	k := fault.KindOf(err)
	return k != fault.Internal && k != fault.Unavailable
}

var errEnding = fault.New(fault.Unavailable, "gateways have not recorded yet that an earlier sandbox of this name is destroyed; retry in a few seconds")

// retry repeats call while it asks for that, and while a quota rejects it that the tenant's sandboxes
// have just left.
func (j *Journal) retry(ctx context.Context, of tenant.ID, call func() (again bool, err error)) error {
	end := time.Now().Add(endedTime)
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) {
		again, err := call()
		switch {
		case err != nil && !(fault.KindOf(err) == fault.Exhausted && j.freedLately(of)), err == nil && !again:
			return err
		case time.Now().After(end):
			return cmp.Or(err, error(errEnding))
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return cmp.Or(err, error(errEnding))
		}
	}
}

// freedLately reports whether a sandbox of a tenant has just been destroyed or left its memory.
func (j *Journal) freedLately(of tenant.ID) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return time.Since(j.freed[of]) < freedTime
}

// Wake implements sandbox.Records.
func (j *Journal) Wake(ctx context.Context, grant *sandbox.Grant, s *sandbox.Sandbox) error {
	revision, err := j.ask(s.ID)
	if err != nil {
		return err
	}
	awake := s.Clone()
	awake.Revision = revision
	awake.MeteredAt = time.Time{} // charges for the time before are still on their way, and Events.Fold charges no time twice
	err = j.retry(ctx, s.Tenant, func() (bool, error) { return false, j.cfg.Records.Wake(ctx, grant, awake) })
	switch {
	case err == nil:
		err = j.keep(s.ID, func(kept *sandbox.Sandbox) {
			kept.CopySaved(awake)
			if s.MeteredAt.After(kept.MeteredAt) {
				kept.MeteredAt = s.MeteredAt
			}
		})
		if err == nil {
			s.Revision = revision
		}
		return err
	case answered(err):
		if kept := j.keep(s.ID, func(*sandbox.Sandbox) {}); kept != nil {
			err = errors.Join(err, kept)
		}
		return err
	}
	j.correct(s.ID)
	return err
}

// ask notes that a gateway is about to record that a sandbox wakes, and returns the revision for it.
func (j *Journal) ask(id runtime.ID) (revision uint64, err error) {
	j.mu.Lock()
	e := j.records[id]
	if e == nil || e.sb.State == sandbox.Destroyed {
		j.mu.Unlock()
		return 0, sandbox.ErrNotFound
	}
	before := e.sb.Clone()
	before.Revision++
	at, err := j.file.write(frame{asked, before.Revision, []byte(id)})
	if err == nil {
		e.sb, e.asked = before, true
	}
	j.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return before.Revision, j.settle(at)
}

// correct reports the record of a sandbox again, because a gateway may have recorded that it wakes.
func (j *Journal) correct(id runtime.ID) {
	sb, ok := j.Record(id)
	if !ok {
		return
	}
	if err := j.Save(context.Background(), sb); err != nil {
		j.cfg.Log.Error("gateways may show a sandbox as running until its next change", "sandbox_id", string(id), "error", err)
	}
}

// correctAsked calls correct for sandboxes whose Wake a former process did not see answered.
func (j *Journal) correctAsked() {
	for id, e := range j.records {
		if e.asked {
			j.correct(id)
		}
	}
}

// Save implements sandbox.Records. It returns once the change is on disk; gateways learn of it later.
// It returns an Unavailable fault if too many changes wait for the bus.
func (j *Journal) Save(_ context.Context, s *sandbox.Sandbox) error {
	j.mu.Lock()
	e := j.records[s.ID]
	if e == nil || e.sb.State == sandbox.Destroyed {
		j.mu.Unlock()
		return sandbox.ErrNotFound
	}
	next := e.sb.Clone()
	next.CopySaved(s)
	next.Revision = e.sb.Revision + 1
	at, err := j.report(s.ID, &sandbox.Event{Save: next}, "save", true)
	if err == nil {
		j.saved(e, next)
	}
	j.mu.Unlock()
	if err != nil {
		return err
	}
	s.Revision = next.Revision
	return j.settle(at)
}

// saved replaces a record. mu is held.
func (j *Journal) saved(e *entry, next *sandbox.Sandbox) {
	if e.sb.Resident() && !next.Resident() || next.State == sandbox.Destroyed {
		if len(j.freed) > 10_000 {
			clear(j.freed)
		}
		j.freed[next.Tenant] = time.Now()
	}
	e.sb, e.asked = next, false
	if next.State != sandbox.Destroyed {
		return
	}
	j.ended = append(j.ended, next)
	if len(j.ended) > maxEnded {
		j.ended = slices.Delete(j.ended, 0, len(j.ended)-maxEnded)
	}
}

// SaveEndings implements sandbox.Records, as Save does.
func (j *Journal) SaveEndings(_ context.Context, id runtime.ID, endings []sandbox.Ending) error {
	j.mu.Lock()
	e := j.records[id]
	if e == nil || e.sb.State == sandbox.Destroyed {
		j.mu.Unlock()
		return sandbox.ErrNotFound
	}
	ev := &sandbox.Event{Endings: slices.Clone(endings)}
	at, err := j.report(id, ev, "endings", true)
	if err == nil {
		e.apply(ev)
	}
	j.mu.Unlock()
	if err != nil {
		return err
	}
	return j.settle(at)
}

// Delete implements sandbox.Records. If no gateway answers, an event tells them later.
func (j *Journal) Delete(ctx context.Context, id runtime.ID) error {
	sb, known := j.Record(id)
	if known && sb.State != sandbox.Creating {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, discardTime)
	defer cancel()
	err := j.cfg.Records.Delete(ctx, id)
	switch {
	case err == nil || fault.KindOf(err) == fault.NotFound:
		j.drop(id)
		return nil
	case answered(err):
		return err
	}
	return j.discard(id)
}

// CheckBudget implements sandbox.Records.
func (j *Journal) CheckBudget(ctx context.Context, tenantID tenant.ID) error {
	return j.cfg.Records.CheckBudget(ctx, tenantID)
}

// Get implements sandbox.Records.
func (j *Journal) Get(ctx context.Context, tenantID tenant.ID, id runtime.ID) (*sandbox.Sandbox, error) {
	if sb, ok := j.Record(id); ok && sb.Tenant == tenantID {
		return sb, nil
	}
	return j.cfg.Records.Get(ctx, tenantID, id)
}

// ListWithoutEnvironment implements sandbox.Records.
func (j *Journal) ListWithoutEnvironment(ctx context.Context, executor string) ([]runtime.ID, error) {
	return j.cfg.Records.ListWithoutEnvironment(ctx, executor)
}

// ListByExecutor implements sandbox.Records. It includes sandboxes in the state Creating whose
// creation was never answered. A new or damaged journal first takes the records that gateways have.
func (j *Journal) ListByExecutor(ctx context.Context, executor string) ([]*sandbox.Sandbox, error) {
	if executor != j.cfg.Executor {
		return nil, fault.New(fault.Internal, "the journal of executor %q was asked for the sandboxes of %q", j.cfg.Executor, executor)
	}
	if err := j.adoptRecords(ctx); err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	var all []*sandbox.Sandbox
	for _, e := range j.records {
		if e.sb.State != sandbox.Destroyed {
			all = append(all, e.sb.Clone())
		}
	}
	slices.SortFunc(all, func(a, b *sandbox.Sandbox) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

// adoptRecords takes the records from a gateway that the journal may lack.
func (j *Journal) adoptRecords(ctx context.Context) error {
	j.mu.Lock()
	due := j.adopt
	j.mu.Unlock()
	if !due {
		return nil
	}
	have, err := j.cfg.Records.ListByExecutor(ctx, j.cfg.Executor)
	if err != nil {
		return err
	}
	taken := 0
	j.mu.Lock()
	for _, sb := range have {
		if j.records[sb.ID] != nil || sb.Executor != j.cfg.Executor {
			continue
		}
		sb = sb.Clone()
		sb.Revision += adoptedBy
		j.records[sb.ID] = &entry{sb: sb}
		taken++
	}
	j.adopt = false
	j.mu.Unlock()
	if taken > 0 {
		j.cfg.Log.Warn("took records of sandboxes from a gateway, because the journal of this executor is new or was damaged", "count", taken)
	}
	return j.compact()
}
