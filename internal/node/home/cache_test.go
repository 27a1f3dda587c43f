package home

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
)

func openCache(t *testing.T, s *Store, dir string, bytes int64) *Cache {
	t.Helper()
	c, err := OpenCache(CacheConfig{Store: s, Dir: dir, Bytes: bytes, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func take(t *testing.T, c *Cache, id string, state State) *Home {
	t.Helper()
	h, err := c.Take(t.Context(), "ten_a", execution.Thread{ID: id, State: string(state)})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// use writes a file into a home that is moved away meanwhile, and saves it.
func use(t *testing.T, h *Home, name, content string) State {
	t.Helper()
	away := filepath.Join(h.c.cfg.Dir, "away-"+h.e.key)
	must(t, os.Rename(h.Dir(), away))
	write(t, filepath.Join(away, name), content)
	st, err := h.Save(t.Context(), away)
	must(t, err)
	must(t, os.Rename(away, h.Dir()))
	return State(st.State)
}

// write makes a file as a program in a sandbox would.
func write(t *testing.T, path, content string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(content), 0o600))
	must(t, os.Chown(path, int(testOwners.UID.Host)+1000, int(testOwners.GID.Host)+1000))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Lstat(path, &st))
	return st.Ino
}

func TestCacheReuses(t *testing.T) {
	s, _ := folderStore(t)
	dir := t.TempDir()
	c := openCache(t, s, dir, 1<<30)
	h := take(t, c, "one", "")
	if _, err := c.Take(t.Context(), "ten_a", execution.Thread{ID: "one"}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("taken twice: %v", err)
	}
	first := use(t, h, "a", "1")
	second := use(t, h, "b", "2")
	must(t, h.Close(true))

	h = take(t, c, "one", second)
	ino := inode(t, filepath.Join(h.Dir(), "a"))
	must(t, h.Close(true))

	// An earlier state: what is the same stays.
	h = take(t, c, "one", first)
	if _, err := os.Lstat(filepath.Join(h.Dir(), "b")); !os.IsNotExist(err) {
		t.Error("the file of the later state is there")
	}
	if inode(t, filepath.Join(h.Dir(), "a")) != ino {
		t.Error("a file was made anew that is the same")
	}
	must(t, h.Close(true))

	// The next process finds it.
	c.Close()
	c = openCache(t, s, dir, 1<<30)
	h = take(t, c, "one", first)
	if inode(t, filepath.Join(h.Dir(), "a")) != ino {
		t.Error("an idle home was not taken over")
	}
	must(t, os.WriteFile(filepath.Join(h.Dir(), "half"), nil, 0o600))
	// Killed here: it is not known what the home holds.
	c = openCache(t, s, dir, 1<<30)
	h = take(t, c, "one", first)
	if _, err := os.Lstat(filepath.Join(h.Dir(), "half")); !os.IsNotExist(err) {
		t.Error("a home in an unknown state was used")
	}
	if got, err := os.ReadFile(filepath.Join(h.Dir(), "a")); err != nil || string(got) != "1" {
		t.Errorf("%q, %v", got, err)
	}
	must(t, h.Close(false))
	if _, err := os.Lstat(h.Dir()); !os.IsNotExist(err) {
		t.Error("a home that is not kept is there")
	}
}

func TestCacheAdopts(t *testing.T) {
	s, _ := folderStore(t)
	dir := t.TempDir()
	c := openCache(t, s, dir, 1<<30)
	h := take(t, c, "one", "")
	state := use(t, h, "a", "1")
	must(t, h.Close(true))
	h = take(t, c, "one", state)
	away := filepath.Join(dir, "away")
	must(t, os.Rename(h.Dir(), away))

	c = openCache(t, s, dir, 1<<30) // the first was killed while a sandbox had the home
	write(t, filepath.Join(away, "b"), "2")
	h, err := c.Adopt(t.Context(), "ten_a", execution.Thread{ID: "one", State: string(state)})
	must(t, err)
	if n := h.tree.root.children[0]; n.stamp.ino != inode(t, filepath.Join(away, "a")) {
		t.Error("what was known of the home is lost")
	}
	st, err := h.Save(t.Context(), away)
	must(t, err)
	must(t, os.Rename(away, h.Dir()))
	must(t, h.Close(true))
	out := t.TempDir()
	restore(t, s, load(t, s, State(st.State)), out, nil)
	equalMirrors(t, mirror(t, h.Dir()), mirror(t, out))
	c.Close()
}

func TestCacheEvicts(t *testing.T) {
	s, _ := folderStore(t)
	dir := t.TempDir()
	c := openCache(t, s, dir, 1<<30)
	c.cfg.Bytes = 3 * 2 * entrySize
	for _, id := range []string{"a", "b", "c", "d"} {
		h := take(t, c, id, "")
		use(t, h, "f", "x")
		must(t, h.Close(true))
	}
	if c.all[keyOf("ten_a", "a")] != nil || c.all[keyOf("ten_a", "d")] == nil {
		t.Errorf("kept: %v", c.all)
	}
	c.Close()
	left, err := os.ReadDir(filepath.Join(dir, "trash"))
	if err != nil || len(left) != 0 {
		t.Errorf("trash: %v, %v", left, err)
	}
	if left, _ = os.ReadDir(filepath.Join(dir, "homes")); len(left) > 3 {
		t.Errorf("%d homes are left", len(left))
	}
}

// TestNeighborKeepsItsHome: a tenant that fills the cache loses its own homes, and not those of
// another one that were used before.
func TestNeighborKeepsItsHome(t *testing.T) {
	s, _ := folderStore(t)
	c := openCache(t, s, t.TempDir(), 1<<30)
	defer c.Close()
	c.cfg.Bytes = 3 * 2 * entrySize
	h, err := c.Take(t.Context(), "ten_neighbor", execution.Thread{ID: "own"})
	must(t, err)
	use(t, h, "f", "x")
	must(t, h.Close(true))
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		h := take(t, c, id, "")
		use(t, h, "f", "x")
		must(t, h.Close(true))
	}
	if c.all[keyOf("ten_neighbor", "own")] == nil || c.all[keyOf("ten_a", "e")] == nil || c.all[keyOf("ten_a", "a")] != nil {
		t.Errorf("kept: %v", c.all)
	}
}

func TestForgottenHomesAreRemoved(t *testing.T) {
	s, _ := folderStore(t)
	dir := t.TempDir()
	c := openCache(t, s, dir, 1<<30)
	for _, id := range []string{"a", "b"} {
		h := take(t, c, id, "")
		use(t, h, "f", "x")
		must(t, h.Close(true))
	}
	if got := c.Unused(); len(got) != 2 || got[0] != (Ref{"ten_a", "b"}) || got[1] != (Ref{"ten_a", "a"}) {
		t.Errorf("unused: %v", got)
	}
	used := take(t, c, "b", "")
	use(t, used, "g", "x")
	for _, id := range []string{"a", "b", "unknown"} {
		must(t, c.Forget(Ref{"ten_a", id}))
	}
	if c.all[keyOf("ten_a", "a")] != nil || c.all[keyOf("ten_a", "b")] == nil {
		t.Errorf("kept: %v", c.all)
	}
	must(t, used.Close(true)) // a new thread of that name
	c.Close()
	if left, err := os.ReadDir(filepath.Join(dir, "homes")); err != nil || len(left) != 1 {
		t.Errorf("%d homes are left, want that of b: %v", len(left), err)
	}
}

// A caller that takes a home that is just being evicted waits and gets another one:
// the evicted one is not in use.
func TestEvictionIsNoUse(t *testing.T) {
	s, _ := folderStore(t)
	synctest.Test(t, func(t *testing.T) {
		c := openCache(t, s, t.TempDir(), 1<<30)
		must(t, take(t, c, "one", "").Close(true))
		c.cfg.Bytes = 0
		e := c.surplus()
		var taken *Home
		go func() { taken = take(t, c, "one", "") }()
		synctest.Wait()
		if taken != nil {
			t.Error("what is being removed was taken")
		}
		must(t, c.drop(e))
		close(e.leaving)
		synctest.Wait()
		if _, err := os.Stat(taken.Dir()); err != nil {
			t.Error(err)
		}
		must(t, taken.Close(false))
	})
}

// A socket is no part of a state, so a home that is kept must not have it either.
func TestCacheTidies(t *testing.T) {
	s, _ := folderStore(t)
	c := openCache(t, s, t.TempDir(), 1<<30)
	h := take(t, c, "one", "")
	must(t, os.Mkdir(filepath.Join(h.Dir(), "d"), 0o700))
	must(t, unix.Mknod(filepath.Join(h.Dir(), "d", "s"), unix.S_IFSOCK|0o600, 0))
	state := use(t, h, "a", "1")
	must(t, h.Close(true))
	h = take(t, c, "one", state)
	if _, err := os.Lstat(filepath.Join(h.Dir(), "d", "s")); !os.IsNotExist(err) {
		t.Error("the socket is still there")
	}
	if again, err := h.Save(t.Context(), h.Dir()); err != nil || State(again.State) != state {
		t.Errorf("tidying made another state: %v, %v", again, err)
	}
}
