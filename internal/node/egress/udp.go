package egress

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"
)

const (
	quicPort    = 443
	maxDatagram = 65507
)

// acceptUDP answers the first datagram of a flow. False is answered with port
// unreachable by the stack.
func (s *Stack) acceptUDP(id stack.TransportEndpointID, pkt *stack.PacketBuffer) bool {
	dst := netip.AddrPortFrom(netip.AddrFrom4(id.LocalAddress.As4()), id.LocalPort)
	resolver := dst.Addr() == Gateway && dst.Port() == dnsPort
	var v verdict
	if !resolver {
		v = s.decide(dst, "")
		if v.ok() && v.names != nil && (dst.Port() == quicPort || quic(pkt.Data().AsRange().ToSlice())) {
			v.rule = RuleQUIC
		}
		if !v.ok() {
			s.refuse("udp", v.host, dst, v.rule)
			return false
		}
	}
	f := s.open("udp", dst)
	if f == nil {
		s.refuse("udp", v.host, dst, RuleConnCount)
		return false
	}
	var up net.Conn
	if !resolver {
		var err error
		if up, err = s.dial(f); err != nil {
			f.close()
			return false
		}
		f.onCut(func() { _ = up.Close() })
	}
	var wq waiter.Queue
	ep, terr := udp.NewForwarderRequest(s.net, id, pkt.Clone()).CreateEndpoint(&wq)
	if terr != nil {
		f.close()
		return false
	}
	guest := gonet.NewUDPConn(&wq, ep)
	f.onCut(ep.Abort)
	serve := func() { s.serveUDP(f, guest, up, v) }
	if resolver {
		serve = func() { s.serveDNSDatagrams(f, guest) }
	}
	if !s.spawn(func() { defer f.close(); defer guest.Close(); serve() }) {
		f.close()
		_ = guest.Close()
	}
	return true
}

// serveUDP carries datagrams both ways until the flow is cut.
func (s *Stack) serveUDP(f *flow, guest *gonet.UDPConn, up net.Conn, v verdict) {
	s.begin(f, v.names == nil)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer f.cut()
		datagrams(up, guest, func(b []byte) bool {
			if v.names != nil && quic(b) {
				s.refuse("udp", v.host, f.dst, RuleQUIC)
				return false
			}
			f.out(len(b))
			return true
		})
	})
	defer wg.Wait()
	defer f.cut()
	datagrams(guest, up, func(b []byte) bool { f.in(len(b)); return true })
}

// datagrams copies datagrams that are fine until one is not, or an end is gone.
// What cannot be sent is lost.
func datagrams(to, from net.Conn, fine func([]byte) bool) {
	buf := make([]byte, maxDatagram)
	for {
		n, err := from.Read(buf)
		if err != nil || !fine(buf[:n]) {
			return
		}
		if _, err := to.Write(buf[:n]); errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, net.ErrClosed) {
			return
		}
	}
}

// quic reports whether a datagram begins a QUIC connection: a long header of a
// version that is in use. Its names are encrypted, so it is refused wherever a
// name is needed.
func quic(b []byte) bool {
	if len(b) < 5 || b[0]&0x80 == 0 {
		return false
	}
	switch version := [4]byte(b[1:5]); {
	case version == [4]byte{0, 0, 0, 1}, version == [4]byte{0x6b, 0x33, 0x43, 0xcf}:
		return true
	case version[0] == 0xff && version[1] == 0 && version[2] == 0: // drafts
		return true
	case version[0] == 'Q' || version[0] == 'T': // Google's
		return true
	default: // versions that are only there to be refused
		return version[0]&15 == 10 && version[1]&15 == 10 && version[2]&15 == 10 && version[3]&15 == 10
	}
}
