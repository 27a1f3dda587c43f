package sandboxes_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
)

// groupsOf counts the control groups that limit a sandbox to a size, which no other test uses. A
// group is named after the sandbox that its kernel was started for.
func groupsOf(t *testing.T, size sandbox.Size) (groups int) {
	t.Helper()
	const headroom = 192 << 20 // upper limit: memory of the kernel, and room to end programs before the kernel
	bounds := map[string][2]bool{}
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // groups come and go
		}
		group := filepath.Base(filepath.Dir(path))
		both := bounds[group]
		switch d.Name() {
		case "cpu.cfs_quota_us", "cpu.max":
			both[0] = number(path) == int64(size.CPU*100_000)
		case "memory.limit_in_bytes", "memory.max":
			n := number(path)
			both[1] = n >= size.Memory && n <= size.Memory+headroom
		}
		bounds[group] = both
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, both := range bounds {
		if both[0] && both[1] {
			groups++
		}
	}
	return groups
}

// number returns the first number in a file; -1 for none.
func number(file string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return -1
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	n, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// TestASandboxHasItsOwnSize checks that Atoll records and enforces the size that a caller chose,
// also after sleep, in copies, and in sandboxes restored from a snapshot's memory.
func TestASandboxHasItsOwnSize(t *testing.T) {
	t.Parallel()
	m := start(t, func(c *sandboxes.Config) { c.DiskLimit = 256 << 20 })
	p := m.caller("a", func(p *tenant.Principal) { p.Environment.Limits.CPU = 2 })
	m.ensure(p, "s", "full", nil)
	size := sandbox.Size{CPU: 0.37, Memory: 128 << 20, Disk: 24 << 20}
	first := m.ensure(p, "s", "x", &sandbox.Spec{Size: size})
	running := 0
	has := func(what string, sb *sandbox.Sandbox) {
		t.Helper()
		m.shell(p, "s", sb.Name, "true") // wakes it
		for _, sb := range []*sandbox.Sandbox{m.get(p, "s", sb.Name), find(t, m, p, sb.Name)} {
			if got := (sandbox.Size{CPU: sb.Limits.CPU, Memory: sb.Limits.Memory, Disk: sb.Disk}); got != size {
				t.Errorf("%s: on record it has %+v", what, got)
			}
		}
		if groups := groupsOf(t, size); groups < running {
			t.Errorf("%s: %d control groups have the size, and %d sandboxes run", what, groups, running)
		}
	}
	running = 1
	has("made", first)
	m.sleep(p, "s", "x")
	has("woken", first)
	forks, err := m.Fork(t.Context(), p, "s", "x", 1)
	if err != nil {
		t.Fatal(err)
	}
	running = 2
	has("a copy", forks[0])
	sn := m.snapshot(p, "s", "x")
	running = 3
	has("restored", m.of(p, "restored", sn, false))
	running = 4
	has("restored with the size requested", m.ensure(p, "s", "again", &sandbox.Spec{Snapshot: sn.ID, Size: size}))
	if files := m.of(p, "files", sn, true); files.Limits != p.Environment.Limits || files.Disk != 256<<20 {
		t.Errorf("a new one with its files has %+v, %d", files.Limits, files.Disk)
	}
	if _, err := m.Restart(t.Context(), p, "s", "again"); err != nil {
		t.Fatal(err)
	}
	has("restored and restarted", m.get(p, "s", "again"))
	m.restart()
	has("after a restart of the server", first)

	for _, copied := range []string{"x", forks[0].Name, "restored"} {
		h, err := m.Use(t.Context(), p, "s", copied)
		if err != nil {
			t.Fatal(err)
		}
		_, exit, err := run(t.Context(), h, `exec python3 -c "
import time
a = bytearray(200 << 20)
time.sleep(60)"`)
		if err != nil || exit.Code != 137 || !exit.OutOfMemory {
			t.Errorf("%s: 200 MiB in 128 MiB: %+v, %v", copied, exit, err)
		}
		h.Close()
	}
	refused(t, "more than its disk", m.wrote(p, "x", "exec 3>f; "+write), fault.Exhausted, "24 MiB")
	m.shell(p, "s", "full", `python3 -c "bytearray(200 << 20)" && head -c 40M /dev/zero >f`)
}

// TestProgramsSeeTheSizeOfTheirDisk checks that df and shutil.disk_usage report the sandbox's disk
// instead of the host's in all folders, also after sleep and in copies.
func TestProgramsSeeTheSizeOfTheirDisk(t *testing.T) {
	t.Parallel()
	const MiB = 1 << 20
	m := start(t, func(c *sandboxes.Config) { c.DiskLimit = 256 * MiB })
	p := m.caller("a")
	m.ensure(p, "s", "x", &sandbox.Spec{Size: sandbox.Size{Disk: 64 * MiB}})
	m.ensure(p, "s", "whole", nil)
	sees := func(name string, size, least, most int64) {
		t.Helper()
		var sizes [3]int64
		if _, err := fmt.Sscan(m.shell(p, "s", name, `python3 -c 'import shutil; print(*shutil.disk_usage("/home/user"))'`), &sizes[0], &sizes[1], &sizes[2]); err != nil {
			t.Fatal(err)
		}
		if sizes[0] != size || sizes[1] < least || sizes[1] > most || sizes[2] > size-sizes[1] || sizes[2] < size-sizes[1]-MiB {
			t.Errorf("%s: Python sees %v, want %d of which %d to %d are used", name, sizes, size, least, most)
		}
		lines := strings.Fields(m.shell(p, "s", name, "df -B1 --output=size ~ /tmp /var/tmp | tail -n +2"))
		if want := fmt.Sprint(size); !slices.Equal(lines, []string{want, want, want}) {
			t.Errorf("%s: df tells %v, want %s thrice", name, lines, want)
		}
	}
	sees("whole", 256*MiB, 0, MiB)
	sees("x", 64*MiB, 0, MiB)
	m.shell(p, "s", "x", "head -c 10M /dev/urandom >~/a; mkdir -p ~/b/c; head -c 5M /dev/urandom >~/b/c/d; head -c 5M /dev/urandom >/tmp/e; sleep 1")
	sees("x", 64*MiB, 20*MiB, 21*MiB)
	m.sleep(p, "s", "x")
	sees("x", 64*MiB, 20*MiB, 21*MiB)
	forks, err := m.Fork(t.Context(), p, "s", "x", 1)
	if err != nil {
		t.Fatal(err)
	}
	sees(forks[0].Name, 64*MiB, 20*MiB, 21*MiB)
	m.shell(p, "s", "x", "rm -r ~/a ~/b; sleep 1")
	sees("x", 64*MiB, 5*MiB, 6*MiB)
	for _, command := range []string{"setfattr -n user.atoll.disk_size -v 1 /tmp", `python3 -c 'import os; os.setxattr("/tmp", "user.atoll.disk_size", b"1")'`} {
		m.shell(p, "s", "x", command+" 2>/dev/null; true")
	}
	sees("x", 64*MiB, 5*MiB, 6*MiB)
}

// find returns a sandbox from the list.
func find(t *testing.T, m *machine, p *tenant.Principal, name string) *sandbox.Sandbox {
	t.Helper()
	all, err := m.List(t.Context(), p, "s")
	if err != nil {
		t.Fatal(err)
	}
	for _, sb := range all {
		if sb.Name == name {
			return sb
		}
	}
	t.Fatalf("no list has %s", name)
	return nil
}

func TestSizesHaveBounds(t *testing.T) {
	t.Parallel()
	m := start(t, func(c *sandboxes.Config) { c.DiskLimit = 64 << 20 })
	p := m.caller("a", func(p *tenant.Principal) { p.Plan = tenant.Plan{Name: "p", MaxSandboxMemory: 200 << 20} })
	for _, c := range []struct {
		size sandbox.Size
		kind fault.Kind
		says string
	}{
		{sandbox.Size{CPU: 1.5}, fault.Invalid, "limits.cpu: sandboxes of this environment have at most 1 cores"},
		{sandbox.Size{CPU: -1}, fault.Invalid, "limits.cpu must be above 0"},
		{sandbox.Size{Memory: 1 << 30}, fault.Invalid, "limits.memory: sandboxes of this environment have at most 512 MiB, and 1 GiB were asked for"},
		{sandbox.Size{Memory: 1 << 20}, fault.Invalid, "memory must be at least 64 MiB"},
		{sandbox.Size{Memory: -1}, fault.Invalid, "memory must be at least 64 MiB"},
		{sandbox.Size{Disk: 65 << 20}, fault.Exhausted, "disk_size: a sandbox can have at most 64 MiB of disk"},
		{sandbox.Size{Disk: 5}, fault.Invalid, "disk_size must be at least 1 MiB"},
	} {
		_, _, err := m.Ensure(t.Context(), p, "s", "x", &sandbox.Spec{Size: c.size})
		refused(t, "too much", err, c.kind, c.says)
		if _, err := m.Get(t.Context(), p, "s", "x"); fault.KindOf(err) != fault.NotFound {
			t.Errorf("a refused one: %v", err)
		}
	}
	small := &sandbox.Spec{Size: sandbox.Size{Memory: 100 << 20}}
	if sb := m.ensure(p, "s", "x", small); sb.Limits.Root+sb.Limits.Tmp+sb.Limits.Shm >= sb.Limits.Memory {
		t.Errorf("files in memory do not fit: %+v", sb.Limits)
	}
	m.ensure(p, "s", "x", nil)
	m.ensure(p, "s", "x", small)
	_, _, err := m.Ensure(t.Context(), p, "s", "x", &sandbox.Spec{Size: sandbox.Size{Memory: 128 << 20}})
	refused(t, "another size of one that exists", err, fault.Conflict, `exists with limits.memory of 100 MiB, not 128 MiB`)
	m.ensure(p, "s", "y", small) // a plan of 200 MiB has room for two of 100
	_, _, err = m.Ensure(t.Context(), p, "s", "z", &sandbox.Spec{Size: sandbox.Size{Memory: 64 << 20}})
	refused(t, "a third", err, fault.Exhausted, "sandbox memory limit")

	if err := m.Destroy(t.Context(), p, "s", "y"); err != nil {
		t.Fatal(err)
	}
	m.shell(p, "s", "x", "true")
	sn := m.snapshot(p, "s", "x")
	_, _, err = m.Ensure(t.Context(), p, "s", "y", &sandbox.Spec{Snapshot: sn.ID, Size: sandbox.Size{Memory: 128 << 20}})
	refused(t, "another size than a snapshot's memory", err, fault.Conflict, "has the memory of a sandbox with 100 MiB, not 128 MiB")
}
