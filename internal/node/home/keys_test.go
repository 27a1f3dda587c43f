package home

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/thread"
	"github.com/atoll-run/atoll/internal/infra/blob"
)

// keysStore returns a Store that asks f for keys.
func keysStore(t *testing.T, b *blob.Store, f func(context.Context, string) ([]byte, error)) *Store {
	t.Helper()
	s, err := NewStore(Config{Blobs: b, Keys: f, Owners: testOwners})
	must(t, err)
	return s
}

func tenantKey(t *testing.T, tenant string) []byte {
	t.Helper()
	key, err := TenantKey(testKey, tenant)
	must(t, err)
	return key
}

func fromOperator(_ context.Context, tenant string) ([]byte, error) {
	return TenantKey(testKey, tenant)
}

// TestTenantKey fails when the keys change with which stored data was encrypted.
func TestTenantKey(t *testing.T) {
	const want = "c91e646cbb7fe72ebe4d58b57542fd0fcfe123a3d44429d235fe48c5f67b1ae7d7cdc084d39e7fb3fbfbfb943abe83f7532a7b2bd2e17309f9308d5f316da0e4"
	if got := hex.EncodeToString(tenantKey(t, "ten_a")); got != want {
		t.Errorf("the key is %s", got)
	}
	if string(tenantKey(t, "ten_a")) == string(tenantKey(t, "ten_b")) {
		t.Error("two tenants have the same key")
	}
	if _, err := TenantKey(testKey[1:], "ten_a"); err == nil {
		t.Error("a short key was taken")
	}
}

func TestExactlyOneSourceOfKeys(t *testing.T) {
	for name, cfg := range map[string]Config{
		"none": {}, "both": {Key: testKey, Keys: Learned}, "a short key": {Key: testKey[1:]}, "an empty key": {Key: []byte{}},
	} {
		if _, err := NewStore(cfg); err == nil {
			t.Errorf("%s: a store was made", name)
		}
	}
}

// TestStoresReadEachOther reads data of a Store with Key by one with Keys, and the other way round.
func TestStoresReadEachOther(t *testing.T) {
	operator, b := folderStore(t)
	asks := keysStore(t, b, fromOperator)
	for name, c := range map[string]struct{ writes, reads *Store }{
		"with the operator's key, then a tenant's": {operator, asks},
		"with a tenant's key, then the operator's": {asks, operator},
	} {
		dir, into := t.TempDir(), t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "f"), []byte(strings.Repeat(name, 1e5)), 0o600))
		must(t, os.Mkdir(filepath.Join(dir, "d"), 0o700))
		first := save(t, c.writes, dir, nil)
		read := load(t, c.reads, first.State)
		restore(t, c.reads, read, into, nil)
		own := t.TempDir()
		restore(t, c.writes, load(t, c.writes, first.State), own, nil)
		equalMirrors(t, mirror(t, own), mirror(t, into))
		if second := save(t, c.reads, dir, read); second.root.children[1].chunks[0] != first.root.children[1].chunks[0] {
			t.Errorf("%s: the content was stored twice", name)
		}
	}
}

// TestAStoreWithoutTheKeyDoesNothing: each call says why it fails, and changes nothing.
func TestAStoreWithoutTheKeyDoesNothing(t *testing.T) {
	operator, b := folderStore(t)
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "f"), []byte("x"), 0o600))
	tree := save(t, operator, dir, nil)
	broken := errors.New("no gateway answers")
	before := objects(t, b)
	for name, c := range map[string]struct {
		keys func(context.Context, string) ([]byte, error)
		want func(error) bool
	}{
		"no key was learned": {Learned, func(err error) bool {
			return fault.KindOf(err) == fault.Unavailable && strings.Contains(err.Error(), `no key for the stored files of the tenant "ten_a"`)
		}},
		"Keys fails":     {func(context.Context, string) ([]byte, error) { return nil, broken }, func(err error) bool { return errors.Is(err, broken) }},
		"half a key":     {func(context.Context, string) ([]byte, error) { return testKey, nil }, func(err error) bool { return err != nil && !strings.Contains(err.Error(), string(testKey)) }},
		"no key, no err": {func(context.Context, string) ([]byte, error) { return nil, nil }, func(err error) bool { return err != nil }},
	} {
		s := keysStore(t, b, c.keys)
		into := t.TempDir()
		_, saved := s.Save(t.Context(), "ten_a", dir, nil, thread.Quota{})
		_, loaded := s.Load(t.Context(), "ten_a", tree.State)
		restored := s.Restore(t.Context(), "ten_a", tree, into, nil)
		_, read := s.ReadFile(t.Context(), "ten_a", tree, "f", 0, -1)
		_, written := s.WriteFile(t.Context(), "ten_a", tree, "g", strings.NewReader("y"), thread.Quota{})
		_, collected := s.Collect(t.Context(), "ten_a", func(context.Context) ([]string, error) { return nil, nil })
		cacheDir := t.TempDir()
		cache := openCache(t, s, cacheDir, 1<<30)
		_, taken := cache.Take(t.Context(), "ten_a", execution.Thread{ID: "one"})
		_, adopted := cache.Adopt(t.Context(), "ten_a", execution.Thread{ID: "one"})
		for what, err := range map[string]error{
			"save": saved, "load": loaded, "restore": restored, "read": read, "write": written, "collect": collected, "take": taken, "adopt": adopted,
		} {
			if !c.want(err) {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
		for _, folder := range []string{into, filepath.Join(cacheDir, "homes")} {
			if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
				t.Errorf("%s: left are %v, %v", name, left, err)
			}
		}
		if len(cache.all) != 0 || len(s.tenants) != 0 {
			t.Errorf("%s: homes %v and tenants %v are known", name, cache.all, s.tenants)
		}
	}
	if after := objects(t, b); after != before {
		t.Errorf("the blob store has %s, not %s", after, before)
	}
}

// objects lists the objects of a blob store.
func objects(t *testing.T, b *blob.Store) string {
	t.Helper()
	var out strings.Builder
	for info, err := range b.List(t.Context(), "threads") {
		must(t, err)
		fmt.Fprintln(&out, info.Name, info.Size)
	}
	return out.String()
}

// TestHomesBringKeys: the keys that come with executions are there while a Home is in use, and
// not later.
func TestHomesBringKeys(t *testing.T) {
	operator, b := folderStore(t)
	s := keysStore(t, b, Learned)
	dir := t.TempDir()
	c := openCache(t, s, dir, 1<<30)
	key := tenantKey(t, "ten_a")
	takeWith := func(id string, state State, key []byte) (*Home, error) {
		return c.Take(t.Context(), "ten_a", execution.Thread{ID: id, State: string(state), Key: key})
	}
	has := func() bool { return s.tenants["ten_a"] != nil && s.tenants["ten_a"].keys.object != nil }

	one, err := takeWith("one", "", key)
	must(t, err)
	clear(key) // the executor's copy is not the Store's
	key = tenantKey(t, "ten_a")
	two, err := takeWith("two", "", key)
	must(t, err)
	if _, err := takeWith("one", "", key); fault.KindOf(err) != fault.Conflict {
		t.Errorf("taken twice: %v", err)
	}
	if _, err := takeWith("three", "", tenantKey(t, "ten_b")); fault.KindOf(err) != fault.Internal || !strings.Contains(err.Error(), "another key") {
		t.Errorf("with the key of another tenant: %v", err)
	}
	if _, err := takeWith("three", State(strings.Repeat("ab", 16)), key); err == nil {
		t.Error("a state was loaded that does not exist")
	}
	first := use(t, one, "a", "1")
	must(t, one.Close(true))
	if !has() {
		t.Fatal("the key is gone that the second home needs")
	}
	s.Forget("ten_a") // the tenant is deleted while an execution runs
	state := use(t, two, "b", "2")
	must(t, two.Close(false))
	must(t, two.Close(false)) // releases nothing twice
	if has() {
		t.Error("the key is there after the last home was closed")
	}
	for id, st := range map[string]State{"one": first, "two": state} {
		restore(t, operator, load(t, operator, st), t.TempDir(), nil)
		if _, err := takeWith(id, st, nil); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("%s without the key: %v", id, err)
		}
	}

	// A failed Take leaves an unused home as it was.
	one, err = takeWith("one", first, key)
	must(t, err)
	ino := inode(t, filepath.Join(one.Dir(), "a"))
	must(t, one.Close(true))
	if _, err := takeWith("one", first, nil); err == nil {
		t.Fatal("taken without the key")
	}
	one, err = takeWith("one", first, key)
	must(t, err)
	if inode(t, filepath.Join(one.Dir(), "a")) != ino {
		t.Error("the cached home was dropped")
	}

	// The next process learns the key from the job that it adopts.
	away := filepath.Join(dir, "away")
	must(t, os.Rename(one.Dir(), away))
	s = keysStore(t, b, Learned)
	c = openCache(t, s, dir, 1<<30)
	one, err = c.Adopt(t.Context(), "ten_a", execution.Thread{ID: "one", State: string(first), Key: key})
	must(t, err)
	write(t, filepath.Join(away, "c"), "3")
	st, err := one.Save(t.Context(), away)
	must(t, err)
	must(t, os.Rename(away, one.Dir()))
	must(t, one.Close(true))
	if has() {
		t.Error("the key is there after the adopted home was closed")
	}
	into := t.TempDir()
	restore(t, operator, load(t, operator, State(st.State)), into, nil)
	equalMirrors(t, mirror(t, into), mirror(t, one.Dir()))
}

// TestIndexOutlivesKeys: a tenant's next execution need not read the indexes of packs again.
func TestIndexOutlivesKeys(t *testing.T) {
	_, b := folderStore(t)
	s := keysStore(t, b, Learned)
	for range 2 {
		release, err := s.use(t.Context(), "ten_a", tenantKey(t, "ten_a"))
		must(t, err)
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "f"), make([]byte, 100), 0o600))
		save(t, s, dir, nil)
		release()
	}
	if got := s.tenants["ten_a"]; got.keys.object != nil || len(got.index.packs) < 2 {
		t.Errorf("keys %t, %d packs known", got.keys.object != nil, len(got.index.packs))
	}
}

func TestForgetAsksAgain(t *testing.T) {
	_, b := folderStore(t)
	asked := 0
	s := keysStore(t, b, func(ctx context.Context, tenant string) ([]byte, error) {
		asked++
		return fromOperator(ctx, tenant)
	})
	dir := t.TempDir()
	for _, want := range []int{1, 1} {
		save(t, s, dir, nil)
		if asked != want {
			t.Errorf("asked %d times, not %d", asked, want)
		}
	}
	s.Forget("ten_a")
	s.Forget("ten_unknown")
	save(t, s, dir, nil)
	if asked != 2 {
		t.Errorf("asked %d times after Forget", asked)
	}
}

// TestTenantsAreBounded: with too many tenants a Store forgets some, but none in use.
func TestTenantsAreBounded(t *testing.T) {
	_, b := folderStore(t)
	s := keysStore(t, b, func(context.Context, string) ([]byte, error) { return make([]byte, TenantKeySize), nil })
	release, err := s.use(t.Context(), "ten_a", nil)
	must(t, err)
	for i := range maxTenants + 10 {
		_, err := s.tenant(t.Context(), fmt.Sprint(i))
		must(t, err)
	}
	if len(s.tenants) != maxTenants || s.tenants["ten_a"] == nil {
		t.Errorf("%d tenants, the one in use among them: %t", len(s.tenants), s.tenants["ten_a"] != nil)
	}
	release()
}

// TestKeysConcurrently: executions of a tenant begin and end at any time, and each has the keys
// until its end.
func TestKeysConcurrently(t *testing.T) {
	_, b := folderStore(t)
	s := keysStore(t, b, Learned)
	key := tenantKey(t, "ten_a")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 500 {
				release, err := s.use(t.Context(), "ten_a", key)
				if err != nil {
					t.Error(err)
					return
				}
				if second, err := s.use(t.Context(), "ten_a", nil); err != nil {
					t.Error(err)
				} else {
					second()
				}
				s.Forget("ten_a")
				ts, err := s.tenant(t.Context(), "ten_a")
				if err != nil {
					t.Error(err)
				} else {
					ts.keys.sum(key)
				}
				release()
			}
		})
	}
	group.Wait()
	if ts := s.tenants["ten_a"]; ts.keys.object != nil || ts.users != 0 {
		t.Errorf("after all have ended: %d users, keys %t", ts.users, ts.keys.object != nil)
	}
}

func BenchmarkUse(b *testing.B) {
	s, _ := folderStore(b)
	for b.Loop() {
		release, err := s.use(b.Context(), "ten_a", nil)
		must(b, err)
		release()
	}
}
