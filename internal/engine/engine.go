// Package engine assembles what runs executions on one machine: a runtime, a
// pool of its warm sandboxes, and the execution service over them.
package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/execution"
	"github.com/atoll-run/atoll/internal/fault"
	"github.com/atoll-run/atoll/internal/image"
	"github.com/atoll-run/atoll/internal/pool"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/warm"
)

// Config of an Engine.
type Config struct {
	Platform
	Image       *image.Image
	Limits      sandbox.Limits
	Env         map[string]string // variables of the environment
	PoolSize    int               // warm sandboxes per kind
	Concurrency int               // executions at once; 0 means 8 a core
	Queue       int               // executions that wait
	MaxOutput   int64             // bytes of each stream in an answer
	Detach      bool              // executions whose context ends go on until the next start
	Registry    prometheus.Registerer
}

// Engine is an execution.Executor with its pool.
type Engine struct {
	*execution.Service
	maker     *warm.Maker
	pool      *pool.Pool[warm.Key, *warm.Sandbox]
	host      *host
	templates string      // folder
	filled    atomic.Bool // the pool was full once
}

// refillDelay lets a program that answers in milliseconds be done before its
// sandbox's replacement takes a core.
const refillDelay = 15 * time.Millisecond

// Open starts an engine: it sweeps what an earlier process left, and begins to
// fill the pool.
func Open(ctx context.Context, cfg Config) (_ *Engine, err error) {
	if err := cfg.Limits.Validate(); err != nil {
		return nil, fault.New(fault.Invalid, "the environment's limits cannot work: %v", err)
	}
	rt, err := openHost(ctx, cfg.Platform)
	if err != nil {
		return nil, err
	}
	e := &Engine{host: rt}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	if err := rt.admit(cfg.Limits); err != nil {
		return nil, err
	}
	e.templates = filepath.Join(rt.dir, "templates")
	e.maker = warm.New(warm.Config{
		Runtime: rt, Image: cfg.Image, Limits: cfg.Limits, Env: cfg.Env, Templates: e.templates, Log: cfg.Log,
	})
	m, err := newMetrics(cfg.Registry)
	if err != nil {
		return nil, err
	}
	e.pool = pool.New(pool.Config[warm.Key, *warm.Sandbox]{
		Build: e.maker.Make, Builders: runtime.NumCPU(), Rush: 2 * runtime.NumCPU(), Log: cfg.Log, Metrics: m,
		RefillDelay: refillDelay, RetryDelay: 5 * time.Second,
	})
	concurrency := cfg.Concurrency
	if concurrency == 0 {
		concurrency = 8 * runtime.NumCPU()
	}
	for _, key := range e.maker.Kinds() {
		e.pool.Keep(key, cfg.PoolSize, 4*cfg.PoolSize)
	}
	e.Service = execution.NewService(execution.Config{
		Source: source{e}, Limits: cfg.Limits, MaxOutput: cfg.MaxOutput,
		Concurrency: concurrency, Queue: cfg.Queue, Detach: cfg.Detach, Log: cfg.Log, Observe: m.observe,
	})
	return e, nil
}

// source is the engine as the execution service sees it.
type source struct{ *Engine }

// Claim implements execution.Source.
func (s source) Claim(ctx context.Context, language execution.Language, code string) (execution.Claimed, bool, error) {
	sb, hit, err := s.pool.Claim(ctx, s.maker.Key(language, code))
	if err != nil {
		return nil, false, err
	}
	return sb, hit, nil
}

// Ready reports why no execution can run yet, nil once the pool has been filled
// for the first time: under load it may well be empty, and claims then wait.
func (e *Engine) Ready(context.Context) error {
	if !e.filled.Load() && !e.pool.Filled() {
		return errors.New("the pool of warm sandboxes is being filled")
	}
	e.filled.Store(true)
	return nil
}

// Close ends every sandbox and waits until they are gone, or each has had its
// time to. No Execute may be under way.
func (e *Engine) Close() error {
	if e.Service != nil {
		e.Service.Wait()
	}
	if e.pool != nil {
		e.pool.Close()
	}
	return errors.Join(os.RemoveAll(e.templates), e.host.Close())
}
