package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"
)

const (
	// RefusalRows is how many refused calls of one kind leave a row of their own in
	// RefusalWindow. Those after them are counted, and share a row.
	RefusalRows   = 20
	RefusalWindow = time.Minute

	// TenantRefusalRows is how many refused calls of one tenant leave a row of their own in
	// RefusalWindow, whatever their kinds. Beyond as many kinds, all others share one row.
	TenantRefusalRows = 200

	refusalFlush = 10 * time.Second
)

// RefusalCount is the name in a row's Metadata of how many refused calls share it.
const RefusalCount = "refusals"

// Refusals writes rows of refused calls, not more than the trail has room for: a
// caller who repeats a call that is refused would fill the disk with rows that
// must be kept for weeks. It is safe for concurrent use.
type Refusals struct {
	write func(ctx context.Context, r Row) error
	log   *slog.Logger
	stop  context.CancelFunc
	ended chan struct{}

	mu      sync.Mutex
	kinds   map[refusalKind]*refusalState // guarded by mu
	tenants map[string]*refusalTenant     // guarded by mu
}

// refusalTenant is what a tenant has of a window.
type refusalTenant struct {
	since       time.Time
	rows, kinds int
}

// refusalKind is what refused calls have in common that share a row.
type refusalKind struct {
	tenant, key, environment, source string
	status                           ExitStatus
}

type refusalState struct {
	since  time.Time // begin of the window
	rows   int       // that calls have of their own
	shared int       // how many calls have none
	last   Row       // of those that have none
}

// NewRefusals returns a Refusals that adds rows with write, those that calls share
// in the background. Close it.
func NewRefusals(write func(ctx context.Context, r Row) error, log *slog.Logger) *Refusals {
	ctx, stop := context.WithCancel(context.Background())
	r := &Refusals{write: write, log: log, stop: stop, ended: make(chan struct{}), kinds: map[refusalKind]*refusalState{}, tenants: map[string]*refusalTenant{}}
	go r.loop(ctx)
	return r
}

func (r *Refusals) loop(ctx context.Context) {
	defer close(r.ended)
	tick := time.NewTicker(refusalFlush)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if err := r.flush(ctx, now.Add(-RefusalWindow)); err != nil && ctx.Err() == nil {
				r.log.Error("cannot write the shared audit row of rejected calls; retrying", "error", err)
			}
		}
	}
}

// Append adds the row of a refused call, or counts it to those that share one.
func (r *Refusals) Append(ctx context.Context, row Row) error {
	if r.count(row) {
		return nil
	}
	return r.write(ctx, row)
}

// count notes a refused call, and reports whether it shares its row with others.
func (r *Refusals) count(row Row) bool {
	kind := refusalKind{row.Tenant, row.Key, row.Environment, row.Source, row.ExitStatus}
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.tenants[row.Tenant]
	if of == nil {
		of = &refusalTenant{since: time.Now()}
		r.tenants[row.Tenant] = of
	}
	if r.kinds[kind] == nil && of.kinds >= TenantRefusalRows {
		kind = refusalKind{tenant: row.Tenant}
	}
	s := r.kinds[kind]
	if s == nil {
		s = &refusalState{since: time.Now()}
		r.kinds[kind] = s
		of.kinds++
	}
	if s.rows < RefusalRows && of.rows < TenantRefusalRows {
		s.rows++
		of.rows++
		return false
	}
	s.shared++
	s.last = row
	return true
}

// flush ends the windows that began before a time, and writes the rows that their
// calls share. One that cannot be written stays.
func (r *Refusals) flush(ctx context.Context, before time.Time) error {
	ended := map[refusalKind]*refusalState{}
	r.mu.Lock()
	for kind, s := range r.kinds {
		if s.since.After(before) {
			continue
		}
		delete(r.kinds, kind)
		if s.shared > 0 {
			ended[kind] = s
		}
	}
	for tenant, of := range r.tenants {
		if !of.since.After(before) {
			delete(r.tenants, tenant)
		}
	}
	r.mu.Unlock()
	var errs []error
	for kind, s := range ended {
		if err := r.write(ctx, s.row()); err != nil {
			errs = append(errs, err)
			r.restore(kind, s)
		}
	}
	return errors.Join(errs...)
}

// restore takes back a window whose row could not be written.
func (r *Refusals) restore(kind refusalKind, s *refusalState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if later := r.kinds[kind]; later != nil {
		s.rows += later.rows
		s.shared += later.shared
		if later.shared > 0 {
			s.last = later.last
		}
	}
	r.kinds[kind] = s
}

// row is the row that calls share: the last one's, without what was only its own.
func (s *refusalState) row() Row {
	row := s.last
	row.Agent, row.SessionID, row.CodeSHA256, row.OutboundHosts, row.Mounts, row.DurationMS = "", "", [32]byte{}, nil, nil, 0
	row.FailureReason = fmt.Sprintf("%d calls that were refused since %s share this row, the last one: %s", s.shared, s.since.UTC().Format(time.RFC3339), row.FailureReason)
	row.Metadata = map[string]string{RefusalCount: strconv.Itoa(s.shared)}
	return row
}

// Close writes the rows that calls share up to now.
func (r *Refusals) Close(ctx context.Context) error {
	r.stop()
	<-r.ended
	if err := r.flush(ctx, time.Now()); err != nil {
		return fmt.Errorf("write the audit rows that refused calls share: %w", err)
	}
	return nil
}
