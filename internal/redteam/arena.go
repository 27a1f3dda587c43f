package redteam

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// The tenants and the plan of every run. Tenants cannot be deleted, so that each run
// uses the same two; between runs they are disabled.
const (
	attackerTenant = "redteam"
	victimTenant   = "redteam-victim"
	planName       = "redteam"
)

const mib = 1 << 20

// sandboxMemory is the memory of each sandbox of a run, in bytes.
const sandboxMemory = 512 * mib

// plan bounds what a run can take from the installation.
var plan = map[string]any{
	"max_cpu": 1, "max_memory": sandboxMemory, "concurrency": 2 * maxParallel, "max_timeout": 60, "streaming": true, "async": true,
	"max_output": 4 * mib, "max_threads": 20, "max_thread_size": 16 * mib,
	"max_sandboxes": 8, "max_sandbox_memory": 6 * sandboxMemory, "max_sandbox_disk": 64 * mib, "max_sandbox_life": 3600,
	"max_snapshots": 2, "max_snapshot_size": 1024 * mib, "key_isolation": true,
}

// victimPlan is the plan of the victim: as plan, with less of what the exhaustion cases
// ask for.
const victimPlan = "redteam-victim"

var lessPlan = map[string]any{"concurrency": 2, "max_threads": 4, "max_sandboxes": 3, "max_key_request_rate": 20}

// plans are those of a tenant.
var plans = map[string]string{attackerTenant: planName, victimTenant: victimPlan}

// Environments of the attacker; the victim has the first.
const (
	envPlain  = "redteam-plain"  // no network, no secrets
	envNet    = "redteam-net"    // any address and name, but for the floor
	envRules  = "redteam-rules"  // one name, which does not exist
	envSecret = "redteam-secret" // with the secrets of the redaction cases
	envKeyed  = "redteam-keyed"  // executions of one key share kernels
	envRoot   = "redteam-root"   // programs run as root
	envSilent = "redteam-silent" // the profile has no network
)

// arena is what cases share: the server, two tenants, and sandboxes.
type arena struct {
	opts Options
	base *url.URL
	http *http.Client
	run  string // names this run in the records

	admin    caller
	stranger caller // without a key
	plain    caller // attacker, in envPlain
	net      caller // attacker, in envNet
	victim   caller

	names   sync.Mutex        // held by cases that make things of the victim's names
	spend   sync.Mutex        // held while the victim calls a model or a case changes the victim's budget
	ids     map[string]string // of the two tenants, by name
	secrets map[string]string // of envSecret, by name

	box     held[sandbox] // of plain
	wire    held[sandbox] // of net
	rules   held[caller]  // of envRules
	secret  held[caller]  // of envSecret
	vault   held[sandbox] // of secret
	prey    held[prey]    // what the victim has
	echo    held[string]  // the host of a preview
	near    held[string]  // the path of a file that attacks on others aim at
	spec    held[spec]    // what the server says it can do
	planted held[string]  // what later programs saw of what was planted
	lure    held[*lure]   // the attacker's server
	acting  held[actor]   // the attacker's model
	index   held[*lure]   // the attacker's package index
	keyed   held[caller]  // of envKeyed
	rooted  held[sandbox] // of envRoot
	silent  held[caller]  // of envSilent

	ends   sync.Mutex
	undone []func(context.Context) error // cleanup steps; close runs them in reverse order
}

// later registers a cleanup step for close.
func (a *arena) later(do func(context.Context) error) {
	a.ends.Lock()
	defer a.ends.Unlock()
	a.undone = append(a.undone, do)
}

// held is a value that the first case that needs it makes.
type held[T any] struct {
	mu   sync.Mutex
	v    T
	done bool
}

// get returns the value. What failed is tried again by the next case.
func (h *held[T]) get(ctx context.Context, build func(context.Context) (T, error)) (T, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.done {
		return h.v, nil
	}
	v, err := build(ctx)
	if err == nil {
		h.v, h.done = v, true
	}
	return v, err
}

// drop has the next get make another.
func (h *held[T]) drop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.done = false
}

func newArena(_ context.Context, o Options) (*arena, error) {
	base, err := url.Parse(strings.TrimRight(o.URL, "/"))
	if err != nil {
		return nil, err
	}
	if base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("the server's URL must begin with http:// or https:// and name a host, not %q", o.URL)
	}
	a := &arena{opts: o, base: base, run: token(4), ids: map[string]string{}}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 4 * maxParallel
	a.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	a.admin, a.stranger = a.as(o.Key), a.as("")
	a.secrets = makeSecrets()
	return a, nil
}

func (a *arena) as(key string) caller { return caller{base: a.base.String(), key: key, http: a.http} }

// token returns n random bytes in hexadecimal digits.
func token(n int) string {
	raw := make([]byte, n)
	_, _ = rand.Read(raw) // never fails
	return hex.EncodeToString(raw)
}

// keyLife bounds how long the keys of a run that was killed are good for.
const keyLife = time.Hour

func (a *arena) setUp(ctx context.Context) error {
	less := maps.Clone(plan)
	maps.Copy(less, lessPlan)
	for name, bounds := range map[string]map[string]any{planName: plan, victimPlan: less} {
		if err := a.admin.must(ctx, http.MethodPut, "/v1/admin/plans/"+name, bounds, nil); err != nil {
			return err
		}
	}
	for _, name := range []string{attackerTenant, victimTenant} {
		if err := a.openTenant(ctx, name); err != nil {
			return err
		}
	}
	if err := a.sweepModels(ctx); err != nil {
		return err
	}
	var err error
	if a.plain, err = a.room(ctx, attackerTenant, envPlain, nil); err != nil {
		return err
	}
	if a.victim, err = a.room(ctx, victimTenant, envPlain, nil); err != nil {
		return err
	}
	network := map[string]any{"permissions": map[string]any{"network": map[string]any{"enabled": true, "unrestricted": true, "blocked_ports": []int{8443}}}}
	a.net, err = a.room(ctx, attackerTenant, envNet, network)
	return err
}

// withRights adds a tenant's rights to body. The victim gets neither root nor shared kernels, so that
// cases can check that the server refuses both.
func withRights(name string, body map[string]any) map[string]any {
	attacker := name == attackerTenant
	maps.Copy(body, map[string]any{"network_enabled": true, "root_enabled": attacker, "key_isolation_enabled": attacker})
	return body
}

// tenantRecord is what a run needs of a tenant.
type tenantRecord struct {
	ID       string  `json:"id"`
	Plan     string  `json:"plan"`
	Disabled *string `json:"disabled_at"`
}

// openTenant makes a tenant, or enables the one of an earlier run and removes what
// that left.
func (a *arena) openTenant(ctx context.Context, name string) error {
	at := "/v1/admin/tenants/" + name
	got, err := a.admin.do(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	var t tenantRecord
	if got.Status == http.StatusNotFound {
		if err := a.admin.must(ctx, http.MethodPost, "/v1/admin/tenants", withRights(name, map[string]any{"name": name, "plan": plans[name]}), &t); err != nil {
			return err
		}
		a.ids[name] = t.ID
		return nil
	}
	if err := a.admin.must(ctx, http.MethodGet, at, nil, &t); err != nil {
		return err
	}
	if t.Disabled == nil && t.Plan != plans[name] {
		return fmt.Errorf("a tenant %s of plan %s exists, which no run has made", name, t.Plan)
	}
	if t.Disabled == nil && !a.opts.Force {
		busy, err := a.livingKey(ctx, name)
		if err != nil {
			return err
		}
		if busy != "" {
			return fmt.Errorf("another run is in progress, or was killed: the key %s of tenant %s is valid; --force starts anyway", busy, name)
		}
	}
	a.ids[name] = t.ID
	if err := a.admin.must(ctx, http.MethodPatch, at, withRights(name, map[string]any{"plan": plans[name], "disabled": false}), nil); err != nil {
		return err
	}
	return a.sweep(ctx, name)
}

type keyRecord struct {
	ID      string  `json:"id"`
	Name    string  `json:"name"`
	Key     string  `json:"key"`
	Expires *string `json:"expires_at"`
	Revoked *string `json:"revoked_at"`
}

func (k keyRecord) living() bool {
	if k.Revoked != nil {
		return false
	}
	if k.Expires == nil {
		return true
	}
	at, err := time.Parse(time.RFC3339, *k.Expires)
	return err != nil || at.After(time.Now())
}

// livingKey returns the name of a tenant's key that is still valid, if there is one.
func (a *arena) livingKey(ctx context.Context, tenant string) (string, error) {
	keys, err := listed[keyRecord](ctx, a.admin, "/v1/admin/tenants/"+tenant+"/keys")
	if i := slices.IndexFunc(keys, keyRecord.living); err == nil && i >= 0 {
		return keys[i].Name, nil
	}
	return "", err
}

// listed reads a list to its end.
func listed[T any](ctx context.Context, c caller, path string) (all []T, err error) {
	for next := path; next != ""; {
		var page struct {
			Data []T     `json:"data"`
			Next *string `json:"next_page"`
		}
		if err := c.must(ctx, http.MethodGet, next, nil, &page); err != nil {
			return all, err
		}
		all = append(all, page.Data...)
		next = ""
		if page.Next != nil {
			join := "?"
			if strings.Contains(path, "?") {
				join = "&"
			}
			next = path + join + "page=" + url.QueryEscape(*page.Next)
		}
	}
	return all, nil
}

// room makes an environment and a key for it.
func (a *arena) room(ctx context.Context, tenant, env string, more map[string]any) (caller, error) {
	body := map[string]any{"name": env, "limits": map[string]any{
		"cpu": 1, "memory": sandboxMemory, "processes": 128, "open_files": 512,
		"root_size": 96 * mib, "tmp_size": 64 * mib, "shm_size": 32 * mib, "inodes": 20000,
	}}
	for k, v := range more {
		body[k] = v
	}
	if err := a.admin.must(ctx, http.MethodPost, "/v1/admin/tenants/"+tenant+"/environments", body, nil); err != nil {
		return caller{}, err
	}
	return a.key(ctx, tenant, env, "execute", "read", "tools", "sandboxes")
}

// key makes a key of an environment.
func (a *arena) key(ctx context.Context, tenant, env string, scopes ...string) (caller, error) {
	c, _, err := a.keyAndID(ctx, tenant, env, scopes...)
	return c, err
}

func (a *arena) keyAndID(ctx context.Context, tenant, env string, scopes ...string) (caller, string, error) {
	var k keyRecord
	body := map[string]any{"name": "redteam-" + a.run + "-" + token(4), "environment": env, "scopes": scopes, "expires_in": int(keyLife / time.Second)}
	if err := a.admin.must(ctx, http.MethodPost, "/v1/admin/tenants/"+tenant+"/keys", body, &k); err != nil {
		return caller{}, "", err
	}
	return a.as(k.Key), k.ID, nil
}

// closeTime bounds the removal of what a run made.
const closeTime = time.Minute

// close removes all that the run made, also after ctx has ended.
func (a *arena) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	defer a.http.CloseIdleConnections()
	var errs []error
	for name := range a.ids {
		errs = append(errs, a.sweep(ctx, name))
		errs = append(errs, a.admin.must(ctx, http.MethodPatch, "/v1/admin/tenants/"+name, map[string]any{"plan": "free", "disabled": true}, nil))
	}
	for _, name := range plans {
		errs = append(errs, gone(ctx, a.admin, "/v1/admin/plans/"+name))
	}
	a.ends.Lock()
	defer a.ends.Unlock()
	for _, do := range slices.Backward(a.undone) {
		errs = append(errs, do(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove what the run made: %w", err)
	}
	return nil
}

// sweep removes what a tenant of a run has: sandboxes, snapshots, threads, keys,
// environments.
func (a *arena) sweep(ctx context.Context, tenant string) error {
	at := "/v1/admin/tenants/" + tenant
	envs, err := listed[struct{ ID, Name string }](ctx, a.admin, at+"/environments")
	if err != nil {
		return err
	}
	var errs []error
	for _, env := range envs {
		c, err := a.key(ctx, tenant, env.ID, "execute", "read", "sandboxes", "environments")
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, emptyAgents(ctx, c))
		errs = append(errs, empty(ctx, c, "/v1/sandboxes", "sandbox_id"), empty(ctx, c, "/v1/snapshots", "snapshot_id"), empty(ctx, c, "/v1/threads", "thread_id"))
	}
	keys, err := listed[keyRecord](ctx, a.admin, at+"/keys")
	errs = append(errs, err)
	for _, k := range keys {
		if k.Revoked == nil {
			errs = append(errs, gone(ctx, a.admin, at+"/keys/"+k.ID))
		}
	}
	for _, env := range envs {
		errs = append(errs, gone(ctx, a.admin, at+"/environments/"+env.ID))
	}
	return errors.Join(errs...)
}

// sweepModels deletes the models that a killed run left behind.
func (a *arena) sweepModels(ctx context.Context) error {
	models, err := listed[struct {
		Name    string
		Tenants []string
	}](ctx, a.admin, "/v1/admin/models")
	errs := []error{err}
	for _, m := range models {
		if strings.HasPrefix(m.Name, modelPrefix) && slices.Contains(m.Tenants, a.ids[attackerTenant]) {
			errs = append(errs, gone(ctx, a.admin, "/v1/admin/models/"+m.Name))
		}
	}
	return errors.Join(errs...)
}

// empty deletes what a list has, by the field that is its id.
func empty(ctx context.Context, c caller, list, id string) error {
	all, err := listed[map[string]any](ctx, c, list)
	errs := []error{err}
	for _, one := range all {
		if name, ok := one[id].(string); ok {
			errs = append(errs, gone(ctx, c, list+"/"+url.PathEscape(name)))
		}
	}
	return errors.Join(errs...)
}

// gone deletes one thing, which may not exist.
func gone(ctx context.Context, c caller, path string) error {
	got, err := c.do(ctx, http.MethodDelete, path, nil)
	if err == nil && got.Status >= 300 && got.Status != http.StatusNotFound {
		err = fmt.Errorf("delete %s: %s", path, got)
	}
	return err
}
