package executor_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/infra/blob"
	"github.com/atoll-run/atoll/internal/node/home"
	"github.com/atoll-run/atoll/internal/node/idmap"
)

// homes are a machine's threads: their cache, and the store of their states.
type homes struct {
	blobs *faulty
	store *home.Store // with the operator's key; that of the cache learns the keys of tenants from jobs
	cache *home.Cache
	dir   string // of the blob store
}

var operatorKey = make([]byte, home.KeySize)

// faulty is a blob store that can be away.
type faulty struct {
	*blob.Store
	away atomic.Bool
}

var errAway = errors.New("the bucket cannot be reached")

func (f *faulty) Put(ctx context.Context, name string, r io.Reader) error {
	if f.away.Load() {
		return errAway
	}
	return f.Store.Put(ctx, name, r)
}

func openHomes(ctx context.Context, dir string, log *slog.Logger) (_ *homes, err error) {
	h := &homes{blobs: &faulty{}, dir: filepath.Join(dir, "threads")}
	if h.blobs.Store, err = blob.Open(ctx, "file://"+h.dir); err != nil {
		return nil, err
	}
	owners, err := idmap.Find()
	if err != nil {
		return nil, err
	}
	if h.store, err = home.NewStore(home.Config{Blobs: h.blobs, Key: operatorKey, Owners: owners}); err != nil {
		return nil, err
	}
	learns, err := home.NewStore(home.Config{Blobs: h.blobs, Keys: home.Learned, Owners: owners})
	if err != nil {
		return nil, err
	}
	h.cache, err = home.OpenCache(home.CacheConfig{Store: learns, Dir: filepath.Join(dir, "cache"), Bytes: 1 << 30, Log: log})
	return h, err
}

func (h *homes) close() error {
	h.cache.Close()
	return h.blobs.Close()
}

// restored returns the files of a state, by their paths.
func (h *homes) restored(t *testing.T, state string) map[string]string {
	t.Helper()
	tree, err := h.store.Load(t.Context(), "ten", home.State(state))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := h.store.Restore(t.Context(), "ten", tree, dir, nil); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		files[rel] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// threadJob is a job of a thread, which has a state.
func threadJob(id, state, language, code string) execution.Job {
	j := job(code)
	j.Language = execution.Language(language)
	j.Thread = &execution.Thread{ID: id, State: state}
	var err error
	if j.Thread.Key, err = home.TenantKey(operatorKey, j.Tenant); err != nil {
		panic(err) // of a wrong length alone
	}
	return j
}
