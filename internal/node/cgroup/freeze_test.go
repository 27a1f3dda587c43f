package cgroup

import (
	"context"
	"io"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"
)

func TestFreezeAndThaw(t *testing.T) {
	t.Run("this machine's version", func(t *testing.T) {
		p, err := Open("atoll-test-freeze")
		if err != nil {
			t.Fatalf("%v (the test must run as root)", err)
		}
		tryFreeze(t, p)
	})
	t.Run("version 2", func(t *testing.T) {
		mount, controllers := unified(t)
		own := enter(t, mount, "atoll-test-freeze-2")
		p, err := openV2At(mount, own, "parent", controllers)
		if err != nil {
			t.Fatal(err)
		}
		tryFreeze(t, p)
	})
}

// newGroup makes a group whose parent goes with the test.
func newGroup(t *testing.T, p *Parent) *Group {
	t.Helper()
	t.Cleanup(func() {
		if err := p.Remove(); err != nil {
			t.Error(err)
		}
	})
	g, err := p.Create("group", Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func tryFreeze(t *testing.T, p *Parent) {
	g := newGroup(t, p)
	// Two processes that answer each line they get; the second is a child of the first.
	cmd := exec.Command("sh", "-c", `read x; while read x; do (echo $x); done`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, file := range g.Procs() {
		write(t, file, strconv.Itoa(cmd.Process.Pid))
	}
	if err := g.Thaw(); err != nil { // it was never frozen
		t.Error(err)
	}
	answers := make(chan string)
	go func() {
		defer close(answers)
		for buf := make([]byte, 1); ; {
			if _, err := io.ReadFull(out, buf); err != nil {
				return
			}
			answers <- string(buf)
		}
	}()
	if _, err := io.WriteString(in, "begin\n"); err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"1", "2"} {
		for range 2 {
			if err := g.Freeze(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := io.WriteString(in, word+"\n"); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-answers:
			t.Errorf("a frozen process says %q", got)
		case <-time.After(50 * time.Millisecond):
		}
		if err := g.Thaw(); err != nil {
			t.Fatal(err)
		}
		if got := <-answers + <-answers; got != word+"\n" {
			t.Errorf("the process says %q after it was thawed", got)
		}
	}
	if err := g.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	if names, err := p.List(); err != nil || len(names) != 1 {
		t.Errorf("groups: %q, %v", names, err)
	}
	g.Kill()
	for range answers {
		t.Error("a process said something at its end")
	}
	_ = cmd.Wait() // killed
	if err := g.Remove(); err != nil {
		t.Error(err)
	}
	if names, err := p.List(); err != nil || len(names) != 0 {
		t.Errorf("groups that are left: %q, %v", names, err)
	}
}

// TestFreezeWhileProcessesStart freezes processes that start others all the time.
func TestFreezeWhileProcessesStart(t *testing.T) {
	p, err := Open("atoll-test-freeze-starts")
	if err != nil {
		t.Fatalf("%v (the test must run as root)", err)
	}
	g := newGroup(t, p)
	var all sync.WaitGroup
	t.Cleanup(func() {
		g.Kill()
		all.Wait()
		if err := g.Remove(); err != nil {
			t.Error(err)
		}
	})
	for range 4 {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", "read x; while :; do /bin/true & /bin/true; done")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all.Go(func() { _ = cmd.Wait() }) // killed with the group
		for _, file := range g.Procs() {
			write(t, file, strconv.Itoa(cmd.Process.Pid))
		}
		if _, err := io.WriteString(in, "begin\n"); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // without end, where it is wrong
		if err := g.Freeze(ctx); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := g.Thaw(); err != nil {
			t.Fatal(err)
		}
	}
}
