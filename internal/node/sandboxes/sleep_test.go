package sandboxes_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/sandbox/sandboxtest"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
	"github.com/atoll-run/atoll/test/atolltest"
)

// told is what the server tells, and how often its timer went off.
func (m *machine) told(p *tenant.Principal, session, name string) (what string, ticks int) {
	m.t.Helper()
	out := m.shell(p, session, name, sandboxtest.Told)
	i := strings.LastIndexByte(out, ' ')
	ticks, err := strconv.Atoi(out[i+1:])
	if err != nil {
		m.t.Fatalf("the server tells %q", out)
	}
	return out[:i], ticks
}

// goesOn fails unless the server tells the same as before and its timer goes on, and returns
// how often that went off.
func (m *machine) goesOn(p *tenant.Principal, session, name, was string, ticks int) (later int) {
	m.t.Helper()
	atolltest.Until(m.t, 20*time.Second, "its timer goes off", func() bool {
		var now string
		if now, later = m.told(p, session, name); now != was {
			m.t.Fatalf("it tells %q; it told %q", now, was)
		}
		return later > ticks
	})
	return later
}

func (m *machine) get(p *tenant.Principal, session, name string) *sandbox.Sandbox {
	m.t.Helper()
	sb, err := m.Get(m.t.Context(), p, session, name)
	if err != nil {
		m.t.Fatal(err)
	}
	return sb
}

// sleep has a sandbox sleep on disk.
func (m *machine) sleep(p *tenant.Principal, session, name string) {
	m.t.Helper()
	sb, err := m.Sleep(m.t.Context(), p, session, name)
	if err != nil || sb.State != sandbox.Sleeping || sb.Sleep != sandbox.OnDisk || sb.Detail != "" {
		m.t.Fatalf("asleep: %+v, %v", sb, err)
	}
}

// times is how often something is done: all of it with ATOLL_SOAK=1.
func times(all int) int {
	if os.Getenv("ATOLL_SOAK") != "" {
		return all
	}
	return max(all/10, 5)
}

// TestUnusedSandboxSaysWhenItIsDestroyed: everything that answers with a sandbox that
// sleeps says when it is destroyed for want of use.
func TestUnusedSandboxSaysWhenItIsDestroyed(t *testing.T) {
	t.Parallel()
	const keep = time.Hour
	m := start(t, func(c *sandboxes.Config) { c.KeepUnused = keep })
	p := m.caller("a")
	if sb := m.ensure(p, "s", "x", nil); sb.UnusedUntil != nil {
		t.Errorf("while it runs: %v", sb.UnusedUntil)
	}
	slept, err := m.Sleep(t.Context(), p, "s", "x")
	if err != nil {
		t.Fatal(err)
	}
	all, err := m.List(t.Context(), p, "")
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	for what, sb := range map[string]*sandbox.Sandbox{"sleep": slept, "list": all[0], "get": m.get(p, "s", "x"), "ensure": m.ensure(p, "s", "x", nil)} {
		if sb.UnusedUntil == nil || !sb.UnusedUntil.Equal(sb.UsedAt.Add(keep)) {
			t.Errorf("%s: used at %v, destroyed at %v", what, sb.UsedAt, sb.UnusedUntil)
		}
	}
}

// TestUnusedSandboxIsDestroyed: not before it said. Nothing else is asked of it, which may be
// gone once it sleeps.
func TestUnusedSandboxIsDestroyed(t *testing.T) {
	t.Parallel()
	m := start(t, func(c *sandboxes.Config) { c.KeepUnused = 3 * time.Second })
	p := m.caller("a")
	m.ensure(p, "s", "x", nil)
	slept, err := m.Sleep(t.Context(), p, "s", "x")
	if err != nil {
		t.Fatal(err)
	}
	atolltest.Until(t, 30*time.Second, "it is destroyed", func() bool { return m.get(p, "s", string(slept.ID)).State == sandbox.Destroyed })
	if now := time.Now(); now.Before(*slept.UnusedUntil) {
		t.Errorf("it was destroyed before %v", slept.UnusedUntil)
	}
}

func TestAnIdleSandboxFallsAsleep(t *testing.T) {
	t.Parallel()
	m := start(t, func(c *sandboxes.Config) { c.SleepAfter, c.KeepFrozen = 500*time.Millisecond, 4*time.Second })
	p := m.caller("a")
	sb := m.ensure(p, "s", "one", nil)
	m.shell(p, "s", "one", sandboxtest.Program)
	was, ticks := m.told(p, "s", "one")
	asleep := func(how sandbox.Sleep) {
		t.Helper()
		atolltest.Until(t, time.Minute, "it sleeps: "+string(how), func() bool {
			sb := m.get(p, "s", "one")
			return sb.State == sandbox.Sleeping && sb.Sleep == how
		})
	}
	asleep(sandbox.Frozen)
	if u, err := m.Usage(t.Context(), p, "s", "one"); err != nil || u.Memory == 0 {
		t.Errorf("frozen, it uses %+v, %v", u, err)
	}
	begun := time.Now()
	h, err := m.Use(t.Context(), p, "s", "one") // or it may sleep again before it is looked at
	if err != nil {
		t.Fatal(err)
	}
	ticks = m.goesOn(p, "s", "one", was, ticks)
	t.Logf("used within %s of being frozen", time.Since(begun))
	if got := m.get(p, "s", "one"); got.State != sandbox.Running {
		t.Errorf("it is %s", got.State)
	}
	h.Close()
	asleep(sandbox.OnDisk)
	if u, err := m.Usage(t.Context(), p, "s", "one"); err != nil || u.Memory != 0 {
		t.Errorf("on disk, it uses %+v, %v", u, err)
	}
	m.restart() // the next process wakes it
	m.goesOn(p, "", string(sb.ID), was, ticks)

	if h, err = m.Use(t.Context(), p, "s", "one"); err != nil {
		t.Fatal(err)
	}
	_, err = m.Sleep(t.Context(), p, "s", "one")
	refused(t, "sleep while it is used", err, fault.Conflict, "in use")
	time.AfterFunc(100*time.Millisecond, func() { // who has told its caller may be there for a moment
		h.Close()
		h.Close()
	})
	m.sleep(p, "s", "one")
	m.sleep(p, "s", "one") // it does
	if err := m.Destroy(t.Context(), p, "s", "one"); err != nil {
		t.Error(err)
	}
}

func TestASandboxSleepsAndWakesOftenAndFast(t *testing.T) {
	m := start(t, nil)
	p := m.caller("a")
	m.ensure(p, "s", "one", nil)
	m.shell(p, "s", "one", sandboxtest.Program)
	was, ticks := m.told(p, "s", "one")
	for range times(100) {
		m.sleep(p, "s", "one")
		ticks = m.goesOn(p, "s", "one", was, ticks)
	}
}

// fromTheSamePorts connects from every port that it had before to the server that
// namedtest.Program started, and reads what it tells.
const fromTheSamePorts = `cat >/tmp/again.py <<'END'
import socket
for port in range(40000, 40020):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("127.0.0.1", port)); s.settimeout(20)
        s.connect(("127.0.0.1", 7000))
        while s.recv(1000): pass
print("all")
END
python3 /tmp/again.py`

// A connection that is over keeps its ports for a while, until when they may be
// used again only with care. A sleep must not have that go wrong.
func TestPortsCanBeUsedAgainAfterASleep(t *testing.T) {
	t.Parallel()
	m := start(t, nil)
	p := m.caller("a")
	m.ensure(p, "s", "one", nil)
	m.shell(p, "s", "one", sandboxtest.Program)
	// One that is over at both ends, but was not read.
	m.shell(p, "s", "one", `cat >~/unread.py <<'END'
import os, socket, time
l = socket.create_server(("127.0.0.1", 7001))
c = socket.create_connection(("127.0.0.1", 7001))
a, _ = l.accept()
c.shutdown(socket.SHUT_WR)
while a.recv(1): pass
a.sendall(b"unread"); a.close()
open("/tmp/over", "w").close()
while not os.path.exists("/tmp/read"): time.sleep(0.01)
with open("/tmp/new", "wb") as f: f.write(c.recv(100) + c.recv(100))
os.rename("/tmp/new", "/tmp/was")
END
setsid python3 ~/unread.py >~/unread 2>&1 </dev/null & while [ ! -e /tmp/over ]; do sleep 0.01; done`)
	for range 3 {
		if got := m.shell(p, "s", "one", fromTheSamePorts); got != "all" {
			t.Error(got)
		}
		m.sleep(p, "s", "one")
	}
	if got := m.shell(p, "s", "one", fromTheSamePorts+"\n>/tmp/read; while [ ! -e /tmp/was ]; do sleep 0.01; done; cat /tmp/was"); got != "all\nunread" {
		t.Errorf("after the last sleep: %s", got)
	}
}

func TestASleepingSandboxIsTakenOver(t *testing.T) {
	t.Parallel()
	m := start(t, func(c *sandboxes.Config) { c.SleepAfter, c.KeepFrozen = 300*time.Millisecond, -1 })
	p := m.caller("a")
	m.ensure(p, "s", "frozen", nil)
	m.shell(p, "s", "frozen", sandboxtest.Program)
	was, _ := m.told(p, "s", "frozen")
	atolltest.Until(t, time.Minute, "it is frozen", func() bool { return m.get(p, "s", "frozen").Sleep == sandbox.Frozen })
	m.restart()
	if sb := m.get(p, "s", "frozen"); sb.State != sandbox.Sleeping || sb.Sleep != sandbox.Frozen {
		t.Errorf("taken over, it is %s %s", sb.State, sb.Sleep)
	}
	if now, _ := m.told(p, "s", "frozen"); now != was {
		t.Errorf("it tells %q; it told %q", now, was)
	}
}

func TestASandboxThatCannotBeWrittenStaysInMemory(t *testing.T) {
	t.Parallel()
	m := start(t, nil)
	p := m.caller("a")
	m.ensure(p, "s", "one", nil)
	m.shell(p, "s", "one", sandboxtest.Program)
	was, _ := m.told(p, "s", "one")
	// A program has a named pipe of the disk open that has lost its name.
	m.shell(p, "s", "one", `mkfifo ~/pipe; setsid python3 -c 'import os, time; f = os.open("/home/user/pipe", os.O_RDWR); os.unlink("/home/user/pipe"); open("/tmp/new", "w").write(str(os.getpid())); os.rename("/tmp/new", "/tmp/held"); time.sleep(10000)' >/dev/null 2>&1 </dev/null & while [ ! -e /tmp/held ]; do sleep 0.01; done`)
	sb, err := m.Sleep(t.Context(), p, "s", "one")
	if err != nil {
		t.Fatal(err)
	}
	if sb.Sleep != sandbox.Frozen || !strings.Contains(sb.Detail, "cannot be written to disk") {
		t.Errorf("it sleeps %q: %s", sb.Sleep, sb.Detail)
	}
	_, err = m.Fork(t.Context(), p, "s", "one", 1)
	refused(t, "a copy of it", err, fault.Conflict, "cannot be copied as it is now")
	if now, _ := m.told(p, "s", "one"); now != was {
		t.Errorf("it tells %q; it told %q", now, was)
	}
	if sb := m.get(p, "s", "one"); sb.State != sandbox.Running || sb.Detail != "" {
		t.Errorf("used again, it is %s: %s", sb.State, sb.Detail)
	}
	m.shell(p, "s", "one", "kill $(cat /tmp/held)")
	m.sleep(p, "s", "one")
}

func TestAMemoryThatFitsNoLongerIsGivenUpForTheFiles(t *testing.T) {
	t.Parallel()
	m := start(t, nil)
	p := m.caller("a")
	sb := m.ensure(p, "s", "one", nil)
	m.shell(p, "s", "one", "echo kept >~/kept; sleep 1000 >/dev/null 2>&1 & echo $! >~/pid")
	m.sleep(p, "s", "one")
	memory := m.dir + "/state/server/sandboxes/" + string(sb.ID) + "/memory/checkpoint.img"
	if err := os.Truncate(memory, 1000); err != nil {
		t.Fatal(err)
	}
	if got := m.shell(p, "s", "one", "cat ~/kept; grep -qx sleep /proc/$(cat ~/pid)/comm 2>/dev/null || echo none"); got != "kept\nnone" {
		t.Errorf("it has %q", got)
	}
	if sb := m.get(p, "s", "one"); sb.State != sandbox.Running || !strings.Contains(sb.Detail, "started anew with its files") || !strings.Contains(sb.Detail, "damaged") {
		t.Errorf("it is %s: %s", sb.State, sb.Detail)
	}
}

// findsItself fails unless programs of a sandbox find it by its host name.
func (m *machine) findsItself(p *tenant.Principal, session, name string) {
	m.t.Helper()
	const command = `python3 -c 'import socket; print(socket.gethostbyname(socket.gethostname()))'; hostname -i; test "$(hostname -f)" = "$(hostname)" && echo same; grep -c '^127.0.0.1 sb-' /etc/hosts`
	if got := m.shell(p, session, name, command); got != "127.0.0.1\n127.0.0.1\nsame\n1" {
		m.t.Errorf("%s finds itself at %q: %s", name, got, m.shell(p, session, name, "hostname; cat /etc/hosts"))
	}
}

func TestForksDiffer(t *testing.T) {
	t.Parallel()
	m := start(t, nil)
	p := m.caller("a")
	m.ensure(p, "s", "one", nil)
	m.shell(p, "s", "one", sandboxtest.Program)
	was, _ := m.told(p, "s", "one")
	count := times(50)
	begun := time.Now()
	forks, err := m.Fork(t.Context(), p, "s", "one", count)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d copies in %s", count, time.Since(begun))
	names := []string{"one"}
	for i, sb := range forks {
		if sb.Name != fmt.Sprintf("one-%d", i+1) || sb.State != sandbox.Running {
			t.Errorf("copy %d is %q, %s", i, sb.Name, sb.State)
		}
		names = append(names, sb.Name)
	}
	seen := map[string]string{}
	for _, name := range names {
		if now, _ := m.told(p, "s", name); now != was {
			t.Errorf("%s tells %q; the first told %q", name, now, was)
		}
		for what, command := range map[string]string{
			"machine id": "cat /etc/machine-id", "host name": "hostname", "generation": "cat /run/atoll/generation", "entropy": "head -c16 /dev/urandom | od -An -tx1",
			"Python": "python3 -c 'import random; print(random.getrandbits(64))'", "Bash": "echo $RANDOM$RANDOM$RANDOM$RANDOM", "uuid": "cat /proc/sys/kernel/random/uuid 2>/dev/null || python3 -c 'import uuid; print(uuid.uuid4())'",
		} {
			got := m.shell(p, "s", name, command)
			if first, ok := seen[what+got]; ok {
				t.Errorf("%s and %s have the same %s: %s", first, name, what, got)
			}
			seen[what+got] = name
		}
	}
	m.findsItself(p, "s", "one")
	m.findsItself(p, "s", "one-1")
	m.shell(p, "s", "one-1", "echo mine >~/own")
	if got := m.shell(p, "s", "one", "ls ~"); strings.Contains(got, "own") {
		t.Errorf("the first one has %s", got)
	}
	_, err = m.Fork(t.Context(), p, "s", "one", 0)
	refused(t, "no copy", err, fault.Invalid, "count")
	_, err = m.Fork(t.Context(), p, "s", "none", 1)
	refused(t, "a copy of none", err, fault.NotFound, "")
	p.Plan.MaxSandboxes = count + 3
	_, err = m.Fork(t.Context(), p, "s", "one", 4)
	refused(t, "more than the plan allows", err, fault.Exhausted, "")
	if all, err := m.List(t.Context(), p, "s"); err != nil || len(all) != count+1 {
		t.Errorf("after that there are %d, %v", len(all), err)
	}
	// A copy of one that sleeps, which sleeps on.
	m.sleep(p, "s", "one")
	more, err := m.Fork(t.Context(), p, "s", "one", 1)
	if err != nil {
		t.Fatal(err)
	}
	if now, _ := m.told(p, "s", more[0].Name); now != was || m.get(p, "s", "one").Sleep != sandbox.OnDisk {
		t.Errorf("the copy tells %q", now)
	}
	m.findsItself(p, "s", "one")
	m.findsItself(p, "s", more[0].Name)
}

// A memory is written only where there is room for it; until then it stays where it
// is, and nothing is lost.
func TestASandboxSleepsInMemoryWhereDiskIsShort(t *testing.T) {
	var full atomic.Bool
	m := start(t, func(c *sandboxes.Config) {
		c.CheckpointDisk = 1 << 30
		c.AdmitBytes = func(bytes int64) error {
			if bytes < 1<<20 {
				t.Errorf("a memory of %d bytes", bytes)
			}
			if full.Load() {
				return fault.New(fault.Unavailable, "full")
			}
			return nil
		}
	})
	p := m.caller("a")
	m.ensure(p, "s", "one", nil)
	m.shell(p, "s", "one", "echo kept >/dev/shm/note")
	full.Store(true)
	frozen := func(want string) {
		t.Helper()
		sb, err := m.Sleep(t.Context(), p, "s", "one")
		if err != nil || sb.State != sandbox.Sleeping || sb.Sleep != sandbox.Frozen || !strings.Contains(sb.Detail, want) {
			t.Fatalf("without room on disk: %+v, %v", sb, err)
		}
		if got := m.shell(p, "s", "one", "cat /dev/shm/note"); got != "kept" {
			t.Errorf("woken, it has %q", got)
		}
	}
	frozen("low on disk space")
	full.Store(false)
	m.sleep(p, "s", "one")
	if got := m.shell(p, "s", "one", "cat /dev/shm/note"); got != "kept" {
		t.Errorf("woken from disk, it has %q", got)
	}
}

func TestMemoriesOnDiskAreBounded(t *testing.T) {
	t.Parallel()
	m := start(t, func(c *sandboxes.Config) { c.CheckpointDisk = 60 << 20 })
	p := m.caller("a")
	for _, name := range []string{"one", "two", "three"} {
		m.ensure(p, "s", name, nil)
		m.shell(p, "s", name, "head -c 16M /dev/urandom >/dev/shm/much")
	}
	kept := map[sandbox.Sleep]int{}
	for _, name := range []string{"one", "two", "three"} {
		sb, err := m.Sleep(t.Context(), p, "s", name)
		if err != nil {
			t.Fatal(err)
		}
		kept[sb.Sleep]++
		if sb.Sleep == sandbox.Frozen && !strings.Contains(sb.Detail, "checkpoint_disk") {
			t.Errorf("it stays in memory because %q", sb.Detail)
		}
	}
	if kept[sandbox.OnDisk] == 0 || kept[sandbox.Frozen] == 0 {
		t.Errorf("of three memories, these are kept where: %v", kept)
	}
}
