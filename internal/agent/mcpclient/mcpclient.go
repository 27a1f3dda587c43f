// Package mcpclient calls tools of MCP servers that callers name: over Streamable HTTP, or over
// the input and output of a program in a sandbox.
//
// Callers choose the URLs and headers, and strangers write the answers. Package outbound checks
// the address of each connection. Redirects must stay on the server. Time, bytes, requests and
// tools are limited. No error or result contains the value of a header.
package mcpclient

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/outbound"
)

// Limits of sessions.
const (
	maxSessions = 1024             // kept for later calls
	idleTime    = time.Minute      // how long an unused session stays open
	connectTime = 10 * time.Second // to open a session
)

// Client calls the tools of servers. It is safe for concurrent use.
type Client struct {
	allow   outbound.List
	http    *exchange
	version string
	starter Starter // nil for no programs

	wg       sync.WaitGroup // of sessions that are being closed
	mu       sync.Mutex
	closed   bool                // guarded by mu
	sessions map[string]*session // guarded by mu; by the name that callers give them
}

// New returns a Client; the caller must call Close. allow lists the hosts that it may reach in
// addition to public addresses.
func New(allow outbound.List, version string) *Client {
	return &Client{allow: allow, http: newExchange(allow), version: version, sessions: map[string]*session{}}
}

// StartBy sets the Starter of programs. Call it before the first call of a tool.
func (c *Client) StartBy(s Starter) { c.starter = s }

// Close ends all sessions and waits for them.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	all := c.sessions
	c.sessions = map[string]*session{}
	for _, s := range all {
		if s.idle != nil {
			s.idle.Stop()
		}
		c.end(s)
	}
	c.mu.Unlock()
	c.wg.Wait()
	c.http.CloseIdleConnections()
}

// session is a session with a server, from its start on.
type session struct {
	name  string
	ready chan struct{} // closed when mcp or err is set
	mcp   *mcp.ClientSession
	err   error
	peer  *peer

	users  int         // guarded by Client.mu
	idle   *time.Timer // guarded by Client.mu; ends it, while it has no users
	listed sync.Once   // the session knows its server's tools
}

// open returns the session with a name, and creates it if needed. If open succeeds, the caller
// must call release.
func (c *Client) open(ctx context.Context, name string, t Target) (*session, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, fault.New(fault.Unavailable, "the server is shutting down")
	}
	s := c.sessions[name]
	if s != nil && !s.peer.target.equal(t) { // with other credentials the server may know another caller, and another command is another server
		delete(c.sessions, name)
		if s.users == 0 && s.idle != nil {
			s.idle.Stop()
			c.end(s)
		}
		s = nil
	}
	if s == nil {
		s = &session{name: name, ready: make(chan struct{}), peer: newPeer(t)}
		if len(c.sessions) < maxSessions {
			c.sessions[name] = s
		}
		s.users++
		c.mu.Unlock()
		c.connect(ctx, s)
	} else {
		s.users++
		if s.idle != nil {
			s.idle.Stop()
			s.idle = nil
		}
		c.mu.Unlock()
		select {
		case <-s.ready:
		case <-ctx.Done():
			c.release(s, true)
			return nil, context.Cause(ctx)
		}
	}
	if s.err != nil {
		c.release(s, false)
		return nil, s.err
	}
	return s, nil
}

// connect opens a session.
func (c *Client) connect(ctx context.Context, s *session) {
	defer close(s.ready)
	most := connectTime
	if s.peer.target.Command != nil {
		most = startTime
	}
	ctx, cancel := context.WithTimeoutCause(ctx, most, errSlow)
	defer cancel()
	ctx, seen := watch(ctx)
	client := mcp.NewClient(&mcp.Implementation{Name: "atoll", Version: c.version}, &mcp.ClientOptions{
		Capabilities:   &mcp.ClientCapabilities{}, // it answers no question of a server
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	})
	client.AddReceivingMiddleware(s.peer.hear)
	var to mcp.Transport
	if to, s.err = c.transport(ctx, s.peer); s.err == nil {
		s.mcp, s.err = client.Connect(ctx, to, nil)
	}
	if s.err != nil && s.peer.program != nil {
		_ = s.peer.program.Close()
	}
	if s.err != nil {
		s.err = s.peer.failure(ctx, s.err, seen)
	}
}

// transport returns the transport to a server.
func (c *Client) transport(ctx context.Context, p *peer) (mcp.Transport, error) {
	if p.target.Command == nil {
		return &mcp.StreamableClientTransport{
			Endpoint: p.target.URL, HTTPClient: p.client(c.http), MaxRetries: 2, DisableStandaloneSSE: true, MaxEventSize: maxBody,
		}, nil
	}
	running, err := c.starter.Start(ctx, p.target.Command)
	if err != nil {
		return nil, err
	}
	p.program = &program{Program: running, writing: make(chan struct{}, 1)}
	return p.program, nil
}

// release returns a session; keep is false if it is unusable.
func (c *Client) release(s *session, keep bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.users--
	kept := c.sessions[s.name] == s
	if kept && !keep {
		delete(c.sessions, s.name)
		kept = false
	}
	switch {
	case s.users > 0:
	case !kept:
		c.end(s)
	default:
		s.idle = time.AfterFunc(idleTime, func() { c.expire(s) })
	}
}

// expire ends an idle session.
func (c *Client) expire(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.users > 0 || c.sessions[s.name] != s {
		return
	}
	delete(c.sessions, s.name)
	c.end(s)
}

// end closes a session in the background: its server may be slow to hear of it.
func (c *Client) end(s *session) {
	c.wg.Go(func() {
		<-s.ready
		if s.mcp != nil {
			_ = s.mcp.Close() // the server's loss
		}
	})
}
