package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/atoll-run/atoll/internal/execution"
	"github.com/atoll-run/atoll/internal/fault"
	"github.com/atoll-run/atoll/internal/warm"
)

// envKey names an environment as far as sandboxes are concerned.
type envKey struct{ image, variant string }

// environment is what sandboxes of one image, set of limits and variables are
// made by.
type environment struct {
	key     envKey
	maker   *warm.Maker
	release func() error // of the image

	users int       // guarded by Engine.mu; claims under way
	used  time.Time // guarded by Engine.mu
}

// keyOf names the environment of a job; the configured one has no variant.
func (e *Engine) keyOf(job *execution.Job) envKey {
	if job.Limits == e.cfg.Limits && maps.Equal(job.BaseEnv, e.cfg.Env) {
		return envKey{job.Image, ""}
	}
	h := sha256.New()
	fmt.Fprintf(h, "%+v\n", job.Limits)
	for _, name := range sortedNames(job.BaseEnv) {
		fmt.Fprintf(h, "%q=%q\n", name, job.BaseEnv[name])
	}
	return envKey{job.Image, hex.EncodeToString(h.Sum(nil)[:8])}
}

// keepDefault keeps the configured environment's sandboxes ready.
func (e *Engine) keepDefault() error {
	env, err := e.use(&execution.Job{Image: e.cfg.Image, Limits: e.cfg.Limits, BaseEnv: e.cfg.Env})
	if err != nil {
		return err
	}
	for _, key := range env.maker.Kinds() {
		e.pool.Keep(key, e.cfg.PoolSize, 4*e.cfg.PoolSize)
	}
	return nil // and it is used for good
}

// use returns the environment of a job, which is not given up before unuse.
func (e *Engine) use(job *execution.Job) (*environment, error) {
	key := e.keyOf(job)
	e.mu.Lock()
	defer e.mu.Unlock()
	env := e.envs[key]
	if env == nil {
		var err error
		if env, err = e.add(key, job); err != nil {
			return nil, err
		}
	}
	env.users++
	return env, nil
}

func (e *Engine) unuse(env *environment) {
	e.mu.Lock()
	defer e.mu.Unlock()
	env.users--
	env.used = time.Now()
}

// add makes an environment. e.mu is held.
func (e *Engine) add(key envKey, job *execution.Job) (*environment, error) {
	if err := e.host.admit(job.Limits); err != nil {
		return nil, err
	}
	if len(e.envs) > e.cfg.Environments && !e.makeRoom() {
		return nil, fault.New(fault.Unavailable, "this server is running code of %d environments at once, which is its limit; retry after a moment", e.cfg.Environments)
	}
	img, release, err := e.cfg.Images.Use(job.Image)
	if fault.KindOf(err) == fault.NotFound {
		return nil, fault.New(fault.Invalid, "this server has no image %q; import it with 'atoll image import', or name another in the environment", job.Image)
	}
	if err != nil {
		return nil, err
	}
	env := &environment{key: key, release: release, used: time.Now(), maker: warm.New(warm.Config{
		Runtime: e.host, Image: img, Variant: key.variant, Limits: job.Limits, Env: job.BaseEnv,
		Templates: e.templatesOf(key), Log: e.cfg.Log, Guest: e.version.check,
	})}
	e.envs[key] = env
	for _, kind := range env.maker.Kinds() {
		e.pool.Keep(kind, 0, 4*e.cfg.PoolSize) // as there is demand
	}
	return env, nil
}

func (e *Engine) templatesOf(key envKey) string {
	return filepath.Join(e.templates, key.image+"."+key.variant)
}

// makeRoom gives up the environment that has been unused for longest, if there
// is one. e.mu is held.
func (e *Engine) makeRoom() bool {
	var oldest *environment
	for _, env := range e.envs {
		if env.users == 0 && (oldest == nil || env.used.Before(oldest.used)) {
			oldest = env
		}
	}
	if oldest == nil {
		return false
	}
	e.giveUp(oldest)
	return true
}

// giveUp forgets an environment without users. e.mu is held.
func (e *Engine) giveUp(env *environment) {
	delete(e.envs, env.key)
	for _, kind := range env.maker.Kinds() {
		e.pool.Drop(kind)
	}
	if err := errors.Join(os.RemoveAll(e.templatesOf(env.key)), env.release()); err != nil {
		e.cfg.Log.Warn("cannot clear what an environment needed", "image", env.key.image, "error", err)
	}
}

const (
	unusedTime  = 10 * time.Minute // after which an environment is given up
	unusedCheck = time.Minute
)

// forgetUnused gives up environments that nobody uses, until ctx ends.
func (e *Engine) forgetUnused(ctx context.Context) {
	tick := time.NewTicker(unusedCheck)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		e.mu.Lock()
		for _, env := range e.envs {
			if env.users == 0 && time.Since(env.used) > unusedTime {
				e.giveUp(env)
			}
		}
		e.mu.Unlock()
	}
}
