package mcp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// session is one that a client has opened.
type session struct {
	place // caller is who opened it; calls have one of their own

	id     string
	server *mcp.Server
	life   context.Context // calls end with it
	cancel context.CancelFunc

	calls atomic.Int64 // in progress
	used  time.Time    // guarded by Server.mu
}

// open makes a session for the key of at.
func (s *Server) open(at place) (*session, error) {
	one := &session{place: at, id: rand.Text(), used: time.Now()}
	if !at.named {
		// What can be read in lists of sandboxes must not open the session.
		sum := sha256.Sum256([]byte(one.id))
		one.pool = "mcp-" + hex.EncodeToString(sum[:8])
	}
	one.server = s.newServer(accessOf(at.caller), &mcp.ServerOptions{
		Instructions: instructions(one.pool), GetSessionID: func() string { return one.id },
	})
	one.life, one.cancel = context.WithCancel(context.Background())
	for {
		over, err := s.admit(one)
		if over == nil {
			if err != nil {
				one.cancel()
			}
			return one, err
		}
		over.close()
	}
}

// admit adds a session if there is room. Otherwise it returns one that makes
// room, which is to be closed; it is not found any more.
func (s *Server) admit(one *session) (over *session, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := 0
	for _, other := range s.sessions {
		if other.caller.Tenant.ID != one.caller.Tenant.ID {
			continue
		}
		own++
		if other.calls.Load() == 0 && (over == nil || other.used.Before(over.used)) {
			over = other
		}
	}
	switch {
	case own < maxTenantSessions && len(s.sessions) < maxSessions:
		s.sessions[one.id] = one
		return nil, nil
	case over != nil:
		delete(s.sessions, over.id)
		return over, nil
	case own >= maxTenantSessions:
		return nil, fault.Limit("mcp_sessions", time.Time{}, "all %d sessions that a tenant may have are in use; end one with DELETE, or call with ?stateless=true", maxTenantSessions)
	}
	return nil, fault.New(fault.Unavailable, "this server has as many sessions as it can; retry in a few seconds, or call with ?stateless=true")
}

// find returns a session of p's key and marks it used, or nil.
func (s *Server) find(id string, p *tenant.Principal) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.sessions[id]
	if one == nil || one.caller.Tenant.ID != p.Tenant.ID || one.caller.Key.ID != p.Key.ID {
		return nil
	}
	one.used = time.Now()
	return one
}

// owner returns the tenant of a session.
func (s *Server) owner(id string) (tenant.ID, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.sessions[id]; one != nil {
		return one.caller.Tenant.ID, true
	}
	return "", false
}

// forget makes a session unknown. The SDK calls it when one has ended.
func (s *Server) forget(id string) {
	s.mu.Lock()
	one := s.sessions[id]
	delete(s.sessions, id)
	s.mu.Unlock()
	if one != nil {
		one.cancel()
	}
}

func (s *Server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

func (s *Server) all() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*session
	for _, one := range s.sessions {
		out = append(out, one)
	}
	return out
}

// connected reports whether the SDK has the session.
func (one *session) connected() bool {
	for range one.server.Sessions() {
		return true
	}
	return false
}

// close ends a session and the calls in it.
func (one *session) close() {
	one.cancel()
	for c := range one.server.Sessions() {
		_ = c.Close() // waits for the calls, and fails as they do
	}
}
