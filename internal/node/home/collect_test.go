package home

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/thread"
	"github.com/atoll-run/atoll/internal/infra/blob"
)

// aged shows every object as older than it is.
type aged struct {
	*blob.Store
	by time.Duration
}

func (a *aged) List(ctx context.Context, folder string) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		for info, err := range a.Store.List(ctx, folder) {
			info.Modified = info.Modified.Add(-a.by)
			if !yield(info, err) {
				return
			}
		}
	}
}

func count(t *testing.T, b Blobs, folder string) (n int) {
	t.Helper()
	for _, err := range b.List(t.Context(), folder) {
		must(t, err)
		n++
	}
	return n
}

func TestCollect(t *testing.T) {
	_, b := folderStore(t)
	a := &aged{Store: b}
	s := newStore(t, a)
	s.cfg.Grace = time.Minute
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	must(t, os.WriteFile(file, []byte("first"), 0o600))
	first := save(t, s, dir, nil)
	must(t, os.WriteFile(file, []byte("second"), 0o600))
	second := save(t, s, dir, first)
	live := func(context.Context) ([]string, error) { return []string{string(second.State), ""}, nil }
	collect := func(states, packs int) {
		t.Helper()
		done, err := s.Collect(t.Context(), "ten_a", live)
		if err != nil || done.States != states || done.Packs != packs {
			t.Errorf("%+v, %v; want %d states, %d packs", done, err, states, packs)
		}
	}
	collect(0, 0) // all of it is young
	a.by = time.Hour
	collect(1, 0) // the pack of the first state is condemned
	collect(0, 0) // but not for long enough

	// A save that began meanwhile does not refer to it.
	other := t.TempDir()
	must(t, os.WriteFile(filepath.Join(other, "f"), []byte("first"), 0o600))
	third := save(t, s, other, nil)
	live = func(context.Context) ([]string, error) {
		return []string{string(second.State), string(third.State)}, nil
	}
	s.cfg.Grace = 0
	collect(0, 1)
	for _, st := range []State{second.State, third.State} {
		restore(t, s, load(t, s, st), t.TempDir(), nil)
	}
	if n := count(t, b, "threads/ten_a/packs"); n != 2 {
		t.Errorf("%d packs are left", n)
	}
	live = func(context.Context) ([]string, error) { return nil, nil }
	collect(2, 0)
	collect(0, 2)
	collect(0, 0)
	must(t, b.DeletePrefix(t.Context(), "threads/ten_a"))
	if n := count(t, b, "threads"); n != 0 {
		t.Errorf("%d objects are left", n)
	}
}

// Homes of a tenant share what is the same in them, whichever of them saved it; those of
// another tenant share nothing, and no name tells that they are alike.
func TestDeduplicates(t *testing.T) {
	s, b := folderStore(t)
	dir := t.TempDir()
	content := make([]byte, 6<<20)
	for i := range content {
		content[i] = byte(i * i >> 7)
	}
	must(t, os.WriteFile(filepath.Join(dir, "f"), content, 0o600))
	first := save(t, s, dir, nil)
	for name, other := range map[string]*Store{"same process": s, "another process": newStore(t, b)} {
		same, err := other.Save(t.Context(), "ten_a", dir, nil, thread.Quota{})
		must(t, err)
		if got, want := same.root.children[0].chunks, first.root.children[0].chunks; got[0] != want[0] || got[5] != want[5] {
			t.Errorf("%s: the content was stored twice", name)
		}
	}
	foreign, err := s.Save(t.Context(), "ten_b", dir, nil, thread.Quota{})
	must(t, err)
	got, want := foreign.root.children[0].chunks, first.root.children[0].chunks
	if got[0].pack == want[0].pack || got[0].sum == want[0].sum {
		t.Error("two tenants share")
	}
	if _, err := s.Load(t.Context(), "ten_b", first.State); err == nil {
		t.Error("a tenant's state was read as another's")
	}
}
