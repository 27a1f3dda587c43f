package records

import (
	"context"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// Charge implements sandbox.Ledger. It returns once the charge is on disk; a gateway prices it.
func (j *Journal) Charge(_ context.Context, s *sandbox.Sandbox, until time.Time, bytesOut int64) error {
	j.mu.Lock()
	e := j.records[s.ID]
	if e == nil {
		j.mu.Unlock()
		return sandbox.ErrNotFound
	}
	from := s.MeteredAt
	if e.sb.MeteredAt.After(from) {
		from = e.sb.MeteredAt
	}
	if !until.After(from) { // charged already
		j.mu.Unlock()
		return nil
	}
	ev := &sandbox.Event{Charge: &sandbox.Charge{From: from, Until: until, CPU: s.Limits.CPU, Memory: s.Limits.Memory, BytesOut: bytesOut}}
	at, err := j.report(s.ID, ev, "", false)
	if err == nil {
		e.apply(ev)
	}
	j.mu.Unlock()
	if err != nil {
		return err
	}
	return j.settle(at)
}

// Contacted implements sandbox.Ledger.
func (j *Journal) Contacted(_ context.Context, s *sandbox.Sandbox, until time.Time, hosts []string) error {
	j.mu.Lock()
	if j.records[s.ID] == nil {
		j.mu.Unlock()
		return sandbox.ErrNotFound
	}
	at, err := j.report(s.ID, &sandbox.Event{Contact: &sandbox.Contact{From: s.MeteredAt, Until: until, Hosts: slices.Clone(hosts)}}, "", false)
	j.mu.Unlock()
	if err != nil {
		return err
	}
	return j.settle(at)
}
