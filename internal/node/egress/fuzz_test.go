package egress

import (
	"net/netip"
	"testing"

	"github.com/miekg/dns"
	"golang.org/x/time/rate"

	"github.com/atoll-run/atoll/internal/core/address"
	"github.com/atoll-run/atoll/internal/node/egress/rules"
)

// FuzzAnswer has every query survived, and no name asked for that is not
// allowed.
func FuzzAnswer(f *testing.F) {
	for _, h := range []string{"good.test.", "evil.test.", `good.test\000.evil.test.`, "."} {
		for _, kind := range []uint16{dns.TypeA, dns.TypeTXT, dns.TypeANY} {
			m := new(dns.Msg)
			m.SetQuestion(h, kind)
			m.SetEdns0(1232, true)
			b, err := m.Pack()
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b, true)
		}
	}
	policy, err := rules.Compile(hosts("good.test"))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, query []byte, stream bool) {
		z := &zone{names: map[string][]netip.Addr{}}
		z.set("good.test", good)
		s := &Stack{floor: rules.Floor{Own: address.Machine}, cfg: Config{Resolver: z}.withDefaults(), names: newNames(), ledger: newLedger(nil),
			dns: rate.NewLimiter(rate.Inf, 1), asking: make(chan struct{}, 1), ctx: t.Context()}
		s.policy.Store(policy)
		answer := s.answer(query, stream)
		for _, asked := range z.queries() {
			if asked != "good.test." {
				t.Errorf("the world was asked for %q", asked)
			}
		}
		if answer == nil {
			return
		}
		var m dns.Msg
		if err := m.Unpack(answer); err != nil {
			t.Errorf("an answer that is none: %v", err)
		}
		if !stream && len(answer) > maxQuery {
			t.Errorf("an answer of %d bytes", len(answer))
		}
	})
}

// FuzzFrames has the whole stack survive any frames.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("\x02atol\x01\x02atol\x02\x08\x00E\x00\x00("), []byte{})
	for _, proto := range []byte{1, 6, 17} {
		packet := []byte{0x45, 0, 0, 60, 0, 1, 0, 0, 64, proto, 0, 0, 198, 19, 255, 254, 198, 19, 255, 253}
		f.Add(packet, make([]byte, 40))
	}
	r := newRig(f, Config{}, hosts("good.test"))
	f.Fuzz(func(t *testing.T, head, rest []byte) {
		frame := append(append(append([]byte(nil), GatewayMAC...), SandboxMAC...), 8, 0)
		frame = append(append(frame, head...), rest...)
		if len(frame) > ethernet+20 { // a checksum that is right gets further
			ip := frame[ethernet:]
			ip[10], ip[11] = 0, 0
			var sum uint32
			for i := 0; i < 20; i += 2 {
				sum += uint32(ip[i])<<8 | uint32(ip[i+1])
			}
			for sum > 0xffff {
				sum = sum>>16 + sum&0xffff
			}
			ip[10], ip[11] = byte(^sum>>8), byte(^sum)
		}
		r.link.deliver(frame)
	})
}
