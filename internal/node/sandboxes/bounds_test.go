package sandboxes_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/tenant/tenanttest"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
	"github.com/atoll-run/atoll/test/atolltest"
)

// write has a shell write to its descriptor 3, not too fast, until it is ended.
const write = `while :; do head -c 4194304 /dev/zero; sleep 0.05; done >&3`

// wrote uses a sandbox until its programs are ended, and returns why. Its files
// are then measured to stay as they are.
func (m *machine) wrote(p *tenant.Principal, name, command string) error {
	m.t.Helper()
	h, err := m.Use(m.t.Context(), p, "s", name)
	if err != nil {
		m.t.Fatal(err)
	}
	defer h.Close()
	if _, _, err := run(m.t.Context(), h, command); err != nil && h.Stopped(m.t.Context()) == nil {
		m.t.Fatal(err)
	}
	atolltest.Until(m.t, 30*time.Second, "the writer of "+name+" is ended", func() bool { return h.Stopped(m.t.Context()) != nil })
	size, since := int64(-1), time.Now()
	atolltest.Until(m.t, 30*time.Second, "the files of "+name+" do not grow", func() bool {
		now := m.disk(p, name)
		if now > size {
			since = time.Now()
		}
		size = now
		return time.Since(since) > 300*time.Millisecond // six times what the writer waits
	})
	return h.Stopped(m.t.Context())
}

// disk is what a sandbox takes of it.
func (m *machine) disk(p *tenant.Principal, name string) int64 {
	m.t.Helper()
	u, err := m.Usage(m.t.Context(), p, "s", name)
	if err != nil {
		m.t.Fatal(err)
	}
	return u.Disk
}

func TestWhateverFillsTheDiskIsEnded(t *testing.T) {
	t.Parallel()
	m := start(t, func(c *sandboxes.Config) { c.DiskLimit = 48 << 20 })
	p := m.caller("a")
	for name, command := range map[string]string{
		"background": `exec 3>f; (setsid sh -c '` + write + `' >/dev/null 2>&1 & )`,
		"unlinked":   `exec 3>f; rm f; ` + write,
		"orphan":     `exec 3>f; rm f; (setsid sh -c '` + write + `' >/dev/null 2>&1 & )`,
		"deep": `exec python3 -c 'import os, time
for _ in range(4200): os.mkdir("d"); os.chdir("d")
f = open("f", "w")
while True: f.write("x" * 4194304); f.flush(); time.sleep(0.05)'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &machine{Manager: m.Manager, t: t}
			m.ensure(p, "s", name, nil)
			refused(t, "why", m.wrote(p, name, command), fault.Exhausted, "48 MiB")
			h, err := m.Use(t.Context(), p, "s", name)
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			if out, exit, err := run(t.Context(), h, `rm -rf ~/d ~/f && echo small >g && cat g`); err != nil || exit.Code != 0 || out != "small" {
				t.Errorf("after deleting: %q, %+v, %v", out, exit, err)
			}
			if n := m.disk(p, name); n > 1<<20 {
				t.Errorf("then it takes %d bytes", n)
			}
		})
	}
}

func TestFoldersInEachOtherAreRemoved(t *testing.T) {
	m := start(t, nil)
	p := m.caller("a")
	sb := m.ensure(p, "s", "x", nil)
	m.shell(p, "s", "x", `exec python3 -c 'import os
for _ in range(2000): os.mkdir("d"); os.chdir("d")'`)
	if n := m.disk(p, "x"); n < 2000*4096 {
		t.Errorf("it takes %d bytes", n)
	}
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 500, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	err := m.Destroy(t.Context(), p, "s", "x")
	if err := errors.Join(err, unix.Setrlimit(unix.RLIMIT_NOFILE, &was)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(m.folder(sb.ID)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder is there: %v", err)
	}
}

// folder is the host's folder of a sandbox.
func (m *machine) folder(id runtime.ID) string {
	return filepath.Join(m.dir, "state", "server", "sandboxes", string(id))
}

func TestNoSandboxGrowsWhileTheDiskIsShort(t *testing.T) {
	t.Parallel()
	var short atomic.Bool
	m := start(t, func(c *sandboxes.Config) {
		c.DiskLimit = 10 << 30
		c.AdmitDisk = func() error {
			if short.Load() {
				return errors.New("short of disk")
			}
			return nil
		}
	})
	p := m.caller("a")
	m.ensure(p, "s", "x", nil)
	m.shell(p, "s", "x", "head -c 33554432 /dev/zero >f")
	short.Store(true)
	for range 2 {
		refused(t, "why", m.wrote(p, "x", `exec 3>>f; `+write), fault.Unavailable, "low on disk space")
	}
	if n := m.disk(p, "x"); n > 1<<30 {
		t.Errorf("it has grown to %d bytes", n)
	}
	short.Store(false)
	if got := m.shell(p, "s", "x", "sleep 2; head -c 33554432 /dev/zero >g; sleep 2; echo done"); got != "done" {
		t.Errorf("afterwards: %s", got)
	}
}

func TestOneThatWokeIsBoundedToo(t *testing.T) {
	t.Parallel()
	m := start(t, func(c *sandboxes.Config) { c.DiskLimit = 48 << 20 })
	p := m.caller("a")
	m.ensure(p, "s", "x", nil)
	m.shell(p, "s", "x", `timeout 3 sh -c 'while :; do :; done'; sleep 1.2`) // which has been seen
	m.sleep(p, "s", "x")
	m.shell(p, "s", "x", `exec 3>f; (setsid sh -c '`+write+`' >/dev/null 2>&1 & )`)
	refused(t, "why", m.wrote(p, "x", `sleep 30`), fault.Exhausted, "48 MiB")
}

// TestOneThatGrowsOnIsEnded: the guest says that its programs were ended. Here a process
// of the host goes on writing.
func TestOneThatGrowsOnIsEnded(t *testing.T) {
	t.Parallel()
	m := start(t, func(c *sandboxes.Config) { c.DiskLimit = 16 << 20 })
	p := m.caller("a")
	sb := m.ensure(p, "s", "x", nil)
	h, err := m.Use(t.Context(), p, "s", "x")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	f, err := os.Create(filepath.Join(m.folder(sb.ID), "files", "tmp", "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for ended := false; !ended; {
		if _, err := f.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
		select {
		case <-h.Done():
			ended = true
		case <-deadline:
			t.Fatal("it lives")
		case <-tick.C:
		}
	}
	refused(t, "why", h.Stopped(t.Context()), fault.Exhausted, "was ended")
	atolltest.Until(t, 10*time.Second, "it is lost", func() bool { return m.get(p, "s", "x").State == sandbox.Lost })
	if sb := m.get(p, "s", "x"); !strings.Contains(sb.Detail, "16 MiB") || !strings.Contains(sb.Detail, "went on growing") {
		t.Errorf("it is lost: %s", sb.Detail)
	}
	atolltest.Until(t, 10*time.Second, "its folder is gone", func() bool {
		_, err := os.Lstat(m.folder(sb.ID))
		return errors.Is(err, os.ErrNotExist)
	})
}

// TestMemory: a program that eats the sandbox's memory is ended, and the others are not.
// If the host ends the sandbox's kernel all the same, it starts anew with its files.
func TestMemory(t *testing.T) {
	t.Parallel()
	m := start(t, nil)
	p := m.caller("a", func(p *tenant.Principal) {
		l := &p.Environment.Limits
		l.Memory, l.Root, l.Tmp, l.Shm = 128<<20, 16<<20, 16<<20, 16<<20
	})
	sb := m.ensure(p, "s", "x", nil)
	m.shell(p, "s", "x", "echo kept > f; echo kept > /tmp/f")
	h, err := m.Use(t.Context(), p, "s", "x")
	if err != nil {
		t.Fatal(err)
	}
	server, err := h.Guest().Start(t.Context(), process.Spec{Shell: "python3 -m http.server -b 127.0.0.1 8000"})
	if err != nil {
		t.Fatal(err)
	}
	h.Close()
	for _, program := range []string{
		`python3 -c "
import time
a = bytearray(200 << 20) # at once, and less than what ends the kernel
time.sleep(60)"`,
		`python3 -c "
import time
a = []
while True:
    a.append(bytearray(1 << 20))
    time.sleep(0.02)"`,
		`echo started; python3 -c "
import time
a = bytearray(200 << 20)
time.sleep(60)"`, // not the program that was asked for, but its child
	} {
		h, err := m.Use(t.Context(), p, "s", "x")
		if err != nil {
			t.Fatal(err)
		}
		_, exit, err := run(t.Context(), h, program)
		if err != nil {
			t.Errorf("%s: %v", program, err)
		}
		if exit.Code != 137 || !exit.OutOfMemory || exit.Together {
			t.Errorf("%s ended with %+v", program, exit)
		}
		refused(t, "why", h.Killed(t.Context(), exit), fault.Exhausted, "memory limit of 128 MiB exceeded; the program that used the most was ended")
		if why := h.Stopped(t.Context()); why != nil {
			t.Errorf("all was ended: %v", why)
		}
		if is, err := h.Guest().Process(t.Context(), server.ID); err != nil || is.Exit != nil {
			t.Fatalf("the server beside it: %+v, %v", is.Exit, err)
		}
		h.Close()
	}
	m.shell(p, "s", "x", `python3 -c "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/f')"`)
	if u, err := m.Usage(t.Context(), p, "s", "x"); err != nil || u.Relieved != 3 || u.OOMKills != 0 {
		t.Errorf("usage %+v, %v", u, err)
	}
	if got := m.get(p, "s", "x"); got.ID != sb.ID || got.State != sandbox.Running || got.Detail != "" {
		t.Errorf("it is %+v", got)
	}

	// Where there is no time to end the program, the host ends the kernel.
	for _, file := range []string{"/sys/fs/cgroup/memory/*/" + string(sb.ID) + "/memory.limit_in_bytes", "/sys/fs/cgroup/*/" + string(sb.ID) + "/memory.max"} {
		found, _ := filepath.Glob(file)
		for _, path := range found {
			if err := os.WriteFile(path, []byte(strconv.Itoa(96<<20)), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	for n := 0; ; n++ {
		if h, err = m.Use(t.Context(), p, "s", "x"); err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		if _, _, err := run(t.Context(), h, `python3 -c "bytearray(1 << 30)"`); err != nil {
			break
		}
		if n == 10 {
			t.Fatal("the program was always ended before the kernel")
		}
	}
	refused(t, "why", h.Stopped(t.Context()), fault.Exhausted, "memory limit of 128 MiB exceeded; its programs were ended")
	if out := m.shell(p, "s", "x", "cat f /tmp/f"); out != "kept\nkept" {
		t.Errorf("its files: %q", out)
	}
	if got := m.get(p, "s", "x"); got.ID != sb.ID || got.State != sandbox.Running || !strings.Contains(got.Detail, "out of memory") {
		t.Errorf("it is %+v", got)
	}
}

func TestLostSandboxesCountForThePlan(t *testing.T) {
	t.Parallel()
	m := start(t, nil)
	p := m.caller("a", func(p *tenant.Principal) { p.Plan = tenant.Plan{Name: "two", MaxSandboxes: 2} })
	for _, name := range []string{"one", "two"} {
		sb := m.ensure(p, "s", name, nil)
		if err := m.engine.Sandboxes().Remove(t.Context(), sb.ID); err != nil {
			t.Fatal(err)
		}
		atolltest.Until(t, 20*time.Second, "it is lost", func() bool { return m.get(p, "s", name).State == sandbox.Lost })
	}
	_, _, err := m.Ensure(t.Context(), p, "s", "three", nil)
	refused(t, "a third", err, fault.Exhausted, "lost ones included")
	m.ensure(p, "s", "one", &sandbox.Spec{}) // in its own place
	if err := m.Destroy(t.Context(), p, "s", "two"); err != nil {
		t.Fatal(err)
	}
	m.ensure(p, "s", "three", nil)
}

// charged is what a tenant was for its sandboxes.
func (m *machine) charged(p *tenant.Principal) (all usage.Day) {
	m.t.Helper()
	days, err := m.db.Usage().Summary(m.t.Context(), p.Tenant.ID, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	if err != nil {
		m.t.Fatal(err)
	}
	for _, d := range days {
		all.Seconds += d.Seconds
		all.BytesOut += d.BytesOut
	}
	return all
}

func TestTheTimeThatASandboxWasDeadIsNotCharged(t *testing.T) {
	t.Parallel()
	m := start(t, nil)
	p := m.caller("a")
	began := time.Now()
	sb := m.ensure(p, "s", "x", nil)
	m.shell(p, "s", "x", "true")
	m.close()
	lived := time.Since(began).Seconds()
	if err := sandboxOf(m, sb.ID); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second) // the downtime
	m.open()
	if sb := m.get(p, "s", "x"); sb.State != sandbox.Lost {
		t.Errorf("it is %s", sb.State)
	}
	if got := m.charged(p).Seconds; got <= 0 || got > lived {
		t.Errorf("charged for %g seconds of %g", got, lived)
	}
}

// unmetered is a ledger that cannot charge for a while.
type unmetered struct {
	sandbox.Ledger
	fails *atomic.Bool
}

func (u unmetered) Charge(ctx context.Context, s *sandbox.Sandbox, until time.Time, bytesOut int64) error {
	if u.fails.Load() {
		return errors.New("no database")
	}
	return u.Ledger.Charge(ctx, s, until, bytesOut)
}

func TestWhatCouldNotBeChargedIsLater(t *testing.T) {
	t.Parallel()
	var fails atomic.Bool
	m := start(t, func(c *sandboxes.Config) { c.Ledger = unmetered{c.Ledger, &fails} })
	p := m.caller("a")
	m.ensure(p, "s", "x", nil)
	h, err := m.Use(t.Context(), p, "s", "x")
	if err != nil {
		t.Fatal(err)
	}
	h.CountBytes(12345)
	h.Close()
	fails.Store(true)
	m.sleep(p, "s", "x")
	m.shell(p, "s", "x", "true")
	fails.Store(false)
	if err := m.Destroy(t.Context(), p, "s", "x"); err != nil {
		t.Fatal(err)
	}
	if got := m.charged(p); got.BytesOut != 12345 {
		t.Errorf("charged for %d bytes", got.BytesOut)
	}
}

func TestABudgetThatIsUsedUpEndsWhatRuns(t *testing.T) {
	t.Parallel()
	m := start(t, nil)
	of := tenanttest.Tenant(t, m.db.Tenants(), "of")
	p := m.caller("a", func(p *tenant.Principal) { p.Tenant = of })
	allow := func(credits float64) {
		t.Helper()
		var err error
		p.Tenant, err = m.db.Tenants().ChangeTenant(t.Context(), of.ID, func(of *tenant.Tenant) ([]tenant.PolicyEvent, error) {
			of.MonthlyCredits = credits
			return nil, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	allow(1e-9)
	m.ensure(p, "s", "x", nil)
	m.ensure(p, "s", "y", nil)
	m.shell(p, "s", "x", `(setsid sleep 1000 >/dev/null 2>&1 & echo $! >/tmp/pid)`)
	h, err := m.Use(t.Context(), p, "s", "x")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := m.Destroy(t.Context(), p, "s", "y"); err != nil { // for which is charged
		t.Fatal(err)
	}
	if _, exit, err := run(t.Context(), h, "sleep 60"); !errors.Is(err, process.ErrGone) {
		t.Errorf("what runs: %+v, %v", exit, err)
	}
	refused(t, "why", h.Stopped(t.Context()), fault.Exhausted, "monthly budget")
	_, err = m.Use(t.Context(), p, "s", "x")
	refused(t, "another use", err, fault.Exhausted, "monthly budget")
	h.Close()
	atolltest.Until(t, 30*time.Second, "it sleeps on disk", func() bool { return m.get(p, "s", "x").Sleep == sandbox.OnDisk })
	allow(1000)
	atolltest.Until(t, 30*time.Second, "it may be used again", func() bool {
		h, err := m.Use(t.Context(), p, "s", "x")
		if err == nil {
			h.Close()
		}
		return err == nil
	})
	if got := m.shell(p, "s", "x", "kill -0 $(cat /tmp/pid) && echo alive"); got != "alive" {
		t.Errorf("its programs: %s", got)
	}
}
