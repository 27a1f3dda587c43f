package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	goruntime "runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/image"
	"github.com/atoll-run/atoll/internal/node/pool"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
)

const (
	// standbyDelay lets a sandbox that was just made or woken begin to work before
	// kernels are made ahead. While sandboxes are being woken that waits for up to
	// standbyLatest.
	standbyDelay  = 100 * time.Millisecond
	standbyLatest = time.Second
	// standbyTime is how long kernels wait for another fork of a sandbox, or for one
	// that was woken to sleep and be woken again.
	standbyTime = 10 * time.Minute
	// standbySleepers is how many kernels of a key wait for sandboxes that sleep on
	// disk: as many as wake at one moment.
	standbySleepers = 2
)

// standby keeps kernels that become whichever sandbox is compatible with them: one that
// wakes, or a fork. A kernel takes longer to start than to restore a checkpoint.
type standby struct {
	pool    *pool.Pool[compatKey, *kernel]
	figures *standbyMetrics
	limit   int // kernels that wait, of all keys

	mu      sync.Mutex
	unfit   error                    // guarded by mu; why kernels cannot become sandboxes on this machine
	parts   map[compatKey]*parts     // guarded by mu
	asleep  map[runtime.ID]compatKey // guarded by mu; sandboxes that sleep on disk
	forks   map[runtime.ID]fork      // guarded by mu; those that are being made
	closing bool                     // guarded by mu
}

// parts are what kernels of a key are made from. standby.mu guards it.
type parts struct {
	recipe sandboxes.Recipe // of the last sandbox that asked for kernels
	asleep []runtime.ID     // sandboxes that sleep on disk
	until  time.Time        // when the parts are needed no more, unless sandboxes sleep
}

// kernel is one that waits.
type kernel struct{ runtime.Prepared }

// Done implements pool.Item: a kernel that died fails to restore.
func (*kernel) Done() <-chan struct{} { return nil }

func (e *Engine) openStandby() error {
	m, err := newStandbyMetrics(e.cfg.Registry)
	if err != nil {
		return err
	}
	e.standby = &standby{
		figures: m, limit: e.cfg.Standby, parts: map[compatKey]*parts{}, asleep: map[runtime.ID]compatKey{}, forks: map[runtime.ID]fork{},
	}
	e.standby.pool = pool.New(pool.Config[compatKey, *kernel]{
		Name: "standby kernels", Build: Sandboxes{e}.buildKernel, Builders: 1, Rush: 2 * goruntime.GOMAXPROCS(0), MaxItems: e.cfg.Standby,
		RefillDelay: standbyDelay, MaxDelay: standbyLatest, PeakTime: standbyTime, RetryDelay: refillRetry,
		Log: e.cfg.Log, Metrics: m,
	})
	return nil
}

// note keeps what kernels of a key are made from, for a while.
func (s *standby) note(key compatKey, r sandboxes.Recipe) *parts {
	now := time.Now()
	for other, p := range s.parts {
		if len(p.asleep) == 0 && now.After(p.until) {
			delete(s.parts, other)
		}
	}
	p := s.parts[key]
	if p == nil {
		p = &parts{}
		s.parts[key] = p
	}
	// The pool may have learned from a claim, and forgets that later than standbyTime.
	p.recipe, p.until = r, now.Add(2*standbyTime)
	return p
}

// expect has count kernels for sandboxes like one of an id wait for a while.
func (n Sandboxes) expect(id runtime.ID, r sandboxes.Recipe, count int) {
	s := n.e.standby
	key, err := n.compatKey(id, r)
	if err != nil || s.limit == 0 {
		return // it cannot be woken, or is being removed
	}
	s.mu.Lock()
	fit := s.unfit == nil
	if fit {
		s.note(key, r)
	}
	s.mu.Unlock()
	if fit {
		s.pool.Expect(key, count, s.limit)
	}
}

// fellAsleep notes that a sandbox sleeps on disk.
func (n Sandboxes) fellAsleep(r sandboxes.Recipe) {
	s := n.e.standby
	key, err := n.compatKey(r.ID, r)
	if err != nil || s.limit == 0 {
		return
	}
	n.awoke(r.ID)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unfit != nil {
		return
	}
	p := s.note(key, r)
	p.asleep = append(p.asleep, r.ID)
	s.asleep[r.ID] = key
	s.pool.Want(key, min(len(p.asleep), standbySleepers), s.limit)
}

// awoke notes that a sandbox does not sleep on disk any more.
func (n Sandboxes) awoke(id runtime.ID) {
	s := n.e.standby
	s.mu.Lock()
	defer s.mu.Unlock()
	key, ok := s.asleep[id]
	if !ok {
		return
	}
	delete(s.asleep, id)
	p := s.parts[key]
	p.asleep = slices.DeleteFunc(p.asleep, func(other runtime.ID) bool { return other == id })
	s.pool.Want(key, min(len(p.asleep), standbySleepers), s.limit)
}

// reserve claims a kernel that is to become a sandbox like one of an id; nil where
// kernels cannot.
func (n Sandboxes) reserve(id runtime.ID, r sandboxes.Recipe, img *image.Image) (*pool.Reservation[compatKey, *kernel], error) {
	s := n.e.standby
	key, err := n.compatKey(id, r)
	if err != nil {
		return nil, fmt.Errorf("read what %s is made of: %w", id, err)
	}
	s.mu.Lock()
	unfit := s.unfit != nil || img.Rootfs.Image == ""
	if !unfit {
		like := r
		like.ID = id // its folder has the guest's image
		s.note(key, like)
	}
	s.mu.Unlock()
	if unfit {
		return nil, nil
	}
	return s.pool.Reserve(key)
}

// buildKernel starts a kernel of a key, for the pool.
func (n Sandboxes) buildKernel(ctx context.Context, key compatKey, _ pool.Use) (_ *kernel, err error) {
	s := n.e.standby
	s.mu.Lock()
	p := s.parts[key]
	if p == nil {
		s.mu.Unlock()
		return nil, pool.ErrGone
	}
	r, ids := p.recipe, append([]runtime.ID{p.recipe.ID}, p.asleep...)
	s.mu.Unlock()
	img, release, err := n.e.useImage(r.Image)
	if err != nil {
		return nil, errors.Join(pool.ErrGone, err)
	}
	defer func() { err = errors.Join(err, release()) }()
	if img.Digest != key.Digest {
		return nil, fmt.Errorf("%w: the image %q was replaced", pool.ErrGone, r.Image)
	}
	mounts, err := n.e.host.blank(r)
	if err != nil {
		return nil, err
	}
	r.ID = runtime.NewID()
	spec := n.spec(r, img, mounts)
	if spec.Guest, err = n.e.host.guestOf(key, ids); errors.Is(err, fs.ErrNotExist) {
		return nil, pool.ErrGone // the sandboxes are
	} else if err != nil {
		return nil, err
	}
	k, err := n.runtime(r).Prepare(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &kernel{k}, nil
}

// become has a claimed kernel become a sandbox; nil if it cannot.
func (n Sandboxes) become(ctx context.Context, claim *pool.Reservation[compatKey, *kernel], r sandboxes.Recipe) runtime.Prepared {
	k, err := claim.Item(ctx)
	if err != nil {
		if ctx.Err() == nil {
			n.e.cfg.Log.WarnContext(ctx, "cannot create a standby kernel; starting one for this sandbox", "sandbox_id", string(r.ID), "error", err)
		}
		return nil
	}
	err = n.withMounts(ctx, r, func(mounts []runtime.Mount) error { return k.Become(r.ID, mounts) })
	if err == nil {
		return k.Prepared
	}
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) || errors.Is(err, runtime.ErrUnsupported) {
		n.e.standby.mu.Lock()
		n.e.standby.unfit = err
		n.e.standby.mu.Unlock()
	}
	n.e.cfg.Log.WarnContext(ctx, "a standby kernel could not become the sandbox; starting another one", "sandbox_id", string(r.ID), "error", errors.Join(err, k.Destroy(context.WithoutCancel(ctx))))
	return nil
}

// closeStandby ends every kernel that waits.
func (n Sandboxes) closeStandby() error {
	s := n.e.standby
	if s == nil {
		return nil
	}
	s.mu.Lock()
	s.closing = true
	var ids []runtime.ID
	for id := range s.forks {
		ids = append(ids, id)
	}
	s.mu.Unlock()
	var errs []error
	for _, id := range ids {
		errs = append(errs, n.Remove(context.Background(), id))
	}
	s.pool.Close()
	return errors.Join(errs...)
}
