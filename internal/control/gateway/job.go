package gateway

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"maps"
	"slices"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// job is what an executor needs to know of a request that was admitted as e.
func (g *Gateway) job(p *tenant.Principal, e *execution.Execution, req execution.Request, c Call, mounts []storage.Mount) execution.Job {
	env := &p.Environment
	job := execution.Job{
		TraceID:     req.TraceID,
		Tenant:      p.Tenant.ID,
		Code:        req.Code,
		Language:    req.Language,
		Timeout:     req.Timeout,
		Env:         over(p.Key.Variables(), req.Env),
		Input:       req.Input,
		Partial:     req.Partial,
		Image:       env.RunImage(),
		Extras:      c.Extras,
		NeedExtras:  c.NeedExtras,
		Limits:      env.Limits,
		BaseEnv:     env.Variables(),
		Permissions: permissions(p, c.Network),
		Isolation:   p.Isolation(),
		Mounts:      mounts,
		MaxOutput:   g.cfg.MaxOutput,
		StoreOutput: max(p.Plan.MaxOutput, g.cfg.MaxOutput),
		Redact:      g.rules(&p.Tenant),
	}
	if job.Isolation == execution.IsolationKey {
		job.Key = p.Key.ID
	}
	if e.Thread != "" {
		job.Thread = &execution.Thread{ID: e.Thread, State: e.ThreadState, Quota: p.Plan.MaxThreadSize}
	}
	if c.Web {
		job.Web = &execution.WebAccess{Key: p.Key.ID, Environment: p.Environment.ID, Held: c.Held, Token: webToken + req.TraceID + "-" + rand.Text(), Left: c.WebLeft}
	}
	if c.Turn != "" {
		job.Turn, job.Window, job.Skills, job.Files = turnName(p, c), c.Window, c.Skills, c.Files
		if g.cfg.Signer != nil {
			job.ProveFiles(g.cfg.Signer)
		}
	}
	job.Secrets, job.BoundSecrets = p.Secrets(), p.BoundSecrets()
	for i := range mounts {
		job.Secrets = append(job.Secrets, mounts[i].Secrets()...)
	}
	return job
}

// webToken begins the token of an execution, by which people tell what it is.
const webToken = "atoll-web-"

// over is a request's variables over those of its key. The environment's stay
// apart: sandboxes are made ahead with them.
func over(key, own map[string]string) map[string]string {
	if len(key) == 0 {
		return own
	}
	all := maps.Clone(key)
	maps.Copy(all, own)
	return all
}

// permissions are the environment's, as far as the tenant's policy still allows
// them. A template decides whether there is a network at all; an environment's
// rules narrow it.
func permissions(p *tenant.Principal, template tenant.Network) runtime.Permissions {
	rules := p.Tenant.Permitted(p.Environment.Permissions)
	switch {
	case template == tenant.InternalOnly:
		rules.Network = runtime.NetworkPolicy{}
	case template == tenant.DefaultPublic && rules.Network.Blocked() && p.Tenant.NetworkEnabled:
		rules.Network = runtime.NetworkPolicy{Mode: runtime.NetworkUnrestricted}
	}
	return rules
}

// rules are the redaction rules that a tenant has not switched off.
func (g *Gateway) rules(t *tenant.Tenant) []string {
	if len(t.RedactionOff) == 0 {
		return g.cfg.Rules
	}
	return slices.DeleteFunc(slices.Clone(g.cfg.Rules), func(rule string) bool { return slices.Contains(t.RedactionOff, rule) })
}

// turnName names the sandbox of a turn. Tenants, environments and agents that
// call their turns the same do not meet in one.
func turnName(p *tenant.Principal, c Call) string {
	d := newDigest("turn", p.Tenant.ID, p.Environment.ID, c.Agent, c.Turn)
	return hex.EncodeToString(d.Sum(nil)[:16])
}

// digest is what an idempotency key stands for: the tenant, the interface, and
// all of a request that decides what is run and where the end is told.
func digest(e *execution.Execution, req execution.Request, webhookURL string) [sha256.Size]byte {
	d := newDigest("execute", e.Tenant, string(e.Source), e.Environment, e.Agent, e.Turn,
		req.Code, string(req.Language), req.Timeout.String(), webhookURL, req.Thread)
	for _, m := range []map[string]string{req.Env, req.Metadata} {
		addInt(d, len(m))
		for _, key := range slices.Sorted(maps.Keys(m)) {
			add(d, key)
			add(d, m[key])
		}
	}
	for _, sub := range req.SubPaths {
		add(d, sub.Slug)
		add(d, string(sub.Path))
	}
	if !req.Empty() {
		addInput(d, &req.Input)
	}
	return [sha256.Size]byte(d.Sum(nil))
}

func addInput(d hash.Hash, in *execution.Input) {
	for _, list := range [][]string{in.Args, in.Outputs, {string(in.Stdin)}} {
		addInt(d, len(list))
		for _, text := range list {
			add(d, text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(in.Files)) {
		add(d, name)
		add(d, string(in.Files[name]))
	}
	if in.Tool {
		add(d, "tool")
	}
	if in.Helper {
		add(d, "helper")
	}
}

// newDigest digests texts such that no two lists of them look the same.
func newDigest(texts ...string) hash.Hash {
	d := sha256.New()
	for _, text := range texts {
		add(d, text)
	}
	return d
}

func add(d hash.Hash, text string) {
	addInt(d, len(text))
	d.Write([]byte(text))
}

func addInt(d hash.Hash, n int) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	d.Write(b[:])
}
