package egress

import (
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

// verdict is the answer to whether an address and port may be connected to.
type verdict struct {
	rule  Rule     // "" if it may
	host  string   // a name that it was asked for by, if there is one
	names []string // one of which the client must name; nil if it need not
}

func (v verdict) ok() bool { return v.rule == "" }

// decide tells whether an address may be connected to now. host is the name
// that the client has said it wants, "" if it has said none.
func (s *Stack) decide(dst netip.AddrPort, host string) verdict {
	p := s.policy.Load()
	known := s.names.of(dst.Addr(), time.Now())
	allowed := slices.DeleteFunc(slices.Clone(known), func(n string) bool { return !p.Host(n) })
	slices.Sort(allowed)
	v := verdict{host: host}
	if v.host == "" && len(allowed) > 0 {
		v.host = allowed[0]
	} else if v.host == "" && len(known) > 0 {
		v.host = slices.Min(known)
	}
	switch {
	case p.Mode() == runtime.NetworkBlocked:
		v.rule = RuleBlocked
	case !p.Port(dst.Port()):
		v.rule = RulePort
	case s.service(dst) != nil:
	case dst.Addr() == Gateway || s.floor.Refuses(dst.Addr(), dst.Port()):
		v.rule = RuleFloor
	case p.Address(dst.Addr()):
	case s.floor.Unopened(dst.Addr()):
		v.rule = RuleFloor
	case host != "" && !p.Host(host):
		v.rule = RuleHost
	case len(allowed) > 0:
		v.names = allowed
	case len(known) > 0:
		v.rule = RuleHost
	default:
		v.rule = RuleAddress
	}
	return v
}

// flow is a TCP connection or a UDP flow.
type flow struct {
	stack    *Stack
	protocol string
	dst      netip.AddrPort
	limit    time.Duration
	last     atomic.Int64 // of its traffic, in Unix seconds
	free     atomic.Bool  // let through without a name
	wide     bool         // has large buffers

	mu   sync.Mutex
	host string // that the client wants; "" before it has said so
	done bool
	ends []func() // what cut does
}

// open makes a flow, unless there are too many, and counts it.
func (s *Stack) open(protocol string, dst netip.AddrPort) *flow {
	f := &flow{stack: s, protocol: protocol, dst: dst, limit: s.cfg.IdleTimeout}
	if protocol == "udp" {
		f.limit = s.cfg.FlowTimeout
	}
	f.touch()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || protocol == "tcp" && s.tcp >= s.cfg.MaxConnections || protocol == "udp" && len(s.flows)-s.tcp >= s.cfg.MaxFlows {
		return nil
	}
	if protocol == "tcp" {
		if !s.share(f) {
			return nil
		}
		s.tcp++
	}
	s.flows[f] = struct{}{}
	return f
}

// close forgets the flow, and cuts it if that was not done.
func (f *flow) close() {
	f.cut()
	s := f.stack
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.flows[f]; !ok {
		return
	}
	delete(s.flows, f)
	if f.protocol == "tcp" {
		s.tcp--
		s.unshare(f)
	}
}

// onCut adds what cut does; at once if it has been cut.
func (f *flow) onCut(end func()) {
	f.mu.Lock()
	done := f.done
	f.ends = append(f.ends, end)
	f.mu.Unlock()
	if done {
		end()
	}
}

// cut ends the flow's connections, also those in use; the sandbox's before the
// world's, whose end would end it in order.
func (f *flow) cut() {
	f.mu.Lock()
	ends := f.ends
	if f.done {
		ends = nil
	}
	f.done = true
	f.mu.Unlock()
	for _, end := range slices.Backward(ends) {
		end()
	}
}

// wants notes the name that the client has said it wants.
func (f *flow) wants(host string) {
	f.mu.Lock()
	f.host = host
	f.mu.Unlock()
}

func (f *flow) wanted() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.host
}

func (f *flow) touch() { f.last.Store(time.Now().Unix()) }

func (f *flow) in(n int) {
	f.touch()
	f.stack.ledger.in.Add(uint64(n))
}

func (f *flow) out(n int) {
	f.touch()
	f.stack.ledger.out.Add(uint64(n))
}

func (s *Stack) all() []*flow {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*flow, 0, len(s.flows))
	for f := range s.flows {
		out = append(out, f)
	}
	return out
}

// sweep cuts flows without traffic.
func (s *Stack) sweep() {
	tick := time.NewTicker(max(min(s.cfg.IdleTimeout, s.cfg.FlowTimeout)/4, time.Second))
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case now := <-tick.C:
			for _, f := range s.all() {
				if now.Sub(time.Unix(f.last.Load(), 0)) > f.limit {
					f.cut()
				}
			}
		}
	}
}
