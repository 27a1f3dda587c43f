package sandboxes_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// fails runs a failing command in p's sandbox and returns the sandbox's hint.
func (m *machine) fails(p *tenant.Principal, name, command string) string {
	m.t.Helper()
	h, err := m.Use(m.t.Context(), p, "s", name)
	if err != nil {
		m.t.Fatal(err)
	}
	defer h.Close()
	began := time.Now()
	out, exit, err := run(m.t.Context(), h, command)
	if err != nil || exit.Code == 0 {
		m.t.Fatalf("%s: %+v, %v: %s", command, exit, err, out)
	}
	return h.NetworkHint(began, [][]byte{[]byte(out)})
}

func TestRestartGivesASandboxWhatItsEnvironmentHasNow(t *testing.T) {
	t.Parallel()
	m, url, at := world(t)
	ctx := t.Context()
	p := m.caller("a")
	sb := m.ensure(p, "s", "x", &sandbox.Spec{Env: map[string]string{"OWN": "o"}})
	get := "curl -fsS " + url
	if got := m.fails(p, "x", get); !strings.Contains(got, "--allow HOST") || !strings.Contains(got, "then 'atoll sandbox restart "+string(sb.ID)+"'") {
		t.Errorf("without a network the hint is %q", got)
	}
	m.shell(p, "s", "x", "echo kept > f; echo kept > /var/tmp/f")

	// The environment gets a network and more memory.
	p.Tenant.NetworkEnabled = true
	p.Environment.Permissions.Network = runtime.NetworkPolicy{Mode: runtime.NetworkRules, AllowedHosts: []string{"example.com"}, AllowedCIDRs: []netip.Prefix{at}}
	p.Environment.Limits.Memory += 64 << 20
	if got := m.fails(p, "x", get); !strings.Contains(got, "one now: 'atoll sandbox restart") {
		t.Errorf("after the network was enabled, the hint is %q", got)
	}
	waits, err := m.Use(ctx, p, "s", "x")
	if err != nil {
		t.Fatal(err)
	}
	defer waits.Close()
	o, err := waits.Guest().Run(ctx, process.Spec{Shell: "sleep 1000"})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	again, err := m.Restart(ctx, p, "s", "x")
	if err != nil {
		t.Fatal(err)
	}
	if again.ID != sb.ID || again.State != sandbox.Running || again.Limits.Memory != p.Environment.Limits.Memory || !again.Connected || !again.Permissions.Network.Equal(p.Environment.Permissions.Network) {
		t.Errorf("restarted: %+v", again)
	}
	if _, err := o.Next(); err == nil {
		t.Error("a program is still running")
	}
	if why := waits.Stopped(ctx); fault.KindOf(why) != fault.Conflict || !strings.Contains(why.Error(), "restarted") {
		t.Errorf("a caller whose program was ended gets %v", why)
	}
	if got := m.shell(p, "s", "x", "cat f /var/tmp/f; echo $OWN; curl -fsS "+url); got != "kept\nkept\no\nhello" {
		t.Errorf("afterwards: %q", got)
	}
	recorded, err := m.db.Sandboxes().Get(ctx, p.Tenant.ID, sb.ID)
	if err != nil || recorded.Limits != again.Limits || !recorded.Connected || !recorded.Permissions.Network.Equal(again.Permissions.Network) {
		t.Errorf("recorded: %+v, %v", recorded, err)
	}

	// The environment now allows one more host, but not others.
	p.Environment.Permissions.Network.AllowedHosts = []string{"example.com", "other.example"}
	other := strings.Replace(url, "example.com", "other.example", 1)
	if got := m.fails(p, "x", "curl -fsS "+other); !strings.Contains(got, "does not allow other.example, and its environment's does: 'atoll sandbox restart") {
		t.Errorf("hint for a newly allowed host: %q", got)
	}
	if got := m.fails(p, "x", "curl -fsS "+other); !strings.Contains(got, "other.example") {
		t.Errorf("hint for an immediate retry: %q", got)
	}
	if got := m.fails(p, "x", "curl -fsS "+strings.Replace(url, "example.com", "third.example", 1)); !strings.Contains(got, "atoll env set TENANT NAME --allow third.example") {
		t.Errorf("hint for a blocked host: %q", got)
	}
	if got := m.fails(p, "x", "false"); got != "" {
		t.Errorf("hint for a command that does not use the network: %q", got)
	}
	if got := m.fails(p, "x", "curl -fsS --cacert /etc/ssl/certs/ISRG_Root_X1.pem "+url); !strings.Contains(got, "sandbox_ca_bundle") {
		t.Errorf("hint for an untrusted certificate: %q", got)
	}
	if _, err := m.Restart(ctx, p, "s", "x"); err != nil {
		t.Fatal(err)
	}
	if got := m.shell(p, "s", "x", "curl -sS "+other+" 2>&1 || true"); strings.Contains(got, "resolve") {
		t.Errorf("a host that the environment allows: %q", got)
	}
}

func TestRestartOfASandboxThatSleeps(t *testing.T) {
	t.Parallel()
	m := start(t, nil)
	ctx := t.Context()
	p := m.caller("a")
	small := sandbox.Size{CPU: 0.5, Memory: 256 << 20, Disk: 1 << 30}
	m.ensure(p, "s", "small", &sandbox.Spec{Size: small})
	m.ensure(p, "s", "x", nil)
	m.shell(p, "s", "x", "echo kept > f; (sleep 1000 & echo $! > pid)")
	if sb, err := m.Sleep(ctx, p, "s", "x"); err != nil || sb.State != sandbox.Sleeping {
		t.Fatalf("%+v, %v", sb, err)
	}
	p.Environment.Limits.Memory += 32 << 20
	sb, err := m.Restart(ctx, p, "s", "x")
	if err != nil || sb.State != sandbox.Running || sb.Limits.Memory != p.Environment.Limits.Memory {
		t.Fatalf("%+v, %v", sb, err)
	}
	if sb, err := m.Restart(ctx, p, "s", "small"); err != nil || sb.Limits.Memory != small.Memory || sb.Limits.CPU != small.CPU || sb.Disk != small.Disk {
		t.Errorf("a sandbox with its own size: %+v, %v", sb, err)
	}
	p.Environment.Limits.Memory = 200 << 20
	p.Environment.Limits.ShrinkFiles()
	if sb, err := m.Restart(ctx, p, "s", "small"); err != nil || sb.Limits.Memory != p.Environment.Limits.Memory || sb.Limits.CPU != small.CPU {
		t.Errorf("with lower limits in the environment: %+v, %v", sb, err)
	}
	if got := m.shell(p, "s", "x", "cat f; kill -0 $(cat pid) 2>/dev/null || echo gone"); got != "kept\ngone" {
		t.Errorf("afterwards: %q", got)
	}
	m.restart()
	if got := m.shell(p, "s", "x", "cat f"); got != "kept" {
		t.Errorf("after the server's restart: %q", got)
	}
}

func TestWhatARestartRefuses(t *testing.T) {
	t.Parallel()
	m := start(t, nil)
	ctx := t.Context()
	p := m.caller("a")
	m.ensure(p, "s", "x", nil)
	m.shell(p, "s", "x", "sleep 1000 & echo $! > pid")
	runs := func(when string) {
		t.Helper()
		if got := m.shell(p, "s", "x", "kill -0 $(cat pid) && echo runs"); got != "runs" {
			t.Errorf("%s: its program has ended", when)
		}
	}
	_, err := m.Restart(ctx, p, "s", "nothing")
	refused(t, "an unknown one", err, fault.NotFound, "no sandbox")
	_, err = m.Restart(ctx, m.caller("b"), "s", "x")
	refused(t, "another tenant's", err, fault.NotFound, "no sandbox")
	image := p.Environment.Image
	p.Environment.Image = "gone"
	_, err = m.Restart(ctx, p, "s", "x")
	refused(t, "an image that is not here", err, fault.Invalid, "gone")
	runs("an image that is not here")
	p.Environment.Image = image
	p.Environment.Limits.Memory = 1 << 20
	_, err = m.Restart(ctx, p, "s", "x")
	refused(t, "too little memory", err, fault.Invalid, "64 MiB")
	runs("too little memory")
	p.Environment.Limits = runtime.DefaultLimits()

	// If it exceeds the plan's memory, it sleeps with its files and starts when memory is free.
	p.Plan.MaxSandboxMemory = p.Environment.Limits.Memory
	p.Environment.Limits.Memory *= 2
	_, err = m.Restart(ctx, p, "s", "x")
	refused(t, "beyond the plan", err, fault.Exhausted, "sandbox memory limit")
	p.Plan.MaxSandboxMemory = 0
	if got := m.shell(p, "s", "x", "cat pid >/dev/null && echo there"); got != "there" {
		t.Errorf("afterwards: %q", got)
	}
	if sb, err := m.Get(ctx, p, "s", "x"); err != nil || sb.Limits.Memory != p.Environment.Limits.Memory {
		t.Errorf("%+v, %v", sb, err)
	}
}

func TestCodeThatFailsForTheNetworkHasAHint(t *testing.T) {
	t.Parallel()
	m := start(t, nil)
	p := m.caller("a")
	m.ensure(p, sandbox.Default, "x", nil)
	h, err := m.Use(t.Context(), p, sandbox.Default, "x")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	all, err := h.Contexts()
	if err != nil {
		t.Fatal(err)
	}
	for code, says := range map[string]string{
		"import urllib.request; urllib.request.urlopen('https://example.com')":               "then 'atoll sandbox restart x'",
		"!python3 -m pip install --retries 0 --no-input --disable-pip-version-check no-such": "--allow pypi",
		"1/0":                       "",
		"print('nothing is wrong')": "",
	} {
		began := time.Now()
		var tail execution.Tail
		res, err := all.Run(t.Context(), "python", codecontext.Request{Code: code, Timeout: time.Minute, MaxOutput: 1 << 20}, func(e codecontext.Event) error {
			tail.Add(e.Text)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := sandbox.RunHint(h, res, began, tail); (got == "") != (says == "") || !strings.Contains(got, says) {
			t.Errorf("%s: %s, with the hint %q", code, tail, got)
		}
	}
}
