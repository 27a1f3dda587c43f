package egress

import (
	"context"
	"crypto/tls"
	"net"
	"time"
)

// intercept opens a TLS connection to a host that secrets are bound to: the
// sandbox is answered with a certificate of the installation's authority, and
// the host is asked for its own, which must be as good as anywhere.
func (s *Stack) intercept(f *flow, guest *guestConn, first []byte, up *net.TCPConn, name string) {
	conn := tls.Server(&replayed{guestConn: guest, first: first}, &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return s.cfg.Authority.leaf(name)
		},
	})
	ctx, cancel := context.WithTimeout(s.ctx, s.cfg.HelloTimeout)
	err := conn.HandshakeContext(ctx)
	cancel()
	if err != nil {
		_ = guest.SetWriteDeadline(time.Now().Add(time.Second))
		_ = guest.Close() // in order, so that the client reads what it was told
		return
	}
	gate := s.http1
	if conn.ConnectionState().NegotiatedProtocol == "h2" {
		gate = s.http2
	}
	gate.serve(&gated{Conn: conn, guest: guest, secretName: name}, up)
}

// replayed is a connection of which something has been read.
type replayed struct {
	*guestConn
	first []byte
}

func (r *replayed) Read(b []byte) (int, error) {
	if len(r.first) > 0 {
		n := copy(b, r.first)
		r.first = r.first[n:]
		return n, nil
	}
	return r.guestConn.Read(b)
}
