package preview

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

// Sandboxes finds the sandboxes of previews.
type Sandboxes interface {
	// Reach begins the use of a sandbox, and wakes it if it sleeps. It returns a NotFound fault if the
	// sandbox does not exist, and Unauthorized if no valid key for it remains.
	Reach(ctx context.Context, id runtime.ID) (Use, error)
}

// Use is the use of a sandbox, until it is closed.
type Use interface {
	// Connect connects to a port of the sandbox's loopback interface. If nothing listens yet, it waits
	// up to wait.
	Connect(ctx context.Context, port uint16, wait time.Duration) (net.Conn, error)
	// Listening returns the addresses on which programs listen, by port.
	Listening(ctx context.Context) ([]netip.AddrPort, error)
	// Carried counts bytes that came out of the sandbox.
	Carried(bytes int64)
	// Done is closed when the sandbox has ended or fallen asleep. All uses until then share a channel;
	// later uses get another one.
	Done() <-chan struct{}
	Close()
}

// Target is the port of a sandbox that a request goes to.
type Target struct {
	Sandbox runtime.ID
	Port    uint16
	Use     Use
}

// Forwarder passes requests of browsers on to servers in sandboxes.
type Forwarder interface {
	// Forward sends a request to its target and the answer to w. It calls failed if the server in the
	// sandbox has not answered and w can still take an answer. It closes the target's Use as soon as
	// the sandbox has answered. ctx ends the request.
	Forward(ctx context.Context, w http.ResponseWriter, r *http.Request, to Target, failed func(w http.ResponseWriter, err error))
	// Close closes idle connections. Connections in use end with their requests.
	Close()
}

// Errors of a Forwarder.
var (
	ErrRefused = errors.New("nothing listens on this port")
	ErrBusy    = errors.New("too many connections to this sandbox")
)
