package egress

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"
)

// acceptTCP answers the sandbox's wish for a connection. It runs in a goroutine
// of its own.
func (s *Stack) acceptTCP(r *tcp.ForwarderRequest) {
	done := make(chan struct{})
	if !s.spawn(func() { defer close(done); s.serveTCP(r) }) {
		r.Complete(false)
		return
	}
	<-done
}

func (s *Stack) serveTCP(r *tcp.ForwarderRequest) {
	id := r.ID()
	dst := netip.AddrPortFrom(netip.AddrFrom4(id.LocalAddress.As4()), id.LocalPort)
	f := s.open("tcp", dst)
	if f == nil {
		s.refuse("tcp", "", dst, RuleConnCount)
		r.Complete(true)
		return
	}
	defer f.close()
	if dst.Addr() == Gateway && dst.Port() == dnsPort {
		if conn := f.accept(r); conn != nil {
			s.serveDNSStream(f, conn)
		}
		return
	}
	v := s.decide(dst, "")
	if !v.ok() {
		s.refuse("tcp", v.host, dst, v.rule)
		r.Complete(true)
		return
	}
	if svc := s.service(dst); svc != nil {
		conn := f.accept(r)
		if conn == nil {
			return
		}
		if _, ok := s.check(f); ok { // the policy may have changed before the flow could be found
			s.ledger.connected(svc.Name())
			svc.Serve(&metered{conn, f})
		}
		return
	}
	up, err := s.dial(f)
	if err != nil {
		// What the world refused or did not answer is refused here.
		r.Complete(true)
		return
	}
	defer up.Close()
	f.onCut(func() { _ = up.Close() })
	if conn := f.accept(r); conn != nil {
		s.forward(f, conn, up.(*net.TCPConn), v)
	}
}

// accept completes the handshake with the sandbox; nil if that ended before.
// The connection is reset when the flow is cut.
func (f *flow) accept(r *tcp.ForwarderRequest) *guestConn {
	var wq waiter.Queue
	ep, err := r.CreateEndpoint(&wq)
	r.Complete(err != nil)
	if err != nil {
		return nil
	}
	f.narrowGuest(ep)
	c := &guestConn{TCPConn: gonet.NewTCPConn(&wq, ep), ep: ep, flow: f}
	f.onCut(c.Abort)
	return c
}

// guestConn is the sandbox's end of a connection.
type guestConn struct {
	*gonet.TCPConn
	ep    tcpip.Endpoint
	flow  *flow
	abort sync.Once
}

// Abort resets the connection.
func (c *guestConn) Abort() { c.abort.Do(c.ep.Abort) }

// Close ends the connection in order, if it was not reset.
func (c *guestConn) Close() error {
	c.abort.Do(c.ep.Close)
	return nil
}

// service returns what answers at an address itself; nil for nothing.
func (s *Stack) service(dst netip.AddrPort) Service {
	if dst.Addr() != Gateway {
		return nil
	}
	return s.cfg.Services[dst.Port()]
}

// metered is a connection whose bytes count as those to and from the world.
type metered struct {
	*guestConn
	flow *flow
}

// Read implements net.Conn.
func (c *metered) Read(p []byte) (int, error) {
	n, err := c.guestConn.Read(p)
	c.flow.out(n)
	return n, err
}

// Write implements net.Conn.
func (c *metered) Write(p []byte) (int, error) {
	c.flow.in(len(p)) // before the reader can ask what was counted
	n, err := c.guestConn.Write(p)
	c.flow.in(n - len(p))
	return n, err
}

// dial connects to a flow's address, which has been decided on. Nothing is resolved
// again, and the floor is asked again.
func (s *Stack) dial(f *flow) (net.Conn, error) {
	d := net.Dialer{
		Timeout: s.cfg.ConnectTimeout,
		Control: func(_, address string, raw syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil || at != f.dst || s.floor.Refuses(at.Addr(), at.Port()) {
				return errors.New("not the address that was decided on")
			}
			if f.protocol == "tcp" {
				return f.narrowWorld(raw)
			}
			return nil
		},
	}
	return d.DialContext(s.ctx, f.protocol, f.dst.String())
}

// forward carries a connection's bytes as far as they are allowed.
func (s *Stack) forward(f *flow, guest *guestConn, up *net.TCPConn, v verdict) {
	if v.names != nil || s.hasSecrets() {
		s.inspect(f, guest, up)
		return
	}
	s.begin(f, true)
	s.splice(f, guest, up)
}

// begin counts a connection that was let through, and looks whether it still is
// allowed: the policy may have changed meanwhile. free says that it was let
// through without a name.
func (s *Stack) begin(f *flow, free bool) {
	f.free.Store(free)
	v, ok := s.check(f)
	if !ok {
		return
	}
	if v.host == "" {
		v.host = f.dst.Addr().String()
	}
	s.ledger.connected(v.host)
}

// check cuts a flow that is not allowed as it is.
func (s *Stack) check(f *flow) (verdict, bool) {
	v := s.decide(f.dst, f.wanted())
	if v.ok() && v.names != nil && f.free.Load() {
		v.rule = RuleAddress // it now needs a name, and none was looked for
	}
	if !v.ok() {
		s.refuse(f.protocol, v.host, f.dst, v.rule)
		f.cut()
	}
	return v, v.ok()
}

// splice copies both ways until both sides have ended.
func (s *Stack) splice(f *flow, guest *guestConn, up *net.TCPConn) {
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := pump(up, guest, f.out); err != nil {
			f.cut()
			return
		}
		_ = up.CloseWrite()
	})
	if err := pump(guest, up, f.in); err != nil {
		f.cut()
	} else {
		_ = guest.CloseWrite()
	}
	wg.Wait()
	_ = guest.Close()
}

const chunk = 64 << 10

var chunks = sync.Pool{New: func() any { return new([chunk]byte) }}

// pump copies until from ends, counting.
func pump(to io.Writer, from io.Reader, count func(int)) error {
	buf := chunks.Get().(*[chunk]byte)
	defer chunks.Put(buf)
	for {
		n, err := from.Read(buf[:])
		if n > 0 {
			count(n)
			if _, err := to.Write(buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
