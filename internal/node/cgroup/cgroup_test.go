package cgroup

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// unified mounts the version 2 hierarchy, which every kernel has, and picks a
// controller that version 1 has left to it.
func unified(t *testing.T) (mount string, controllers []string) {
	t.Helper()
	mount = t.TempDir()
	if err := unix.Mount("none", mount, "cgroup2", 0, ""); err != nil {
		t.Fatalf("mount cgroup2 (the test must run as root): %v", err)
	}
	t.Cleanup(func() { unix.Unmount(mount, unix.MNT_DETACH) })
	have := strings.Fields(read(t, mount, "cgroup.controllers"))
	for _, c := range []string{"memory", "hugetlb", "io", "misc"} {
		if slices.Contains(have, c) {
			if control := filepath.Join(mount, "cgroup.subtree_control"); !enabled(mount, []string{c}) {
				write(t, control, "+"+c)
				t.Cleanup(func() { os.WriteFile(control, []byte("-"+c), 0) })
			}
			return mount, []string{c}
		}
	}
	t.Fatalf("no controller to test with among %v", have)
	return "", nil
}

func read(t *testing.T, elem ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0); err != nil {
		t.Fatal(err)
	}
}

// enter makes a group below the root and moves this process there for the test.
func enter(t *testing.T, mount, name string) (own string) {
	t.Helper()
	before, err := ownGroup()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(mount, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		write(t, filepath.Join(mount, before, "cgroup.procs"), "0")
		removeAll(dir)
	})
	write(t, filepath.Join(dir, "cgroup.procs"), "0")
	return "/" + name
}

func removeAll(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			removeAll(filepath.Join(dir, e.Name()))
		}
	}
	unix.Rmdir(dir)
}

func TestV2EveryGroupIsMadeBelowTheDelegatedOne(t *testing.T) {
	mount, controllers := unified(t)
	own := enter(t, mount, "atoll-test-delegated")
	for _, name := range []string{"one", "two", "one"} {
		now, err := ownGroup() // the first Open moves this process
		if err != nil {
			t.Fatal(err)
		}
		p, err := openV2At(mount, now, name, controllers)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := p.dirs[""], filepath.Join(mount, own, name); got != want {
			t.Errorf("group %s is at %s, want %s", name, got, want)
		}
		if !enabled(p.dirs[""], controllers) {
			t.Errorf("group %s hands down no %v", name, controllers)
		}
	}
	if now, _ := ownGroup(); now != own+"/"+serverGroup {
		t.Errorf("this process is in %s, want the leaf of %s", now, own)
	}
}

func TestV2LeavesASharedGroupAlone(t *testing.T) {
	mount, controllers := unified(t)
	own := enter(t, mount, "atoll-test-shared")
	shell := start(t, "read x")
	write(t, filepath.Join(mount, own, "cgroup.procs"), strconv.Itoa(shell))
	p, err := openV2At(mount, own, "atoll-test-at-root", controllers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Remove() })
	if got, want := p.dirs[""], filepath.Join(mount, "atoll-test-at-root"); got != want {
		t.Errorf("the group is at %s, want %s", got, want)
	}
	if now, _ := ownGroup(); now != own {
		t.Errorf("this process was moved to %s for nothing", now)
	}
}

// start runs a shell script until the test ends.
func start(t *testing.T, script string) (pid int) {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		cmd.Wait()
	})
	return cmd.Process.Pid
}

func TestKillOutrunsForks(t *testing.T) {
	p, err := Open("atoll-test-kill")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Remove() })
	g, err := p.Create("forks", Limits{Memory: 256 << 20})
	if err != nil {
		t.Fatal(err)
	}
	// Each generation is gone a moment after it has made the next.
	cmd := exec.Command("sh", "-c", `read x; f() { f & }; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do f & done; echo on`)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, file := range g.Procs() {
		write(t, file, strconv.Itoa(cmd.Process.Pid))
	}
	stdin.Write([]byte("\n"))
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	g.Kill()
	cmd.Wait()
	if err := g.Remove(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("ending the group took %s", took)
	}
}

func TestTheSmallestShareIsTaken(t *testing.T) {
	p, err := Open("atoll-test-share")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Remove() })
	g, err := p.Create("small", Limits{CPU: 0.001})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Remove(); err != nil {
		t.Error(err)
	}
}
