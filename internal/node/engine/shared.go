package engine

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/node/executor"
	"github.com/atoll-run/atoll/internal/node/warm"
)

// sharedKey is what programs have in common that may follow one another in a kernel.
type sharedKey struct {
	environment *environment // not its name: another of that may be made of another image
	tenant, key string
	kind        warm.Key
}

const (
	// sharedIdle is how long a kernel is kept for the next program of its key.
	sharedIdle = time.Minute
	// sharedRuns is how many programs one has before it is replaced.
	sharedRuns = 2000
	// sharedGrowth is how many bytes it may come to take beyond what it took at first.
	sharedGrowth = 48 << 20
	// sharedWait is how long a claim waits for a kernel that is being made ready again,
	// rather than make one, which takes more of the processors.
	sharedWait = 2 * time.Second
)

// fewKernels is how many kernels a key and environment has before a claim waits for one
// that is being made ready again: one for each processor, and one to be made ready
// meanwhile.
func fewKernels() int { return goruntime.NumCPU() + 1 }

// Most kernels that are kept idle, for one key and environment and in all.
func mostIdle() (each, all int) { return 4 * goruntime.NumCPU(), 16 * goruntime.NumCPU() }

// sharedKernel is a sandbox for the programs of a key. It belongs to a claim, or is idle.
type sharedKernel struct {
	*warm.Sandbox
	key    sharedKey
	runs   int
	memory int64 // bytes it took when it was first ready
	since  time.Time
}

// sharedKernels has the kernels that no claim has.
type sharedKernels struct {
	engine *Engine

	mu      sync.Mutex
	closed  bool                               // guarded by mu
	idle    map[sharedKey][]*sharedKernel      // guarded by mu; the one that was used last comes last
	count   int                                // guarded by mu; of idle
	kernels map[sharedKey]int                  // guarded by mu; that there are, or are being made
	pending map[sharedKey]int                  // guarded by mu; whose program has ended, until they are ready again
	waiters map[sharedKey][]chan *sharedKernel // guarded by mu
}

func newShared(e *Engine) *sharedKernels {
	return &sharedKernels{
		engine: e, idle: map[sharedKey][]*sharedKernel{}, kernels: map[sharedKey]int{}, pending: map[sharedKey]int{}, waiters: map[sharedKey][]chan *sharedKernel{},
	}
}

// claimShared returns a kernel in which programs of the job's key have run, or a new one.
func (e *Engine) claimShared(ctx context.Context, env *environment, fresh bool, job *execution.Job) (executor.Claimed, execution.StartReason, error) {
	key := sharedKey{env, job.Tenant, job.Key, env.maker.Key(job.Language, job.Code, false, false)}
	k, err := e.shared.take(ctx, key)
	if err != nil {
		return nil, "", err
	}
	hit := k != nil
	if !hit {
		if k, err = e.makeShared(ctx, env, key); err != nil {
			e.shared.add(e.shared.kernels, key, -1)
			return nil, "", err
		}
	}
	e.metrics.shared(hit)
	c, err := e.hand(k.Sandbox, job)
	if err != nil {
		e.shared.add(e.shared.kernels, key, -1)
		return nil, "", errors.Join(err, c.Destroy(context.WithoutCancel(ctx)))
	}
	k.runs++
	return &sharedClaim{claimed: c, shared: e.shared, kernel: k}, e.startReason(hit, fresh), nil
}

// errApart says that programs of a kind cannot be kept apart in a kernel, such as those
// for which modules are imported ahead that start threads.
var errApart = errors.New("programs cannot be kept apart in a kernel")

// shares reports whether a job is to have a kernel that others of its key had.
func (e *Engine) shares(env *environment, job *execution.Job) bool {
	if !job.Shares() || e.host.shared {
		return false
	}
	_, apart := env.apart.Load(env.maker.Key(job.Language, job.Code, false, false))
	return !apart
}

// keepApart has jobs as this one have kernels of their own from now on.
func (e *Engine) keepApart(env *environment, job *execution.Job, err error) {
	kind := env.maker.Key(job.Language, job.Code, false, false)
	if _, known := env.apart.LoadOrStore(kind, true); !known {
		e.cfg.Log.Warn("executions of a key cannot share a kernel; each gets its own", "kind", kind.String(), "error", err)
	}
}

// makeShared makes a kernel, ready for its first program.
func (e *Engine) makeShared(ctx context.Context, env *environment, key sharedKey) (_ *sharedKernel, err error) {
	began := time.Now()
	sb, err := env.maker.MakeShared(ctx, key.kind)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, sb.Destroy(context.WithoutCancel(ctx)))
		}
	}()
	if e.cfg.Journals {
		if err := executor.Prepare(e.folder(sb.ID())); err != nil {
			return nil, err
		}
	}
	if err := sb.Renew(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", errApart, err)
	}
	used, err := sb.Usage(ctx)
	if err != nil {
		return nil, err
	}
	e.metrics.Built(key.kind, time.Since(began), nil)
	return &sharedKernel{Sandbox: sb, key: key, memory: used.Memory}, nil
}

// add counts kernels of a key.
func (s *sharedKernels) add(counts map[sharedKey]int, key sharedKey, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if counts[key] += n; counts[key] == 0 {
		delete(counts, key)
	}
}

// take returns an idle kernel, nil if there is none and the claim is to make one.
func (s *sharedKernels) take(ctx context.Context, key sharedKey) (*sharedKernel, error) {
	s.mu.Lock()
	for list := s.idle[key]; len(list) > 0; list = s.idle[key] {
		k := list[len(list)-1]
		s.remove(key, len(list)-1)
		if k.Check() == nil {
			s.mu.Unlock()
			return k, nil
		}
		s.engine.tasks.Go(func() { s.end(k) })
	}
	if s.pending[key] <= len(s.waiters[key]) || s.kernels[key] < fewKernels() {
		s.kernels[key]++
		s.mu.Unlock()
		return nil, nil
	}
	wait := make(chan *sharedKernel, 1)
	s.waiters[key] = append(s.waiters[key], wait)
	s.mu.Unlock()
	late := time.NewTimer(sharedWait)
	defer late.Stop()
	var err error
	select {
	case k := <-wait:
		if k == nil {
			s.add(s.kernels, key, 1)
		}
		return k, nil
	case <-late.C:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	s.mu.Lock()
	s.waiting(key, slices.DeleteFunc(s.waiters[key], func(c chan *sharedKernel) bool { return c == wait }))
	s.mu.Unlock()
	select {
	case k := <-wait: // it came at the same time
		if err == nil && k != nil {
			return k, nil
		}
		if k != nil {
			s.put(k)
		}
	default:
	}
	if err == nil {
		s.add(s.kernels, key, 1)
	}
	return nil, err
}

// remove takes a kernel out of the idle ones. s.mu is held.
func (s *sharedKernels) remove(key sharedKey, i int) {
	if list := slices.Delete(s.idle[key], i, i+1); len(list) > 0 {
		s.idle[key] = list
	} else {
		delete(s.idle, key)
	}
	s.count--
	s.engine.metrics.sharedIdle.Set(float64(s.count))
}

// renew makes a kernel that is pending ready for the next program of its key, or ends it.
func (s *sharedKernels) renew(ctx context.Context, k *sharedKernel) error {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		s.lose(k.key)
		return k.Destroy(ctx)
	}
	err := s.fit(ctx, k)
	if err == nil {
		s.add(s.pending, k.key, -1)
		s.put(k)
		return nil
	}
	s.lose(k.key)
	if !errors.Is(err, errWorn) {
		s.engine.cfg.Log.Warn("replacing a kernel that executions of a key share", "sandbox_id", k.ID(), "error", err)
	}
	return k.Destroy(ctx)
}

var errWorn = errors.New("it has had enough programs")

// fit makes a kernel ready again, and reports why it cannot be.
func (s *sharedKernels) fit(ctx context.Context, k *sharedKernel) error {
	if k.runs >= sharedRuns {
		return errWorn
	}
	if err := k.Renew(ctx); err != nil {
		return err
	}
	used, err := k.Usage(ctx)
	switch {
	case err != nil:
		return err
	case used.Memory > k.memory+sharedGrowth:
		return fmt.Errorf("%w: it takes %d bytes more than at first", errWorn, used.Memory-k.memory)
	}
	return k.Check()
}

// put gives a kernel that is ready to a claim that waits, or keeps it.
func (s *sharedKernels) put(k *sharedKernel) {
	each, all := mostIdle()
	s.mu.Lock()
	defer s.mu.Unlock()
	if list := s.waiters[k.key]; len(list) > 0 {
		s.waiting(k.key, list[1:])
		list[0] <- k
		return
	}
	if s.closed || len(s.idle[k.key]) >= each {
		s.engine.tasks.Go(func() { s.end(k) })
		return
	}
	if s.count >= all {
		s.evict()
	}
	k.since = time.Now()
	s.idle[k.key] = append(s.idle[k.key], k)
	s.count++
	s.engine.metrics.sharedIdle.Set(float64(s.count))
}

// lose notes that a pending kernel is not to be ready again. A claim that waits for it
// makes one itself.
func (s *sharedKernels) lose(key sharedKey) {
	s.add(s.pending, key, -1)
	s.add(s.kernels, key, -1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if list := s.waiters[key]; len(list) > s.pending[key] {
		s.waiting(key, list[1:])
		list[0] <- nil
	}
}

// waiting sets the claims that wait. s.mu is held.
func (s *sharedKernels) waiting(key sharedKey, list []chan *sharedKernel) {
	if len(list) > 0 {
		s.waiters[key] = list
	} else {
		delete(s.waiters, key)
	}
}

// evict ends an idle kernel, if there is one. s.mu is held.
func (s *sharedKernels) evict() {
	if k := s.dispensable(); k != nil {
		s.remove(k.key, 0)
		s.engine.tasks.Go(func() { s.end(k) })
	}
}

// dispensable returns the kernel that has been idle for longest of the tenant that has
// the most: a tenant with many keys does not cost others theirs. s.mu is held.
func (s *sharedKernels) dispensable() *sharedKernel {
	count, most := map[string]int{}, 0
	for key, list := range s.idle {
		count[key.tenant] += len(list)
		most = max(most, count[key.tenant])
	}
	var oldest *sharedKernel
	for key, list := range s.idle {
		if count[key.tenant] == most && (oldest == nil || list[0].since.Before(oldest.since)) {
			oldest = list[0]
		}
	}
	return oldest
}

// expire ends kernels that have been idle for sharedIdle, until ctx ends, and then all.
func (s *sharedKernels) expire(ctx context.Context) {
	tick := time.NewTicker(sharedIdle / 6)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			s.mu.Lock()
			s.closed = true
			for s.count > 0 {
				s.evict()
			}
			s.mu.Unlock()
			return
		case <-tick.C:
		}
		s.mu.Lock()
		for key, list := range s.idle {
			for len(list) > 0 && time.Since(list[0].since) > sharedIdle {
				k := list[0]
				s.remove(key, 0)
				s.engine.tasks.Go(func() { s.end(k) })
				list = s.idle[key]
			}
		}
		s.mu.Unlock()
	}
}

// end destroys a kernel that no claim has.
func (s *sharedKernels) end(k *sharedKernel) {
	s.add(s.kernels, k.key, -1)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := k.Destroy(ctx); err != nil {
		s.engine.removeLater(k.ID(), err)
	}
}

// sharedClaim is a kernel that one program of its key has, until it is destroyed:
// then the next one can have it, if the program ended by itself.
type sharedClaim struct {
	claimed
	shared  *sharedKernels
	kernel  *sharedKernel
	pending bool // its program ended as it should
	spoiled bool // all the same no other program is to have it
	given   bool // it was destroyed, or let go of
}

// Run implements executor.Claimed.
func (c *sharedClaim) Run(ctx context.Context, p execution.Program, sink execution.Sink) (execution.Outcome, error) {
	defer c.rests.begin()()
	out, err := c.Sandbox.Run(ctx, p, sink)
	if !c.pending && err == nil && !out.Lost && !out.TimedOut && !out.OOM && ctx.Err() == nil {
		c.pending = true
		c.shared.add(c.shared.pending, c.kernel.key, 1)
	}
	return out, err
}

// Isolation implements executor.Shared.
func (c *sharedClaim) Isolation() execution.Isolation { return execution.IsolationKey }

// Spoil implements executor.Shared.
func (c *sharedClaim) Spoil() { c.spoiled = true }

// Destroy implements executor.Claimed.
func (c *sharedClaim) Destroy(ctx context.Context) error {
	if !c.pending || c.spoiled {
		c.give()
		return c.claimed.Destroy(ctx)
	}
	c.pending, c.given = false, true
	c.ended()
	return c.shared.renew(ctx, c.kernel)
}

// Rest implements executor.Rester: the next program of its key waits for the kernel.
func (c *sharedClaim) Rest(context.Context) (done func()) { return func() {} }

// Detach implements executor.Claimed.
func (c *sharedClaim) Detach() error {
	c.give()
	return c.claimed.Detach()
}

// give notes that the kernel is not the key's any more.
func (c *sharedClaim) give() {
	switch {
	case c.given:
		return
	case c.pending:
		c.shared.lose(c.kernel.key)
	default:
		c.shared.add(c.shared.kernels, c.kernel.key, -1)
	}
	c.pending, c.given = false, true
}
