package daemonclient_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/guest/daemonclient/clienttest"
)

// TestRestored: what was restored from a checkpoint goes on, and its guest daemon
// comes when it is told to.
func TestRestored(t *testing.T) {
	s := clienttest.New(t)
	c := s.Dial(t)
	p := start(t, c, process.Spec{Shell: "n=41; while read x; do n=$((n+1)); echo $n $x; done", Env: clienttest.Env, Input: true})
	if _, err := c.Write(t.Context(), p.ID, []byte("before\n")); err != nil {
		t.Fatal(err)
	}
	_, at := until(t, follow(t, c, p.ID, 0), "before\n")
	term := start(t, c, process.Spec{Argv: []string{"cat"}, Env: clienttest.Env, Terminal: &process.Size{Rows: 10, Columns: 20}})
	create(t, c, "kept", "in the home")
	create(t, c, "/tmp/kept", "in memory")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Guest.Close(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "checkpoint")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Checkpoint(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if err := s.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	restored, err := s.Runtime.Restore(t.Context(), s.Spec, dir, false)
	if err != nil {
		t.Fatal(err)
	}
	s.Instance = restored
	s.DialGuest(t)
	next := s.Dial(t)
	if next.Instance() != c.Instance() {
		t.Error("there is another guest daemon")
	}
	o := follow(t, next, p.ID, at)
	if _, err := next.Write(t.Context(), p.ID, []byte("after\n")); err != nil {
		t.Fatal(err)
	}
	if got, _ := until(t, o, "\n"); got != "43 after\n" {
		t.Errorf("it goes on with %q", got)
	}
	tty := follow(t, next, term.ID, 0)
	if _, err := next.Write(t.Context(), term.ID, []byte("typed\n")); err != nil {
		t.Fatal(err)
	}
	until(t, tty, "typed")
	if a, b := read(t, next, "kept", 0, -1), read(t, next, "/tmp/kept", 0, -1); a != "in the home" || b != "in memory" {
		t.Errorf("files hold %q and %q", a, b)
	}
	if got := run(t, next, "echo well"); got.out[0] != "well\n" {
		t.Errorf("got %+v", got)
	}
}

// TestIdle: a sandbox in which nothing happens uses no processor.
func TestIdle(t *testing.T) {
	s := clienttest.New(t)
	c := s.Dial(t)
	run(t, c, "true")
	start(t, c, shell("sleep 60"))
	used := func() float64 {
		t.Helper()
		u, err := s.Usage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return u.CPUSeconds
	}
	best := 1.0
	for range 5 {
		before := used()
		time.Sleep(time.Second) // in which nothing happens
		best = min(best, used()-before)
	}
	if best > 0.005 {
		t.Errorf("in an idle second it used %.1f ms of a processor", best*1e3)
	}
	if got := run(t, c, "grep -h ctxt /proc/1/status /dev/null | head -1; echo well"); !strings.HasSuffix(got.out[0], "well\n") {
		t.Errorf("got %+v", got)
	}
}
