package engine

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
)

const (
	// spareTime is how long kernels wait for somebody to copy a sandbox again, or for
	// one that has just been woken to sleep and be woken again.
	spareTime = 10 * time.Minute
	// spareDelay lets what was just made or woken begin to work before others are
	// made ready; beside sandboxes that are being woken that waits longer, this often.
	spareDelay  = 100 * time.Millisecond
	spareDelays = 10
	// sleepersSpares is how many kernels of a likeness wait for sandboxes that sleep on
	// disk: for as many that wake at one moment.
	sleepersSpares = 2
)

// spares are the kernels that wait for the memory of whichever sandbox is like them.
// A kernel takes longer to start than to be given its memory.
type spares struct {
	making sync.WaitGroup // of spares, and their end

	mu      sync.Mutex
	closed  bool                    // guarded by mu
	filling bool                    // guarded by mu; somebody makes what is lacking
	waking  int                     // guarded by mu; sandboxes that are being woken
	unfit   error                   // guarded by mu; why kernels cannot become others here
	turn    int                     // guarded by mu; counts what demands are made by
	demands map[likeness]*demand    // guarded by mu
	asleep  map[runtime.ID]likeness // guarded by mu; what sleeps on disk
}

// demand is who may soon want kernels of a likeness, and those that wait for them.
// It is guarded by spares.mu.
type demand struct {
	recipe sandboxes.Recipe // of the last one that made it
	asleep []runtime.ID     // who sleeps on disk
	recent int              // kernels wanted since sandboxes were copied or woken
	over   *time.Timer      // ends that; nil if there is none
	turn   int              // when it was made last
	ready  []*spare         // oldest first; the last one may still be made
}

// spare is one of the kernels.
type spare struct {
	made   chan struct{}    // closed when it is, or could not be
	kernel runtime.Prepared // nil if it could not be
}

func (d *demand) wants() int { return max(d.recent, min(len(d.asleep), sleepersSpares)) }

// end has nobody demand it any more.
func (d *demand) end() {
	d.recent, d.asleep = 0, nil
	if d.over != nil {
		d.over.Stop()
	}
}

// stir notes that somebody has made a demand, which is changed by change, and has
// what it lacks made.
func (n Named) stir(like likeness, r sandboxes.Recipe, change func(*demand)) {
	s := &n.e.spares
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || n.e.cfg.Spares == 0 || s.unfit != nil {
		return
	}
	d := s.demands[like]
	if d == nil {
		d = &demand{}
		s.demands[like] = d
	}
	s.turn++
	d.recipe, d.turn = r, s.turn
	change(d)
	if !s.filling {
		s.filling = true
		s.making.Go(n.fill)
	}
}

// want has count kernels of a likeness wait for a while.
func (n Named) want(like likeness, r sandboxes.Recipe, count int) {
	n.stir(like, r, func(d *demand) {
		d.recent = max(d.recent, count)
		if d.over == nil {
			d.over = time.AfterFunc(spareTime, func() { n.settle(like, func(d *demand) { d.recent, d.over = 0, nil }) })
		}
		d.over.Reset(spareTime)
	})
}

// slept notes that a sandbox sleeps on disk.
func (n Named) slept(r sandboxes.Recipe) {
	like, err := n.likeness(r.ID, r)
	if err != nil {
		return // it cannot be woken, or is being removed
	}
	n.rose(r.ID)
	n.stir(like, r, func(d *demand) {
		d.asleep = append(d.asleep, r.ID)
		n.e.spares.asleep[r.ID] = like
	})
}

// rose notes that a sandbox does not sleep on disk any more.
func (n Named) rose(id runtime.ID) {
	s := &n.e.spares
	s.mu.Lock()
	like, ok := s.asleep[id]
	delete(s.asleep, id)
	s.mu.Unlock()
	if ok {
		n.settle(like, func(d *demand) {
			d.asleep = slices.DeleteFunc(d.asleep, func(other runtime.ID) bool { return other == id })
		})
	}
}

// settle takes back what made a demand, and ends the kernels that nobody is to want.
func (n Named) settle(like likeness, change func(*demand)) {
	s := &n.e.spares
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.demands[like]
	if d == nil || s.closed {
		return
	}
	change(d)
	for len(d.ready) > d.wants() {
		n.discard(d.ready[0])
		d.ready = d.ready[1:]
	}
	if d.wants() == 0 {
		delete(s.demands, like)
	}
}

// discard ends a kernel that is no longer among those that wait. s.mu is held.
func (n Named) discard(sp *spare) {
	n.e.spares.making.Go(func() {
		if err := sp.destroy(context.Background()); err != nil {
			n.e.cfg.Log.Warn("a kernel that waited is not gone altogether", "error", err)
		}
	})
}

// destroy ends the kernel, once it is made.
func (sp *spare) destroy(ctx context.Context) error {
	<-sp.made
	if sp.kernel == nil {
		return nil
	}
	return sp.kernel.Destroy(ctx)
}

// spare takes a kernel of a likeness that waits, or is about to; nil for none.
func (n Named) spare(like likeness) *spare {
	s := &n.e.spares
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.demands[like]
	if d == nil || len(d.ready) == 0 || s.closed {
		return nil
	}
	sp := d.ready[0]
	d.ready = d.ready[1:]
	return sp
}

// fill makes kernels one after the other, until none is lacking.
func (n Named) fill() {
	s := &n.e.spares
	for {
		s.rest(n.e.background)
		s.mu.Lock()
		like, d := s.lacking()
		if d == nil || !n.makeRoom(d) {
			s.filling = false
			s.mu.Unlock()
			return
		}
		sp, r := &spare{made: make(chan struct{})}, d.recipe
		ids := append([]runtime.ID{r.ID}, d.asleep...)
		d.ready = append(d.ready, sp)
		s.mu.Unlock()
		kernel, err := n.prepareSpare(n.e.background, like, r, ids)
		sp.kernel = kernel
		close(sp.made)
		if err == nil {
			continue
		}
		s.mu.Lock()
		// It is tried again when somebody makes a demand again.
		d.ready = slices.DeleteFunc(d.ready, func(other *spare) bool { return other == sp })
		d.end()
		for _, left := range d.ready {
			n.discard(left)
		}
		if s.demands[like] == d {
			delete(s.demands, like)
		}
		s.mu.Unlock()
		if !errors.Is(err, fs.ErrNotExist) && n.e.background.Err() == nil { // else the sandboxes were destroyed meanwhile
			n.e.cfg.Log.Warn("cannot make kernels ready for copies of sandboxes, and for those that sleep", "image", r.Image, "error", err)
		}
	}
}

// rest waits until sandboxes that are being woken, and were just woken, are not kept
// from it.
func (s *spares) rest(ctx context.Context) {
	tick := time.NewTicker(spareDelay)
	defer tick.Stop()
	for range spareDelays {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		s.mu.Lock()
		waking := s.waking
		s.mu.Unlock()
		if waking == 0 {
			return
		}
	}
}

// wakes notes that a sandbox is being woken, until what it returns is called.
func (s *spares) wakes() (woken func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waking++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.waking--
	}
}

// lacking is the likeness that was demanded last of those with too few kernels; nil
// for none. s.mu is held.
func (s *spares) lacking() (like likeness, last *demand) {
	if s.closed {
		return like, nil
	}
	for l, d := range s.demands {
		if len(d.ready) < d.wants() && (last == nil || d.turn > last.turn) {
			like, last = l, d
		}
	}
	return like, last
}

// makeRoom has a kernel that was demanded longer ago make way for one of d's where
// there are as many as may be, and reports whether there may be one more. s.mu is
// held.
func (n Named) makeRoom(d *demand) bool {
	s := &n.e.spares
	count := 0
	first := d
	for _, other := range s.demands {
		count += len(other.ready)
		if len(other.ready) > 0 && other.turn < first.turn {
			first = other
		}
	}
	switch {
	case count < n.e.cfg.Spares:
		return true
	case first == d:
		return false
	}
	n.discard(first.ready[0])
	first.ready = first.ready[1:]
	return true
}

// prepareSpare starts a kernel of a likeness that some of these sandboxes have.
func (n Named) prepareSpare(ctx context.Context, like likeness, r sandboxes.Recipe, ids []runtime.ID) (_ runtime.Prepared, err error) {
	img, release, err := n.e.useImage(r.Image)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	mounts, err := n.e.host.blank(r)
	if err != nil {
		return nil, err
	}
	r.ID = runtime.NewID()
	spec := n.spec(r, img, mounts)
	if spec.Guest, err = n.e.host.guestOf(like, ids); err != nil {
		return nil, err
	}
	if img.Digest != like.Digest {
		return nil, fs.ErrNotExist // the image was replaced: nobody can wake with it
	}
	return n.runtime(r).Prepare(ctx, spec)
}

// adopt has a kernel that waited be a sandbox; nil if it cannot, or there is none.
func (n Named) adopt(ctx context.Context, sp *spare, r sandboxes.Recipe) runtime.Prepared {
	if sp == nil {
		return nil
	}
	select {
	case <-sp.made:
	case <-ctx.Done():
		n.e.spares.mu.Lock()
		defer n.e.spares.mu.Unlock()
		n.discard(sp)
		return nil
	}
	if sp.kernel == nil {
		return nil
	}
	err := n.furnish(ctx, r, func(mounts []runtime.Mount) error { return sp.kernel.Become(r.ID, mounts) })
	if err == nil {
		return sp.kernel
	}
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) || errors.Is(err, runtime.ErrUnsupported) {
		n.e.spares.mu.Lock()
		n.e.spares.unfit = err
		n.e.spares.mu.Unlock()
	}
	n.e.cfg.Log.WarnContext(ctx, "a kernel that waited could not be used, and another one is started", "sandbox_id", string(r.ID), "error", errors.Join(err, sp.kernel.Destroy(context.WithoutCancel(ctx))))
	return nil
}

// closeSpares ends every kernel that waits.
func (n Named) closeSpares() {
	s := &n.e.spares
	s.mu.Lock()
	s.closed = true
	for _, d := range s.demands {
		d.end()
		for _, sp := range d.ready {
			n.discard(sp)
		}
	}
	clear(s.demands)
	s.mu.Unlock()
	s.making.Wait()
}
