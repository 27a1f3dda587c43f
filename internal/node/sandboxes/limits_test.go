package sandboxes_test

import (
	"runtime"
	"strconv"
	"testing"
	"time"

	control "github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
	"github.com/atoll-run/atoll/test/atolltest"
)

func TestPlansBoundSandboxes(t *testing.T) {
	t.Parallel()
	m := start(t, func(c *sandboxes.Config) { c.MaxSandboxes = 3 })
	ctx := t.Context()
	few := m.caller("few", func(p *tenant.Principal) {
		p.Plan = tenant.Plan{Name: "few", MaxSandboxes: 1, MaxSandboxLife: time.Hour}
	})
	m.ensure(few, "s", "a", nil)
	_, _, err := m.Ensure(ctx, few, "s", "b", nil)
	refused(t, "a second", err, fault.Exhausted, "sandbox limit reached")
	if _, err := m.Get(ctx, few, "s", "b"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a refused one: %v", err)
	}
	if sb, err := m.Get(ctx, few, "s", "a"); err != nil || sb.ExpiresAt == nil || time.Until(*sb.ExpiresAt) > time.Hour {
		t.Errorf("its time: %+v, %v", sb, err)
	}
	two := 2 * time.Hour
	_, err = m.Update(ctx, few, "s", "a", sandbox.Change{Timeout: &two})
	refused(t, "a longer life", err, fault.Exhausted, "lives 1h0m0s at most")
	small := m.caller("small", func(p *tenant.Principal) { p.Plan = tenant.Plan{Name: "small", MaxSandboxMemory: 600 << 20} })
	m.ensure(small, "s", "a", nil)
	_, _, err = m.Ensure(ctx, small, "s", "b", nil)
	refused(t, "more memory", err, fault.Exhausted, "sandbox memory limit")
	m.ensure(m.caller("any"), "s", "a", nil)
	_, _, err = m.Ensure(ctx, m.caller("more"), "s", "a", nil)
	refused(t, "more than the machine has", err, fault.Unavailable, "its limit")
	if err := m.Destroy(ctx, few, "s", "a"); err != nil {
		t.Error(err)
	}
	m.ensure(few, "s", "b", nil)
}

func TestTimeEnds(t *testing.T) {
	t.Parallel()
	m := start(t, nil)
	p := m.caller("a")
	sb := m.ensure(p, "s", "short", &sandbox.Spec{Timeout: time.Second})
	atolltest.Until(t, 20*time.Second, "its time is over", func() bool {
		_, err := m.Use(t.Context(), p, "s", "short")
		return fault.KindOf(err) == fault.NotFound
	})
	if got, err := m.Get(t.Context(), p, "", string(sb.ID)); err != nil || got.State != sandbox.Destroyed || got.Detail != "it timed out" {
		t.Errorf("on record: %+v, %v", got, err)
	}
	m.ensure(p, "s", "longer", &sandbox.Spec{Timeout: time.Minute})
	hour := time.Hour
	if sb, err := m.Update(t.Context(), p, "s", "longer", sandbox.Change{Timeout: &hour}); err != nil || time.Until(*sb.ExpiresAt) < 59*time.Minute {
		t.Errorf("extended: %+v, %v", sb, err)
	}
}

func TestTimeIsCharged(t *testing.T) {
	t.Parallel()
	m := start(t, nil)
	p := m.caller("a")
	began := time.Now()
	m.ensure(p, "s", "x", nil)
	m.shell(p, "s", "x", "true")
	m.restart()
	m.shell(p, "s", "x", "sleep 0.2")
	if err := m.Destroy(t.Context(), p, "s", "x"); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began).Seconds()
	days, err := m.db.Usage().Summary(t.Context(), p.Tenant.ID, began.Add(-time.Hour), began.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	var seconds float64
	for _, d := range days {
		seconds += d.Seconds
		if d.Source != control.Source || d.Calls != 0 {
			t.Errorf("in the ledger: %+v", d)
		}
	}
	if seconds < 0.2 || seconds > took {
		t.Errorf("charged for %g of %g seconds", seconds, took)
	}
}

func TestFilesAreBounded(t *testing.T) {
	t.Parallel()
	m := start(t, func(c *sandboxes.Config) { c.DiskLimit = 64 << 20 })
	p := m.caller("a")
	m.ensure(p, "s", "x", nil)
	h, err := m.Use(t.Context(), p, "s", "x")
	if err != nil {
		t.Fatal(err)
	}
	other, err := h.Guest().Start(t.Context(), process.Spec{Shell: "sleep 1000"})
	if err != nil {
		t.Fatal(err)
	}
	_, exit, err := run(t.Context(), h, `i=0; while :; do head -c 8388608 /dev/zero > big$i; i=$((i+1)); sleep 0.05; done`)
	if err != nil || exit.Code == 0 {
		t.Fatalf("the writer: %+v, %v", exit, err)
	}
	refused(t, "why", h.Killed(t.Context(), exit), fault.Exhausted, "64 MiB")
	h.Close()

	// So it is known to the next server.
	m.restart()
	if h, err = m.Use(t.Context(), p, "s", "x"); err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if other, err = h.Guest().Process(t.Context(), other.ID); err != nil || other.Exit == nil {
		t.Fatalf("%+v, %v", other, err)
	}
	refused(t, "why another one ended", h.Killed(t.Context(), *other.Exit), fault.Exhausted, "64 MiB")
	u, err := m.Usage(t.Context(), p, "s", "x")
	if err != nil || u.Disk < 64<<20 {
		t.Errorf("usage: %+v, %v", u, err)
	}
	if got := m.shell(p, "s", "x", `rm big*; sleep 2; echo small > f; cat f`); got != "small" {
		t.Errorf("after deleting: %s", got)
	}
}

func TestMemoryThatRunsOutEndsTheProgramAlone(t *testing.T) {
	t.Parallel()
	m := start(t, nil)
	p := m.caller("a")
	m.ensure(p, "s", "x", nil)
	m.shell(p, "s", "x", `echo kept > f`)
	h, err := m.Use(t.Context(), p, "s", "x")
	if err != nil {
		t.Fatal(err)
	}
	_, exit, err := run(t.Context(), h, `exec python3 -c 'x = []
while True: x.append(bytearray(8 << 20))'`)
	h.Close()
	if err != nil || exit.Code == 0 {
		t.Errorf("the program: %+v, %v", exit, err)
	}
	if got := m.shell(p, "s", "x", "cat f"); got != "kept" {
		t.Errorf("then: %q", got)
	}
}

// TestASandboxCostsTheServerLittle: it may have hundreds of them.
func TestASandboxCostsTheServerLittle(t *testing.T) {
	const most, n = 1 << 20, 6
	m := start(t, nil)
	p := m.caller("a")
	used := func() int64 {
		for range 3 { // what finalizers let go of goes with the next
			runtime.GC()
		}
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return int64(s.HeapInuse + s.StackInuse)
	}
	make1 := func(i int) {
		m.ensure(p, "s", "x"+strconv.Itoa(i), nil)
		m.shell(p, "s", "x"+strconv.Itoa(i), "head -c 1000000 /dev/zero")
	}
	make1(0)
	before := used()
	for i := range n {
		make1(i + 1)
	}
	if each := (used() - before) / n; each > most {
		t.Errorf("a sandbox costs %d bytes of memory", each)
	} else {
		t.Logf("a sandbox costs %d bytes of memory", each)
	}
}
