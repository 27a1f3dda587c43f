package daemonclient_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/guest/daemonclient"
	"github.com/atoll-run/atoll/internal/guest/daemonclient/clienttest"
	"github.com/atoll-run/atoll/test/atolltest"
)

// follow reads output from a place on, until it holds a text.
func until(t testing.TB, o process.Output, text string) (got string, at process.Seq) {
	t.Helper()
	for !strings.Contains(got, text) {
		c, err := o.Next()
		if err != nil {
			t.Fatalf("after %q: %v", got, err)
		}
		got, at = got+string(c.Data), c.Seq
	}
	return got, at
}

func follow(t testing.TB, c *daemonclient.Client, id process.ID, after process.Seq) process.Output {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	o, err := c.Follow(ctx, id, after)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}

// testControl: what was printed before an answer comes before it.
func testControl(t *testing.T, c *daemonclient.Client) {
	const program = `
import os, sys
for line in os.fdopen(3):
    n = int(line)
    sys.stdout.write("x" * n); sys.stdout.flush()
    sys.stderr.write("e"); sys.stderr.flush()
    os.write(4, b"done %d\n" % n)
`
	p := start(t, c, process.Spec{Argv: []string{"python3", "-c", program}, Env: clienttest.Env, Control: true, Lossless: true})
	o := follow(t, c, p.ID, 0)
	for _, n := range []int{1, 0, 70_000, 5, 900_000} {
		if _, err := c.WriteControl(t.Context(), p.ID, fmt.Appendln(nil, n)); err != nil {
			t.Fatal(err)
		}
		var out, errs int
		for answer := ""; !strings.HasSuffix(answer, "\n"); {
			chunk, err := o.Next()
			if err != nil {
				t.Fatal(err)
			}
			switch chunk.Stream {
			case process.Stdout:
				out += len(chunk.Data)
			case process.Stderr:
				errs += len(chunk.Data)
			case process.Control:
				answer += string(chunk.Data)
				if out != n || errs != 1 {
					t.Fatalf("the answer %q came after %d and %d bytes", answer, out, errs)
				}
			}
		}
	}
	if err := c.Kill(t.Context(), p.ID); err != nil {
		t.Error(err)
	}
}

// testEnough has a process say that it is enough.
func testEnough(t *testing.T, c *daemonclient.Client) {
	const program = `
import os
for line in os.fdopen(3):
    words = line.split()
    if not words: continue
    os.write(1, b"o" * int(words[0]))
    os.write(4, b"first\n")
    os.write(4, b"%d \n" % len(line))
`
	p := start(t, c, process.Spec{Argv: []string{"python3", "-c", program}, Env: clienttest.Env, Control: true, Lossless: true})
	var at process.Seq
	for i, want := range []struct {
		output, line int
		toTheEnd     bool
	}{{0, 8, true}, {0, 8, false}, {10, 8, true}, {300_000, 8, false}, {1, 300_000, true}, {300_000, 300_000, false}, {0, 8, false}, {0, 8, true}} {
		o, err := c.Converse(t.Context(), p.ID, fmt.Appendf(nil, "%-*d\n", want.line-1, want.output), at)
		if err != nil {
			t.Fatal(err)
		}
		n, said := 0, ""
		for !strings.HasSuffix(said, " \n") {
			chunk, err := o.Next()
			if err != nil {
				t.Fatalf("%d: %v", i, err)
			}
			at = chunk.Seq
			if chunk.Stream == process.Control {
				said += string(chunk.Data)
			} else {
				n += len(chunk.Data)
			}
		}
		if n != want.output || said != fmt.Sprintf("first\n%d \n", want.line) {
			t.Errorf("%d: %d bytes of output, and %q", i, n, said)
		}
		if want.toTheEnd {
			if _, err := o.Next(); !errors.Is(err, process.ErrEnough) {
				t.Errorf("%d: after it %v", i, err)
			}
		}
		o.Enough()
		if _, err := o.Next(); err == nil {
			t.Errorf("%d: there is output after enough of it", i)
		}
	}
	// What it says later is another's.
	o, err := c.Converse(t.Context(), p.ID, []byte("0\n0\n"), at)
	if err != nil {
		t.Fatal(err)
	}
	var said string
	for {
		chunk, err := o.Next()
		if errors.Is(err, process.ErrEnough) {
			if o, err = c.Converse(t.Context(), p.ID, nil, at); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		at = chunk.Seq
		if said += string(chunk.Data); said == "first\n2 \nfirst\n2 \n" {
			o.Enough()
			break
		}
	}
	if err := c.Kill(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
}

func testConverse(t *testing.T, c *daemonclient.Client) {
	const program = `
import os, sys
for line in os.fdopen(3):
    if line == "deaf\n":
        os.close(3)
        while True: pass
    os.write(1, b"x" * 70000)
    os.write(4, b"%d\n" % len(line))
`
	spec := process.Spec{Argv: []string{"python3", "-c", program}, Env: clienttest.Env, Control: true, Lossless: true}
	p := start(t, c, spec)
	var at process.Seq
	for _, n := range []int{1, 10, 300_000, 2} {
		o, err := c.Converse(t.Context(), p.ID, []byte(strings.Repeat("y", n-1)+"\n"), at)
		if err != nil {
			t.Fatal(err)
		}
		out, answer := 0, ""
		for !strings.HasSuffix(answer, "\n") {
			chunk, err := o.Next()
			if err != nil {
				t.Fatal(err)
			}
			at = chunk.Seq
			if chunk.Stream == process.Control {
				answer += string(chunk.Data)
			} else {
				out += len(chunk.Data)
			}
		}
		o.Enough()
		o.Enough()
		if want := fmt.Sprintln(n); answer != want || out != 70000 {
			t.Fatalf("%d bytes of output, and the answer %q, where %q follows 70000", out, answer, want)
		}
		if _, err := o.Next(); err == nil {
			t.Error("there is output after enough of it")
		}
	}
	end := func(data string) error {
		t.Helper()
		o, err := c.Converse(t.Context(), p.ID, []byte(data), at)
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = o.Next()
		}
		return err
	}
	o, err := c.Converse(t.Context(), p.ID, []byte("deaf\n"), at)
	if err != nil {
		t.Fatal(err)
	}
	o.Enough()
	var told error
	for told == nil || strings.Contains(told.Error(), "deadline") { // until it has closed its end
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		o, err := c.Converse(ctx, p.ID, []byte("more\n"), at)
		if told = err; err == nil {
			_, told = o.Next()
		}
		cancel()
	}
	if fault.KindOf(told) != fault.Conflict {
		t.Errorf("a process that does not read gives %v", told)
	}
	if err := c.Kill(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Wait(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	if err := end("too late\n"); !errors.Is(err, io.EOF) {
		t.Errorf("a process that has ended gives %v", err)
	}
	_, err = c.Converse(t.Context(), start(t, c, shell("true")).ID, nil, 0)
	kind(t, err, fault.Invalid, "without what is to be written to")
}

func testCursors(t *testing.T, c *daemonclient.Client) {
	p := start(t, c, shell("echo one; echo two >&2; echo three; sleep 0.2; echo four"))
	if _, err := c.Wait(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	whole := all(t, follow(t, c, p.ID, 0))
	if whole.out[process.Stdout] != "one\nthree\nfour\n" || whole.out[process.Stderr] != "two\n" {
		t.Errorf("got %+v", whole)
	}
	for at := range process.Seq(20) {
		var got int
		o := follow(t, c, p.ID, at)
		for {
			chunk, err := o.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got += len(chunk.Data)
		}
		if want := max(0, 19-int(at)); got != want || o.Exit().Code != 0 {
			t.Errorf("from %d on: %d bytes, not %d", at, got, want)
		}
	}
	_, err := c.Follow(t.Context(), p.ID, -1)
	kind(t, err, fault.Invalid, "begins at 0")
}

func testDropped(t *testing.T, c *daemonclient.Client) {
	spec := shell("head -c 5000000 /dev/zero | tr '\\0' x; echo; echo last")
	spec.Lossless = false
	p := start(t, c, spec)
	if _, err := c.Wait(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	got := all(t, follow(t, c, p.ID, 0))
	text := got.out[process.Stdout]
	if got.dropped == 0 || int64(len(text))+got.dropped != 5_000_006 || !strings.HasSuffix(text, "x\nlast\n") || len(text) > daemonclient.MaxRing {
		t.Errorf("%d bytes and %d dropped", len(text), got.dropped)
	}
	is, err := c.Process(t.Context(), p.ID)
	if err != nil || is.First != process.Seq(got.dropped) || is.Last != 5_000_006 {
		t.Errorf("%+v, %v", is, err)
	}
}

func testLossless(t *testing.T, c *daemonclient.Client) {
	o, err := c.Run(t.Context(), shell("for i in 1 2 3; do head -c 3000000 /dev/zero | tr '\\0' $i; head -c 1000000 /dev/zero >&2; done"))
	if err != nil {
		t.Fatal(err)
	}
	atolltest.Until(t, time.Minute, "much is written, without a reader", func() bool {
		p, err := c.Process(t.Context(), o.Info().ID)
		return err == nil && p.Last > daemonclient.MaxRing/2
	})
	got := all(t, o)
	if len(got.out[process.Stdout]) != 9_000_000 || len(got.out[process.Stderr]) != 3_000_000 || got.dropped != 0 {
		t.Errorf("%d and %d bytes, %d dropped", len(got.out[0]), len(got.out[1]), got.dropped)
	}
	// It waits for its first reader, if it is told to.
	spec := shell("head -c 5000000 /dev/zero; echo end")
	spec.Patient = true
	p := start(t, c, spec)
	if got := all(t, follow(t, c, p.ID, 0)); len(got.out[process.Stdout]) != 5_000_004 || got.dropped != 0 || got.Exit.Code != 0 {
		t.Errorf("%d bytes, %d dropped, %+v", len(got.out[process.Stdout]), got.dropped, got.Exit)
	}
	// Its end does not wait for one.
	p = start(t, c, spec)
	if err := c.Kill(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	if e, err := c.Wait(t.Context(), p.ID); err != nil || e.Signal != syscall.SIGKILL {
		t.Errorf("%+v, %v", e, err)
	}
	// A reader that goes away does not hold the program up.
	o, err = c.Run(t.Context(), shell("head -c 9000000 /dev/zero; echo end >&2"))
	if err != nil {
		t.Fatal(err)
	}
	id := o.Info().ID
	if _, err := o.Next(); err != nil {
		t.Fatal(err)
	}
	o.Close()
	if e, err := c.Wait(t.Context(), id); err != nil || e.Code != 0 {
		t.Errorf("%+v, %v", e, err)
	}
}

func testIdempotent(t *testing.T, c *daemonclient.Client) {
	spec := shell("echo $$")
	spec.ID = process.NewID()
	first := start(t, c, spec)
	second := start(t, c, spec)
	if first.PID != second.PID {
		t.Errorf("started twice: %+v and %+v", first, second)
	}
	got := all(t, follow(t, c, spec.ID, 0))
	if strings.TrimSpace(got.out[process.Stdout]) != fmt.Sprint(first.PID) {
		t.Errorf("got %+v", got)
	}
}
