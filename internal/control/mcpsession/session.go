// Package mcpsession keeps the sessions that clients of the Model Context Protocol open: how many a tenant
// may have, which one makes room for another, the calls and events of each, and the sandboxes that end with
// one.
package mcpsession

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Bounds of sessions.
const (
	maxSessions       = 1000     // of all callers together
	maxTenantSessions = 100      // of one tenant; the one that was not used longest makes room
	maxCalls          = 64       // of one session at the same time
	maxReplay         = 32 << 20 // bytes of events, of all sessions together, that clients can ask for again
)

// Place is who calls, and what the URL says of every call.
type Place struct {
	Caller          *tenant.Principal
	Pool            string // the session of the sandboxes
	Named           bool   // by the caller, so that it outlives the MCP session
	Agent, Template string // of execute_code
}

// Session is what a client has opened.
type Session struct {
	Place // Caller is who opened it; calls have one of their own

	ID     string
	Server *mcp.Server
	Life   context.Context // calls end with it

	cancel context.CancelFunc
	calls  atomic.Int64 // in progress
	used   time.Time    // guarded by Sessions.mu
}

// Pool has the sandboxes of sessions; *directory.Directory implements it.
type Pool interface {
	List(ctx context.Context, p *tenant.Principal, session string) ([]*sandbox.Sandbox, error)
	Destroy(ctx context.Context, p *tenant.Principal, session, nameOrID string) error
	Record(ctx context.Context, p *tenant.Principal, c sandbox.Call) error
}

// Sessions are the sessions of all clients.
type Sessions struct {
	pool Pool

	mu  sync.Mutex
	all map[string]*Session // guarded by mu; by id
}

// New returns Sessions without any.
func New(pool Pool) *Sessions { return &Sessions{pool: pool, all: map[string]*Session{}} }

// Events returns a store of the sessions' events. replayed is called when a client asks for events again.
func (s *Sessions) Events(replayed func(ctx context.Context)) mcp.EventStore {
	return newEvents(maxReplay, s.owner, s.Forget, replayed)
}

// Open makes a session for the key of at. serve makes its server.
func (s *Sessions) Open(at Place, serve func(*Session) *mcp.Server) (*Session, error) {
	one := &Session{Place: at, ID: rand.Text(), used: time.Now()}
	if !at.Named {
		// Lists of sandboxes show the pool's name, so the session's ID must not follow from it.
		sum := sha256.Sum256([]byte(one.ID))
		one.Pool = "mcp-" + hex.EncodeToString(sum[:8])
	}
	one.Server = serve(one)
	one.Life, one.cancel = context.WithCancel(context.Background())
	for {
		over, err := s.admit(one)
		if over == nil {
			if err != nil {
				one.cancel()
			}
			return one, err
		}
		over.Close()
	}
}

// Call begins a call in a session.
func (one *Session) Call() (end func(), err error) {
	end = func() { one.calls.Add(-1) }
	if one.calls.Add(1) > maxCalls {
		end()
		return nil, fault.Limit("calls", time.Time{}, "this session has %d calls in progress; wait for one of them", maxCalls)
	}
	return end, nil
}

// admit adds a session if there is room. Otherwise it returns one that makes
// room. The caller closes that session, which Sessions no longer finds.
func (s *Sessions) admit(one *Session) (over *Session, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := 0
	for _, other := range s.all {
		if other.Caller.Tenant.ID != one.Caller.Tenant.ID {
			continue
		}
		own++
		if other.calls.Load() == 0 && (over == nil || other.used.Before(over.used)) {
			over = other
		}
	}
	switch {
	case own < maxTenantSessions && len(s.all) < maxSessions:
		s.all[one.ID] = one
		return nil, nil
	case over != nil:
		delete(s.all, over.ID)
		return over, nil
	case own >= maxTenantSessions:
		return nil, fault.Limit("mcp_sessions", time.Time{}, "all %d sessions that a tenant may have are in use; end one with DELETE, or call with ?stateless=true", maxTenantSessions)
	}
	return nil, fault.New(fault.Unavailable, "this server has as many sessions as it can; retry in a few seconds, or call with ?stateless=true")
}

// Find returns a session of p's key and marks it used, or nil.
func (s *Sessions) Find(id string, p *tenant.Principal) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.all[id]
	if one == nil || one.Caller.Tenant.ID != p.Tenant.ID || one.Caller.Key.ID != p.Key.ID {
		return nil
	}
	one.used = time.Now()
	return one
}

// owner returns the tenant of a session.
func (s *Sessions) owner(id string) (tenant.ID, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.all[id]; one != nil {
		return one.Caller.Tenant.ID, true
	}
	return "", false
}

// Forget makes a session unknown. The SDK calls it when one has ended.
func (s *Sessions) Forget(id string) {
	s.mu.Lock()
	one := s.all[id]
	delete(s.all, id)
	s.mu.Unlock()
	if one != nil {
		one.cancel()
	}
}

// Count returns the number of open sessions.
func (s *Sessions) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

// Close ends every session and the calls in it.
func (s *Sessions) Close() {
	s.mu.Lock()
	open := slices.Collect(maps.Values(s.all))
	s.mu.Unlock()
	for _, one := range open {
		one.Close()
	}
}

// End ends a session at its client's request, and destroys the sandboxes that no other session can name.
func (s *Sessions) End(ctx context.Context, one *Session, p *tenant.Principal) error {
	one.Close()
	if one.Named {
		return nil
	}
	all, err := s.pool.List(ctx, p, one.Pool)
	if err != nil {
		return err
	}
	for _, sb := range all {
		if err := s.destroy(ctx, p, one.Pool, sb.Name); err != nil && fault.KindOf(err) != fault.NotFound {
			return err
		}
	}
	return nil
}

// destroy ends a sandbox, and leaves a row in the audit trail.
func (s *Sessions) destroy(ctx context.Context, p *tenant.Principal, pool, name string) error {
	row := sandbox.Call{TraceID: execution.NewTraceID(), Source: "sandbox_destroy", Session: pool, Command: []byte(name), Began: time.Now()}
	err := s.pool.Destroy(ctx, p, pool, name)
	row.Ended(ctx, err, true)
	return errors.Join(err, s.pool.Record(ctx, p, row))
}

// Connected reports whether the SDK has the session.
func (one *Session) Connected() bool {
	for range one.Server.Sessions() {
		return true
	}
	return false
}

// Close ends a session and the calls in it.
func (one *Session) Close() {
	one.cancel()
	for c := range one.Server.Sessions() {
		_ = c.Close() // waits for the calls, and fails as they do
	}
}
