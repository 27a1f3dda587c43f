// Package netns makes the network that one sandbox sees: a network namespace
// with a TAP device, whose other end is a file in this process.
//
// Nothing names a namespace but open files and the processes in it. So one whose
// sandbox never came to be, or has ended, is gone once this process has closed
// its file or has died; and the namespace of a living sandbox is found again
// through any of its processes.
package netns

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strconv"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/node/osthread"
)

// Device is what the TAP device is called.
const Device = "eth0"

// Config is what every namespace's device is set up with.
type Config struct {
	Address    netip.Prefix // the sandbox's own, with the network it is in
	MAC        net.HardwareAddr
	Gateway    netip.Addr // where everything else is reached
	GatewayMAC net.HardwareAddr
	MTU        int
}

// Link is a namespace and the end of its device that is not in it.
type Link struct {
	ns  *os.File
	tap *os.File
}

// New makes a namespace.
func New(cfg Config) (*Link, error) {
	l := &Link{}
	err := osthread.Do(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		var err error
		if l.ns, err = os.Open("/proc/thread-self/ns/net"); err != nil {
			return err
		}
		if l.tap, err = openTAP(); err != nil {
			return err
		}
		return cfg.apply()
	})
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Attach opens the device of a namespace, such as that of a living sandbox, whose
// earlier owner has died or has let go of it.
func Attach(namespace string) (tap *os.File, err error) {
	ns, err := os.Open(namespace)
	if err != nil {
		return nil, fmt.Errorf("open a network namespace: %w", err)
	}
	defer ns.Close()
	err = osthread.Do(func() error {
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter the network namespace %s: %w", namespace, err)
		}
		// Without this the device would be made if it were not there.
		if _, err := net.InterfaceByName(Device); err != nil {
			return fmt.Errorf("the network namespace %s has no device %s: %w", namespace, Device, err)
		}
		tap, err = openTAP()
		return err
	})
	return tap, err
}

// Path names the namespace to processes that this one starts.
func (l *Link) Path() string {
	return "/proc/" + strconv.Itoa(os.Getpid()) + "/fd/" + strconv.Itoa(int(l.ns.Fd()))
}

// Release hands the outer end to the caller, and closes the rest: the namespace
// then lives as long as the processes in it.
func (l *Link) Release() *os.File {
	tap := l.tap
	l.tap = nil
	l.Close()
	return tap
}

// Close lets go of the namespace and the device.
func (l *Link) Close() error {
	var errs []error
	for _, f := range []*os.File{l.tap, l.ns} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	l.tap, l.ns = nil, nil
	return errors.Join(errs...)
}

// openTAP makes the device in the namespace of the calling thread, or attaches
// to it. The device stays when the file is closed.
func openTAP() (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil, fmt.Errorf("%w: the kernel's module tun is missing (modprobe tun), or in a container the device (--device /dev/net/tun)", err)
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("open /dev/net/tun: %w: let this user open it, as most machines do (chmod 0666 /dev/net/tun)", err)
	}
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	if err := setUpTAP(fd); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), Device), nil
}

func setUpTAP(fd int) error {
	req, err := unix.NewIfreq(Device)
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
		return fmt.Errorf("make a TAP device: %w", err)
	}
	if err := unix.IoctlSetInt(fd, unix.TUNSETPERSIST, 1); err != nil {
		return fmt.Errorf("keep a TAP device: %w", err)
	}
	return nil
}

// apply sets up the devices in the namespace of the calling thread.
func (c Config) apply() error {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer h.Close()
	lo, err := h.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := h.LinkSetUp(lo); err != nil {
		return fmt.Errorf("set up lo: %w", err)
	}
	eth, err := h.LinkByName(Device)
	if err != nil {
		return err
	}
	if err := withoutIPv6(eth.Attrs().Index); err != nil {
		return fmt.Errorf("keep IPv6 from %s: %w", Device, err)
	}
	if err := h.LinkSetHardwareAddr(eth, c.MAC); err != nil {
		return fmt.Errorf("give %s the address %s: %w", Device, c.MAC, err)
	}
	if err := h.LinkSetMTU(eth, c.MTU); err != nil {
		return fmt.Errorf("set the MTU of %s to %d: %w", Device, c.MTU, err)
	}
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: c.Address.Addr().AsSlice(), Mask: net.CIDRMask(c.Address.Bits(), c.Address.Addr().BitLen())}}
	if err := h.AddrAdd(eth, addr); err != nil {
		return fmt.Errorf("give %s the address %s: %w", Device, c.Address, err)
	}
	if err := h.LinkSetUp(eth); err != nil {
		return fmt.Errorf("set up %s: %w", Device, err)
	}
	// Known, so that it is never asked for.
	gateway := &netlink.Neigh{LinkIndex: eth.Attrs().Index, State: netlink.NUD_PERMANENT, IP: c.Gateway.AsSlice(), HardwareAddr: c.GatewayMAC}
	if err := h.NeighSet(gateway); err != nil {
		return fmt.Errorf("make %s known: %w", c.Gateway, err)
	}
	if err := h.RouteAdd(&netlink.Route{LinkIndex: eth.Attrs().Index, Gw: c.Gateway.AsSlice()}); err != nil {
		return fmt.Errorf("route %s through %s: %w", Device, c.Gateway, err)
	}
	return nil
}

// withoutIPv6 keeps a device from making itself an IPv6 address when it is set
// up. It then has none, and so has the sandbox.
func withoutIPv6(index int) error {
	const addrGenMode, none = 8, 1 // IFLA_INET6_ADDR_GEN_MODE, IN6_ADDR_GEN_MODE_NONE
	req := nl.NewNetlinkRequest(unix.RTM_NEWLINK, unix.NLM_F_ACK)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(index)
	req.AddData(msg)
	spec := nl.NewRtAttr(unix.IFLA_AF_SPEC, nil)
	spec.AddRtAttr(unix.AF_INET6, nil).AddRtAttr(addrGenMode, nl.Uint8Attr(none))
	req.AddData(spec)
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	if errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil // a kernel without IPv6
	}
	return err
}
