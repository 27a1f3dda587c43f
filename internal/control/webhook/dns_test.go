package webhook

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"

	"github.com/miekg/dns"
)

// zone is a DNS server whose answers a test chooses.
type zone struct {
	addr string

	mu      sync.Mutex
	answers map[string][][]string // by name, one list an A or AAAA question; the last one stays
	asked   map[string]int
}

func serveDNS(t testing.TB) *zone {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	z := &zone{addr: conn.LocalAddr().String(), answers: map[string][][]string{}, asked: map[string]int{}}
	ready := make(chan struct{})
	srv := &dns.Server{PacketConn: conn, Handler: z, NotifyStartedFunc: func() { close(ready) }}
	done := make(chan struct{})
	go func() { defer close(done); srv.ActivateAndServe() }()
	<-ready
	t.Cleanup(func() { srv.Shutdown(); <-done })
	return z
}

// set makes a name resolve to addresses, always.
func (z *zone) set(name string, addrs ...string) { z.turn(name, addrs) }

// turn makes a name resolve to one list after the other.
func (z *zone) turn(name string, lists ...[]string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.answers[dns.Fqdn(name)] = lists
}

func (z *zone) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	a := new(dns.Msg)
	a.SetReply(q)
	question := q.Question[0]
	z.mu.Lock()
	lists := z.answers[question.Name]
	if len(lists) == 0 {
		a.Rcode = dns.RcodeNameError
	} else {
		key := question.Name + dns.TypeToString[question.Qtype]
		for _, s := range lists[min(z.asked[key], len(lists)-1)] {
			ip := netip.MustParseAddr(s)
			header := dns.RR_Header{Name: question.Name, Rrtype: question.Qtype, Class: dns.ClassINET, Ttl: 0}
			switch {
			case ip.Is4() && question.Qtype == dns.TypeA:
				a.Answer = append(a.Answer, &dns.A{Hdr: header, A: ip.AsSlice()})
			case ip.Is6() && question.Qtype == dns.TypeAAAA:
				a.Answer = append(a.Answer, &dns.AAAA{Hdr: header, AAAA: ip.AsSlice()})
			}
		}
		z.asked[key]++
	}
	z.mu.Unlock()
	w.WriteMsg(a)
}

func (z *zone) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", z.addr)
	}}
}
