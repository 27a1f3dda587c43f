// Package noderpc serves the sandboxes of a machine to clients on other machines. Server serves a
// sandbox.Node. Client is a sandbox.Node that calls a Server.
//
// # Connections
//
// A client keeps one connection; the caller's Dial and Listener authenticate it. The client sends a
// hello of fixed size, and the server answers with a welcome:
//
//	hello:   "ATOLNODE" version(2) client(16) acknowledged(8)
//	welcome: "ATOLNODE" version(2) status(1) known(1) processed(8)
//
// Then both speak yamux. The client opens one control stream, and one stream for each call. Every
// stream carries frames: a kind (1 byte), a length (3 bytes, at most 4 MiB) and a body. A message is
// CBOR in one or more frames. Data frames carry bytes of files and connections.
//
// # Calls
//
// A call begins with a request: target, method, arguments, remaining time. The server ends it with an
// answer: results or an error. Before the answer, the server may grant credit for an upload, whose
// data frames follow, and send events for a sink, which the client acknowledges. After the answer, a
// stream may carry output, a download, file events or a connection. Closing the stream cancels the
// call.
//
// # Clients and handles
//
// Handles belong to a client: a random number from its hello, and its TLS identity. A new connection
// of a client replaces the old one. The server closes a client's handles when the client says
// goodbye, or after 30 s without a connection. The client chooses the numbers of handles, so it can
// repeat Use after a cut.
//
// The control stream carries notices to the server (close a handle, count bytes, goodbye), each with
// a sequence number. The client resends notices that the server has not acknowledged. A request names
// the last notice before it, and the server handles that notice first. The server reports ended
// sandboxes on the control stream.
//
// # Output
//
// The server numbers the pieces of a process's output and keeps each until the client acknowledges
// it. After a cut, the client asks for the pieces after the last one that it has received.
package noderpc

import (
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
)

// version changes with every incompatible change of the protocol.
const version = 1

const magic = "ATOLNODE"

const (
	maxFrame   = 4 << 20
	fragment   = 1 << 20  // largest frame that this package sends
	maxRequest = 16 << 20 // one message to a server
	maxAnswer  = 64 << 20 // one message to a client
	piece      = 64 << 10 // largest data frame that this package sends

	maxUpload = 512 << 10 // bytes of an upload that a client may send before the server consumes them
	frameCost = 16        // added to the size of each data frame of an upload
	maxEvents = 256 << 10 // bytes of events that a client has not acknowledged
	maxOutput = 256 << 10 // bytes of output that a client has not acknowledged
	ackOutput = 64 << 10  // a client acknowledges output after this many bytes

	maxCalls    = 4096      // of a connection
	maxHandles  = 4096      // of a client
	maxClients  = 1024      // of a server
	maxStrange  = 256       // connections during the handshake
	maxReceived = 256 << 20 // bytes of large messages that a server holds for one connection

	requestTimeout = time.Minute // from the start of a stream to the end of its request
	keepAlive      = 15 * time.Second
	closeTimeout   = 30 * time.Second // a stream after one side closed it
	probeAfter     = 30 * time.Second // a program does not read what its connection carries
)

// timeouts are the times that tests change.
type timeouts struct {
	grace     time.Duration // how long handles and outputs outlive the last connection of their client
	handshake time.Duration
	write     time.Duration // how long a peer may not read from its connection
}

var defaults = timeouts{grace: 30 * time.Second, handshake: 10 * time.Second, write: 10 * time.Second}

// streams returns the settings of a connection.
func streams(log *slog.Logger, write time.Duration) *yamux.Config {
	return &yamux.Config{
		AcceptBacklog: 1024, KeepAliveInterval: keepAlive, ConnectionWriteTimeout: write,
		MaxStreamWindowSize: 1 << 20, StreamOpenTimeout: 20 * time.Second, StreamCloseTimeout: closeTimeout, LogOutput: logWriter{log},
	}
}

// logWriter passes yamux's messages to a log. Most of them report ordinary cuts.
type logWriter struct{ log *slog.Logger }

func (w logWriter) Write(p []byte) (int, error) {
	w.log.Debug("connection between machines", "detail", strings.TrimSpace(string(p)))
	return len(p), nil
}

// session is yamux over one connection.
type session struct {
	*yamux.Session
	conn *timedConn
	live sync.WaitGroup

	mu      sync.Mutex
	reading map[net.Conn]bool // guarded by mu; streams of calls
	closing bool              // guarded by mu
}

// track returns a function that forgets a stream. Close ends the reads of tracked streams first.
func (s *session) track(stream net.Conn) (forget func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reading[stream] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.reading, stream)
	}
}

// setReadDeadline sets the deadline of a tracked stream, unless the session closes.
func (s *session) setReadDeadline(stream net.Conn, at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return net.ErrClosed
	}
	return stream.SetReadDeadline(at)
}

// newSession begins to use streams over conn.
func newSession(conn net.Conn, begin func(io.ReadWriteCloser, *yamux.Config) (*yamux.Session, error), log *slog.Logger, write time.Duration) (*session, error) {
	s := &session{reading: map[net.Conn]bool{}, conn: &timedConn{Conn: conn, timeout: write, broken: make(chan struct{})}}
	var err error
	if s.Session, err = begin(s.conn, streams(log, write)); err != nil {
		return nil, err
	}
	s.live.Go(s.keepAlive)
	return s, nil
}

// keepAlive closes a connection whose peer does not answer.
func (s *session) keepAlive() {
	t := time.NewTicker(keepAlive)
	defer t.Stop()
	for {
		select {
		case <-s.CloseChan():
			return
		case <-t.C:
			if _, err := s.Ping(); err != nil {
				s.conn.shut()
			}
		}
	}
}

// Close closes the connection first. While yamux closes a session whose connection still receives,
// every goroutine that reads a stream spins.
func (s *session) Close() {
	s.mu.Lock()
	s.closing = true
	for stream := range s.reading {
		_ = stream.SetReadDeadline(time.Unix(1, 0))
	}
	s.mu.Unlock()
	s.conn.shut()
	s.Session.Close()
	s.live.Wait()
}

// timedConn limits how long a peer can delay a write.
type timedConn struct {
	net.Conn
	timeout time.Duration
	once    sync.Once
	broken  chan struct{} // closed after Read failed
}

// shut closes the connection and waits until yamux has seen that.
func (c *timedConn) shut() {
	c.Conn.Close()
	t := time.NewTimer(time.Second)
	defer t.Stop()
	select {
	case <-c.broken:
	case <-t.C:
	}
}

func (c *timedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.once.Do(func() { close(c.broken) })
	}
	return n, err
}

func (c *timedConn) Write(p []byte) (int, error) {
	err := c.SetWriteDeadline(time.Now().Add(c.timeout))
	n := 0
	if err == nil {
		n, err = c.Conn.Write(p)
	}
	if err != nil {
		c.shut()
	}
	return n, err
}
