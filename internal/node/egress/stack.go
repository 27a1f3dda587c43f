package egress

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/time/rate"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"

	"github.com/atoll-run/atoll/internal/core/address"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/egress/rules"
)

const nic tcpip.NICID = 1

// Stack is the network of one sandbox.
type Stack struct {
	cfg     Config
	floor   rules.Floor
	policy  atomic.Pointer[rules.Policy]
	secrets atomic.Pointer[[]bound]
	names   *names
	ledger  *ledger
	dns     *rate.Limiter
	asking  chan struct{} // a place for each lookup under way
	http1   *gate         // of HTTP in clear
	http2   *gate

	link *tap
	net  *stack.Stack

	ctx    context.Context // ends with the Stack
	cancel context.CancelFunc

	mu     sync.Mutex
	closed bool
	flows  map[*flow]struct{}
	tcp    int            // of flows
	wide   int            // of those
	wg     sync.WaitGroup // added to under mu, unless closed
}

// New returns the network of the sandbox behind a TAP device, at work. The
// device was opened non-blocking, with IFF_TAP and IFF_NO_PI, before it became
// an os.File; it has MTU, and the addresses above are those of the sandbox.
// Close closes link; if New fails, link stays open. observe may be nil.
func New(cfg Config, link *os.File, policy runtime.NetworkPolicy, observe Observer) (*Stack, error) {
	compiled, err := rules.Compile(policy)
	if err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	t, err := newTAP(link)
	if err != nil {
		return nil, fmt.Errorf("use the TAP device: %w", err)
	}
	s := &Stack{
		cfg: cfg, floor: rules.Floor{Open: cfg.Open, Own: address.Machine},
		names: newNames(), ledger: newLedger(observe), link: t, flows: map[*flow]struct{}{},
		dns: rate.NewLimiter(rate.Limit(cfg.DNSRate), cfg.DNSRate), asking: make(chan struct{}, maxAsking),
	}
	s.policy.Store(compiled)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := s.start(); err != nil {
		s.cancel()
		s.net.Destroy()
		return nil, err
	}
	return s, nil
}

func (s *Stack) start() error {
	s.net = stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocolWithOptions(ipv4.Options{AllowExternalLoopbackTraffic: true}), arp.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol, icmp.NewProtocol4},
	})
	if err := tune(s.net); err != nil {
		return err
	}
	if err := s.net.CreateNIC(nic, s.link); err != nil {
		return fmt.Errorf("create the interface: %s", err)
	}
	gw := tcpip.ProtocolAddress{
		Protocol:          ipv4.ProtocolNumber,
		AddressWithPrefix: tcpip.AddressWithPrefix{Address: tcpip.AddrFrom4(Gateway.As4()), PrefixLen: SandboxAddress.Bits()},
	}
	if err := s.net.AddProtocolAddress(nic, gw, stack.AddressProperties{}); err != nil {
		return fmt.Errorf("give the gateway its address: %s", err)
	}
	s.net.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}})
	// Every address of the world is ours, for the sandbox.
	if err := s.net.SetPromiscuousMode(nic, true); err != nil {
		return fmt.Errorf("receive for every address: %s", err)
	}
	if err := s.net.SetSpoofing(nic, true); err != nil {
		return fmt.Errorf("send for every address: %s", err)
	}
	s.http1, s.http2 = newGate(s, false), newGate(s, true)
	s.net.SetTransportProtocolHandler(tcp.ProtocolNumber, tcp.NewForwarder(s.net, 0, 2*s.cfg.MaxConnections, s.acceptTCP).HandlePacket)
	s.net.SetTransportProtocolHandler(udp.ProtocolNumber, s.acceptUDP)
	s.wg.Go(func() {
		if err := s.link.read(); err != nil {
			s.cfg.Log.Error("a sandbox's network device broke", "error", err)
		}
	})
	s.wg.Go(s.sweep)
	return nil
}

// window is how much of a connection waits on its way in each direction. The
// link's round trip is short, so that more would gain nothing; and a hostile
// sandbox can have all its connections wait.
const window = 512 << 10

// tune sets what the stack's defaults have other ideas of.
func tune(st *stack.Stack) error {
	sack, delay, moderate := tcpip.TCPSACKEnabled(true), tcpip.TCPDelayEnabled(false), tcpip.TCPModerateReceiveBufferOption(false)
	recv := tcpip.TCPReceiveBufferSizeRangeOption{Min: 4 << 10, Default: window, Max: window}
	send := tcpip.TCPSendBufferSizeRangeOption{Min: 4 << 10, Default: window, Max: window}
	for _, o := range []tcpip.SettableTransportProtocolOption{&sack, &delay, &moderate, &recv, &send} {
		if err := st.SetTransportProtocolOption(tcp.ProtocolNumber, o); err != nil {
			return fmt.Errorf("set up TCP: %s", err)
		}
	}
	return nil
}

// SetPolicy puts another policy into force at once. Connections that it does
// not allow are cut.
func (s *Stack) SetPolicy(p runtime.NetworkPolicy) error {
	compiled, err := rules.Compile(p)
	if err != nil {
		return err
	}
	s.policy.Store(compiled)
	for _, f := range s.all() {
		if f.dst.Addr() != Gateway || s.service(f.dst) != nil { // DNS asks by itself
			s.check(f)
		}
	}
	return nil
}

// Usage is what the sandbox has used up to now.
func (s *Stack) Usage() Usage { return s.ledger.usage() }

// TakeUsage is what the sandbox has used since this was last asked, or since the
// Stack was made. Refusals are reported anew after it.
func (s *Stack) TakeUsage() Usage { return s.ledger.take() }

// Close cuts all connections, closes the device and waits until nothing of the
// Stack runs any more. It may be called again.
func (s *Stack) Close() error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.mu.Unlock()
	if !first {
		s.wg.Wait()
		return nil
	}
	s.cancel()
	err := s.link.file.Close()
	<-s.link.done
	for _, f := range s.all() {
		f.cut()
	}
	s.http1.close()
	s.http2.close()
	s.net.Close()
	s.wg.Wait()
	s.net.Wait()
	return err
}

// spawn runs f, which Close waits for; it reports whether it does.
func (s *Stack) spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.wg.Go(f)
	}
	return !s.closed
}

func (s *Stack) refuse(protocol, host string, dst netip.AddrPort, rule Rule) {
	s.ledger.refuse(Event{Protocol: protocol, Host: host, Address: dst.Addr(), Port: dst.Port(), Rule: rule})
}
