package engine

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/named"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/storage"
	"github.com/atoll-run/atoll/test/atolltest"
)

// waits is how many kernels wait to be somebody's.
func (t *twins) waits() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiting)
}

// TestKernelsWaitForCopies: after a fork some kernels wait, are nobody's orphans,
// become the next copies, and go with the engine.
func TestKernelsWaitForCopies(t *testing.T) {
	dir := secured(t)
	e := open(t, dir, func(c *Config) { c.Spares = 2 })
	n := e.Named()
	r := recipe()
	live := make1(t, n, r)
	was, _ := begin(t, live)
	n.Stock(r.ID, r, 5)
	atolltest.Until(t, time.Minute, "two kernels wait", func() bool { return e.twins.waits() == 2 })
	e.twins.making.Wait()
	if left, err := n.Left(t.Context()); err != nil || !slices.Equal(left, []sandbox.ID{r.ID}) {
		t.Errorf("of sandboxes there are %v, %v", left, err)
	}
	shares := r
	shares.Mounts = []storage.Mount{mountOf("team", "")}
	if id := n.Spare(r.ID, shares); e.twins.isSpare(id) {
		t.Errorf("a sandbox with storage gets the kernel %s", id)
	}
	theirs := shares
	theirs.Tenant = "ten_other"
	if a, b := mountsOf(shares), mountsOf(theirs); a == b {
		t.Errorf("kernels with two tenants' storage look alike: %s", a)
	}
	other := r
	other.Limits.Processes++
	if id := n.Spare(r.ID, other); e.twins.isSpare(id) || e.twins.waits() != 2 {
		t.Errorf("a sandbox with other limits gets the kernel %s", id)
	}
	if err := live.Sleep(t.Context()); err != nil {
		t.Fatal(err)
	}
	lives := []named.Live{live}
	for i := range 3 { // the last one finds none that waits
		twin := r
		twin.ID = n.Spare(r.ID, r)
		if err := n.Twin(t.Context(), r.ID, twin); err != nil {
			t.Fatal(err)
		}
		if want := max(2, i+1) - i; e.twins.waits() != want {
			t.Errorf("before copy %d, %d kernels wait, want %d", i, e.twins.waits(), want)
		}
		if err := n.Copy(t.Context(), r.ID, twin.ID); err != nil {
			t.Fatal(err)
		}
		copied, err := n.Wake(t.Context(), twin)
		if err != nil {
			t.Fatal(err)
		}
		lives = append(lives, copied)
	}
	if err := live.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, live := range lives {
		if now, _ := ask(t, live); now != was {
			t.Errorf("a copy's server says %q; the first one's said %q", now, was)
		}
		shell(t, live, "echo mine >/tmp/own; echo mine >/var/tmp/own; test $(ls /tmp/own /var/tmp/own | wc -l) = 2")
	}
	n.Stock(r.ID, r, 1)
	atolltest.Until(t, time.Minute, "a kernel waits", func() bool { return e.twins.waits() == 1 })
	n.Stock(r.ID, other, 2) // there may be two, and these were wanted last
	atolltest.Until(t, time.Minute, "kernels wait for others", func() bool {
		e.twins.mu.Lock()
		defer e.twins.mu.Unlock()
		like, err := n.likeness(r.ID, other)
		return err == nil && len(e.twins.spare[like]) == 2 && len(e.twins.waiting) == 2
	})
	for _, live := range lives {
		if err := live.Destroy(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	machine, err := atolltest.Trace(dir).Find()
	if err != nil || len(machine.Processes)+len(machine.Cgroups) > 0 {
		t.Errorf("the engine leaves %v, %v", machine, err)
	}
	if folders, err := os.ReadDir(filepath.Join(dir, "state", Server, NamedFolder)); err != nil || len(folders) > 0 {
		t.Errorf("the engine leaves the folders %v, %v", folders, err)
	}
}
