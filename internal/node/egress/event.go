package egress

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// Rule names what refused a connection, for audit and for counting.
type Rule string

const (
	RuleBlocked   Rule = "blocked"       // the sandbox has no network
	RuleHost      Rule = "allowed_hosts" // the name is not among the allowed ones
	RuleAddress   Rule = "address"       // no allowed name has led to the address
	RulePort      Rule = "blocked_ports"
	RuleFloor     Rule = "floor"     // private, local, or the machine's own
	RuleQUIC      Rule = "quic"      // it would hide the name
	RuleTLSName   Rule = "tls_name"  // no name, or not one of the address
	RuleTLSHello  Rule = "tls_hello" // not understood
	RuleTLSECH    Rule = "tls_ech"   // the name is encrypted
	RuleHTTPHost  Rule = "http_host" // no host, or not one of the address
	RuleHTTPForm  Rule = "http_form" // not understood, or a request to a proxy
	RuleProtocol  Rule = "protocol"  // neither TLS nor HTTP, on a port for these
	RuleDNSQuery  Rule = "dns_query" // not understood
	RuleDNSRate   Rule = "dns_rate"  // too many queries
	RuleConnCount Rule = "connection_count"
)

// Rules are all rules.
var Rules = []Rule{
	RuleBlocked, RuleHost, RuleAddress, RulePort, RuleFloor, RuleQUIC, RuleTLSName, RuleTLSHello, RuleTLSECH,
	RuleHTTPHost, RuleHTTPForm, RuleProtocol, RuleDNSQuery, RuleDNSRate, RuleConnCount,
}

// Event is a refusal.
type Event struct {
	Time     time.Time
	Protocol string     // "tcp", "udp", "dns", "tls" or "http"
	Host     string     // the name that was asked for, printable; "" if there was none
	Address  netip.Addr // that was to be connected to; not valid for names that were not looked up
	Port     uint16     // 0 for dns
	Rule     Rule
	Repeats  int // how many of the same were not reported since the last
}

// Observer is told of refusals, from any goroutine. It must not block. The same
// refusal is reported again only after some seconds, and a sandbox that has
// been refused very many different things is not listened to any more; Usage
// counts all of them.
type Observer func(Event)

// Usage is what a sandbox has used since its Stack was made. Bytes are those of
// TCP and UDP that crossed to or from the world, without headers.
type Usage struct {
	BytesIn, BytesOut uint64
	Connections       uint64 // and UDP flows
	Refused           map[Rule]uint64
	Hosts             []string // contacted, at most maxHosts: names, or addresses that had none; sorted
	HostsOmitted      uint64   // connections to others
}

const (
	maxHosts  = 256  // in Usage
	maxEvents = 1024 // different refusals that are remembered
)

// ledger counts what a sandbox does and reports what it is refused.
type ledger struct {
	observe Observer
	in, out atomic.Uint64

	mu      sync.Mutex
	use     Usage
	hosts   map[string]bool
	refused map[Rule]uint64
	last    map[Event]*report // by the event without time and repeats
}

type report struct {
	at      time.Time
	repeats int
}

func newLedger(observe Observer) *ledger {
	return &ledger{observe: observe, hosts: map[string]bool{}, refused: map[Rule]uint64{}, last: map[Event]*report{}}
}

func (l *ledger) refuse(e Event) {
	now := time.Now()
	e.Host = printable(e.Host)
	l.mu.Lock()
	l.refused[e.Rule]++
	r := l.last[e]
	switch {
	case r == nil && len(l.last) >= maxEvents:
		l.mu.Unlock()
		return
	case r == nil:
		r = &report{}
		l.last[e] = r
	case now.Sub(r.at) < execution.RefusalAgain:
		r.repeats++
		l.mu.Unlock()
		return
	}
	e.Time, e.Repeats = now, r.repeats
	r.at, r.repeats = now, 0
	l.mu.Unlock()
	if l.observe != nil {
		l.observe(e)
	}
}

// connected counts a connection to a host.
func (l *ledger) connected(host string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.use.Connections++
	if len(l.hosts) < maxHosts {
		l.hosts[host] = true
	} else if !l.hosts[host] {
		l.use.HostsOmitted++
	}
}

func (l *ledger) usage() Usage {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.use
	u.BytesIn, u.BytesOut = l.in.Load(), l.out.Load()
	u.Refused = maps.Clone(l.refused)
	u.Hosts = slices.Sorted(maps.Keys(l.hosts))
	return u
}

// take is usage since it was last called.
func (l *ledger) take() Usage {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.use
	u.BytesIn, u.BytesOut = l.in.Swap(0), l.out.Swap(0)
	u.Refused, u.Hosts = l.refused, slices.Sorted(maps.Keys(l.hosts))
	l.use, l.refused = Usage{}, map[Rule]uint64{}
	clear(l.hosts)
	clear(l.last)
	return u
}

// printable cuts what a sandbox sent to what may stand in a log.
func printable(s string) string {
	b := []byte(s[:min(len(s), 253)])
	for i, c := range b {
		if c <= ' ' || c > '~' {
			b[i] = '?'
		}
	}
	return string(b)
}
