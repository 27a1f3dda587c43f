package daemon

import (
	"io"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/guest/proto"
)

const (
	// maxConnections is more than a host has: some may hang whose host has gone.
	maxConnections = 1024
	// maxFiles bounds what is done with files at a time. Each that waits for a folder
	// which does not answer takes a thread, for as long as it does not.
	maxFiles   = 256
	readBuffer = 8 << 10
)

// session is the time that a host is there.
type session struct {
	*daemon
	first *proto.Conn

	mu    sync.Mutex
	over  bool                      // guarded by mu
	peers map[*proto.Conn]io.Closer // guarded by mu; without first; what ends each
	wait  sync.WaitGroup            // for those who serve peers
	gone  chan struct{}             // closed when nothing of the session is left
}

// meet goes to the host. It returns nil when the host is not there.
func (a *daemon) meet() *session {
	s := &session{daemon: a, peers: make(map[*proto.Conn]io.Closer), gone: make(chan struct{})}
	var err error
	if s.first, err = s.dial(true); err != nil {
		return nil
	}
	go s.connect()
	return s
}

// dial makes a connection, on which the greeting was sent.
func (s *session) dial(first bool) (*proto.Conn, error) {
	l, err := dialHost()
	if err != nil {
		return nil, err
	}
	c := proto.NewConn(l, readBuffer)
	err = c.Encode(proto.Hello, proto.Greeting{Version: proto.Version, Instance: s.instance, First: first})
	if err == nil {
		err = c.Flush()
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// connect makes connections as the host wants them, until it goes away.
func (s *session) connect() {
	defer close(s.gone)
	defer s.first.Close()
	defer s.wait.Wait()
	defer s.hangUp()
	for {
		t, err := s.first.Next()
		var w proto.Wanted
		if err != nil || t != proto.More || s.first.Decode(&w) != nil {
			return // Leave, or what no host says
		}
		for range min(w.Connections, maxConnections) {
			c, err := s.dial(false)
			if err != nil || !s.add(c) {
				return
			}
		}
	}
}

// add serves a connection.
func (s *session) add(c *proto.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || len(s.peers) >= maxConnections {
		c.Close()
		return !s.over
	}
	s.peers[c] = c
	s.wait.Go(func() {
		(&peer{Conn: c, daemon: s.daemon, of: s}).serve()
		s.mu.Lock()
		delete(s.peers, c)
		s.mu.Unlock()
		c.Close()
	})
	return true
}

// instead has something else closed in the place of a connection. It is closed at
// once, and false returned, if all is over.
func (s *session) instead(c *proto.Conn, by io.Closer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		by.Close()
		return false
	}
	s.peers[c] = by
	return true
}

// hangUp closes all connections but the first.
func (s *session) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for _, c := range s.peers {
		c.Close()
	}
}

// endTime is how long those who serve may take to end.
const endTime = time.Second

// end closes all there is and waits until all have ended. One that hangs, in a folder that
// does not answer, say, does not keep the next host away.
func (s *session) end() {
	s.first.Close()
	select {
	case <-s.gone:
	case <-time.After(endTime):
	}
}
