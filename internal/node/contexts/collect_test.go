package contexts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/redact"
	"github.com/atoll-run/atoll/test/atolltest"
)

// keyed is a run under a key, or the collection of one.
func (r *rig) keyed(ctx context.Context, collect bool, key, code string) (*outcome, error) {
	o := &outcome{}
	do := r.c.Run
	if collect {
		do = r.c.Collect
	}
	res, err := do(ctx, r.u, "python", codecontext.Request{Key: key, Code: code, Timeout: 20 * time.Second, MaxOutput: 1 << 20}, func(e codecontext.Event) error {
		switch {
		case e.Display != nil:
			o.displays = append(o.displays, e.Display)
		case e.Stream == process.Stdout:
			o.stdout += string(e.Text)
		}
		return nil
	})
	o.Result = res
	return o, err
}

// restarted is the rig of a server that knows nothing of what an earlier one did.
func (r *rig) restarted() *rig { return &rig{r.t, New(), r.u} }

// TestCollect leaves a run as a server that ends does, and collects it as the next one.
func TestCollect(t *testing.T) {
	r := newRig(t, "hunter2-secret")
	r.run("python", "print('earlier')")
	dir := t.TempDir()
	count, release := filepath.Join(dir, "count"), filepath.Join(dir, "go")
	code := fmt.Sprintf("print('a')\nopen(%q, 'a').write('x')\nimport os, time\nwhile not os.path.exists(%q): time.sleep(.01)\nprint('b hunter2-' + 'secret')\n6 * 7", count, release)

	ctx, leave := context.WithCancelCause(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := r.keyed(ctx, false, "run/1", code)
		left <- err
	}()
	atolltest.Until(t, time.Minute, "it runs", func() bool { _, err := os.Stat(count); return err == nil })
	leave(codecontext.ErrDetached)
	if err := <-left; !errors.Is(err, codecontext.ErrDetached) {
		t.Fatalf("the run that was left: %v", err)
	}
	next := r.restarted()
	collected := make(chan *outcome, 1)
	go func() {
		o, err := next.keyed(t.Context(), true, "run/1", "")
		if err != nil {
			t.Error(err)
		}
		collected <- o
	}()
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(o *outcome) {
		t.Helper()
		if o.stdout != "a\nb "+redact.Marker+"\n" || o.Result == nil || o.Status != codecontext.OK || o.shown("text/plain") != `"42"` || o.StdoutTruncated {
			t.Errorf("%q %+v", o.stdout, o.Result)
		}
	}
	check(<-collected)
	o, err := r.restarted().keyed(t.Context(), true, "run/1", "")
	if err != nil {
		t.Fatal(err)
	}
	check(o)
	if o, err := next.keyed(t.Context(), false, "run/1", code); err != nil || o.Status != codecontext.OK {
		t.Errorf("the run that comes again: %+v, %v", o.Result, err)
	}
	if did, err := os.ReadFile(count); err != nil || string(did) != "x" {
		t.Errorf("the code ran %d times, %v", len(did), err)
	}
	if o := next.run("python", "print('later')"); o.stdout != "later\n" {
		t.Errorf("%q", o.stdout)
	}
}

func TestCollectWhatWasNotBegun(t *testing.T) {
	r := newRig(t)
	if _, err := r.keyed(t.Context(), true, "run/1", ""); !errors.Is(err, codecontext.ErrNoTrace) {
		t.Errorf("without a context: %v", err)
	}
	r.run("python", "print('earlier'); 5")
	o, err := r.keyed(t.Context(), true, "run/1", "")
	if !errors.Is(err, codecontext.ErrNotBegun) || o.stdout != "" || len(o.displays) > 0 {
		t.Errorf("%q, %v", o.stdout, err)
	}
	if o, err := r.keyed(t.Context(), false, "run/1", "print(1)"); err != nil || o.stdout != "1\n" {
		t.Errorf("then it runs: %q, %v", o.stdout, err)
	}
	if o, err := r.keyed(t.Context(), false, "run/2", "import os; print(2, flush=True); os._exit(3)"); err != nil || o.Status != codecontext.Ended {
		t.Errorf("%+v, %v", o.Result, err)
	}
	o, err = r.restarted().keyed(t.Context(), true, "run/2", "")
	if err != nil || o.stdout != "2\n" || o.Status != codecontext.Ended || o.Exit.Code != 3 {
		t.Errorf("of an interpreter that ended: %q %+v, %v", o.stdout, o.Result, err)
	}
	if _, err := r.restarted().keyed(t.Context(), true, "run/3", ""); !errors.Is(err, codecontext.ErrNotBegun) {
		t.Errorf("after it ended: %v", err)
	}
	if _, err := r.c.Run(t.Context(), r.u, "node", codecontext.Request{Key: "x", Code: "1"}, nil); err == nil {
		t.Error("node took a key")
	}
}

// TestCollectTimesOut: a run that is collected ends when its time is over.
func TestCollectTimesOut(t *testing.T) {
	r := newRig(t)
	ctx, leave := context.WithCancelCause(t.Context())
	said := "" // in pieces: what may begin a secret is held back for a moment
	res, err := r.c.Run(ctx, r.u, "python", codecontext.Request{Key: "k", Code: "print('on')\nwhile True: pass", Timeout: time.Minute, MaxOutput: 100}, func(e codecontext.Event) error {
		if said += string(e.Text); strings.Contains(said, "on") {
			leave(codecontext.ErrDetached)
		}
		return nil
	})
	if !errors.Is(err, codecontext.ErrDetached) {
		t.Fatalf("%+v, %v", res, err)
	}
	res, err = r.restarted().c.Collect(t.Context(), r.u, "python", codecontext.Request{Key: "k", Timeout: 100 * time.Millisecond, MaxOutput: 100}, func(codecontext.Event) error { return nil })
	if err != nil || res.Status != codecontext.TimedOut || res.Exit != nil {
		t.Errorf("%+v, %v", res, err)
	}
}
