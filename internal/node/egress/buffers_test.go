package egress

import (
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestConnectionsThatNeverRead has the world send to connections of which the sandbox
// reads nothing: what is held for them is bounded, and small for all but the first.
func TestConnectionsThatNeverRead(t *testing.T) {
	const count = wideConns + 24
	var mu sync.Mutex
	var servers []*net.TCPConn
	at := listen(t, good+":7", func(c *net.TCPConn) {
		mu.Lock()
		servers = append(servers, c)
		mu.Unlock()
		for piece := make([]byte, 256<<10); ; {
			if _, err := c.Write(piece); err != nil {
				return
			}
		}
	})
	budget := &Budget{TenantBytes: wideConns*wideBytes + 24*narrowBytes}
	r := newRig(t, Config{Budget: budget, Tenant: "ten_a"}, *unrestricted)
	for range count {
		c, err := r.dial("tcp", at.String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	if _, err := r.dial("tcp", at.String()); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("a connection beyond the budget: %v", err)
	}
	r.events.await(t, Event{Rule: RuleConnCount})
	other := newRig(t, Config{Budget: budget, Tenant: "ten_b"}, *unrestricted)
	quiet := listen(t, good+":8", func(*net.TCPConn) {})
	c, err := other.dial("tcp", quiet.String())
	if err != nil {
		t.Fatalf("another tenant's connection: %v", err)
	}
	if err := errors.Join(c.Close(), other.Close()); err != nil {
		t.Fatal(err)
	}

	// acked is what the server of each connection knows to have arrived.
	acked := func() (each []int64, total int64) {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range servers {
			raw, err := c.SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			if err := raw.Control(func(fd uintptr) {
				info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
				if err != nil {
					t.Error(err)
					return
				}
				each, total = append(each, int64(info.Bytes_acked)), total+int64(info.Bytes_acked)
			}); err != nil {
				t.Fatal(err)
			}
		}
		return each, total
	}
	// No signal tells that nothing more comes.
	_, last := acked()
	for still := 0; still < 3; {
		time.Sleep(100 * time.Millisecond)
		if _, now := acked(); now == last && now > 0 {
			still++
		} else {
			still, last = 0, now
		}
	}
	each, total := acked()
	large := 0
	for _, n := range each {
		if n > 512<<10 {
			large++
		}
	}
	if most := int64(wideConns*4<<20 + 12<<20); len(each) != count || large > wideConns || total > most {
		t.Errorf("%d connections hold %d bytes, %d of them more than 512 KiB: %d", len(each), total, large, each)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if budget.used != 0 || len(budget.tenants) != 0 {
		t.Errorf("%d bytes of the budget are still taken, by %v", budget.used, budget.tenants)
	}
}
