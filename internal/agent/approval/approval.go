// Package approval decides over the tool calls that wait in the inbox, and continues the sessions and
// responses that asked.
package approval

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"time"

	"github.com/atoll-run/atoll/internal/agent/admission"
	"github.com/atoll-run/atoll/internal/agent/conversation"
	"github.com/atoll-run/atoll/internal/agent/response"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/approval"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Config configures a Service.
type Config struct {
	Store         approval.Store
	Conversations *conversation.Service
	Responses     *response.Service
	// Entrant returns who gave a decision, as a tenant.Authority does.
	Entrant func(ctx context.Context, t tenant.ID, key, environment string) (tenant.Principal, error)
	Log     *slog.Logger
}

// Service holds the approvals of all tenants.
type Service struct {
	Config
	later map[run.ID]attempt // of Run
}

// New returns a Service.
func New(cfg Config) *Service { return &Service{cfg, map[run.ID]attempt{}} }

// Find returns an approval of a tenant.
func (s *Service) Find(ctx context.Context, t tenant.ID, id approval.ID) (*approval.Approval, error) {
	if !id.Valid() {
		return nil, approval.ErrNotFound
	}
	return s.Store.Get(ctx, t, id)
}

// Decide approves or denies a call. After the last decision on a model's answer, the turn continues, or a
// new response continues the response that asked. If a limit, the budget or a shutdown rejects the new
// response, Run starts it later.
func (s *Service) Decide(ctx context.Context, caller *admission.Caller, id approval.ID, d approval.Decision) (*approval.Approval, error) {
	if err := caller.MayConfirm(); err != nil {
		return nil, err
	}
	a, err := s.Find(ctx, caller.Tenant.ID, id)
	if err != nil {
		return nil, err
	}
	if a.Session != "" {
		err = s.inSession(ctx, caller, a, d)
	} else {
		err = s.inResponse(ctx, caller, a, d)
	}
	if err != nil {
		return nil, err
	}
	return s.Store.Get(ctx, a.Tenant, a.ID)
}

// maxTries bounds how often a decision is applied to a session that changes at the same moment.
const maxTries = 8

// inSession decides a session's call the way the session's client does.
func (s *Service) inSession(ctx context.Context, caller *admission.Caller, a *approval.Approval, d approval.Decision) error {
	if a.Status != approval.Pending {
		return approval.ErrDecided
	}
	caller = caller.Once()
	for try := 1; ; try++ {
		of, err := s.Conversations.Find(ctx, a.Tenant, session.ID(a.Session))
		if err != nil {
			return err
		}
		_, err = s.Conversations.Take(ctx, caller, of, &conversation.Batch{Queue: true, Answers: []conversation.Answer{{Of: session.EventID(of.ID, a.Of), Approve: &d.Approve, Reason: d.Reason}}})
		if !errors.Is(err, session.ErrChanged) || try == maxTries {
			return err
		}
	}
}

// inResponse records a decision. The last decision on a response starts the response that continues it.
func (s *Service) inResponse(ctx context.Context, caller *admission.Caller, a *approval.Approval, d approval.Decision) error {
	if a.Environment != caller.Environment.ID {
		return response.ErrElsewhere
	}
	all, err := s.Store.Decide(ctx, a.Tenant, a.ID, d)
	if err != nil {
		return err
	}
	said, err := decisions(all)
	if err != nil || said == nil {
		return err
	}
	_, err = s.Responses.Resume(ctx, caller, a.Run, said)
	switch fault.KindOf(err) {
	case fault.Conflict:
		if now, failed := s.Store.Get(ctx, a.Tenant, a.ID); failed == nil && now.Next != "" {
			return nil // a concurrent decision has already continued the response
		}
	case fault.Exhausted, fault.Unavailable:
		s.Log.InfoContext(ctx, "a decided response continues later", "response", response.ID(a.Run), "error", err)
		return nil
	}
	return err
}

// decisions returns what the approvals of a response say; nil while a call waits.
func decisions(all []approval.Approval) ([]run.Said, error) {
	said := make([]run.Said, len(all))
	for i := range all {
		switch one := &all[i]; one.Status {
		case approval.Pending:
			return nil, nil
		case approval.Approved, approval.Denied:
			said[i] = run.Said{Item: one.Item, Tool: one.Tool, Approve: one.Status == approval.Approved, Reason: one.Reason, Noted: true}
		default:
			return nil, approval.ErrDecided
		}
	}
	return said, nil
}

const (
	lookEvery = 2 * time.Second
	atOnce    = 64   // calls that expire at a time
	mostOnce  = 1000 // responses that one look finds
	firstWait = 5 * time.Second
	longest   = 5 * time.Minute
	readPage  = 100
)

// attempt is a response that could not be continued.
type attempt struct {
	wait time.Duration
	next time.Time
}

// Run ends the waits of responses at their deadlines, and continues responses that could not be continued
// when their calls were decided, until ctx ends.
func (s *Service) Run(ctx context.Context) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		_, err := s.Store.Expire(ctx, atOnce)
		if err = errors.Join(err, s.resume(ctx)); err != nil && ctx.Err() == nil {
			s.Log.Warn("approvals wait longer", "error", err)
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// resume continues the responses whose calls are decided.
func (s *Service) resume(ctx context.Context) error {
	undone, err := s.Store.Undone(ctx, mostOnce)
	if err != nil {
		return err
	}
	now := time.Now()
	maps.DeleteFunc(s.later, func(_ run.ID, tried attempt) bool { return now.Sub(tried.next) > longest })
	for _, r := range undone {
		tried := s.later[r.Run]
		if time.Now().Before(tried.next) {
			continue
		}
		err := s.resumeOne(ctx, r)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			delete(s.later, r.Run)
			continue
		}
		tried.wait = min(max(2*tried.wait, firstWait), longest)
		tried.next = time.Now().Add(tried.wait)
		s.later[r.Run] = tried
		s.Log.DebugContext(ctx, "cannot continue a decided response yet", "response", response.ID(r.Run), "error", err)
	}
	return nil
}

// resumeOne continues a response for the key that decided last.
func (s *Service) resumeOne(ctx context.Context, r approval.Response) error {
	f := approval.Filter{Page: agent.Page{Limit: readPage}, Tenant: r.Tenant, Run: r.Run}
	var all []approval.Approval
	for {
		page, next, err := s.Store.List(ctx, f)
		if err != nil {
			return err
		}
		all = append(all, page...)
		if f.Cursor = next; next == "" {
			break
		}
	}
	said, err := decisions(all)
	if err != nil || said == nil {
		return err
	}
	last := &all[0]
	for i := range all {
		if all[i].DecidedAt.After(last.DecidedAt) {
			last = &all[i]
		}
	}
	caller, err := s.Entrant(ctx, r.Tenant, last.By, last.Environment)
	if err != nil {
		return err
	}
	_, err = s.Responses.Resume(ctx, &admission.Caller{Principal: &caller}, r.Run, said)
	return err
}
