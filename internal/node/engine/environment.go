package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/image"
	"github.com/atoll-run/atoll/internal/node/warm"
)

// envKey names an environment as far as sandboxes are concerned.
type envKey struct{ image, variant string }

// environment is what sandboxes of one image, set of limits and variables are
// made by.
type environment struct {
	key       envKey
	maker     *warm.Maker
	release   func() error   // of the image
	templates string         // folder
	trust     *trust         // of its sandboxes; nil without a network
	like      *execution.Job // says how to make it again with another trust
	apart     sync.Map       // of warm.Key: kinds whose programs do not share kernels, whatever their isolation

	users  int       // guarded by Engine.mu; claims in progress
	builds int       // guarded by Engine.mu; sandboxes that are being made ahead
	used   time.Time // guarded by Engine.mu
}

// keyOf names the environment of a job; the configured one has no variant.
func (e *Engine) keyOf(job *execution.Job) envKey {
	rules, connected := job.Permissions, !job.Permissions.Network.Blocked()
	rules.Network = runtime.NetworkPolicy{} // whether there is one matters; what it allows is said at the claim
	if job.Limits == e.cfg.Limits && maps.Equal(job.BaseEnv, e.cfg.Env) && rules.Equal(runtime.Permissions{}) && !connected {
		return envKey{job.Image, ""}
	}
	h := sha256.New()
	fmt.Fprintf(h, "%+v\n%+v\n%t\n%t\n", job.Limits, rules, rules.Filesystem.Writable != nil, connected)
	for _, name := range sortedNames(job.BaseEnv) {
		fmt.Fprintf(h, "%q=%q\n", name, job.BaseEnv[name])
	}
	if bound := len(job.BoundSecrets) > 0; connected && bound { // what is bound to what is said at the claim
		fmt.Fprintln(h, "bound")
	}
	if connected {
		_, _ = io.WriteString(h, e.trust.Load().guest)
	}
	return envKey{job.Image, hex.EncodeToString(h.Sum(nil)[:8])}
}

// keepDefault keeps the configured environment's sandboxes ready.
func (e *Engine) keepDefault() error {
	env, _, err := e.use(&execution.Job{Image: e.cfg.Image, Limits: e.cfg.Limits, BaseEnv: e.cfg.Env})
	if err != nil {
		return err
	}
	for _, key := range env.maker.Kinds() {
		if !key.Home && !key.Storage { // those are there as there is demand
			e.pool.Keep(key, e.cfg.size(key), poolGrowth*e.cfg.size(key))
		}
	}
	return nil // and it is used for good
}

// use returns the environment of a job, which is not given up before unuse, and
// whether it had to be made.
func (e *Engine) use(job *execution.Job) (_ *environment, fresh bool, err error) {
	key := e.keyOf(job)
	if env := e.known(key); env != nil {
		return env, false, nil
	}
	if err := e.host.admit(job.Limits); err != nil {
		return nil, false, err
	}
	if err := e.host.admitRules(job.Permissions); err != nil {
		return nil, false, err
	}
	if !job.Permissions.Network.Blocked() {
		if err := e.networks.admit(len(job.BoundSecrets) > 0); err != nil {
			return nil, false, err
		}
	}
	img, release, err := e.cfg.Images.Use(job.Image)
	if fault.KindOf(err) == fault.NotFound {
		return nil, false, image.Missing(job.Image)
	}
	if err != nil {
		return nil, false, err
	}
	env, unneeded, err := e.add(job, img, release)
	if unneeded != nil {
		e.clear(unneeded)
	}
	return env, true, err
}

// known returns an environment that there is, to be used, or nil.
func (e *Engine) known(key envKey) *environment {
	e.mu.Lock()
	defer e.mu.Unlock()
	env := e.envs[key]
	if env != nil {
		env.users++
	}
	return env
}

func (e *Engine) unuse(env *environment) {
	e.mu.Lock()
	defer e.mu.Unlock()
	env.users--
	env.used = time.Now()
	if e.spent(env) {
		e.tasks.Go(func() { e.clear(env) }) // a caller waits
	}
}

// built notes that a sandbox of an environment was made ahead, or that this failed.
func (e *Engine) built(env *environment) {
	e.mu.Lock()
	env.builds--
	spent := e.spent(env)
	e.mu.Unlock()
	if spent {
		e.clear(env)
	}
	if env.trust != nil {
		e.unpin(env.trust)
	}
}

// spent gives up an environment that is superseded and that nothing uses anymore, for the caller
// to clear, and reports whether it did. e.mu is held.
func (e *Engine) spent(env *environment) bool {
	if env.users > 0 || env.builds > 0 || !e.superseded(env) || e.envs[env.key] != env {
		return false
	}
	e.giveUp(env)
	return true
}

// add makes an environment, to be used, unless another call has just made it. unneeded
// is the one that the caller is to clear: this one, or one that made room for it.
func (e *Engine) add(job *execution.Job, img *image.Image, release func() error) (env, unneeded *environment, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.made++
	key, t := e.keyOf(job), e.trust.Load() // both stay, because e.mu is held
	// A folder of its own: that of an earlier one of this key may still be on its way out.
	templates := filepath.Join(e.templates, strconv.Itoa(e.made))
	env = &environment{key: key, release: release, templates: templates, like: kindOf(job), used: time.Now(), users: 1, maker: warm.New(warm.Config{
		Runtime: e.runtime(job, t), Image: img, Variant: key.variant, Limits: job.Limits, Env: e.variables(job, t), Rules: job.Permissions,
		Templates: templates, Homes: e.host.homes, Storage: e.host.storage, Log: e.cfg.Log, Guest: e.version.check,
	})}
	if !job.Permissions.Network.Blocked() {
		env.trust = t
		t.users++
	}
	if other := e.envs[key]; other != nil {
		other.users++
		return other, env, nil
	}
	if e.lasting() > e.cfg.Environments {
		if unneeded = e.longestUnused(); unneeded == nil {
			return nil, env, fault.New(fault.Unavailable, "this server is running code of %d environments at once, which is its limit; retry in a few seconds", e.cfg.Environments)
		}
		e.giveUp(unneeded)
	}
	e.envs[key] = env
	for _, kind := range env.maker.Kinds() {
		e.metrics.show(kind)
		e.pool.Keep(kind, 0, poolGrowth*e.cfg.size(kind)) // as there is demand
	}
	return env, unneeded, nil
}

// lasting is how many environments there are besides those that are superseded. e.mu is held.
func (e *Engine) lasting() (n int) {
	for _, env := range e.envs {
		if !e.superseded(env) {
			n++
		}
	}
	return n
}

// longestUnused returns the environment that was used longest ago, nil if all are
// in use. e.mu is held.
func (e *Engine) longestUnused() *environment {
	var oldest *environment
	for _, env := range e.envs {
		if env.users == 0 && (oldest == nil || env.used.Before(oldest.used)) {
			oldest = env
		}
	}
	return oldest
}

// giveUp forgets an environment without users, which is then to be cleared. e.mu
// is held.
func (e *Engine) giveUp(env *environment) {
	delete(e.envs, env.key)
	for _, kind := range env.maker.Kinds() {
		e.pool.Drop(kind)
	}
}

// clear removes what an environment needed.
func (e *Engine) clear(env *environment) {
	if err := errors.Join(os.RemoveAll(env.templates), env.release()); err != nil {
		e.cfg.Log.Warn("cannot clear the templates of an environment", "image", env.key.image, "error", err)
	}
	if env.trust != nil {
		e.unpin(env.trust)
	}
}

const (
	unusedTime  = 10 * time.Minute // after which an environment is given up
	unusedCheck = time.Minute
)

// forgetUnused gives up environments that were not used for unusedTime, until ctx ends.
func (e *Engine) forgetUnused(ctx context.Context) {
	tick := time.NewTicker(unusedCheck)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var unneeded []*environment
		e.mu.Lock()
		for _, env := range e.envs {
			if env.users == 0 && time.Since(env.used) > unusedTime {
				e.giveUp(env)
				unneeded = append(unneeded, env)
			}
		}
		e.mu.Unlock()
		for _, env := range unneeded {
			e.clear(env)
		}
	}
}

// offline are the variables of programs in a sandbox without a network, own ones over
// them. Names are not resolved there, which is known within a millisecond, but pip and
// npm try five and two times more, with pauses: 8 and 70 s in all.
func offline(own map[string]string) map[string]string {
	all := map[string]string{"PIP_RETRIES": "0", "npm_config_fetch_retries": "0"}
	maps.Copy(all, own)
	return all
}

// variables are those of an environment's programs, the image's left out.
func (e *Engine) variables(job *execution.Job, t *trust) map[string]string {
	if job.Permissions.Network.Blocked() {
		return offline(job.BaseEnv)
	}
	return e.networks.env(job.BaseEnv, t.file(len(job.BoundSecrets) > 0))
}
