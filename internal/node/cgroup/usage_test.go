package cgroup

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// group makes a group with limits, below a parent of the test's own.
func group(t *testing.T, l Limits) *Group {
	t.Helper()
	name := "atoll-test-" + strings.ToLower(t.Name())
	p, err := Open(name)
	if err != nil {
		t.Fatalf("%v (the test must run as root)", err)
	}
	t.Cleanup(func() {
		if err := p.Remove(); err != nil {
			t.Error(err)
		}
	})
	g, err := p.Create("group", l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		g.Kill()
		if err := g.Remove(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// run runs a shell script in a group and returns what it said and how it ended.
func run(t *testing.T, g *Group, script string) (string, *exec.ExitError) {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	err := g.Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if err != nil && !ok {
		t.Fatal(err)
	}
	return out.String(), exit
}

func usage(t *testing.T, g *Group) Usage {
	t.Helper()
	u, err := g.Usage()
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestMemoryIsHeldAndTold(t *testing.T) {
	const limit = 32 << 20
	g := group(t, Limits{Memory: limit})
	if u := usage(t, g); u != (Usage{}) {
		t.Errorf("an empty group used %+v", u)
	}
	if out, exit := run(t, g, `head -c 8000000 /dev/zero | tail -c 7000000 | wc -c`); exit != nil || strings.TrimSpace(out) != "7000000" {
		t.Fatalf("a program within the limit: %q, %v", out, exit)
	}
	u := usage(t, g)
	if u.OOMKills != 0 || u.PeakMemory < 7_000_000 || u.PeakMemory > limit || u.CPUSeconds <= 0 {
		t.Errorf("usage %+v", u)
	}
	// tail keeps what it is to print in memory.
	_, exit := run(t, g, `head -c 300000000 /dev/zero | tail -c 200000000`)
	if exit == nil || exit.ExitCode() != 128+int(syscall.SIGKILL) {
		t.Errorf("a program beyond the limit ended with %v", exit)
	}
	after := usage(t, g)
	if after.OOMKills != 1 || after.PeakMemory < limit*9/10 || after.PeakMemory > limit || after.CPUSeconds < u.CPUSeconds {
		t.Errorf("usage afterwards %+v", after)
	}
	if after.Memory > limit/4 {
		t.Errorf("%d bytes are in use in an empty group", after.Memory)
	}
}

// TestMemoryInUse: what can be taken back is not counted, what cannot is.
func TestMemoryInUse(t *testing.T) {
	g := group(t, Limits{Memory: 128 << 20})
	cmd := exec.Command("sh", "-c", `for f in $PROCS; do echo 0 >$f || exit 99; done
dd if=/dev/zero of=$DIR/file bs=1M count=40 2>/dev/null; echo written; read x
head -c 40000000 /dev/zero | tail -c 30000000 | { read y <&3; cat >/dev/null; }`)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "DIR=" + t.TempDir(), "PROCS=" + strings.Join(g.Procs(), " ")}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	cmd.ExtraFiles = []*os.File{reader}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		stdin.Close()
		writer.Close()
		cmd.Wait()
	}()
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	if u := usage(t, g); u.Memory > 10<<20 || u.PeakMemory < 40<<20 {
		t.Errorf("with 40 MiB of a file's pages: %+v", u)
	}
	if _, err := stdin.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	// tail holds what it has read until someone takes it.
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); usage(t, g).Memory < 29_000_000; <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("with 30 MB of a program's memory: %+v", usage(t, g))
		}
	}
}

func TestTasksAreHeld(t *testing.T) {
	g := group(t, Limits{Tasks: 5})
	out, exit := run(t, g, `for i in 1 2 3 4 5 6 7 8; do sleep 60 >/dev/null 2>&1 & done; echo all`)
	if exit == nil || !strings.Contains(out, "fork") || strings.Contains(out, "all") {
		t.Errorf("the ninth of five tasks: %q, %v", out, exit)
	}
}

func TestNothingIsNoLimit(t *testing.T) {
	g := group(t, Limits{})
	if out, exit := run(t, g, `for i in 1 2 3 4 5 6 7 8; do sleep 0 & done; wait; head -c 50000000 /dev/zero | tail -c 40000000 | wc -c`); exit != nil || strings.TrimSpace(out) != "40000000" {
		t.Errorf("%q, %v", out, exit)
	}
}

func TestGroupsAreListedAndGone(t *testing.T) {
	g := group(t, Limits{Memory: 64 << 20, CPU: 0.5, Tasks: 10})
	p := g.parent
	for i := range 3 {
		if _, err := p.Create(strconv.Itoa(i), Limits{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Create("1", Limits{Tasks: 3}); err != nil { // what a crash left is taken over
		t.Error(err)
	}
	names, err := p.List()
	slices.Sort(names)
	if err != nil || !slices.Equal(names, []string{"0", "1", "2", "group"}) {
		t.Errorf("groups %q, %v", names, err)
	}
	for i := range 3 {
		for range 2 {
			if err := p.Group(strconv.Itoa(i)).Remove(); err != nil {
				t.Error(err)
			}
		}
	}
	if names, err := p.List(); err != nil || !slices.Equal(names, []string{"group"}) {
		t.Errorf("groups %q, %v", names, err)
	}
	none := p.Group("none")
	none.Kill()
	if _, err := none.Usage(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("usage of no group: %v", err)
	}
}

func TestAFailedCreateLeavesNoGroup(t *testing.T) {
	p := group(t, Limits{}).parent
	if _, err := p.Create("never", Limits{Memory: 1 << 30, CPU: 1e12}); err == nil {
		t.Error("a share of a trillion processors was set")
	}
	if names, err := p.List(); err != nil || slices.Contains(names, "never") {
		t.Errorf("groups %q, %v", names, err)
	}
}
