package cgroup

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestWatchMemory: a program that eats memory is reported before the limit ends it, and
// then waits for what the reader of the watch does.
func TestWatchMemory(t *testing.T) {
	const bound, limit = 32 << 20, 64 << 20
	g := group(t, Limits{Memory: limit})
	w, err := g.WatchMemory(bound, limit)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	told := make(chan error, 16)
	go func() {
		for {
			err := w.Wait()
			select {
			case told <- err:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	if out, exit := run(t, g, `head -c 8000000 /dev/zero | tail -c 7000000 | wc -c`); exit != nil || strings.TrimSpace(out) != "7000000" {
		t.Fatalf("a program within the limit: %q, %v", out, exit)
	}
	if len(told) > 0 {
		t.Error("a program far below the limit was reported")
	}
	join := `for f in ` + strings.Join(g.Procs(), " ") + `; do echo 0 >$f || exit 99; done; exec tail -c 100000000`
	cmd := exec.Command("sh", "-c", join)
	zero, err := os.Open("/dev/zero")
	if err != nil {
		t.Fatal(err)
	}
	defer zero.Close()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// More than the limit, and then nothing: it does not come to the higher one, however late the reader is.
	go io.Copy(stdin, io.LimitReader(zero, 100_000_000))
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-told:
		if err != nil {
			t.Fatal(err)
		}
		cmd.Process.Kill() // as the reader does
	case err := <-ended:
		t.Fatalf("it was ended first: %v", err)
	}
	<-ended
	if u := usage(t, g); u.OOMKills != 0 {
		t.Errorf("usage %+v", u)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if err := w.Wait(); err == nil {
		t.Error("a closed watch reports")
	}
	g.unchanged(t, limit)

	// What does not end in time is ended by the kernel, as without a watch.
	if w, err = g.WatchMemory(bound, limit); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if out, exit := run(t, g, `head -c 300000000 /dev/zero | tail -c 280000000`); exit == nil || exit.ExitCode() != -1 && exit.ExitCode() != 137 {
		t.Errorf("a program that is not ended: %q, %v", out, exit)
	}
	t.Logf("it was ended after %s", time.Since(begun))
	if u := usage(t, g); u.OOMKills == 0 {
		t.Errorf("usage %+v", u)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	g.unchanged(t, limit)
}

// unchanged checks that a watch has left the group as it was.
func (g *Group) unchanged(t *testing.T, limit int64) {
	t.Helper()
	if g.parent.version != V1 {
		return
	}
	dir := filepath.Join(g.parent.dirs["memory"], g.name)
	restored := func() bool {
		got, err := readInt(filepath.Join(dir, "memory.limit_in_bytes"))
		if err != nil {
			t.Fatal(err)
		}
		return got == limit
	}
	for began := time.Now(); !restored(); time.Sleep(20 * time.Millisecond) { // package atolltest imports this one
		if time.Since(began) > time.Minute {
			t.Fatal("its limit is not what it was")
		}
	}
}

// groupV2 is a folder in the place of a group: a machine has the memory controller in one
// version only.
func groupV2(t *testing.T, p *Parent, name string, without ...string) *Group {
	t.Helper()
	dir := filepath.Join(p.dirs[""], name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"memory.max", "memory.high", "memory.swap.max", "memory.events", "memory.current"} {
		if slices.Contains(without, file) {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte("0\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return p.Group(name)
}

func parentV2(t *testing.T) *Parent {
	t.Helper()
	return &Parent{version: V2, dirs: map[string]string{"": t.TempDir()}}
}

// put writes a file of a group as the kernel does, or forgets what was written to it.
func (g *Group) put(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(g.parent.dirs[""], g.name, file), []byte(content), 0); err != nil {
		t.Fatal(err)
	}
}

func (g *Group) is(t *testing.T, file, want string) {
	t.Helper()
	if got, err := os.ReadFile(filepath.Join(g.parent.dirs[""], g.name, file)); err != nil || string(got) != want {
		t.Errorf("%s is %q, not %q: %v", file, got, want, err)
	}
}

func TestWatchMemoryV2(t *testing.T) {
	g := groupV2(t, parentV2(t), "g")
	w, err := g.WatchMemory(32<<20, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	g.is(t, "memory.high", "67108864")
	g.is(t, "memory.max", "201326592")
	g.put(t, "memory.events", "high 1\n")
	if err := w.Wait(); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	g.is(t, "memory.high", "max")
	g.is(t, "memory.max", "67108864")
	if err := w.Wait(); err == nil {
		t.Error("a closed watch reports")
	}
}

// TestWatchMemoryV2KeepsPrograms: a group whose use is above its limit when the watch ends
// keeps the higher one, or the kernel would end its programs.
func TestWatchMemoryV2KeepsPrograms(t *testing.T) {
	g := groupV2(t, parentV2(t), "g")
	w, err := g.WatchMemory(32<<20, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	g.put(t, "memory.current", "67108865\n")
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	g.is(t, "memory.max", "201326592")
	g.is(t, "memory.high", "max")
}

// TestWatchMemoryV2Fails: a watch that cannot be made leaves the group as it was.
func TestWatchMemoryV2Fails(t *testing.T) {
	p := parentV2(t)
	for _, without := range []string{"memory.events", "memory.max"} {
		g := groupV2(t, p, without, without)
		if without == "memory.max" { // a folder cannot be written to
			if err := os.Mkdir(filepath.Join(p.dirs[""], g.name, without), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := g.WatchMemory(32<<20, 64<<20); err == nil {
			t.Fatalf("a watch without %s", without)
		}
		g.is(t, "memory.high", "max")
		if p.memory.inotify != nil {
			t.Errorf("without %s: the inotify instance is left", without)
		}
	}
}

// TestWatchMemoryV2Shares: the watches of all groups share one inotify instance, each gets
// the reports of its own group, and the last one takes the instance along.
func TestWatchMemoryV2Shares(t *testing.T) {
	p := parentV2(t)
	before := instances(t)
	groups, watches := make([]*Group, 150), make([]*MemoryWatch, 150) // more than a user may have instances
	for i := range groups {
		groups[i] = groupV2(t, p, strconv.Itoa(i))
		var err error
		if watches[i], err = groups[i].WatchMemory(32<<20, 64<<20); err != nil {
			t.Fatal(err)
		}
	}
	if n := instances(t) - before; n != 1 {
		t.Errorf("%d inotify instances", n)
	}
	again, err := groups[7].WatchMemory(32<<20, 64<<20) // a second watch of one file
	if err != nil {
		t.Fatal(err)
	}
	groups[7].put(t, "memory.events", "high 1\n")
	for _, w := range []*MemoryWatch{watches[7], again} {
		if err := w.Wait(); err != nil {
			t.Error(err)
		}
	}
	if len(watches[6].changes) > 0 {
		t.Error("a watch got the report of another group")
	}
	again.Close()
	groups[7].put(t, "memory.events", "high 2\n")
	if err := watches[7].Wait(); err != nil {
		t.Error(err)
	}
	if err := os.RemoveAll(filepath.Join(p.dirs[""], groups[8].name)); err != nil {
		t.Fatal(err)
	}
	if err := watches[8].Wait(); err != nil {
		t.Errorf("of a group that was removed: %v", err)
	}
	ended := p.memory.ended
	for _, w := range watches {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	<-ended
	if n := instances(t) - before; n != 0 || len(p.memory.watches) > 0 {
		t.Errorf("%d inotify instances and %d watches are left", n, len(p.memory.watches))
	}
	w, err := groups[7].WatchMemory(32<<20, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	groups[7].put(t, "memory.events", "high 3\n")
	if err := w.Wait(); err != nil {
		t.Error(err)
	}
}

// instances is how many inotify instances this process has.
func instances(t *testing.T) (n int) {
	t.Helper()
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && strings.Contains(to, "inotify") {
			n++
		}
	}
	return n
}
