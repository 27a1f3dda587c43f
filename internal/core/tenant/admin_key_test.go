package tenant_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

func TestKeyBounds(t *testing.T) {
	w := open(t)
	ctx := t.Context()
	w.tenant("acme", tenant.TenantChange{})
	w.environment("acme", "e")
	w.tenant("other", tenant.TenantChange{})
	foreign := w.environment("other", "theirs")
	k, key, err := w.CreateKey(ctx, "", "acme", "e", "k", tenant.KeyChange{})
	w.must(err)
	if !strings.HasPrefix(key, "sk-atoll-") || len(key) != 49 || k.Hash != tenant.HashKey(key) || k.Hint != key[45:] || k.ExpiresAt != nil || len(k.Scopes) != len(tenant.DefaultScopes) {
		t.Errorf("got %+v %s", k, key)
	}

	past, soon := time.Now().Add(-time.Second), time.Now().Add(time.Hour)
	for _, c := range []struct {
		name, environment string
		change            tenant.KeyChange
		says              string
	}{
		{"no environment", "", tenant.KeyChange{}, "environment is required"},
		{"unknown environment", "nope", tenant.KeyChange{}, "environment: not found in this tenant"},
		{"another tenant's environment", foreign.ID, tenant.KeyChange{}, "environment: not found in this tenant"},
		{"no scope", "e", tenant.KeyChange{Scopes: &[]tenant.Scope{}}, "scopes"},
		{"unknown scope", "e", tenant.KeyChange{Scopes: &[]tenant.Scope{"root"}}, "scopes must be one of"},
		{"administers", "e", tenant.KeyChange{Scopes: &[]tenant.Scope{"admin"}}, "operator"},
		{"expired", "e", tenant.KeyChange{ExpiresAt: &past}, "expires_at"},
		{"expires after all", "e", tenant.KeyChange{ExpiresAt: ptr(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))}, "expires_at"},
		{"plain HTTP", "e", tenant.KeyChange{WebhookURL: ptr("http://example.com/")}, "webhook_url"},
		{"loopback", "e", tenant.KeyChange{WebhookURL: ptr("https://127.0.0.1/")}, "webhook_url"},
		{"metadata address", "e", tenant.KeyChange{WebhookURL: ptr("https://169.254.169.254/latest")}, "webhook_url"},
		{"NUL in the URL", "e", tenant.KeyChange{WebhookURL: ptr("https://example.com/\x00")}, "webhook_url must be printable"},
		{"URL too long", "e", tenant.KeyChange{WebhookURL: ptr("https://example.com/" + strings.Repeat("a", 2029))}, "webhook_url must be 1 to 2048"},
		{"secret too short", "e", tenant.KeyChange{WebhookSecret: ptr(strings.Repeat("a", 15))}, "webhook_secret must be 16 to 256"},
		{"secret too long", "e", tenant.KeyChange{WebhookSecret: ptr(strings.Repeat("a", 257))}, "webhook_secret must be 16 to 256"},
		{"newline in the secret", "e", tenant.KeyChange{WebhookSecret: ptr(strings.Repeat("a", 16) + "\n")}, "webhook_secret must be printable"},
		{"secret of a bad form", "e", tenant.KeyChange{WebhookSecret: ptr("whsec_" + strings.Repeat("!", 16))}, "base64"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, shown, err := w.CreateKey(ctx, "", "acme", c.environment, "new", c.change)
			refused(t, err, fault.Invalid, c.says)
			if shown != "" {
				t.Error("a refused key was shown")
			}
			if c.environment == "e" && c.name != "expired" {
				_, err = w.ChangeKey(ctx, "acme", "k", c.change)
				refused(t, err, fault.Invalid, c.says)
			}
		})
	}

	edge, err := w.ChangeKey(ctx, "acme", k.ID, tenant.KeyChange{
		Name: ptr("renamed"), ExpiresAt: &soon, WebhookURL: ptr("https://9.9.9.9:8443/x"), WebhookSecret: ptr(strings.Repeat("s", 256)),
		Scopes: &[]tenant.Scope{"tools", "read", "tools"},
	})
	w.must(err)
	if edge.Name != "renamed" || !edge.ExpiresAt.Equal(soon.UTC().Truncate(time.Microsecond)) || len(edge.Scopes) != 2 || len(edge.WebhookSecret) != 256 {
		t.Errorf("got %+v", edge)
	}
	if p, err := w.authority.Authenticate(ctx, key); err != nil || p.May(tenant.ScopeExecute) || !p.May(tenant.ScopeRead) {
		t.Errorf("a change of scopes took no effect at once: %+v %v", p.Key, err)
	}
	plain, err := w.ChangeKey(ctx, "acme", "renamed", tenant.KeyChange{ExpiresAt: &time.Time{}, WebhookURL: ptr(""), WebhookSecret: ptr("")})
	if err != nil || plain.ExpiresAt != nil || plain.WebhookURL != "" || plain.WebhookSecret != "" {
		t.Errorf("got %+v %v", plain, err)
	}
	gone, err := w.RevokeKey(ctx, "", "acme", "renamed")
	w.must(err)
	if gone.RevokedAt == nil {
		t.Errorf("got %+v", gone)
	}
	_, err = w.RevokeKey(ctx, "", "acme", "renamed") // again is no error
	w.must(err)
	_, err = w.ChangeKey(ctx, "acme", "renamed", tenant.KeyChange{Name: ptr("k")})
	refused(t, err, fault.Conflict, "revoked")
}

func TestTenantsDoNotSeeEachOther(t *testing.T) {
	w := open(t)
	ctx := t.Context()
	w.tenant("a", tenant.TenantChange{})
	w.tenant("b", tenant.TenantChange{})
	e := w.environment("a", "e")
	k, _, err := w.CreateKey(ctx, "", "a", e.ID, "k", tenant.KeyChange{})
	w.must(err)
	_, err = w.PutTemplate(ctx, "key_1", "a", "support", tenant.InternalOnly)
	w.must(err)
	for _, id := range []string{e.ID, e.Name} {
		_, err := w.Environment(ctx, "b", id)
		refused(t, err, fault.NotFound, "")
		_, err = w.ChangeEnvironment(ctx, "b", id, tenant.EnvironmentChange{})
		refused(t, err, fault.NotFound, "")
		refused(t, w.DeleteEnvironment(ctx, "", "b", id), fault.NotFound, "")
	}
	for _, id := range []string{k.ID, k.Name} {
		_, err := w.Key(ctx, "b", id)
		refused(t, err, fault.NotFound, "")
		_, err = w.ChangeKey(ctx, "b", id, tenant.KeyChange{})
		refused(t, err, fault.NotFound, "")
		_, err = w.RevokeKey(ctx, "", "b", id)
		refused(t, err, fault.NotFound, "")
	}
	_, err = w.Template(ctx, "b", "support")
	refused(t, err, fault.NotFound, "")
	refused(t, w.DeleteTemplate(ctx, "key_1", "b", "support"), fault.NotFound, "")
	if k, err := w.Key(ctx, "a", k.ID); err != nil || k.RevokedAt != nil {
		t.Errorf("got %+v %v", k, err)
	}
}

func TestEnvironmentBounds(t *testing.T) {
	w := open(t)
	ctx := t.Context()
	w.tenant("acme", tenant.TenantChange{Plan: ptr("enterprise")})
	e := w.environment("acme", "e")
	if e.Image != "default" || e.Limits != runtime.DefaultLimits() {
		t.Errorf("a new environment is %+v", e)
	}
	many := map[string]string{}
	for i := range 51 {
		many["V"+strings.Repeat("X", i)] = "1"
	}
	limit := func(change func(*tenant.LimitsChange)) tenant.EnvironmentChange {
		var c tenant.EnvironmentChange
		change(&c.Limits)
		return c
	}
	for _, c := range []struct {
		name   string
		change tenant.EnvironmentChange
		says   string
	}{
		{"image", tenant.EnvironmentChange{Image: ptr("nope")}, "image"},
		{"no cpu", limit(func(l *tenant.LimitsChange) { l.CPU = ptr(0.0) }), "limits.cpu"},
		{"cpu that is no number", limit(func(l *tenant.LimitsChange) { l.CPU = ptr(math.NaN()) }), "limits.cpu"},
		{"too much cpu", limit(func(l *tenant.LimitsChange) { l.CPU = ptr(1025.0) }), "limits.cpu"},
		{"little memory", limit(func(l *tenant.LimitsChange) { l.Memory = ptr(int64(1)) }), "limits"},
		{"memory below 64 MiB", limit(func(l *tenant.LimitsChange) {
			l.Memory, l.Root, l.Tmp, l.Shm = ptr(int64(64<<20-1)), ptr(int64(1)), ptr(int64(1)), ptr(int64(1))
		}), "64 MiB"},
		{"too much memory", limit(func(l *tenant.LimitsChange) { l.Memory = ptr(int64(16<<40 + 1)) }), "limits.memory"},
		{"sizes above memory", limit(func(l *tenant.LimitsChange) { l.Root = ptr(int64(400 << 20)) }), "below the memory limit"},
		{"sizes that overflow", limit(func(l *tenant.LimitsChange) { l.Root, l.Tmp = ptr(int64(math.MaxInt64)), ptr(int64(math.MaxInt64)) }), "limits"},
		{"no root", limit(func(l *tenant.LimitsChange) { l.Root = ptr(int64(0)) }), "positive"},
		{"negative tmp", limit(func(l *tenant.LimitsChange) { l.Tmp = ptr(int64(-1)) }), "positive"},
		{"no shm", limit(func(l *tenant.LimitsChange) { l.Shm = ptr(int64(0)) }), "positive"},
		{"no processes", limit(func(l *tenant.LimitsChange) { l.Processes = ptr(0) }), "positive"},
		{"too many processes", limit(func(l *tenant.LimitsChange) { l.Processes = ptr(1<<20 + 1) }), "limits.processes"},
		{"no files", limit(func(l *tenant.LimitsChange) { l.OpenFiles = ptr(0) }), "positive"},
		{"too many files", limit(func(l *tenant.LimitsChange) { l.OpenFiles = ptr(1<<20 + 1) }), "limits.open_files must be at most 1048576"},
		{"no inodes", limit(func(l *tenant.LimitsChange) { l.Inodes = ptr(0) }), "positive"},
		{"too many inodes", limit(func(l *tenant.LimitsChange) { l.Inodes = ptr(1<<30 + 1) }), "limits.inodes"},
		{"reserved variable", tenant.EnvironmentChange{Variables: tenant.VariablesChange{Env: map[string]string{"PATH": "/"}}}, "reserved"},
		{"reserved secret", tenant.EnvironmentChange{Variables: tenant.VariablesChange{Secrets: map[string]string{"ATOLL_X": "12345678"}}}, "reserved"},
		{"lower case", tenant.EnvironmentChange{Variables: tenant.VariablesChange{Env: map[string]string{"a": "1"}}}, "uppercase"},
		{"NUL", tenant.EnvironmentChange{Variables: tenant.VariablesChange{Env: map[string]string{"A": "\x00"}}}, "NUL"},
		{"NUL in a secret", tenant.EnvironmentChange{Variables: tenant.VariablesChange{Secrets: map[string]string{"A": "12345678\x00"}}}, "NUL"},
		{"too many", tenant.EnvironmentChange{Variables: tenant.VariablesChange{Env: many}}, "at most 50"},
		{"too long", tenant.EnvironmentChange{Variables: tenant.VariablesChange{Secrets: map[string]string{"A": strings.Repeat("a", 4097)}}}, "4096"},
		{"a short secret", tenant.EnvironmentChange{Variables: tenant.VariablesChange{Secrets: map[string]string{"A": "1234567"}}}, "at least 8"},
		{"a blank secret", tenant.EnvironmentChange{Variables: tenant.VariablesChange{Secrets: map[string]string{"A": "   1234567   "}}}, "at least 8"},
		{"both", tenant.EnvironmentChange{Variables: tenant.VariablesChange{Env: map[string]string{"A": "12345678"}, Secrets: map[string]string{"A": "12345678"}}}, "in both env_vars and secrets"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := w.ChangeEnvironment(ctx, "acme", "e", c.change)
			refused(t, err, fault.Invalid, c.says)
			_, err = w.CreateEnvironment(ctx, "", "acme", "new", c.change)
			refused(t, err, fault.Invalid, c.says)
		})
	}

	// Variables and secrets together are bounded, and a name is one of them.
	delete(many, "V")
	if _, err := w.ChangeEnvironment(ctx, "acme", "e", tenant.EnvironmentChange{Variables: tenant.VariablesChange{Env: many}}); err != nil {
		t.Fatal(err)
	}
	_, err := w.ChangeEnvironment(ctx, "acme", "e", tenant.EnvironmentChange{Variables: tenant.VariablesChange{Secrets: map[string]string{"S": "12345678"}}})
	refused(t, err, fault.Invalid, "at most 50")
	moved, err := w.ChangeEnvironment(ctx, "acme", "e", tenant.EnvironmentChange{Variables: tenant.VariablesChange{Secrets: map[string]string{"VX": "12345678"}, Unset: []string{"VXX", "NOPE"}}})
	if err != nil || len(moved.Env) != 48 || moved.Secrets["VX"] != "12345678" {
		t.Errorf("got %d variables, %v (%v)", len(moved.Env), moved.Secrets, err)
	}
	back, err := w.ChangeEnvironment(ctx, "acme", "e", tenant.EnvironmentChange{Variables: tenant.VariablesChange{Env: map[string]string{"VX": "1"}}})
	if err != nil || len(back.Env) != 49 || len(back.Secrets) != 0 {
		t.Errorf("got %d variables, %v (%v)", len(back.Env), back.Secrets, err)
	}

	k, _, err := w.CreateKey(ctx, "", "acme", "e", "k", tenant.KeyChange{})
	w.must(err)
	refused(t, w.DeleteEnvironment(ctx, "", "acme", "e"), fault.Conflict, "")
	_, err = w.RevokeKey(ctx, "", "acme", k.ID)
	w.must(err)
	w.must(w.DeleteEnvironment(ctx, "", "acme", "e"))
	_, err = w.Environment(ctx, "acme", "e")
	refused(t, err, fault.NotFound, "")
}

// TestMemoryAlone: an environment is made with little memory without saying how much of
// it files may take; what is said stays.
func TestMemoryAlone(t *testing.T) {
	w := open(t)
	w.tenant("acme", tenant.TenantChange{})
	e, err := w.CreateEnvironment(t.Context(), "", "acme", "small", tenant.EnvironmentChange{Limits: tenant.LimitsChange{Memory: ptr(int64(128 << 20)), Tmp: ptr(int64(8 << 20))}})
	if l := e.Limits; err != nil || l.Root != 32<<20 || l.Tmp != 8<<20 || l.Shm != 16<<20 {
		t.Errorf("got %+v, %v", l, err)
	}
	_, err = w.CreateEnvironment(t.Context(), "", "acme", "none", tenant.EnvironmentChange{Limits: tenant.LimitsChange{Memory: ptr(int64(128 << 20)), Tmp: ptr(int64(120 << 20))}})
	refused(t, err, fault.Invalid, "must stay below the memory limit")
}

// TestASecretCanAlwaysBeReplaced changes variables of an environment whose
// image has gone and whose limits are above the plan by now.
func TestASecretCanAlwaysBeReplaced(t *testing.T) {
	w := open(t)
	ctx := t.Context()
	acme := w.tenant("acme", tenant.TenantChange{})
	limits := runtime.DefaultLimits()
	limits.CPU = 2
	w.must(w.db.Tenants().CreateEnvironment(ctx, tenant.Environment{
		ID: tenant.NewID("env"), Tenant: acme.ID, Name: "old", Image: "gone", Limits: limits, Secrets: map[string]string{"TOKEN": "leaked-by-now"}, CreatedAt: time.Now(),
	}))
	e, err := w.ChangeEnvironment(ctx, "acme", "old", tenant.EnvironmentChange{Variables: tenant.VariablesChange{Secrets: map[string]string{"TOKEN": "another-one"}}})
	if err != nil || e.Secrets["TOKEN"] != "another-one" || e.Image != "gone" || e.Limits != limits {
		t.Errorf("got %+v %v", e, err)
	}
	_, err = w.ChangeEnvironment(ctx, "acme", "old", tenant.EnvironmentChange{Limits: tenant.LimitsChange{Memory: ptr(int64(512 << 20))}})
	refused(t, err, fault.Exhausted, "cpu of 2 exceeds the free plan's maximum of 1")
	_, err = w.ChangeEnvironment(ctx, "acme", "old", tenant.EnvironmentChange{Image: ptr("gone")})
	refused(t, err, fault.Invalid, "no image")
}

func TestPlans(t *testing.T) {
	w := open(t)
	ctx := t.Context()
	for _, name := range []string{"free", "pro", "enterprise"} {
		_, err := w.PutPlan(ctx, "key_1", tenant.Plan{Name: name, MaxOutput: 1 << 20})
		refused(t, err, fault.Conflict, "built in")
		refused(t, w.DeletePlan(ctx, "key_1", name), fault.Conflict, "built in")
	}
	fits := tenant.Plan{Name: "team", MaxCPU: 1024, MaxMemory: 16 << 40, Concurrency: 1e6, MaxTimeout: 30 * 24 * time.Hour, MaxOutput: 1 << 40, Streaming: true, BuiltIn: true,
		MaxSandboxes: 1e6, MaxSandboxMemory: 16 << 40, MaxSandboxDisk: 16 << 40, MaxSandboxLife: 10 * 365 * 24 * time.Hour, MaxSnapshots: 1e6, MaxSnapshotSize: 16 << 40,
		MaxRequestRate: 1e6, MaxKeyRequestRate: 1e6, MaxUploadRate: 1 << 20, MaxKeyUploadRate: 1 << 40}
	for _, c := range []struct {
		says   string
		change func(*tenant.Plan)
	}{
		{"max_cpu", func(p *tenant.Plan) { p.MaxCPU = -1 }},
		{"max_cpu", func(p *tenant.Plan) { p.MaxCPU = 1024.5 }},
		{"max_cpu", func(p *tenant.Plan) { p.MaxCPU = math.NaN() }},
		{"max_memory", func(p *tenant.Plan) { p.MaxMemory = -1 }},
		{"max_memory", func(p *tenant.Plan) { p.MaxMemory++ }},
		{"concurrency", func(p *tenant.Plan) { p.Concurrency = -1 }},
		{"concurrency", func(p *tenant.Plan) { p.Concurrency++ }},
		{"max_timeout", func(p *tenant.Plan) { p.MaxTimeout = -1 }},
		{"max_timeout", func(p *tenant.Plan) { p.MaxTimeout += time.Second }},
		{"max_output", func(p *tenant.Plan) { p.MaxOutput = 64<<10 - 1 }},
		{"max_output", func(p *tenant.Plan) { p.MaxOutput++ }},
		{"max_sandboxes", func(p *tenant.Plan) { p.MaxSandboxes = -1 }},
		{"max_sandboxes", func(p *tenant.Plan) { p.MaxSandboxes++ }},
		{"max_sandbox_memory", func(p *tenant.Plan) { p.MaxSandboxMemory = -1 }},
		{"max_sandbox_memory", func(p *tenant.Plan) { p.MaxSandboxMemory++ }},
		{"max_sandbox_disk", func(p *tenant.Plan) { p.MaxSandboxDisk = -1 }},
		{"max_sandbox_disk", func(p *tenant.Plan) { p.MaxSandboxDisk++ }},
		{"max_sandbox_life", func(p *tenant.Plan) { p.MaxSandboxLife = -1 }},
		{"max_sandbox_life", func(p *tenant.Plan) { p.MaxSandboxLife += time.Second }},
		{"max_snapshots", func(p *tenant.Plan) { p.MaxSnapshots = -1 }},
		{"max_snapshots", func(p *tenant.Plan) { p.MaxSnapshots++ }},
		{"max_snapshot_size", func(p *tenant.Plan) { p.MaxSnapshotSize = -1 }},
		{"max_snapshot_size", func(p *tenant.Plan) { p.MaxSnapshotSize++ }},
		{"max_request_rate", func(p *tenant.Plan) { p.MaxRequestRate = -1 }},
		{"max_key_request_rate", func(p *tenant.Plan) { p.MaxKeyRequestRate++ }},
		{"max_upload_rate", func(p *tenant.Plan) { p.MaxUploadRate-- }},
		{"max_key_upload_rate", func(p *tenant.Plan) { p.MaxKeyUploadRate++ }},
		{"max_response_rate", func(p *tenant.Plan) { p.MaxResponseRate = -1 }},
		{"max_key_response_rate", func(p *tenant.Plan) { p.MaxKeyResponseRate = 1_000_001 }},
		{"max_token_rate", func(p *tenant.Plan) { p.MaxTokenRate = -1 }},
		{"max_key_token_rate", func(p *tenant.Plan) { p.MaxKeyTokenRate = 1e12 + 1 }},
	} {
		p := fits
		c.change(&p)
		_, err := w.PutPlan(ctx, "key_1", p)
		refused(t, err, fault.Invalid, c.says)
	}
	p, err := w.PutPlan(ctx, "key_1", fits)
	if err != nil || p.BuiltIn || p.MaxTimeout != 30*24*time.Hour || !p.Streaming {
		t.Errorf("got %+v %v", p, err)
	}
	small := tenant.Plan{Name: "team", MaxCPU: 2, MaxMemory: 1 << 30, MaxOutput: 64 << 10}
	if p, err = w.PutPlan(ctx, "key_1", small); err != nil || p.MaxCPU != 2 || p.Streaming {
		t.Errorf("got %+v %v", p, err)
	}

	// What is above a plan is refused, whichever comes later.
	w.tenant("acme", tenant.TenantChange{Plan: ptr("team")})
	_, err = w.CreateEnvironment(ctx, "", "acme", "big", tenant.EnvironmentChange{Limits: tenant.LimitsChange{CPU: ptr(2.5)}})
	refused(t, err, fault.Exhausted, "cpu of 2.5 exceeds the team plan's maximum of 2")
	_, err = w.CreateEnvironment(ctx, "", "acme", "big", tenant.EnvironmentChange{Limits: tenant.LimitsChange{Memory: ptr(int64(2 << 30))}})
	refused(t, err, fault.Exhausted, "memory of 2 GiB exceeds the team plan's maximum of 1 GiB")
	_, err = w.CreateEnvironment(ctx, "", "acme", "fits", tenant.EnvironmentChange{Limits: tenant.LimitsChange{CPU: ptr(2.0)}})
	w.must(err)
	_, err = w.ChangeTenant(ctx, "key_1", "acme", tenant.TenantChange{Plan: ptr("free")})
	refused(t, err, fault.Exhausted, "environment fits: cpu of 2 exceeds the free plan's maximum of 1")
	refused(t, w.DeletePlan(ctx, "key_1", "team"), fault.Conflict, "")
	_, err = w.ChangeTenant(ctx, "key_1", "acme", tenant.TenantChange{Plan: ptr("pro")})
	w.must(err)
	w.must(w.DeletePlan(ctx, "key_1", "team"))
	refused(t, w.DeletePlan(ctx, "key_1", "team"), fault.NotFound, "")
	_, err = w.PutTemplate(ctx, "key_1", "acme", "x", "public")
	refused(t, err, fault.Invalid, "sandbox.environment must be one of default-public, internal-only")
}
