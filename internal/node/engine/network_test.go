package engine

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/egress/rules"
	"github.com/atoll-run/atoll/internal/node/executor"
)

// names resolves every name to one address.
type names netip.Addr

func (n names) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.Addr(n)}, nil
}

// greeter answers connections with a line, on an address of this machine's that
// sandboxes can be let reach.
func greeter(t *testing.T) netip.AddrPort {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	host := ""
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			host = n.IP.String()
			break
		}
	}
	if host == "" {
		t.Fatal("this machine has no IPv4 address but 127.0.0.1, which is another one in a sandbox")
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprintln(c, "hello")
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return netip.MustParseAddrPort(l.Addr().String())
}

// say runs a program in a claimed sandbox and returns what it printed.
func say(t *testing.T, c executor.Claimed, code string) (string, execution.Traffic) {
	t.Helper()
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	out, err := c.Run(t.Context(), execution.Program{ID: uint64(time.Now().UnixNano()), Language: execution.Bash, Code: code, Timeout: time.Minute, MaxBytes: 1000},
		func(_ execution.Stream, p []byte) { b.Write(p) })
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), out.Traffic
}

func claim(t *testing.T, e *Engine, p runtime.NetworkPolicy) executor.Claimed {
	t.Helper()
	c, _, err := e.Claim(t.Context(), job(func(j *execution.Job) { j.Permissions.Network = p }))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func destroy(t *testing.T, c executor.Claimed) {
	t.Helper()
	if err := c.Destroy(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

func TestANetworkIsWhatItsPolicySays(t *testing.T) {
	at := greeter(t)
	e := start(t, folder(t), func(c *Config) {
		c.Network.Egress.Open = []rules.Opening{{Net: netip.PrefixFrom(at.Addr(), 32), Port: at.Port()}}
		c.Network.Egress.Resolver = names(at.Addr())
		c.Network.Env = map[string]string{"MIRROR": "of the operator", "NAME": "overridden"}
	})
	dial := func(host string, port uint16) string {
		return fmt.Sprintf("exec 3<>/dev/tcp/%s/%d && cat <&3\n", host, port)
	}

	blocked := claim(t, e, runtime.NetworkPolicy{})
	if out, _ := say(t, blocked, "cat /proc/net/dev | tail -n +3; echo $MIRROR; "+dial(at.Addr().String(), at.Port())); strings.Contains(out, "eth0") || strings.Contains(out, "hello") || strings.Contains(out, "operator") {
		t.Errorf("without a network: %q", out)
	}
	if err := blocked.(claimed).SetNetwork(runtime.NetworkPolicy{Mode: runtime.NetworkUnrestricted}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a network for a sandbox without: %v", err)
	}
	destroy(t, blocked)

	policy := runtime.NetworkPolicy{Mode: runtime.NetworkRules, AllowedCIDRs: []netip.Prefix{netip.PrefixFrom(at.Addr(), 32)}, AllowedHosts: []string{"allowed.test"}}
	c := claim(t, e, policy)
	out, traffic := say(t, c, "echo $MIRROR; "+dial("allowed.test", at.Port()))
	if out != "of the operator\nhello\n" {
		t.Errorf("an allowed name: %q", out)
	}
	if !slices.Equal(traffic.Hosts, []string{"allowed.test"}) || traffic.BytesIn != 6 || len(traffic.Refused) > 0 {
		t.Errorf("what was counted: %+v", traffic)
	}
	began := time.Now()
	out, traffic = say(t, c, dial("evil.test", 80)+dial("203.0.113.9", 81))
	if strings.Contains(out, "hello") || time.Since(began) > 20*time.Second {
		t.Errorf("refused connections, after %v: %q", time.Since(began), out)
	}
	want := []execution.Refusal{{Host: "evil.test", Rule: "allowed_hosts"}, {Host: "203.0.113.9", Port: 81, Rule: "address"}}
	if !slices.Equal(traffic.Refused, want) || len(traffic.Hosts) > 0 {
		t.Errorf("refusals: %+v, want %+v", traffic, want)
	}

	// The policy of a living sandbox can be changed, and that of the next one of
	// its kind is its own.
	if err := c.(claimed).SetNetwork(runtime.NetworkPolicy{Mode: runtime.NetworkRules}); err != nil {
		t.Fatal(err)
	}
	if out, _ := say(t, c, dial(at.Addr().String(), at.Port())); strings.Contains(out, "hello") {
		t.Errorf("after a change of the policy: %q", out)
	}
	destroy(t, c)
	e.networks.mu.Lock()
	left := len(e.networks.links)
	e.networks.mu.Unlock()
	if idle := len(e.envs); left > idle*4 {
		t.Errorf("%d links are kept", left)
	}
}

// The next process has the sandbox's network at its other end.
func TestANetworkIsTakenOver(t *testing.T) {
	at := greeter(t)
	change := func(c *Config) {
		c.Network.Egress.Open = []rules.Opening{{Net: netip.PrefixFrom(at.Addr(), 32), Port: at.Port()}}
	}
	policy := runtime.NetworkPolicy{Mode: runtime.NetworkRules, AllowedCIDRs: []netip.Prefix{netip.PrefixFrom(at.Addr(), 32)}}
	dir := folder(t)
	e := open(t, dir, change)
	c := claim(t, e, policy)
	code := fmt.Sprintf("exec 3<>/dev/tcp/%s/%d && cat <&3\n", at.Addr(), at.Port())
	if out, _ := say(t, c, code); out != "hello\n" {
		t.Fatalf("before: %q", out)
	}
	if err := os.WriteFile(c.Folder()+"/journal", []byte("j"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Detach(); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	next := start(t, dir, change)
	again, err := next.Open(t.Context(), c.Folder(), job(func(j *execution.Job) { j.Permissions.Network = policy }))
	if err != nil {
		t.Fatal(err)
	}
	defer destroy(t, again)
	if out, traffic := say(t, again, code); out != "hello\n" || traffic.BytesIn != 6 {
		t.Errorf("after: %q, %+v", out, traffic)
	}
}

// A sandbox that cannot have its network is none.
func TestWithoutANetworkNothingIsRun(t *testing.T) {
	e := start(t, folder(t), nil)
	e.networks.usable = func() error { return os.ErrPermission }
	_, _, err := e.Claim(t.Context(), job(func(j *execution.Job) { j.Permissions.Network.Mode = runtime.NetworkUnrestricted }))
	if fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "cannot give a sandbox a network") {
		t.Errorf("got %v", err)
	}
}
