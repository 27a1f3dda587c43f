package netns

import (
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/node/osthread"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var config = Config{
	Address: netip.MustParsePrefix("192.0.2.2/24"), MAC: net.HardwareAddr{2, 0, 0, 0, 0, 2},
	Gateway: netip.MustParseAddr("192.0.2.1"), GatewayMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, MTU: 9000,
}

// inside calls f in a namespace.
func inside(t *testing.T, l *Link, f func() error) {
	t.Helper()
	err := osthread.Do(func() error {
		if err := unix.Setns(int(l.ns.Fd()), unix.CLONE_NEWNET); err != nil {
			return err
		}
		return f()
	})
	if err != nil {
		t.Error(err)
	}
}

func TestANamespaceHasItsDeviceAndNoIPv6(t *testing.T) {
	l, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	inside(t, l, func() error {
		eth, err := net.InterfaceByName(Device)
		if err != nil {
			return err
		}
		if eth.MTU != config.MTU || eth.HardwareAddr.String() != config.MAC.String() || eth.Flags&net.FlagUp == 0 {
			t.Errorf("the device is %+v", eth)
		}
		addrs, err := eth.Addrs()
		if err != nil || len(addrs) != 1 || addrs[0].String() != config.Address.String() {
			t.Errorf("its addresses are %v (%v)", addrs, err)
		}
		lo, err := net.InterfaceByName("lo")
		if err != nil || lo.Flags&net.FlagUp == 0 {
			t.Errorf("lo is %+v (%v)", lo, err)
		}
		all, err := net.Interfaces()
		if err != nil || len(all) != 2 {
			t.Errorf("there are %v (%v)", all, err)
		}
		routes, err := os.ReadFile("/proc/thread-self/net/route")
		if err != nil || !strings.Contains(string(routes), "eth0\t00000000\t010200C0") {
			t.Errorf("no default route (%v):\n%s", err, routes)
		}
		return nil
	})
	if _, err := net.InterfaceByName(Device); err == nil {
		// The machine may have one, but never ours.
		if eth, _ := net.InterfaceByName(Device); eth.HardwareAddr.String() == config.MAC.String() {
			t.Error("the device is the machine's")
		}
	}
}

// One without a holder is gone: there is nothing to sweep.
func TestANamespaceGoesWithItsLastFile(t *testing.T) {
	l, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	path := l.Path()
	if _, err := Attach(path); !errors.Is(err, unix.EBUSY) {
		t.Errorf("a second one has the device: %v", err)
	}
	again, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Attach(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after the end: %v", err)
	}
	// It is still held here, and so is its device.
	tap, err := Attach("/proc/self/fd/" + strconv.Itoa(int(again.Fd())))
	if err != nil {
		t.Fatal(err)
	}
	if err := tap.Close(); err != nil {
		t.Error(err)
	}
}

func TestAttachMakesNoDevice(t *testing.T) {
	err := osthread.Do(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		_, err := Attach("/proc/self/task/" + strconv.Itoa(unix.Gettid()) + "/ns/net")
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "no device "+Device) {
		t.Errorf("a namespace without a device: %v", err)
	}
}

func TestAFailedNewLeavesNothing(t *testing.T) {
	before, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	bad := config
	bad.MTU = 1 << 20
	for range 10 {
		if l, err := New(bad); err == nil {
			l.Close()
			t.Fatal("a device with an MTU of 1 MiB")
		}
	}
	after, err := os.ReadDir("/proc/self/fd")
	if err != nil || len(after) > len(before) {
		t.Errorf("%d files are open, %d were (%v)", len(after), len(before), err)
	}
}
