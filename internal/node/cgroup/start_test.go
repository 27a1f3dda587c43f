package cgroup

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// inside fails unless a process's list of groups, as /proc shows it, has the group in
// each of the hierarchies that its parent has a folder in.
func inside(t *testing.T, g *Group, list string) {
	t.Helper()
	for c := range g.parent.dirs {
		if !slices.ContainsFunc(strings.Split(list, "\n"), func(line string) bool {
			fields := strings.SplitN(line, ":", 3)
			return len(fields) == 3 && slices.Contains(strings.Split(fields[1], ","), c) && strings.HasSuffix(fields[2], "/"+g.name)
		}) {
			t.Errorf("a process started in %s is not in it by the controller %q:\n%s", g.name, c, list)
		}
	}
}

// TestStart: many at once are in their groups from the beginning, this process in none
// of them, and ending one of the groups meanwhile does not end this process.
func TestStart(t *testing.T) {
	p := group(t, Limits{}).parent
	before, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			g, err := p.Create("start"+strconv.Itoa(i), Limits{Memory: 64 << 20, Tasks: 20})
			if err != nil {
				t.Error(err)
				return
			}
			var out strings.Builder
			cmd := exec.Command("cat", "/proc/self/cgroup")
			cmd.Stdout = &out
			killed := i%2 == 1
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for range 20 {
					if killed {
						g.signal()
					}
				}
			}()
			if err := g.Start(cmd); err != nil {
				t.Error(err)
			} else if err := cmd.Wait(); err == nil {
				inside(t, g, out.String())
			} else if !killed {
				t.Error(err)
			}
			<-ended
			if err := g.Remove(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if after, err := os.ReadFile("/proc/self/cgroup"); err != nil || string(after) != string(before) {
		t.Errorf("this process is in %s, %v; it was in %s", after, err, before)
	}
}

func TestStartTellsWhatFailed(t *testing.T) {
	g := group(t, Limits{})
	if err := g.Start(exec.Command("/does/not/exist")); !os.IsNotExist(err) {
		t.Errorf("a program that is not there: %v", err)
	}
	missing := g.parent.Group("missing")
	if err := missing.Start(exec.Command("true")); err == nil || !strings.Contains(err.Error(), "join cgroup") {
		t.Errorf("a group that is not there: %v", err)
	}
}

func TestV2Start(t *testing.T) {
	mount, controllers := unified(t)
	own := enter(t, mount, "atoll-test-start")
	p, err := openV2At(mount, own, "groups", controllers)
	if err != nil {
		t.Fatal(err)
	}
	g, err := p.Create("one", Limits{})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("cat", "/proc/self/cgroup")
	var out strings.Builder
	cmd.Stdout = &out
	if err := g.Start(cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	inside(t, g, out.String())
	if err := g.Remove(); err != nil {
		t.Error(err)
	}
	if err := p.Group("missing").Start(exec.Command("true")); err == nil || !strings.Contains(err.Error(), "join cgroup") {
		t.Errorf("a group that is not there: %v", err)
	}
}
