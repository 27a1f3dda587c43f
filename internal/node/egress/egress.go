// Package egress is the network of a sandbox: a user-mode TCP/IP stack at the
// other end of the sandbox's TAP device, which ends every connection and query
// in Go code that knows the policy, and connects to the world by itself.
//
// What a sandbox may connect to is decided by package rules. An address is
// connected to because a network of the policy holds it, or because the sandbox
// has looked up a name that the policy allows and that led there; then the name
// in the first bytes (TLS, HTTP) must be one of those too. Everything else is
// refused at once, and reported.
package egress

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/egress/rules"
)

// What every sandbox sees. Each is alone on its link, so that all have the same.
const MTU = 65520 // of the TAP device and in the sandbox

var (
	SandboxAddress = netip.MustParsePrefix("198.19.255.254/30")
	Gateway        = netip.MustParseAddr("198.19.255.253") // default route and DNS server
	SandboxMAC     = net.HardwareAddr{0x02, 0x61, 0x74, 0x6f, 0x6c, 0x02}
	GatewayMAC     = net.HardwareAddr{0x02, 0x61, 0x74, 0x6f, 0x6c, 0x01}
)

// Resolver is what of net.Resolver is used. Names end with a dot.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Config is the operator's settings. The zero value of each field is its
// default.
type Config struct {
	Open     []rules.Opening // addresses of the floor that may be connected to
	Resolver Resolver        // default: as the machine resolves

	Authority *Authority // without one no secret can be bound to hosts

	// Roots are the authorities that certify hosts with secrets, asked for with each connection; nil
	// for the machine's.
	Roots func() *x509.CertPool

	MaxConnections int     // TCP connections of a sandbox at a time; default 256
	Budget         *Budget // of the buffers of TCP connections; nil for no bound
	Tenant         string  // whose part of the budget the sandbox takes; "" if it is not known
	MaxFlows       int     // UDP flows of a sandbox at a time; default 256
	DNSRate        int     // queries a second of a sandbox; default 100

	ConnectTimeout time.Duration // of a connection to the world; default 10 s
	HelloTimeout   time.Duration // until a client has named its host; default 15 s
	IdleTimeout    time.Duration // of a TCP connection without traffic; default 15 min
	FlowTimeout    time.Duration // of a UDP flow without traffic; default 60 s

	// Services answer on ports of Gateway, whatever the policy allows, unless the
	// sandbox's network is blocked.
	Services map[uint16]Service

	Log *slog.Logger // default: none
}

// Service answers connections of sandboxes itself.
type Service interface {
	// Name stands for the service among the hosts that a sandbox has contacted.
	Name() string
	// Serve answers a connection, and returns when it is closed, as it is when
	// the sandbox's Stack is.
	Serve(net.Conn)
}

func (c Config) withDefaults() Config {
	def := func(n *int, v int) {
		if *n <= 0 {
			*n = v
		}
	}
	last := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&c.MaxConnections, 256)
	def(&c.MaxFlows, 256)
	def(&c.DNSRate, 100)
	last(&c.ConnectTimeout, 10*time.Second)
	last(&c.HelloTimeout, 15*time.Second)
	last(&c.IdleTimeout, 15*time.Minute)
	last(&c.FlowTimeout, time.Minute)
	if c.Resolver == nil {
		c.Resolver = &net.Resolver{PreferGo: true}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// ValidatePolicy returns an Invalid fault, which says what to change, unless
// New takes a policy.
func ValidatePolicy(p runtime.NetworkPolicy) error {
	_, err := rules.Compile(p)
	return err
}
