package egress

import (
	"testing"

	"github.com/atoll-run/atoll/internal/node/netns"
)

// BenchmarkNew is what a sandbox's Stack costs to make and to close, beside its
// namespace and device.
func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		l, err := netns.New(netns.Config{Address: SandboxAddress, MAC: SandboxMAC, Gateway: Gateway, GatewayMAC: GatewayMAC, MTU: MTU})
		if err != nil {
			b.Fatal(err)
		}
		link := l.Release()
		b.StartTimer()
		s, err := New(Config{}, link, hosts("*"), nil)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
