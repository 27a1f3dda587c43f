package httpapi

import (
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// unusedWait is how long a connection has at a shutdown to bring its first request.
const unusedWait = 250 * time.Millisecond

// unused are the connections that have brought no request yet. Go's client and browsers
// open a connection and then send the request on another that becomes free first;
// [http.Server.Shutdown] would wait 5 seconds for each of them.
type unused struct {
	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// track is an [http.Server]'s ConnState.
func (u *unused) track(c net.Conn, state http.ConnState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if state != http.StateNew {
		delete(u.conns, c)
		return
	}
	if u.conns == nil {
		u.conns = map[net.Conn]struct{}{}
	}
	u.conns[c] = struct{}{}
}

func (u *unused) close() {
	u.mu.Lock()
	conns := slices.Collect(maps.Keys(u.conns))
	u.mu.Unlock()
	for _, c := range conns {
		_ = c.Close() // with TLS this tells the other end
	}
}
