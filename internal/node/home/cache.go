package home

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/thread"
	"github.com/atoll-run/atoll/internal/node/cleanup"
)

// CacheConfig of a Cache.
type CacheConfig struct {
	Store *Store
	Dir   string // of the Cache alone; see Secure
	Bytes int64  // of unused homes, as Quota counts them
	Log   *slog.Logger

	Cleanup *cleanup.Queue // retries homes that a start could not drop; nil only logs them
}

// Cache is an executor's folder of homes: those in use, and of the others those
// that were used last. A home that is at the state that is asked for costs
// nothing to take; one at another state, the difference.
//
//	Dir/homes/KEY/home   the home, unless a sandbox has it
//	Dir/homes/KEY/index  what the home holds; there only while it is unused
//	Dir/homes/KEY/base   what it held when it was taken
//	Dir/trash            on its way out
type Cache struct {
	cfg  CacheConfig
	boot string

	mu    sync.Mutex
	all   map[string]*cached // by key
	idle  *list.List         // of *cached, the last used first
	bytes int64              // of them
	held  map[string]int64   // of them, by tenant
	trash int                // names given in the trash

	sweep  chan struct{} // there is trash
	done   chan struct{}
	closed sync.Once
	swept  sync.WaitGroup
}

type cached struct {
	key, tenant, id string
	size            int64
	entries         int64
	tree            *Tree         // nil if only the index has it
	at              *list.Element // nil while it is in use
	leaving         chan struct{} // if it is unused and being removed: closed when it is
}

// treesInMemory bounds the entries of the trees that idle homes keep in memory,
// some 200 bytes each. Others are read from their index.
const treesInMemory = 300_000

// entrySize is what an entry costs beside its data.
const entrySize = 4096

// OpenCache opens a folder, which is made if it is missing. Homes that an earlier
// process left in an unknown state are dropped.
func OpenCache(cfg CacheConfig) (*Cache, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, err
	}
	c := &Cache{cfg: cfg, boot: string(boot), all: map[string]*cached{}, idle: list.New(), held: map[string]int64{}, sweep: make(chan struct{}, 1), done: make(chan struct{})}
	for _, dir := range []string{c.cfg.Dir, c.path("homes"), c.path("trash")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, hostError("make", dir, err)
		}
	}
	if err := c.find(); err != nil {
		return nil, err
	}
	c.swept.Go(c.sweeper)
	c.wake()
	return c, nil
}

func (c *Cache) path(parts ...string) string {
	return filepath.Join(append([]string{c.cfg.Dir}, parts...)...)
}

func (e *cached) file(c *Cache, name string) string { return c.path("homes", e.key, name) }

// keyOf names a thread in the file system.
func keyOf(tenant, id string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s", len(tenant), tenant, id))
	return hex.EncodeToString(sum[:16])
}

// Home is a thread's home, for one user.
type Home struct {
	c     *Cache
	e     *cached
	limit thread.Quota
	tree  *Tree

	release func() // of the tenant's keys
}

// Dir is where the home is, and where it is brought back to if it was moved.
func (h *Home) Dir() string { return h.e.file(h.c, "home") }

// Take returns a thread's home as t.State has it. It has no other user until it is
// closed: another Take is a Conflict fault. The home keeps t.Key until then.
func (c *Cache) Take(ctx context.Context, tenant string, t execution.Thread) (*Home, error) {
	// First, so that no program runs whose home cannot be saved.
	release, err := c.cfg.Store.use(ctx, tenant, t.Key)
	if err != nil {
		return nil, fmt.Errorf("take home: %w", err)
	}
	e, err := c.claim(tenant, t.ID)
	if err != nil {
		release()
		return nil, err
	}
	h := &Home{c: c, e: e, limit: thread.Quota{Bytes: t.Quota}, release: release}
	if err := h.prepare(ctx, State(t.State)); err != nil {
		release()
		return nil, errors.Join(fmt.Errorf("take home: %w", err), c.drop(e))
	}
	return h, nil
}

// Adopt is Take for a home that an earlier process took from this cache, that a
// program may have changed since, and that is somewhere else now. t.State is what
// it was taken as.
func (c *Cache) Adopt(ctx context.Context, tenant string, t execution.Thread) (*Home, error) {
	e, err := c.claim(tenant, t.ID)
	if err != nil {
		return nil, err
	}
	release, err := c.cfg.Store.use(ctx, tenant, t.Key)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("adopt home: %w", err), c.drop(e))
	}
	h := &Home{c: c, e: e, limit: thread.Quota{Bytes: t.Quota}, release: release}
	// With what was known then, only what changed since is read; without, all.
	if h.tree, err = c.readIndex(e, "base"); err != nil || h.tree.State != State(t.State) {
		if h.tree, err = c.cfg.Store.Load(ctx, tenant, State(t.State)); err != nil {
			release()
			return nil, errors.Join(fmt.Errorf("adopt home: %w", err), c.drop(e))
		}
	}
	return h, nil
}

// claim marks a thread's home as used.
func (c *Cache) claim(tenant, id string) (*cached, error) {
	key := keyOf(tenant, id)
	for {
		c.mu.Lock()
		e := c.all[key]
		switch {
		case e == nil:
			e = &cached{key: key, tenant: tenant, id: id}
			c.all[key] = e
		case e.at != nil:
			c.idle.Remove(e.at)
			e.at = nil
			c.count(e, -e.size)
		case e.leaving != nil:
			c.mu.Unlock()
			<-e.leaving
			continue
		default:
			c.mu.Unlock()
			return nil, thread.ErrRunning
		}
		c.mu.Unlock()
		return e, nil
	}
}

// prepare brings the home to a state.
func (h *Home) prepare(ctx context.Context, state State) (err error) {
	c, e := h.c, h.e
	if e.size == 0 { // there is none
		return h.fresh(ctx, state)
	}
	// From here on nothing says what the home holds.
	if err := os.Rename(e.file(c, "index"), e.file(c, "base")); err != nil {
		return err
	}
	have := e.tree
	if e.tree = nil; have == nil {
		if have, err = c.readIndex(e, "base"); err != nil {
			return h.fresh(ctx, state)
		}
	}
	if have.State == state {
		h.tree = have
		return nil
	}
	if h.tree, err = c.cfg.Store.Load(ctx, e.tenant, state); err != nil {
		return err
	}
	if err := c.cfg.Store.Restore(ctx, e.tenant, h.tree, h.Dir(), have); err != nil {
		return err
	}
	return c.writeIndex(e, "base", h.tree)
}

// fresh restores the home whole.
func (h *Home) fresh(ctx context.Context, state State) (err error) {
	c, e := h.c, h.e
	if err := c.discard(e); err != nil { // what an earlier process left of it
		return err
	}
	if err := os.MkdirAll(h.Dir(), 0o700); err != nil {
		return hostError("make", h.Dir(), err)
	}
	if h.tree, err = c.cfg.Store.Load(ctx, e.tenant, state); err != nil {
		return err
	}
	if err := c.cfg.Store.Restore(ctx, e.tenant, h.tree, h.Dir(), nil); err != nil {
		return err
	}
	return c.writeIndex(e, "base", h.tree)
}

// Save stores what dir holds, which is the home wherever it is by now, and says
// what the thread has from then on. After an error it has what it had.
func (h *Home) Save(ctx context.Context, dir string) (execution.ThreadState, error) {
	tree, err := h.c.cfg.Store.Save(ctx, h.e.tenant, dir, h.tree, h.limit)
	if err != nil {
		return execution.ThreadState{}, fmt.Errorf("save home: %w", err)
	}
	h.tree = tree
	return tree.ThreadState(), nil
}

// Close lets go of the home. With keep it is at Dir, as it was saved last, and
// stays for the next Take; otherwise it is removed, if it is at Dir.
func (h *Home) Close(keep bool) error {
	defer h.release()
	c, e := h.c, h.e
	if !keep {
		return c.drop(e)
	}
	err := h.tidy()
	if err == nil {
		err = c.writeIndex(e, "index", h.tree)
	}
	if err != nil {
		return errors.Join(err, c.drop(e))
	}
	c.mu.Lock()
	e.tree, e.entries = h.tree, h.tree.Files+1
	e.size = h.tree.Bytes + e.entries*entrySize
	e.at = c.idle.PushFront(e)
	c.count(e, e.size)
	c.forgetTrees()
	c.mu.Unlock()
	return c.evict()
}

// tidy removes what is in the home and in no state: a restored home would not
// have it.
func (h *Home) tidy() error {
	if !hasForeign(h.tree.root) {
		return nil
	}
	return h.c.cfg.Store.Restore(context.Background(), h.e.tenant, h.tree, h.Dir(), h.tree)
}

func hasForeign(n *node) bool {
	if len(n.foreign) > 0 {
		return true
	}
	for _, c := range n.children {
		if c.kind == kindDir && hasForeign(c) {
			return true
		}
	}
	return false
}

// forgetTrees leaves the trees of the homes used last in memory.
func (c *Cache) forgetTrees() {
	var sum int64
	for at := c.idle.Front(); at != nil; at = at.Next() {
		e := at.Value.(*cached)
		if sum += e.entries; sum > treesInMemory {
			e.tree = nil
		}
	}
}
