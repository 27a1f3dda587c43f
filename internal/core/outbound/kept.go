package outbound

import (
	"net"
	"net/netip"
	"sync"
)

// kept tracks the connections that a List allowed. Clients reuse connections, so List closes
// them when it no longer allows their addresses.
type kept struct {
	mu    sync.Mutex
	conns map[*keptConn]bool // guarded by mu
}

// keptConn is a connection to a host.
type keptConn struct {
	net.Conn
	of   *kept
	host string
	at   netip.Addr
}

// Close implements net.Conn.
func (c *keptConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// keep tracks a new connection. It closes the connection and fails if the list has stopped
// allowing the address since. Another rule governs loopback addresses.
func (l List) keep(conn net.Conn, host string) (net.Conn, error) {
	if l.live == nil {
		return conn, nil
	}
	at, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return conn, nil
	}
	k := &l.live.kept
	c := &keptConn{Conn: conn, of: k, host: host, at: at.Addr()}
	k.mu.Lock()
	if k.conns == nil {
		k.conns = map[*keptConn]bool{}
	}
	k.conns[c] = true
	k.mu.Unlock()
	if err := l.connect(l.host(host), at.String()); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// cut closes the connections that the list no longer allows.
func (l List) cut() {
	k := &l.live.kept
	k.mu.Lock()
	var over []*keptConn
	for c := range k.conns {
		if !l.address(l.host(c.host), c.at) {
			over = append(over, c)
		}
	}
	k.mu.Unlock()
	for _, c := range over {
		_ = c.Close() // the client gets an error on its next use
	}
}
