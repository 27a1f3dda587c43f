package noderpc

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// Server serves the sandboxes of a machine.
type Server struct {
	node sandbox.Node
	log  *slog.Logger
	timeouts

	strange chan struct{} // holds an element for each connection during its handshake
	running sync.WaitGroup

	mu      sync.Mutex
	clients map[clientKey]*clientState // guarded by mu
}

// NewServer returns a Server of n's sandboxes.
func NewServer(n sandbox.Node, log *slog.Logger) *Server {
	return &Server{node: n, log: log, timeouts: defaults, strange: make(chan struct{}, maxStrange), clients: map[clientKey]*clientState{}}
}

// clientKey identifies a client. A peer cannot use the handles of a client with another identity.
type clientKey struct {
	identity [sha256.Size]byte // zero without TLS
	id       [16]byte
}

// Serve accepts connections until ctx ends or l fails. Then it closes all connections, handles and
// outputs, and returns after all calls have returned. The caller's listener authenticates peers.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, func() { l.Close() })
	err := s.accept(ctx, l)
	if ctx.Err() != nil {
		err = nil
	}
	cancel()
	if stop() {
		l.Close()
	}
	s.dropAll()
	s.running.Wait()
	s.dropAll() // clients whose handshake was under way
	return err
}

func (s *Server) dropAll() {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.clients))
	s.mu.Unlock()
	for _, st := range all {
		st.drop()
	}
}

func (s *Server) accept(ctx context.Context, l net.Listener) error {
	for wait := 5 * time.Millisecond; ; {
		conn, err := l.Accept()
		if err != nil {
			var temporary interface{ Temporary() bool }
			if ctx.Err() != nil || !errors.As(err, &temporary) || !temporary.Temporary() { // out of descriptors, for example
				return err
			}
			s.log.Warn("cannot accept a connection of another machine", "err", err)
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
			wait = min(2*wait, time.Second)
			continue
		}
		wait = 5 * time.Millisecond
		select {
		case s.strange <- struct{}{}:
			s.running.Go(func() { s.serve(ctx, conn) })
		default:
			conn.Close()
		}
	}
}

// serve serves one connection until it ends.
func (s *Server) serve(ctx context.Context, conn net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	defer conn.Close()
	k, control, err := s.welcome(ctx, conn)
	<-s.strange
	if err != nil {
		s.log.Debug("rejected a connection of another machine", "peer", conn.RemoteAddr().String(), "err", err)
		return
	}
	defer k.mux.Close()
	defer context.AfterFunc(ctx, func() { k.mux.Close() })()
	s.running.Go(func() { k.serveControl(control) })
	k.st.tellEnded(k)
	var calls sync.WaitGroup
	for {
		stream, err := k.mux.AcceptStream()
		if err != nil {
			break
		}
		if k.mux.NumStreams() > 2*maxCalls {
			s.log.Warn("closed a connection of another machine with too many streams", "peer", conn.RemoteAddr().String())
			break
		}
		calls.Go(func() { k.serveCall(stream) })
	}
	cancel()
	k.mux.Close()
	k.st.detach(k) // some calls may take long to return
	calls.Wait()
}

// welcome makes the handshake with a client and returns its connection and control stream.
func (s *Server) welcome(ctx context.Context, conn net.Conn) (*serverConn, net.Conn, error) {
	if err := conn.SetDeadline(time.Now().Add(s.handshake)); err != nil {
		return nil, nil, err
	}
	key := clientKey{}
	if secured, ok := conn.(interface {
		HandshakeContext(ctx context.Context) error
		ConnectionState() tls.ConnectionState
	}); ok {
		if err := secured.HandshakeContext(ctx); err != nil {
			return nil, nil, err
		}
		if peer := secured.ConnectionState().PeerCertificates; len(peer) > 0 {
			id := append([]byte{}, peer[0].RawSubject...)
			for _, name := range peer[0].DNSNames {
				id = fmt.Appendf(id, "\x00dns:%s", name)
			}
			for _, uri := range peer[0].URIs {
				id = fmt.Appendf(id, "\x00uri:%s", uri)
			}
			key.identity = sha256.Sum256(id)
		}
	}
	h, err := readHello(conn)
	if err != nil {
		return nil, nil, err
	}
	key.id = h.client
	w := welcome{version: version}
	var k *serverConn
	switch {
	case h.version != version:
		w.status = statusVersion
	default:
		k = &serverConn{s: s, conn: conn}
		k.ctx = ctx
		if w.known, w.processed, err = s.attach(key, h.acknowledged, k); err != nil {
			w.status = statusBusy
		}
	}
	if err := w.write(conn); err != nil || w.status != statusOK {
		if k != nil && k.st != nil {
			k.st.detach(k)
		}
		return nil, nil, errors.Join(err, fmt.Errorf("status %d for a client of version %d", w.status, h.version))
	}
	control, err := k.begin()
	if err != nil {
		k.st.detach(k)
		return nil, nil, err
	}
	return k, control, nil
}

// begin begins to use streams and accepts the control stream.
func (k *serverConn) begin() (net.Conn, error) {
	if err := k.conn.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	mux, err := newSession(k.conn, yamux.Server, k.s.log, k.s.write)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(k.ctx, k.s.handshake)
	defer cancel()
	control, err := mux.AcceptStreamWithContext(ctx)
	if err != nil {
		mux.Close()
		return nil, err
	}
	k.mu.Lock()
	k.mux, k.control = mux, newLink(control, maxFrame, maxFrame, nil)
	replaced := k.replaced
	k.mu.Unlock()
	if replaced {
		mux.Close()
		return nil, errors.New("the client has opened another connection")
	}
	return control, nil
}

// attach makes k the connection of a client. It returns whether the client was known, and the last
// of its notices that the server has processed.
func (s *Server) attach(key clientKey, acknowledged uint64, k *serverConn) (known bool, processed uint64, err error) {
	s.mu.Lock()
	st := s.clients[key]
	if known = st != nil; !known {
		if len(s.clients) >= maxClients {
			s.mu.Unlock()
			return false, 0, errors.New("too many clients")
		}
		st = newClientState(s, key, acknowledged)
		s.clients[key] = st
	}
	k.st = st
	st.mu.Lock()
	old := st.conn
	st.conn = k
	if st.expiry != nil {
		st.expiry.Stop()
		st.expiry = nil
	}
	clear(st.tombs)
	processed = st.processed
	st.mu.Unlock()
	s.mu.Unlock()
	if old != nil {
		old.replace()
	}
	return known, processed, nil
}

// serverConn is a connection of a client.
type serverConn struct {
	s    *Server
	st   *clientState
	conn net.Conn
	ctx  context.Context // ends with the connection
	held atomic.Int64

	mu       sync.Mutex
	mux      *session // set before the connection serves calls
	control  *link    // likewise
	replaced bool     // guarded by mu
}

// replace closes the connection because the client has another one.
func (k *serverConn) replace() {
	k.mu.Lock()
	k.replaced = true
	k.mu.Unlock()
	k.conn.Close()
}

// tell sends a message on the control stream. It closes the connection if the client does not read.
func (k *serverConn) tell(m message) {
	k.mu.Lock()
	control := k.control
	k.mu.Unlock()
	if control == nil {
		return // tellEnded follows
	}
	_ = control.conn.SetWriteDeadline(time.Now().Add(k.s.write))
	if control.send(m) != nil {
		k.conn.Close()
	}
}

// serveControl processes the notices of the client.
func (k *serverConn) serveControl(stream net.Conn) {
	l := newLink(stream, maxFrame, maxFrame, &k.held)
	defer l.release()
	defer k.conn.Close()
	for {
		m, err := l.message()
		if err != nil || m.Notice == nil {
			return
		}
		if m.Notice.Goodbye {
			k.st.drop()
			return
		}
		k.st.notice(k, *m.Notice)
		if m.Notice.Seq%ackNotices == 0 {
			k.tell(message{Ack: m.Notice.Seq})
		}
	}
}

// ackNotices is how often the server acknowledges notices.
const ackNotices = 16

// hello begins the handshake.
type hello struct {
	version      uint16
	client       [16]byte
	acknowledged uint64 // the last notice that the client will not send again
}

const helloSize = len(magic) + 2 + 16 + 8

func (h hello) write(w io.Writer) error {
	b := binary.BigEndian.AppendUint16([]byte(magic), h.version)
	b = append(b, h.client[:]...)
	_, err := w.Write(binary.BigEndian.AppendUint64(b, h.acknowledged))
	return err
}

func readHello(r io.Reader) (h hello, err error) {
	var b [helloSize]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return h, err
	}
	if string(b[:len(magic)]) != magic {
		return h, fmt.Errorf("%w: no hello", errProtocol)
	}
	rest := b[len(magic):]
	h.version = binary.BigEndian.Uint16(rest)
	copy(h.client[:], rest[2:])
	h.acknowledged = binary.BigEndian.Uint64(rest[18:])
	return h, nil
}

// Statuses of a welcome.
const (
	statusOK = iota
	statusVersion
	statusBusy
)

// welcome answers hello.
type welcome struct {
	version   uint16
	status    byte
	known     bool   // the server has kept the client's handles
	processed uint64 // the last notice that the server has processed
}

const welcomeSize = len(magic) + 2 + 1 + 1 + 8

func (w welcome) write(to io.Writer) error {
	b := binary.BigEndian.AppendUint16([]byte(magic), w.version)
	b = append(b, w.status, 0)
	if w.known {
		b[len(b)-1] = 1
	}
	_, err := to.Write(binary.BigEndian.AppendUint64(b, w.processed))
	return err
}

func readWelcome(r io.Reader) (w welcome, err error) {
	var b [welcomeSize]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return w, err
	}
	if string(b[:len(magic)]) != magic {
		return w, fmt.Errorf("%w: no welcome", errProtocol)
	}
	rest := b[len(magic):]
	w = welcome{version: binary.BigEndian.Uint16(rest), status: rest[2], known: rest[3] == 1, processed: binary.BigEndian.Uint64(rest[4:])}
	return w, nil
}
