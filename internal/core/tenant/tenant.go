// Package tenant authenticates callers and defines what they may use: tenants, their environments
// and keys, and plans with their limits.
package tenant

import (
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/storage"
)

// ID names a tenant: "ten_" and 16 hexadecimal digits.
type ID = string

// Name matches the names of tenants, environments, keys, plans and templates: a letter or digit,
// then letters, digits, '.', '_' and '-', at most 64 characters.
var Name = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Dev is the tenant of the development key. Operator is the tenant whose keys administer all
// others.
const (
	Dev      = "dev"
	Operator = "operator"
)

// Tier is a tenant's compliance tier.
type Tier string

const (
	Standard Tier = "standard"
	// Regulated tenants never have the sandbox tool. Entering this tier disables it until the
	// tenant leaves the tier.
	Regulated Tier = "regulated"
)

// Tenant owns keys, environments and everything created with them.
type Tenant struct {
	ID             ID
	Name           string // unique
	Plan           string // name of its plan
	SandboxEnabled bool   // whether agents may use execute_code
	Tier           Tier
	MonthlyCredits float64  // budget per calendar month in UTC; 0 for unlimited
	MonthlyCost    float64  // for the cost of runs, in US dollars per calendar month in UTC; 0 for unlimited
	RedactionOff   []string // redaction rules that are off for the tenant
	AuditDays      int      // retention of its audit rows in days, 1 to 180
	AuditText      bool     // whether the activity shows redacted code and commands, not only their hashes
	DailyCap       *int64   // execute_code calls per UTC day; nil for the server's cap
	HourlyCap      *int64   // execute_code calls per agent and UTC hour; nil for the server's cap
	NetworkEnabled bool     // whether its environments may use a network
	RootEnabled    bool     // whether its environments may run programs as root of their sandbox
	// KeyIsolationEnabled says whether its environments may use IsolationKey.
	KeyIsolationEnabled bool
	CreatedAt           time.Time
	DisabledAt          *time.Time // its keys are rejected from then on
	DeletedAt           *time.Time // when an operator requested its deletion; nil for never
	ErasedAt            *time.Time // when all its data except the audit trail and policy events was deleted
}

// Plan limits what a tenant may use. Zero means unlimited where the field says so.
type Plan struct {
	Name          string
	MaxCPU        float64       // cores per sandbox; 0 for unlimited
	MaxMemory     int64         // bytes per sandbox; 0 for unlimited
	Concurrency   int           // concurrent executions; 0 for unlimited
	MaxTimeout    time.Duration // 0 for the server's limit
	Streaming     bool
	Async         bool  // webhook delivery
	KeyIsolation  bool  // environments may use execution.IsolationKey
	MaxOutput     int64 // bytes of each stream that are stored
	MaxThreads    int   // threads that exist at once; 0 for unlimited
	MaxThreadSize int64 // bytes of a thread's files; 0 for unlimited
	MaxOutputs    int64 // total bytes that ended executions store; 0 for unlimited
	BuiltIn       bool  // defined by the contract; cannot be deleted

	// Limits of named sandboxes; 0 for unlimited.
	MaxSandboxes     int           // concurrent, including sleeping ones
	MaxSandboxMemory int64         // total bytes of sandboxes that are not asleep on disk
	MaxSandboxDisk   int64         // bytes of files per sandbox
	MaxSandboxLife   time.Duration // per sandbox
	MaxSnapshots     int
	MaxSnapshotSize  int64 // total bytes

	// Requests per second, and bytes of their bodies per second, to one server, averaged over 10 s:
	// for all keys together and for each key. 0 for unlimited.
	MaxRequestRate, MaxKeyRequestRate int64
	MaxUploadRate, MaxKeyUploadRate   int64

	// Responses and model tokens per minute and model: for all keys together and for each key. 0
	// for unlimited.
	MaxResponseRate, MaxKeyResponseRate int64
	MaxTokenRate, MaxKeyTokenRate       int64
}

// Plans returns the contract's plans.
func Plans() []Plan {
	const GiB = 1 << 30
	return []Plan{
		{
			Name: "free", MaxCPU: 1, MaxMemory: 1 * GiB, Concurrency: 5, MaxTimeout: time.Minute, MaxOutput: 100 << 20, MaxThreads: 100, MaxThreadSize: 1 * GiB, MaxOutputs: 10 * GiB, BuiltIn: true,
			MaxSandboxes: 5, MaxSandboxMemory: 4 * GiB, MaxSandboxDisk: 2 * GiB, MaxSandboxLife: 24 * time.Hour, MaxSnapshots: 5, MaxSnapshotSize: 10 * GiB,
			MaxRequestRate: 500, MaxKeyRequestRate: 250, MaxUploadRate: 50 << 20, MaxKeyUploadRate: 25 << 20,
			MaxResponseRate: 60, MaxKeyResponseRate: 30, MaxTokenRate: 200_000, MaxKeyTokenRate: 100_000,
		},
		{
			Name: "pro", MaxCPU: 4, MaxMemory: 4 * GiB, Concurrency: 100, MaxTimeout: time.Hour, Streaming: true, Async: true, KeyIsolation: true, MaxOutput: 1 * GiB, MaxThreads: 10_000, MaxThreadSize: 10 * GiB, MaxOutputs: 500 * GiB, BuiltIn: true,
			MaxSandboxes: 100, MaxSandboxMemory: 64 * GiB, MaxSandboxDisk: 20 * GiB, MaxSandboxLife: 30 * 24 * time.Hour, MaxSnapshots: 100, MaxSnapshotSize: 500 * GiB,
			MaxRequestRate: 5000, MaxKeyRequestRate: 2500, MaxUploadRate: 500 << 20, MaxKeyUploadRate: 250 << 20,
			MaxResponseRate: 5000, MaxKeyResponseRate: 2500, MaxTokenRate: 10_000_000, MaxKeyTokenRate: 5_000_000,
		},
		{Name: "enterprise", Streaming: true, Async: true, KeyIsolation: true, MaxOutput: 10 * GiB, BuiltIn: true},
	}
}

// Environment is the configuration that a key's executions run in.
type Environment struct {
	ID        string // "env_" and 16 hexadecimal digits
	Tenant    ID
	Name      string // unique within the tenant
	Image     string // name in the image store
	Limits    runtime.Limits
	Env       map[string]string  // variables of every execution
	Secrets   map[string]string  // like Env, but stored encrypted, redacted from output and never returned
	Bound     map[string]Binding // the Secrets that programs see only as placeholders
	CreatedAt time.Time

	Permissions runtime.Permissions
	Profile     string        // the profile that Permissions started from; "" for none
	Template    string        // the requested base_template of Image; "" for none
	Timeout     time.Duration // longest run, and the default of a request that sets none; 0 for the plan's limit
	Isolation   string        // an execution.Isolation; "" for IsolationRun
	AllowMCP    bool          // agents may use MCP servers even if the network policy denies their hosts

	Packages requirement.Set // normalized packages installed on top of Image

	variables map[string]string // see remember
}

// RunImage returns the image of e's sandboxes: Image, or the reference of an image with the
// packages.
func (e *Environment) RunImage() string { return requirement.Ref(e.Image, &e.Packages) }

// Variables returns the variables that e sets for every program. A secret overrides a plain
// variable of the same name; a bound secret appears as its placeholder. Callers must not modify the
// map.
func (e *Environment) Variables() map[string]string {
	return variables(e.variables, e.Env, e.Secrets, e.Bound)
}

// variables merges variables: secrets override plain ones, and placeholders override both. It
// returns merged if that is set.
func variables(merged, env, secrets map[string]string, bound map[string]Binding) map[string]string {
	switch {
	case merged != nil:
		return merged
	case len(secrets) == 0:
		return env
	}
	all := make(map[string]string, len(env)+len(secrets))
	maps.Copy(all, env)
	maps.Copy(all, secrets)
	for name, b := range bound {
		all[name] = b.Placeholder
	}
	return all
}

// remember caches the result of Variables. Do not change p's variables afterwards.
func (p *Principal) remember() {
	p.Environment.variables, p.Key.variables = p.Environment.Variables(), p.Key.Variables()
	p.variables = p.Variables()
}

// Scope is a permission of a key.
type Scope string

const (
	ScopeExecute Scope = "execute" // run and cancel code
	ScopeRead    Scope = "read"    // read executions, their output and usage
	ScopeTools   Scope = "tools"   // use the agents' tools
	// ScopeSandboxes manages named sandboxes, beyond what tools can do.
	ScopeSandboxes Scope = "sandboxes"
	// ScopeEnvironments creates and changes environments, including the key's own, and manages the
	// tenant's own model keys. Do not give it to a key that program authors hold.
	ScopeEnvironments Scope = "environments"
	ScopeAdmin        Scope = "admin" // everything under /v1/admin, for every tenant
)

// Scopes lists every scope. DefaultScopes are the scopes of a key that sets none.
var (
	Scopes        = []Scope{ScopeExecute, ScopeRead, ScopeTools, ScopeSandboxes, ScopeEnvironments, ScopeAdmin}
	DefaultScopes = []Scope{ScopeExecute, ScopeRead, ScopeSandboxes, ScopeTools}
)

// Key is the record of an API key. Atoll shows the key itself only once, at creation.
type Key struct {
	ID            string // "key_" and 16 hexadecimal digits
	Tenant        ID
	Environment   string // id; the environment of its requests, see Authority.Entrant. Empty for an admin-only key
	Name          string // unique within the tenant
	Hash          [32]byte
	Hint          string // the key's last four characters
	Scopes        []Scope
	WebhookURL    string // receives the results of asynchronous executions; "" for none
	WebhookSecret string // signs webhooks; stored encrypted; "" for unsigned
	// Env and Secrets are variables of the key's executions. They override the environment's and
	// yield to the request's. They are stored like the environment's.
	Env, Secrets map[string]string
	Bound        map[string]Binding
	CreatedAt    time.Time
	ExpiresAt    *time.Time
	RevokedAt    *time.Time

	variables map[string]string // see Environment.remember
}

// Variables returns the variables that k sets for every program, like Environment.Variables.
func (k *Key) Variables() map[string]string {
	return variables(k.variables, k.Env, k.Secrets, k.Bound)
}

// Principal is an authenticated caller.
type Principal struct {
	Tenant      Tenant
	Key         Key
	Plan        Plan
	Environment Environment       // zero for an admin-only key
	Storage     []storage.Granted // connections granted to the key and the environment
	// Token is the token that the caller used instead of the key; nil for the key itself. Key is
	// then the key that created the token, with the token's id and the scopes that the token
	// leaves.
	Token *Token

	variables map[string]string // see remember
}

// Entered moves p into another environment of its tenant.
func (p *Principal) Entered(e Environment) { p.Environment, p.Storage, p.variables = e, nil, nil }

// Variables returns the environment's variables, overridden by the key's. Callers must not modify
// the map.
func (p *Principal) Variables() map[string]string {
	return variables(p.variables, p.Environment.Variables(), p.Key.Variables(), nil)
}

// Secrets returns the values of p's secret variables: the environment's that the key does not
// override, then the key's.
func (p *Principal) Secrets() []string {
	var values []string
	add := func(secrets, but map[string]string) {
		for _, name := range slices.Sorted(maps.Keys(secrets)) {
			if _, anew := but[name]; !anew && secrets[name] != "" {
				values = append(values, secrets[name])
			}
		}
	}
	add(p.Environment.Secrets, p.Key.Variables())
	add(p.Key.Secrets, nil)
	return values
}

// Policy returns the limits of the caller's plan and environment for a request. longest is the
// server's limit on timeouts.
func (p *Principal) Policy(longest time.Duration) execution.Policy {
	most := longest
	if p.Plan.MaxTimeout > 0 {
		most = min(most, p.Plan.MaxTimeout)
	}
	policy := execution.Policy{
		MaxTimeout: most, Env: p.Variables(),
		Cause: func(asked time.Duration) error {
			return &PlanLimit{Plan: p.Plan, Dimension: DimensionTimeout, Timeout: asked, Longest: longest}
		},
	}
	if own := p.Environment.Timeout; own > 0 && own <= most {
		policy.MaxTimeout, policy.Default, policy.Cause = own, own, nil
		policy.Bound = "the maximum of environment " + p.Environment.Name + " (resources.timeout)"
	}
	return policy
}

// May reports whether the caller's key has a scope.
func (p *Principal) May(s Scope) bool { return slices.Contains(p.Key.Scopes, s) }

// Template is an agent template: a group of agents that opts in to the sandbox together.
type Template struct {
	Tenant  ID
	Name    string // unique within the tenant
	Sandbox Network
}

// Network is what a template's sandboxes may reach; "" means that the template has not opted in.
type Network string

const (
	DefaultPublic Network = "default-public"
	InternalOnly  Network = "internal-only"
)

// PolicyEvent is an append-only record of a change to what a tenant may do.
type PolicyEvent struct {
	ID        int64
	Tenant    ID
	Actor     string // id of the key that made the change, or "setup"
	Field     string // such as "sandbox_enabled" or "template/support"
	Old, New  string
	CreatedAt time.Time
}

// Event returns the record of a change that p makes now to a field of its own tenant.
func (p *Principal) Event(field, before, after string) PolicyEvent {
	return PolicyEvent{Tenant: p.Tenant.ID, Actor: p.Key.ID, Field: field, Old: before, New: after, CreatedAt: now()}
}
