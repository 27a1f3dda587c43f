package egress

import (
	"errors"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
)

// A sandbox can have a connection wait without end, with what the world has sent
// held in buffers of this process and of the kernel's. So only its first connections
// get wide windows; the others get narrow ones.
const (
	wideConns    = 8
	wideWindow   = 1 << 20  // what the world may send ahead
	narrowWindow = 64 << 10 // likewise; and what each of the other buffers holds

	// What a connection's buffers may take, the kernel's bookkeeping of its bytes
	// included: it counts about two for one.
	wideBytes   = 2*wideWindow + 4<<20 + 2*window // 4 MiB is the kernel's most for what is to be sent
	narrowBytes = 6 * narrowWindow
)

// Budget bounds what the buffers of connections may take, those of all sandboxes
// that share it and those of each tenant's. The zero value has no bound. It is safe
// for concurrent use.
type Budget struct {
	Bytes       int64 // 0 for no bound
	TenantBytes int64 // 0 for no bound

	mu      sync.Mutex
	used    int64            // guarded by mu
	tenants map[string]int64 // guarded by mu: what of used is whose
}

// take reserves bytes for a sandbox of a tenant, if there are as many; nil has no
// bound. Sandboxes of tenants that are not known have the bound of all alone.
func (b *Budget) take(tenant string, n int64) bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Bytes > 0 && b.used+n > b.Bytes || tenant != "" && b.TenantBytes > 0 && b.tenants[tenant]+n > b.TenantBytes {
		return false
	}
	if b.tenants == nil {
		b.tenants = map[string]int64{}
	}
	b.used += n
	b.tenants[tenant] += n
	return true
}

// give returns what was taken.
func (b *Budget) give(tenant string, n int64) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	if b.tenants[tenant] -= n; b.tenants[tenant] == 0 {
		delete(b.tenants, tenant)
	}
}

// share gives a TCP flow its part of the budget, wide while the sandbox has few; false
// if nothing is left. s.mu is held.
func (s *Stack) share(f *flow) bool {
	if s.wide < wideConns && s.cfg.Budget.take(s.cfg.Tenant, wideBytes) {
		f.wide = true
		s.wide++
		return true
	}
	return s.cfg.Budget.take(s.cfg.Tenant, narrowBytes)
}

// unshare takes the part back. s.mu is held.
func (s *Stack) unshare(f *flow) {
	if f.wide {
		s.wide--
		s.cfg.Budget.give(s.cfg.Tenant, wideBytes)
	} else {
		s.cfg.Budget.give(s.cfg.Tenant, narrowBytes)
	}
}

// narrowWorld bounds the buffers of a flow's connection to the world, before it is made.
func (f *flow) narrowWorld(raw syscall.RawConn) error {
	var err error
	set := func(level, option, value int) func(fd uintptr) {
		return func(fd uintptr) { err = errors.Join(err, unix.SetsockoptInt(int(fd), level, option, value)) }
	}
	if f.wide {
		// The kernel goes on choosing the size of the buffer, below this.
		return errors.Join(raw.Control(set(unix.IPPROTO_TCP, unix.TCP_WINDOW_CLAMP, wideWindow)), err)
	}
	return errors.Join(
		raw.Control(set(unix.IPPROTO_TCP, unix.TCP_WINDOW_CLAMP, narrowWindow)),
		raw.Control(set(unix.SOL_SOCKET, unix.SO_RCVBUF, narrowWindow)),
		raw.Control(set(unix.SOL_SOCKET, unix.SO_SNDBUF, narrowWindow)), err)
}

// narrowGuest bounds the buffers of a flow's connection to the sandbox.
func (f *flow) narrowGuest(ep tcpip.Endpoint) {
	if !f.wide {
		ep.SocketOptions().SetReceiveBufferSize(narrowWindow, true)
		ep.SocketOptions().SetSendBufferSize(narrowWindow, true)
	}
}
