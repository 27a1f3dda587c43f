package address

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Machine returns the addresses of this machine's interfaces, IPv4 ones as such.
// They are read again when they are older than 5 s. The caller must not change
// the slice.
func Machine() ([]netip.Addr, error) { return machine.addresses() }

// OfMachine reports whether an interface of this machine has an address. It also
// does while the interfaces cannot be read, so that a check fails closed.
func OfMachine(a netip.Addr) bool {
	own, err := Machine()
	return err != nil || slices.Contains(own, Plain(a))
}

// machineAge is how long the addresses of the interfaces are kept, because every
// connection asks for them.
const machineAge = 5 * time.Second

var machine interfaces

type interfaces struct {
	mu    sync.Mutex
	at    time.Time
	addrs []netip.Addr
}

func (i *interfaces) addresses() ([]netip.Addr, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if time.Since(i.at) < machineAge {
		return i.addrs, nil
	}
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("read the addresses of this machine: %w", err)
	}
	var addrs []netip.Addr
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				addrs = append(addrs, ip.Unmap())
			}
		}
	}
	i.addrs, i.at = addrs, time.Now()
	return addrs, nil
}
