package initclient_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/guest/guesttest"
	"github.com/atoll-run/atoll/internal/guest/initclient"
	"github.com/atoll-run/atoll/test/atolltest"
)

// lines is a program that prints numbered lines, and what it prints.
func lines(n, pause int) (code, want string) {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d of the output\n", i)
	}
	return fmt.Sprintf("import time\nfor i in range(%d):\n    print('line', i, 'of the output', flush=True)\n    if i %% 100 == 0: time.sleep(%d / 1000)\n", n, pause), b.String()
}

// gone waits, in a sink, until the host that it is of is gone.
func gone(t *testing.T, c *initclient.Client) {
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		err := c.Ping(ctx)
		cancel()
		if errors.Is(err, initclient.ErrClosed) {
			return
		}
	}
}

// A host goes away again and again while a program prints; what the hosts have
// got between them is all of it, once.
func TestTakeOver(t *testing.T) {
	g := guesttest.Start(t)
	c := g.Dial(t)
	warm(t, c, guesttest.Warm(t, guesttest.Python))
	code, want := lines(20000, 10)
	spec := guesttest.Program(t, guesttest.Python, code+"raise SystemExit(9)\n")
	spec.ID = initclient.NewRunID()

	var out []byte
	limit := 1000
	enough := make(chan struct{}, 1)
	sink := func(s initclient.Stream, p []byte) {
		if s == initclient.Stdout {
			out = append(out, p...)
		}
		if len(out) > limit {
			select {
			case enough <- struct{}{}:
				gone(t, c)
			default:
			}
		}
	}
	// until follows the program to its end, or until the sink has had enough.
	until := func(leave func(), call func() (initclient.Result, error)) (res initclient.Result, err error) {
		ended := make(chan struct{})
		var wait sync.WaitGroup
		wait.Go(func() {
			select {
			case <-enough:
				leave()
			case <-ended:
			}
		})
		res, err = call()
		close(ended)
		wait.Wait()
		return res, err
	}
	_, err := until(c.Leave, func() (initclient.Result, error) { return c.Run(t.Context(), spec, sink) })
	for hosts := 1; ; hosts++ {
		if !errors.Is(err, initclient.ErrClosed) {
			t.Fatalf("host %d: %v", hosts, err)
		}
		c = g.Dial(t)
		if runs := c.Info().Runs; len(runs) != 1 || runs[0] != spec.ID {
			t.Fatalf("host %d finds %v", hosts, runs)
		}
		leave := c.Leave
		if hosts%2 == 0 {
			leave = func() { c.Close() }
		}
		select {
		case <-enough: // it was said once more before the last host was gone
		default:
		}
		limit = len(out) + 60000
		var res initclient.Result
		res, err = until(leave, func() (initclient.Result, error) {
			return c.Attach(t.Context(), spec.ID, map[initclient.Stream]int64{initclient.Stdout: int64(len(out))}, sink, nil)
		})
		if err == nil {
			if string(out) != want || res.ExitCode != 9 || res.StdoutBytes != int64(len(want)) || !res.Warm {
				t.Errorf("after %d hosts: %d of %d bytes, %+v", hosts, len(out), len(want), res)
			}
			if hosts < 4 {
				t.Errorf("only %d hosts were there", hosts)
			}
			break
		}
	}
	// Nothing is left once the last host has acknowledged the end.
	c.Close()
	if info := g.Dial(t).Info(); len(info.Runs) != 0 {
		t.Errorf("still there: %v", info.Runs)
	}
}

// A host is killed: no Close, no acknowledgement, and the FIFOs cut anywhere.
// What it had got and what the next one gets are all of the output.
func TestTakeOverFromTheDead(t *testing.T) {
	g := guesttest.Start(t)
	c := g.Dial(t)
	code, want := lines(60000, 0)
	spec := guesttest.Program(t, guesttest.Python, code)
	spec.ID = initclient.NewRunID()
	var out bytes.Buffer
	sink := func(_ initclient.Stream, p []byte) {
		if out.Len() <= 100000 && out.Len()+len(p) > 100000 {
			go c.Leave()
			gone(t, c)
		}
		out.Write(p)
	}
	if _, err := c.Run(t.Context(), spec, sink); !errors.Is(err, initclient.ErrClosed) {
		t.Fatal(err)
	}
	for i, n := range []int{1, 35, 5000, 70000, 12345} {
		// The dead host's last read, of any length, and its last write: half a
		// frame, which a FIFO never holds, and bytes that are none.
		if _, err := g.Channel.FromGuest.Read(make([]byte, n)); err != nil {
			t.Fatal(err)
		}
		g.Channel.ToGuest.Write([]byte("\xa7tol\x01\x04\x03\x00 garbage and more of it \xa7tol")[:4+5*i])
	}
	next := g.Dial(t)
	res, err := next.Attach(t.Context(), spec.ID, map[initclient.Stream]int64{initclient.Stdout: int64(out.Len())},
		func(_ initclient.Stream, p []byte) { out.Write(p) }, nil)
	if err != nil || res.ExitCode != 0 || res.StdoutBytes != int64(len(want)) {
		t.Fatalf("%+v, %v", res, err)
	}
	if out.String() != want {
		t.Errorf("%d of %d bytes", out.Len(), len(want))
	}
	healthy(t, next)
}

// However often a host dies right after it has learned of a program's end, the
// next one learns of it too.
func TestTheEndIsNotLost(t *testing.T) {
	g := guesttest.Start(t)
	c := g.Dial(t)
	warm(t, c, guesttest.Warm(t, guesttest.Python))
	spec := guesttest.Program(t, guesttest.Python, "print('all', flush=True)\nraise SystemExit(9)\n")
	spec.ID = initclient.NewRunID()
	begun := make(chan struct{})
	first := c
	go func() { <-begun; first.Leave() }()
	_, err := c.Run(t.Context(), spec, func(initclient.Stream, []byte) { close(begun) })
	for host := 1; host <= 10; host++ {
		if err != nil && !errors.Is(err, initclient.ErrClosed) {
			t.Fatalf("host %d: %v", host, err)
		}
		c.Leave()
		c = g.Dial(t)
		var res initclient.Result
		res, err = c.Attach(t.Context(), spec.ID, nil, func(initclient.Stream, []byte) {}, nil)
		if err == nil && res.ExitCode != 9 {
			t.Errorf("host %d was told of exit code %d", host, res.ExitCode)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// While no host listens a program that prints much stands still, and one that
// has ended is kept.
func TestNobodyListens(t *testing.T) {
	g := guesttest.Start(t)
	c := g.Dial(t)
	code, want := lines(300000, 0)
	want = "begun\n" + want
	code = "import os, time\nprint('begun', flush=True)\nwhile not os.path.exists('/tmp/go'): time.sleep(0.01)\n" + code
	spec := guesttest.Program(t, guesttest.Python, code+"open('/tmp/end', 'w')\n")
	spec.ID = initclient.NewRunID()
	small := bash(t, "touch /tmp/began; until [ -e /tmp/go ]; do sleep 0.01; done; echo small; echo more >&2; touch /tmp/small; exit 4")
	small.ID = initclient.NewRunID()
	leaves, cancel := context.WithCancel(t.Context())
	defer cancel()
	unheard := make(chan error)
	go func() {
		_, err := c.Run(leaves, small, nil)
		unheard <- err
	}()
	atolltest.Until(t, time.Minute, "the small program starts", func() bool { return exists(g, "tmp/began") })
	if _, err := c.Run(leaves, spec, func(initclient.Stream, []byte) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := <-unheard; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	c.Close()
	if err := os.WriteFile(filepath.Join(g.Root(), "tmp/go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	atolltest.Until(t, time.Minute, "the small program runs", func() bool { return exists(g, "tmp/small") })
	for range 100 { // a while in which it might
		if exists(g, "tmp/end") {
			t.Fatal("the large program went on without a listener")
		}
		<-time.After(10 * time.Millisecond)
	}

	c = g.Dial(t)
	if len(c.Info().Runs) != 2 {
		t.Fatalf("found %v", c.Info().Runs)
	}
	var wait sync.WaitGroup
	wait.Go(func() {
		var out bytes.Buffer
		res, err := c.Attach(t.Context(), small.ID, nil, func(_ initclient.Stream, p []byte) { out.Write(p) }, nil)
		if err != nil || res.ExitCode != 4 || len(out.String()) != len("small\nmore\n") {
			t.Errorf("the small program: %+v, %q, %v", res, out.String(), err)
		}
	})
	var out bytes.Buffer
	res, err := c.Attach(t.Context(), spec.ID, nil, func(_ initclient.Stream, p []byte) { out.Write(p) }, nil)
	if err != nil || res.StdoutBytes != int64(len(want)) || !strings.HasSuffix(want, out.String()) || out.Len() < len(want)/2 {
		t.Errorf("%d of %d bytes, %+v, %v", out.Len(), len(want), res, err)
	}
	wait.Wait()
	if _, err := c.Attach(t.Context(), spec.ID, nil, nil, nil); !errors.Is(err, initclient.ErrNoRun) {
		t.Errorf("attached twice: %v", err)
	}
	healthy(t, c)
}

func TestDiscard(t *testing.T) {
	g := guesttest.Start(t)
	c := g.Dial(t)
	for range 2 {
		spec := bash(t, "")
		spec.Files, spec.Argv = nil, []string{"bash", "-c", "echo x; until [ -e /tmp/go ]; do sleep 0.02; done; echo y"}
		ctx, cancel := context.WithCancel(t.Context())
		c.Run(ctx, spec, func(initclient.Stream, []byte) { cancel() })
		cancel()
	}
	c.Close()
	if err := os.WriteFile(filepath.Join(g.Root(), "tmp/go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	c = g.Dial(t)
	if len(c.Info().Runs) != 2 {
		t.Errorf("found %v", c.Info().Runs)
	}
	for _, id := range c.Info().Runs {
		if err := c.Discard(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	healthy(t, c)
	if err := c.Discard(t.Context(), 1); !errors.Is(err, initclient.ErrNoRun) {
		t.Errorf("got %v", err)
	}
}

// A guest that is not there yet, or never will be.
func TestDialWaits(t *testing.T) {
	g := guesttest.Start(t)
	if err := syscall.Kill(g.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	if _, err := initclient.Dial(ctx, g.Channel); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	if err := syscall.Kill(g.PID, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	healthy(t, g.Dial(t))
}

// exists reports whether a file is in the guest.
func exists(g *guesttest.Guest, path string) bool {
	_, err := os.Stat(filepath.Join(g.Root(), path))
	return err == nil
}
