package gvisor

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/node/osthread"
)

// What a kernel is told of its network, as gVisor's commands tell it. The names are
// those of its fields.
type (
	linkAddress struct {
		Address   net.IP
		PrefixLen int
	}
	linkRoute struct {
		Destination net.IPNet
		Gateway     net.IP
		MTU         int
	}
	linkNeighbor struct {
		IP           net.IP
		HardwareAddr net.HardwareAddr
	}
	link struct {
		Name        string
		Addresses   []linkAddress
		Routes      []linkRoute
		MTU         int
		LinkAddress net.HardwareAddr
		Neighbors   []linkNeighbor

		NumChannels       int    // sockets
		QDisc             int    // how packets queue
		GSOMaxSize        uint32 // of a piece that the host cuts into packets
		RXChecksumOffload bool
	}
	defaultRoute struct {
		Route linkRoute
		Name  string
	}
	linkArgs struct {
		IsRestore        bool
		LoopbackLinks    []link
		FDBasedLinks     []link
		Defaultv4Gateway defaultRoute
	}
)

const (
	queueFIFO  = 1       // gVisor's default
	linkBuffer = 4 << 20 // of a socket, in bytes: with less, packets are lost at speed
)

// loopback is the device that every sandbox has.
var loopback = link{
	Name:      "lo",
	Addresses: []linkAddress{{net.IPv4(127, 0, 0, 1), 8}, {net.IPv6loopback, 128}},
	Routes: []linkRoute{
		{Destination: net.IPNet{IP: net.IPv4(127, 0, 0, 0).To4(), Mask: net.CIDRMask(8, 32)}},
		{Destination: net.IPNet{IP: net.IPv6loopback, Mask: net.CIDRMask(128, 128)}},
	},
}

// takeLinks opens the devices of a network namespace for a kernel, and takes their
// addresses from the host, which would answer for them.
func takeLinks(namespace string) (args linkArgs, sockets []*os.File, err error) {
	args = linkArgs{IsRestore: true, LoopbackLinks: []link{loopback}}
	if namespace == "" {
		return args, nil, nil
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("take the devices of %s: %w", namespace, err), closeAll(sockets))
		}
	}()
	ns, err := os.Open(namespace)
	if err != nil {
		return args, nil, err
	}
	defer ns.Close()
	err = osthread.Do(func() error {
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			return err
		}
		h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		defer h.Close()
		devices, err := h.LinkList()
		if err != nil {
			return err
		}
		for _, d := range devices {
			if d.Attrs().Flags&net.FlagUp == 0 || d.Attrs().Flags&net.FlagLoopback != 0 {
				continue
			}
			l, err := args.describe(h, d)
			if err != nil {
				return fmt.Errorf("%s: %w", d.Attrs().Name, err)
			}
			socket, err := openLink(d)
			if err != nil {
				return fmt.Errorf("%s: %w", d.Attrs().Name, err)
			}
			sockets = append(sockets, socket)
			args.FDBasedLinks = append(args.FDBasedLinks, l)
		}
		return nil
	})
	return args, sockets, err
}

// describe reads how a device is set up, and takes its addresses.
func (args *linkArgs) describe(h *netlink.Handle, d netlink.Link) (l link, err error) {
	a := d.Attrs()
	l = link{Name: a.Name, MTU: a.MTU, LinkAddress: a.HardwareAddr, NumChannels: 1, QDisc: queueFIFO, GSOMaxSize: a.GSOMaxSize, RXChecksumOffload: true}
	addresses, err := h.AddrList(d, netlink.FAMILY_ALL)
	if err != nil {
		return l, err
	}
	neighbors, err := h.NeighList(a.Index, netlink.FAMILY_ALL)
	if err != nil {
		return l, err
	}
	routes, err := h.RouteList(d, netlink.FAMILY_ALL)
	if err != nil {
		return l, err
	}
	for _, n := range neighbors {
		if n.State == netlink.NUD_PERMANENT {
			l.Neighbors = append(l.Neighbors, linkNeighbor{n.IP, n.HardwareAddr})
		}
	}
	for _, r := range routes {
		if r.Dst == nil || r.Gw != nil {
			zero := net.IPNet{IP: net.IPv4zero, Mask: net.IPMask(net.IPv4zero)}
			args.Defaultv4Gateway = defaultRoute{linkRoute{zero, r.Gw, r.MTU}, a.Name}
			continue
		}
		l.Routes = append(l.Routes, linkRoute{*r.Dst, nil, r.MTU})
	}
	for _, addr := range addresses {
		ones, _ := addr.Mask.Size()
		l.Addresses = append(l.Addresses, linkAddress{addr.IP, ones})
		if err := h.AddrDel(d, &addr); err != nil {
			return l, err
		}
	}
	return l, nil
}

// openLink opens a socket that has all packets of a device, and may hand it pieces
// larger than those.
func openLink(d netlink.Link) (_ *os.File, err error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0) // of no protocol, until it is bound
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), d.Attrs().Name)
	const all = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8 // in the network's order
	err = errors.Join(
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: d.Attrs().Index}),
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1),
	)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	for force, plain := range map[int]int{unix.SO_RCVBUFFORCE: unix.SO_RCVBUF, unix.SO_SNDBUFFORCE: unix.SO_SNDBUF} {
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, linkBuffer) != nil {
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, plain, linkBuffer) // as far as an ordinary user may
		}
	}
	return f, nil
}
