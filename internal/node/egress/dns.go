package egress

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"

	"github.com/atoll-run/atoll/internal/core/address"
)

const (
	dnsPort      = 53
	maxAsking    = 32 // lookups of a sandbox at a time
	maxQuery     = 4096
	maxAnswers   = 16
	askTimeout   = 5 * time.Second
	dnsIdle      = 30 * time.Second
	plainDNSSize = 512
)

// serveDNSDatagrams answers queries in datagrams until the flow is cut.
func (s *Stack) serveDNSDatagrams(f *flow, guest *gonet.UDPConn) {
	buf := make([]byte, maxQuery)
	for {
		n, err := guest.Read(buf)
		if err != nil {
			return
		}
		f.touch()
		query := slices.Clone(buf[:n])
		ok := s.spawn(func() {
			if answer := s.answer(query, false); answer != nil {
				_, _ = guest.Write(answer)
			}
		})
		if !ok {
			return
		}
	}
}

// serveDNSStream answers queries of a connection, one after the other.
func (s *Stack) serveDNSStream(f *flow, guest *guestConn) {
	defer guest.Close()
	for {
		_ = guest.SetReadDeadline(time.Now().Add(dnsIdle))
		var size [2]byte
		if _, err := io.ReadFull(guest, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(guest, query); err != nil {
			return
		}
		f.touch()
		answer := s.answer(query, true)
		if answer == nil {
			return
		}
		if _, err := guest.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

// answer answers a DNS query; nil if it is too broken for that. Only names that
// the policy allows are asked for, and only for their IPv4 addresses: a sandbox
// has no IPv6, and other records could carry anything out and in.
func (s *Stack) answer(query []byte, stream bool) []byte {
	refused := func(name string, rule Rule) { s.refuse("dns", strings.TrimSuffix(name, "."), netip.AddrPort{}, rule) }
	var q dns.Msg
	if err := q.Unpack(query); err != nil || q.Response {
		refused("", RuleDNSQuery)
		return nil
	}
	a := new(dns.Msg)
	a.SetReply(&q)
	a.RecursionAvailable = true
	if e := q.IsEdns0(); e != nil {
		a.SetEdns0(maxQuery, false)
	}
	switch {
	case q.Opcode != dns.OpcodeQuery:
		a.Rcode = dns.RcodeNotImplemented
		refused("", RuleDNSQuery)
	case len(q.Question) != 1 || len(q.Answer)+len(q.Ns) > 0:
		a.Rcode = dns.RcodeFormatError
		refused("", RuleDNSQuery)
	case q.Question[0].Qclass != dns.ClassINET:
		a.Rcode = dns.RcodeRefused
		refused(q.Question[0].Name, RuleDNSQuery)
	case !s.dns.Allow():
		a.Rcode = dns.RcodeServerFailure
		refused(q.Question[0].Name, RuleDNSRate)
	default:
		s.resolve(a, q.Question[0])
	}
	limit := dns.MaxMsgSize
	if !stream {
		limit = plainDNSSize
		if e := q.IsEdns0(); e != nil {
			limit = min(max(int(e.UDPSize()), plainDNSSize), maxQuery)
		}
	}
	a.Compress = true
	a.Truncate(limit)
	out, err := a.Pack()
	if err != nil {
		return nil
	}
	return out
}

// resolve puts the answer to a question into a.
func (s *Stack) resolve(a *dns.Msg, q dns.Question) {
	name := address.Hostname(q.Name)
	p := s.policy.Load()
	if !p.Host(name) {
		s.refuse("dns", strings.TrimSuffix(q.Name, "."), netip.AddrPort{}, RuleHost)
		prohibit(a, "the policy of this sandbox does not allow the name")
		return
	}
	if q.Qtype != dns.TypeA {
		return // an empty answer: nothing of this kind
	}
	addrs, err := s.lookup(name)
	if nf, ok := errors.AsType[*net.DNSError](err); ok && nf.IsNotFound {
		a.Rcode = dns.RcodeNameError
		return
	}
	if err != nil {
		a.Rcode = dns.RcodeServerFailure
		return
	}
	addrs = slices.DeleteFunc(slices.Clone(addrs), func(ip netip.Addr) bool {
		no := s.floor.Unopened(ip) && !p.Address(ip)
		if no {
			s.refuse("dns", name, netip.AddrPortFrom(ip, 0), RuleFloor)
		}
		return no
	})
	if len(addrs) == 0 {
		prohibit(a, "the name leads to addresses that are not public")
		return
	}
	for _, ip := range addrs {
		a.Answer = append(a.Answer, &dns.A{
			Hdr: dns.RR_Header{Name: q.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: uint32(answerTTL / time.Second)},
			A:   ip.AsSlice(),
		})
	}
}

// prohibit answers that there is no such name, since programs take anything
// else for a resolver that is broken and ask again, and says why to those who
// can read it.
func prohibit(a *dns.Msg, why string) {
	a.Rcode = dns.RcodeNameError
	if e := a.IsEdns0(); e != nil {
		e.Option = append(e.Option, &dns.EDNS0_EDE{InfoCode: dns.ExtendedErrorCodeProhibited, ExtraText: why})
	}
}

// lookup returns the addresses of a name that the floor leaves, and remembers
// that it led to them.
func (s *Stack) lookup(name string) ([]netip.Addr, error) {
	if addrs := s.names.fresh(name, time.Now()); addrs != nil {
		return addrs, nil
	}
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	default:
		s.refuse("dns", name, netip.AddrPort{}, RuleDNSRate)
		return nil, errors.New("too many lookups at a time")
	}
	ctx, cancel := context.WithTimeout(s.ctx, askTimeout)
	defer cancel()
	found, err := s.cfg.Resolver.LookupNetIP(ctx, "ip4", name+".")
	if err != nil {
		return nil, err
	}
	var addrs []netip.Addr
	for _, ip := range found {
		ip = ip.Unmap()
		switch {
		case !ip.Is4():
		case s.floor.Closed(ip):
			s.refuse("dns", name, netip.AddrPortFrom(ip, 0), RuleFloor)
		case len(addrs) < maxAnswers:
			addrs = append(addrs, ip)
		}
	}
	if len(addrs) > 0 {
		s.names.remember(name, addrs, time.Now())
	}
	return addrs, nil
}
