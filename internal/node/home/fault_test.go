package home

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/thread"
	"github.com/atoll-run/atoll/internal/infra/blob"
	"github.com/atoll-run/atoll/test/atolltest"
)

// failing is a store of which one operation fails, before it is done or after.
type failing struct {
	*blob.Store
	left  atomic.Int64 // operations until the one that fails; all later ones fail too
	puts  bool         // only what stores counts, and fails
	after bool
}

var errBucket = fault.New(fault.Unavailable, "the bucket is away")

func (f *failing) fail() bool { return f.left.Add(-1) < 0 }

func (f *failing) failRead() bool { return !f.puts && f.fail() }

func (f *failing) Put(ctx context.Context, name string, r io.Reader) error {
	if f.fail() {
		if f.after {
			if err := f.Store.Put(ctx, name, r); err != nil {
				return err
			}
		}
		return errBucket
	}
	return f.Store.Put(ctx, name, r)
}

func (f *failing) Open(ctx context.Context, name string, offset, limit int64) (io.ReadCloser, error) {
	if f.failRead() {
		return nil, errBucket
	}
	return f.Store.Open(ctx, name, offset, limit)
}

func (f *failing) Range(ctx context.Context, name string, offset, size int64) (io.ReadCloser, error) {
	if f.failRead() {
		return nil, errBucket
	}
	return f.Store.Range(ctx, name, offset, size)
}

func (f *failing) List(ctx context.Context, folder string) iter.Seq2[blob.Info, error] {
	if f.failRead() {
		return func(yield func(blob.Info, error) bool) { yield(blob.Info{}, errBucket) }
	}
	return f.Store.List(ctx, folder)
}

// TestSaveFails lets the blob store fail at each step of a save, and of a restore:
// the error is typed, and the home is what it was before or after, whole.
func TestSaveFails(t *testing.T) {
	saved, failed, stored := 0, 0, 0
	for step := range int64(atolltest.Count(20, 200)) {
		_, b := folderStore(t)
		rnd := rand.New(rand.NewPCG(uint64(step), 4))
		f := &failing{Store: b, puts: step%2 == 0, after: step/2%2 == 0}
		f.left.Store(1 << 40)
		s := newStore(t, f)
		g := &grower{t: t, rnd: rnd, dir: t.TempDir()}
		g.change(10)
		g.ownAll()
		old := mirror(t, g.dir)
		before := save(t, s, g.dir, nil)
		g.change(10)
		must(t, os.WriteFile(filepath.Join(g.dir, "big"), noise(rnd, 5<<20), 0o600)) // several packs, and a look for others like it
		g.ownAll()
		now := mirror(t, g.dir)
		f.left.Store(step / 4 % 10)
		if f.puts {
			f.left.Store(step / 4 % 4)
		}
		after, err := s.Save(t.Context(), "ten_a", g.dir, before, thread.Quota{})
		if err != nil && !errors.Is(err, errBucket) {
			t.Fatalf("step %d: %v", step, err)
		}
		into := t.TempDir()
		f.left.Store(step % 5)
		if restoreErr := s.Restore(t.Context(), "ten_a", before, into, nil); restoreErr != nil && fault.KindOf(restoreErr) != fault.Unavailable {
			t.Fatalf("step %d: %v", step, restoreErr)
		}
		f.left.Store(1 << 40)
		restore(t, s, load(t, s, before.State), into, nil)
		equalMirrors(t, old, mirror(t, into))
		var states []State
		for info, err := range b.List(t.Context(), "threads/ten_a/states") {
			must(t, err)
			if state := State(filepath.Base(info.Name)); state != before.State {
				states = append(states, state)
			}
		}
		if err == nil && !slices.Equal(states, []State{after.State}) || len(states) > 1 {
			t.Fatalf("step %d: saved as %q", step, states)
		}
		for _, state := range states { // what is a state is whole, whatever Save said of it
			stored++
			other := t.TempDir()
			restore(t, s, load(t, s, state), other, nil)
			equalMirrors(t, now, mirror(t, other))
		}
		if err == nil {
			saved++
		} else {
			failed++
		}
	}
	if saved == 0 || failed <= saved || stored <= saved {
		t.Errorf("%d saves failed, %d did not, and %d were stored: too few of a kind", failed, saved, stored)
	}
	t.Logf("%d saves failed, %d of them once their state was stored; %d did not", failed, stored-saved, saved)
}

func noise(rnd *rand.Rand, size int) []byte {
	b := make([]byte, size)
	for i := 0; i < size; i += 8 {
		binary.LittleEndian.PutUint64(b[i:], rnd.Uint64())
	}
	return b
}

// TestDamage damages every object of a home in every way: the damage is found,
// and no file is ever another than was saved.
func TestDamage(t *testing.T) {
	ctx := t.Context()
	s, b := folderStore(t)
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "small"), []byte("hello"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "big"), bytes.Repeat([]byte("0123456789"), 300_000), 0o600))
	first := save(t, s, dir, nil)
	must(t, os.WriteFile(filepath.Join(dir, "small"), []byte("world"), 0o600))
	tree := save(t, s, dir, first)
	objects := map[string][]byte{}
	for info, err := range b.List(ctx, "threads/ten_a") {
		must(t, err)
		r, err := b.Open(ctx, info.Name, 0, -1)
		must(t, err)
		objects[info.Name], err = io.ReadAll(r)
		must(t, err)
		r.Close()
	}
	try := func(name, what string, data []byte) {
		t.Helper()
		if data == nil {
			must(t, b.Delete(ctx, name))
		} else {
			must(t, b.Put(ctx, name, bytes.NewReader(data)))
		}
		into := t.TempDir()
		loaded, err := s.Load(ctx, "ten_a", tree.State)
		if err == nil {
			err = s.Restore(ctx, "ten_a", loaded, into, nil)
		}
		if err == nil { // the damage is where Restore does not read, such as an index
			if got, _ := os.ReadFile(filepath.Join(into, "small")); string(got) != "world" {
				t.Errorf("%s %s: restored %q", name, what, got)
			}
			if got, _ := os.ReadFile(filepath.Join(into, "big")); len(got) != 3_000_000 || !bytes.HasPrefix(got, []byte("0123456789012")) {
				t.Errorf("%s %s: restored %d bytes", name, what, len(got))
			}
		} else if !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s %s: %v", name, what, err)
		}
		must(t, b.Put(ctx, name, bytes.NewReader(objects[name])))
	}
	for name, data := range objects {
		try(name, "removed", nil)
		try(name, "empty", []byte{})
		try(name, "cut off", data[:len(data)/2])
		for other, content := range objects {
			if other != name {
				try(name, "exchanged", content)
			}
		}
		for i := 0; i < len(data); i += max(len(data)/40, 1) {
			changed := bytes.Clone(data)
			changed[i] ^= 1
			try(name, "changed", changed)
		}
	}
	state := objects["threads/ten_a/states/"+string(tree.State)]
	state[len(state)-1] ^= 1
	must(t, b.Put(ctx, "threads/ten_a/states/"+string(tree.State), bytes.NewReader(state)))
	if _, err := s.Load(ctx, "ten_a", tree.State); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a changed state: %v", err)
	}
	for _, bad := range []State{"x", "../states/a", State(strings.Repeat("A", 32))} {
		if _, err := s.Load(ctx, "ten_a", bad); fault.KindOf(err) != fault.Invalid {
			t.Errorf("state %q: %v", bad, err)
		}
	}
}

// A bucket does what a folder does.
func TestBucket(t *testing.T) {
	s, _ := storeAt(t, atolltest.S3(t))
	g := &grower{t: t, rnd: rand.New(rand.NewPCG(9, 9)), dir: t.TempDir()}
	g.own(g.dir)
	var base *Tree
	for range 3 {
		g.change(40)
		base = save(t, s, g.dir, base)
		into := t.TempDir()
		restore(t, s, load(t, s, base.State), into, nil)
		equalMirrors(t, mirror(t, g.dir), mirror(t, into))
	}
	done, err := s.Collect(t.Context(), "ten_a", func(context.Context) ([]string, error) { return []string{string(base.State)}, nil })
	if err != nil || done != (thread.Collected{}) {
		t.Errorf("%+v, %v", done, err)
	}
}
