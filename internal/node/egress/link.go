package egress

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

const ethernet = header.EthernetMinimumSize

// tap carries frames between a TAP device and the stack. It knows both ends'
// hardware addresses, so it never asks for one.
//
// Frames wait for the runtime's poller, not in a thread: a machine has as many
// of these as sandboxes.
type tap struct {
	file *os.File
	raw  syscall.RawConn
	done chan struct{} // closed when nothing is read any more

	mu   sync.RWMutex
	disp stack.NetworkDispatcher
}

var _ stack.LinkEndpoint = (*tap)(nil)

func newTAP(file *os.File) (*tap, error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &tap{file: file, raw: raw, done: make(chan struct{})}, nil
}

// read passes frames on until the file is closed.
func (t *tap) read() error {
	defer close(t.done)
	frame := make([]byte, ethernet+MTU+1)
	for {
		n, err := t.file.Read(frame)
		if err != nil {
			if errors.Is(err, os.ErrClosed) || err == io.EOF {
				return nil
			}
			return err
		}
		t.deliver(frame[:n])
	}
}

// deliver gives a frame to the stack, which keeps a copy.
func (t *tap) deliver(frame []byte) {
	proto, ok := acceptable(frame)
	if !ok {
		return
	}
	t.mu.RLock()
	d := t.disp
	t.mu.RUnlock()
	if d == nil {
		return
	}
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(frame[ethernet:])})
	defer pkt.DecRef()
	pkt.PktType = tcpip.PacketHost
	d.DeliverNetworkPacket(proto, pkt)
}

// acceptable tells the protocol of a frame that the stack is to see: ARP, and
// IPv4 from the sandbox's address. Pings reach the gateway alone, since the
// stack would answer them for the whole world.
func acceptable(frame []byte) (tcpip.NetworkProtocolNumber, bool) {
	if len(frame) < ethernet || len(frame) > ethernet+MTU {
		return 0, false
	}
	packet := frame[ethernet:]
	switch proto := header.Ethernet(frame).Type(); proto {
	case header.ARPProtocolNumber:
		return proto, true
	case header.IPv4ProtocolNumber:
		if len(packet) < header.IPv4MinimumSize {
			return 0, false
		}
		ip := header.IPv4(packet)
		if ip.SourceAddress() != tcpip.AddrFrom4(SandboxAddress.Addr().As4()) {
			return 0, false
		}
		switch ip.TransportProtocol() {
		case header.TCPProtocolNumber, header.UDPProtocolNumber:
			return proto, true
		case header.ICMPv4ProtocolNumber:
			return proto, ip.DestinationAddress() == tcpip.AddrFrom4(Gateway.As4())
		}
	}
	return 0, false
}

// WritePackets implements stack.LinkEndpoint. A frame that the device does not
// take is lost, as on any wire.
func (t *tap) WritePackets(pkts stack.PacketBufferList) (int, tcpip.Error) {
	n := 0
	for _, pkt := range pkts.AsSlice() {
		var head [ethernet]byte
		copy(head[:6], SandboxMAC)
		copy(head[6:12], GatewayMAC)
		binary.BigEndian.PutUint16(head[12:], uint16(pkt.NetworkProtocolNumber))
		frame := append([][]byte{head[:]}, pkt.AsSlices()...)
		err := t.raw.Control(func(fd uintptr) {
			for {
				if _, err := unix.Writev(int(fd), frame); err != unix.EINTR {
					return
				}
			}
		})
		if err != nil {
			return n, &tcpip.ErrClosedForSend{}
		}
		n++
	}
	return n, nil
}

// Attach implements stack.LinkEndpoint.
func (t *tap) Attach(d stack.NetworkDispatcher) {
	t.mu.Lock()
	t.disp = d
	t.mu.Unlock()
}

// IsAttached implements stack.LinkEndpoint.
func (t *tap) IsAttached() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.disp != nil
}

// The rest of stack.LinkEndpoint says what the link is.

func (t *tap) MTU() uint32                                  { return MTU }
func (t *tap) SetMTU(uint32)                                {}
func (t *tap) MaxHeaderLength() uint16                      { return 0 }
func (t *tap) LinkAddress() tcpip.LinkAddress               { return tcpip.LinkAddress(GatewayMAC) }
func (t *tap) SetLinkAddress(tcpip.LinkAddress)             {}
func (t *tap) Capabilities() stack.LinkEndpointCapabilities { return stack.CapabilityRXChecksumOffload }
func (t *tap) Wait()                                        {}
func (t *tap) ARPHardwareType() header.ARPHardwareType      { return header.ARPHardwareEther }
func (t *tap) AddHeader(*stack.PacketBuffer)                {}
func (t *tap) ParseHeader(*stack.PacketBuffer) bool         { return true }
func (t *tap) Close()                                       {}
func (t *tap) SetOnCloseAction(func())                      {}
