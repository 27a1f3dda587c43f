package tools

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/web/channel"
)

// Bounds of the requests that programs of named sandboxes make of the services of the web.
const (
	webRequest = 60 << 10         // bytes, with the head
	webBeside  = 8                // under way in a sandbox
	webSend    = 10 * time.Second // for a request to come, and for an answer to be taken
	webWait    = 20 * time.Second // for one wait for who connects
)

// entrances are those of named sandboxes to the services of the web.
type entrances struct {
	mu sync.Mutex
	of map[runtime.ID]*entrance // guarded by mu
}

// entrance is that of one sandbox, at one port for all calls that run in it: each is known by its
// token. It is open while there are some.
type entrance struct {
	log   *slog.Logger
	calls map[string]*visited // guarded by entrances.mu, by token
	close func()              // ends it, and waits until it has
}

// visited is the web channel of one call.
type visited struct {
	*channel.Channel
	ctx   context.Context // of its requests
	under sync.WaitGroup  // those under way; added to under entrances.mu
}

// offerWeb lets the programs of a call reach the services of the web until end is called. env says
// how. A sandbox that can have no entrance goes without.
func (c *call) offerWeb(ctx context.Context, h sandbox.Handle) (env []string, end func(), err error) {
	access := c.by.Web
	if access == nil || c.set.cfg.Web == nil {
		return nil, func() {}, nil
	}
	// The entrance outlives the call that opens it where others run meanwhile.
	own, err := c.set.cfg.Pool.Use(ctx, c.by.Principal, c.by.Session, string(h.Sandbox().ID))
	if err != nil {
		return nil, nil, err
	}
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	v := &visited{Channel: &channel.Channel{Calls: c.set.cfg.Web, TraceID: c.by.TraceID, Tenant: c.by.Principal.Tenant.ID, Access: access, Log: c.set.cfg.Log}, ctx: work}
	leave := c.set.entrances.enter(own, v, c.set.cfg.Log)
	named := c.by.Principal.Variables()
	for name, value := range channel.Env(nil, access.Token, func(name string) bool { return named[name] != "" || h.Sandbox().Env[name] != "" }) {
		env = append(env, name+"="+value)
	}
	return env, func() { cancel(); leave() }, nil
}

// enter has the programs of a call reach its web channel, which it opens if necessary.
// It takes the handle. leave waits for requests of the call that are under way.
func (s *entrances) enter(h sandbox.Handle, v *visited, log *slog.Logger) (leave func()) {
	id := h.Sandbox().ID
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.of[id]
	if in == nil {
		ctx, stop := context.WithCancel(context.Background())
		in = &entrance{log: log, calls: map[string]*visited{}}
		var all sync.WaitGroup
		all.Go(func() { s.receive(ctx, in, h, &all) })
		in.close = func() { stop(); all.Wait(); h.Close() }
		if s.of == nil {
			s.of = map[runtime.ID]*entrance{}
		}
		s.of[id] = in
	} else {
		h.Close()
	}
	in.calls[v.Access.Token] = v
	return func() {
		s.mu.Lock()
		delete(in.calls, v.Access.Token)
		last := len(in.calls) == 0
		if last {
			delete(s.of, id)
		}
		s.mu.Unlock()
		v.under.Wait()
		if last {
			in.close()
		}
	}
}

// receive takes the connections that programs make, until ctx ends or the sandbox takes part no
// more.
func (s *entrances) receive(ctx context.Context, in *entrance, h sandbox.Handle, all *sync.WaitGroup) {
	room := make(chan struct{}, webBeside)
	for ctx.Err() == nil {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return
		}
		conn, err := h.Guest().Accept(ctx, channel.Port, webWait)
		if err != nil {
			<-room
			if fault.KindOf(err) == fault.NotFound {
				continue // none came
			}
			return
		}
		all.Go(func() {
			defer func() { <-room }()
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			s.answer(in, conn)
		})
	}
}

// answer answers the one request of a connection.
func (s *entrances) answer(in *entrance, conn net.Conn) {
	if conn.SetDeadline(time.Now().Add(webSend)) != nil {
		return
	}
	r, err := http.ReadRequest(bufio.NewReader(io.LimitReader(conn, webRequest)))
	if err != nil {
		return // it is no HTTP, or cut off
	}
	response := channel.Unauthorized()
	s.mu.Lock()
	v := in.calls[channel.Token(r)]
	if v != nil {
		v.under.Add(1)
	}
	s.mu.Unlock()
	if v != nil {
		response = v.Answer(v.ctx, r)
		v.under.Done()
	}
	if conn.SetDeadline(time.Now().Add(webSend)) == nil {
		_, _ = conn.Write(response) // to who may have gone
	}
}
