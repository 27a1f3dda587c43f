// Package engine assembles what sandboxes are made with on one machine, a
// runtime, images and a pool of warm sandboxes, for an executor to run jobs in.
package engine

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/cleanup"
	"github.com/atoll-run/atoll/internal/node/executor"
	"github.com/atoll-run/atoll/internal/node/image"
	"github.com/atoll-run/atoll/internal/node/pool"
	"github.com/atoll-run/atoll/internal/node/volumes/bucket"
	"github.com/atoll-run/atoll/internal/node/warm"
)

// Images is the store that images come from.
type Images interface {
	// Use returns an image, which stays until it is released.
	Use(name string) (img *image.Image, release func() error, err error)
}

// Config of an Engine.
type Config struct {
	Platform
	Images   Images
	Resolver Resolver // nil: jobs name images as Images does
	Volumes  Folders  // nil where volumes are in a bucket, or nothing can be mounted
	Buckets  Buckets

	// The environment that sandboxes are kept ready for from the start.
	Image  string
	Limits runtime.Limits
	Env    map[string]string

	PoolSize     int   // warm sandboxes kept ready of each kind of that environment
	PoolDefault  int   // the same of the default language without preloads; 0 is PoolSize
	PoolMemory   int64 // bytes of memory that warm sandboxes beyond those may bring all of them to; 0 for any number
	Environments int   // other environments known at the same time; 0 is 32
	Standby      int   // kernels that wait to become sandboxes that sleep on disk, or forks
	Journals     bool  // sandboxes get a journal, so that their runs can be taken over
	Network      Network
	Registry     prometheus.Registerer
	Unfit        error // why the folder on disk is not fit for files of named sandboxes; nil if it is
}

const defaultEnvironments = 32

// poolGrowth is how many times its size a kind grows to under demand.
const poolGrowth = 5

// Engine is an executor's source of sandboxes.
type Engine struct {
	cfg       Config
	pool      *pool.Pool[warm.Key, *warm.Sandbox]
	metrics   *metrics
	host      *host
	networks  *networks   // host, for sandboxes with a network
	templates string      // folder
	filled    atomic.Bool // the pool was full once
	early     atomic.Bool // storage must be mounted before a sandbox runs
	version   guestVersion
	room      *bucket.Room
	standby   *standby
	shared    *sharedKernels

	background context.Context // ends with the engine
	stop       context.CancelFunc
	tasks      sync.WaitGroup

	rests *rests

	trust    atomic.Pointer[trust] // of new sandboxes with a network; changes under mu
	trusting sync.Mutex            // held while a trust's files are made or removed; taken before mu

	mu     sync.Mutex
	envs   map[envKey]*environment // guarded by mu
	made   int                     // guarded by mu; environments so far
	trusts map[string]*trust       // guarded by mu; by guest image
}

var _ executor.Sandboxes = (*Engine)(nil)

const (
	// refillDelay lets a program that answers in milliseconds end before its
	// sandbox's replacement takes a core. In a series of calls that come within
	// refillBurst of each other, and while programs run, replacements wait for up to
	// refillLatest, unless less than refillUrgent of a kind's target is ready.
	refillDelay  = 15 * time.Millisecond
	refillBurst  = 100 * time.Millisecond
	refillLatest = time.Second
	refillUrgent = 0.25

	refillRetry = 5 * time.Second

	// nextPerCore sandboxes with preloads are made for the next calls. The rest, which are
	// called after them, share the memory of their preloads.
	nextPerCore = 2
)

// Open starts an engine: it sweeps what an earlier process left, but for runs
// that can be taken over, and begins to fill the pool.
func Open(ctx context.Context, cfg Config) (_ *Engine, err error) {
	if cfg.Environments == 0 {
		cfg.Environments = defaultEnvironments
	}
	if err := cfg.Limits.Validate(); err != nil {
		return nil, fault.New(fault.Invalid, "the environment's limits cannot work: %v", err)
	}
	if a := cfg.Network.Egress.Authority; a != nil {
		cfg.Bound = a.Certificate()
	}
	if cfg.Cleanup, err = cleanup.New(cfg.Log, cfg.Registry); err != nil {
		return nil, err
	}
	rt, err := openHost(ctx, cfg.Platform)
	if err != nil {
		cfg.Cleanup.Close()
		return nil, err
	}
	e := &Engine{cfg: cfg, host: rt, room: &bucket.Room{Most: cfg.Buckets.Cache}, templates: filepath.Join(rt.disk, "templates"), rests: newRests(cfg.PoolMemory), envs: map[envKey]*environment{}, trusts: map[string]*trust{}}
	e.background, e.stop = context.WithCancel(context.Background())
	e.shared = newShared(e)
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	t, err := e.makeTrust(cfg.CA)
	if err != nil {
		return nil, err
	}
	e.trust.Store(t)
	cfg.Network.Egress.Roots = func() *x509.CertPool { return e.trust.Load().roots }
	if e.networks, err = openNetworks(rt, cfg.Network, cfg.Registry); err != nil {
		return nil, err
	}
	if e.metrics, err = newMetrics(cfg.Registry); err != nil {
		return nil, err
	}
	e.pool = pool.New(pool.Config[warm.Key, *warm.Sandbox]{
		Name: "warm sandboxes", Build: e.build, Builders: goruntime.NumCPU(), Refill: max(1, goruntime.NumCPU()-1), Rush: 2 * goruntime.NumCPU(),
		MaxMemory: cfg.PoolMemory, Memory: estimate, Next: next,
		RefillDelay: refillDelay, Burst: refillBurst, MaxDelay: refillLatest, Urgent: refillUrgent, RetryDelay: refillRetry,
		Log: cfg.Log, Metrics: e.metrics, Undestroyed: func(sb *warm.Sandbox, err error) { e.removeLater(sb.ID(), err) },
	})
	if err := e.openStandby(); err != nil {
		return nil, err
	}
	if err := e.keepDefault(); err != nil {
		return nil, err
	}
	e.tasks.Go(func() { e.forgetUnused(e.background) })
	e.tasks.Go(func() { e.shared.expire(e.background) })
	return e, nil
}

// next is how many sandboxes of a kind are made for the next calls; 0 for all.
func next(key warm.Key) int {
	if !key.Preload {
		return 0
	}
	return nextPerCore * goruntime.NumCPU()
}

// estimate is how many bytes of memory a warm sandbox takes, until one of its kind
// was made.
func estimate(key warm.Key) int64 {
	const MiB = 1 << 20
	if key.Preload {
		return 96 * MiB
	}
	return language.Get(key.Language).Memory
}

// size is how many sandboxes of a kind are kept ready of the configured environment.
func (c *Config) size(key warm.Key) int {
	if key.Language == language.Default && !key.Preload && c.PoolDefault > 0 {
		return c.PoolDefault
	}
	return c.PoolSize
}

// build makes a sandbox for the pool.
func (e *Engine) build(ctx context.Context, key warm.Key, use pool.Use) (*warm.Sandbox, error) {
	e.mu.Lock()
	env := e.envs[envKey{key.Image, key.Variant}]
	if env != nil {
		env.builds++
		if env.trust != nil {
			env.trust.users++ // the environment may be given up meanwhile
		}
	}
	e.mu.Unlock()
	if env == nil {
		return nil, fault.New(fault.Unavailable, "the environment was given up; retry in a few seconds")
	}
	defer e.built(env)
	sb, err := env.maker.Make(ctx, key, use)
	if err != nil || !e.cfg.Journals {
		return sb, err
	}
	if err := executor.Prepare(e.folder(sb.ID())); err != nil {
		return nil, errors.Join(err, sb.Destroy(context.WithoutCancel(ctx)))
	}
	return sb, nil
}

func (e *Engine) folder(id runtime.ID) string { return filepath.Join(e.host.dir, string(id)) }

// claimed is a sandbox as an executor sees it.
type claimed struct {
	*warm.Sandbox
	folder string
	host   *host
	link   *link  // nil without a network
	ended  func() // has the pool make sandboxes ahead again; it may be called again
	rests  *rests // counts its programs
	rest   *rest  // puts off its end; nil where nothing does
}

// hand connects a sandbox as a job may be, and gives it to an executor.
func (e *Engine) hand(sb *warm.Sandbox, job *execution.Job) (claimed, error) {
	c := claimed{sb, e.folder(sb.ID()), e.host, e.networks.link(sb.ID()), sync.OnceFunc(e.pool.Hold()), e.rests, nil}
	if job.Permissions.Network.Blocked() {
		return c, nil
	}
	c.link.own(job.Tenant)
	err := c.SetNetwork(job.Permissions.Network)
	if err == nil && len(job.BoundSecrets) > 0 {
		err = c.link.bind(job.BoundSecrets)
	}
	if err != nil {
		return c, runtime.NotConnected(err)
	}
	return c, nil
}

// Bind implements executor.Binder.
func (c claimed) Bind(secrets []execution.BoundSecret) error {
	if c.link == nil {
		return nil // without a network nothing is sent
	}
	return c.link.bind(secrets)
}

// runtime is what makes a job's sandboxes, with the certificates of a trust if they have a network.
func (e *Engine) runtime(job *execution.Job, t *trust) runtime.Runtime {
	if job.Permissions.Network.Blocked() {
		return e.host
	}
	if len(job.BoundSecrets) > 0 {
		return withGuest{withAuthority{e.networks}, t.guest}
	}
	return withGuest{e.networks, t.guest}
}

// Folder implements executor.Claimed.
func (c claimed) Folder() string { return c.folder }

// Claim implements executor.Sandboxes.
func (e *Engine) Claim(ctx context.Context, job *execution.Job) (executor.Claimed, execution.StartReason, error) {
	if job.Thread != nil && e.host.homes == "" {
		return nil, "", fault.New(fault.Invalid, "threads need sandboxes that can mount a home directory, and here they cannot: %v", e.host.homeless)
	}
	stores := len(job.Mounts) > 0
	if stores && !e.cfg.mounts() {
		return nil, "", errNoMounts
	}
	job, err := e.resolved(ctx, job, true)
	if err != nil {
		return nil, "", err
	}
	env, fresh, err := e.use(job)
	if err != nil {
		return nil, "", err
	}
	defer e.unuse(env)
	if job.Input.Tool {
		tool := *job
		tool.Language, tool.Code = env.maker.Some(job.Language), ""
		job = &tool
	}
	if e.shares(env, job) {
		c, why, err := e.claimShared(ctx, env, fresh, job)
		if !errors.Is(err, errApart) {
			return c, why, err
		}
		e.keepApart(env, job, err)
	}
	if stores && !e.mountsLate(env, job) {
		c, err := e.claimMounted(ctx, env, job)
		return c, execution.StartStorage, err
	}
	sb, hit, err := e.pool.Claim(ctx, env.maker.Key(job.Language, job.Code, job.Thread != nil, stores))
	if err != nil {
		return nil, "", err
	}
	c, err := e.hand(sb, job)
	if err == nil && stores {
		err = e.mountIn(ctx, sb, job)
	}
	if err == nil {
		if hit && c.link == nil && job.Thread == nil && !stores {
			c.rest = &rest{}
		}
		return c, e.startReason(hit, fresh), nil
	}
	err = errors.Join(err, c.Destroy(context.WithoutCancel(ctx)))
	if errors.Is(err, errLate) {
		e.cfg.Log.WarnContext(ctx, "cannot mount storage in a running sandbox; runs with storage start cold", "error", err)
		e.early.Store(true)
		c, err := e.claimMounted(ctx, env, job)
		return c, execution.StartStorage, err
	}
	return nil, "", err
}

// startReason says why a claim found a sandbox ready or did not. fresh: its
// environment was made for it.
func (e *Engine) startReason(hit, fresh bool) execution.StartReason {
	switch {
	case hit:
		return execution.StartPooled
	case e.cfg.PoolSize == 0:
		return execution.StartPoolOff
	case fresh:
		return execution.StartFirstUse
	}
	return execution.StartPoolEmpty
}

// Left implements executor.Sandboxes.
func (e *Engine) Left(ctx context.Context) ([]string, error) {
	if !e.cfg.Journals {
		return nil, nil
	}
	infos, err := e.host.List(ctx)
	if err != nil {
		return nil, err
	}
	var folders []string
	for _, info := range infos {
		if folder := e.folder(info.ID); executor.HasJob(folder) {
			folders = append(folders, folder)
		}
	}
	return folders, nil
}

// openTime bounds the wait for the image of a sandbox that runs, which needs it no more.
const openTime = 2 * time.Second

// Open implements executor.Sandboxes.
func (e *Engine) Open(ctx context.Context, folder string, job *execution.Job) (executor.Claimed, error) {
	if e.Fragile(job) {
		return nil, errBucket
	}
	soon, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	env, err := e.useResolved(soon, job)
	if err != nil {
		// What runs needs no image any more, but nothing else can run there.
		unfit := fmt.Errorf("it was taken over without its image: %w", err)
		env = &environment{maker: warm.New(warm.Config{
			Runtime: e.runtime(job, e.trust.Load()), Image: &image.Image{Name: job.Image}, Limits: job.Limits, Homes: e.host.homes, Storage: e.host.storage, Log: e.cfg.Log,
			Guest: func(string) error { return unfit },
		})}
	} else {
		defer e.unuse(env)
	}
	c, err := e.open(ctx, folder, job, env)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// OpenIdle implements executor.Sandboxes.
func (e *Engine) OpenIdle(ctx context.Context, folder string, job *execution.Job) (executor.Claimed, error) {
	if e.Fragile(job) {
		return nil, errBucket
	}
	env, err := e.useResolved(ctx, job)
	if err != nil {
		return nil, err
	}
	defer e.unuse(env)
	c, err := e.open(ctx, folder, job, env)
	if err != nil {
		return nil, err
	}
	c.ended() // nothing runs in it that refills of the pool wait for
	return c, nil
}

// useResolved is use for a job whose image may have to be made first.
func (e *Engine) useResolved(ctx context.Context, job *execution.Job) (*environment, error) {
	named, err := e.resolved(ctx, job, false)
	if err != nil {
		return nil, err
	}
	env, _, err := e.use(named)
	return env, err
}

func (e *Engine) open(ctx context.Context, folder string, job *execution.Job, env *environment) (c claimed, err error) {
	sb, err := env.maker.Open(ctx, runtime.ID(filepath.Base(folder)), job.Language, job.Thread != nil)
	if err != nil {
		return c, err
	}
	if c, err = e.hand(sb, job); err != nil {
		return c, errors.Join(err, c.Detach())
	}
	return c, nil
}

// Detach implements executor.Claimed.
func (c claimed) Detach() error {
	c.ended()
	return c.Sandbox.Detach()
}

// HomePath implements executor.Sandboxes.
func (e *Engine) HomePath(folder string) string {
	return warm.HomePath(e.host.homes, runtime.ID(filepath.Base(folder)))
}

// EndHome implements executor.Sandboxes.
func (e *Engine) EndHome(ctx context.Context, folder string, p execution.Program) error {
	return warm.EndHome(ctx, e.host, e.host.homes, runtime.ID(filepath.Base(folder)), p)
}

// Remove implements executor.Sandboxes.
func (e *Engine) Remove(ctx context.Context, folder string) error {
	id := runtime.ID(filepath.Base(folder))
	return errors.Join(e.host.Destroy(ctx, id), e.host.unmount(id))
}

// removeLater removes a sandbox after a try failed with err.
func (e *Engine) removeLater(id runtime.ID, err error) {
	e.cfg.Cleanup.Later(cleanup.Sandbox, string(id), err, func(ctx context.Context) error { return e.Remove(ctx, e.folder(id)) })
}

// Ready reports why no execution can run yet, nil once the pool has been filled
// for the first time: under load it may well be empty, and claims then wait.
func (e *Engine) Ready(context.Context) error {
	if e.filled.Load() {
		return nil
	}
	var missing []string
	for _, key := range e.pool.Missing() {
		missing = append(missing, key.String())
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return fmt.Errorf("warm sandboxes are being made: %s", strings.Join(missing, ", "))
	}
	e.filled.Store(true)
	return nil
}

// Close ends every sandbox that is not claimed and waits until they are gone, or
// each has had its time to. No Claim may be under way.
func (e *Engine) Close() error {
	e.cfg.Cleanup.Close()
	e.stop()
	e.tasks.Wait()
	if e.pool != nil {
		e.pool.Close()
	}
	errs := []error{e.Sandboxes().closeStandby()}
	for _, env := range e.envs {
		errs = append(errs, env.release())
	}
	return errors.Join(append(errs, os.RemoveAll(e.templates), e.closeTrusts(), e.host.Close())...)
}

// guestVersion is what the guest of every sandbox says it is: they are mounted
// the same one.
type guestVersion struct{ first atomic.Pointer[string] }

func (g *guestVersion) check(version string) error {
	if g.first.CompareAndSwap(nil, &version); *g.first.Load() != version {
		return fmt.Errorf("the guest is of version %.40q, the others are of %.40q", version, *g.first.Load())
	}
	return nil
}
