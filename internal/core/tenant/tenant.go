// Package tenant says who calls and what they may use: tenants, their
// environments and keys, and the plans that bound them.
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

// Name is what tenants, environments, keys, plans and templates are called by
// their operators: a letter or digit, then letters, digits, '.', '_' and '-',
// at most 64 characters.
var Name = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Dev is the name of the tenant that the development key belongs to, Operator
// that of the one whose keys administer all others.
const (
	Dev      = "dev"
	Operator = "operator"
)

// Tier is a tenant's compliance tier.
type Tier string

const (
	Standard Tier = "standard"
	// Regulated tenants never have the sandbox tool: going to this tier turns it
	// off, and it cannot be turned on again while it lasts.
	Regulated Tier = "regulated"
)

// Tenant owns keys, environments and everything that is made with them.
type Tenant struct {
	ID             ID
	Name           string // unique
	Plan           string // name of its plan
	SandboxEnabled bool   // whether agents may use execute_code
	Tier           Tier
	MonthlyCredits float64  // budget of a calendar month in UTC; 0 for none
	MonthlyCost    float64  // likewise, of what runs cost in US dollars
	RedactionOff   []string // redaction rules that do not apply to it
	AuditDays      int      // days its audit rows are kept, 1 to 180
	AuditText      bool     // whether the activity shows code and commands, redacted, and not their hashes alone
	DailyCap       *int64   // execute_code calls a UTC day; nil for the server's cap
	HourlyCap      *int64   // execute_code calls of one agent a UTC hour; nil for the server's
	NetworkEnabled bool     // whether its environments may have a network
	RootEnabled    bool     // whether its environments may run programs as root of their sandbox
	// KeyIsolationEnabled says whether its environments may have IsolationKey.
	KeyIsolationEnabled bool
	CreatedAt           time.Time
	DisabledAt          *time.Time // its keys are refused from then on
	DeletedAt           *time.Time // when its deletion was asked for; nil for never
	ErasedAt            *time.Time // since when nothing is left of it but its audit trail and policy events
}

// Plan bounds what a tenant may use. Zero means no bound where that is said.
type Plan struct {
	Name          string
	MaxCPU        float64       // cores of a sandbox; 0 for no bound
	MaxMemory     int64         // bytes of a sandbox; 0 for no bound
	Concurrency   int           // executions at the same time; 0 for no bound
	MaxTimeout    time.Duration // 0 for the server's own
	Streaming     bool
	Async         bool  // webhook delivery
	KeyIsolation  bool  // environments may have execution.IsolationKey
	MaxOutput     int64 // bytes of each stream that are kept whole
	MaxThreads    int   // threads at the same time; 0 for no bound
	MaxThreadSize int64 // bytes of a thread's files; 0 for no bound
	MaxOutputs    int64 // bytes that ended executions keep, together; 0 for no bound
	BuiltIn       bool  // one of the contract's; cannot be removed

	// Of named sandboxes; 0 for no bound.
	MaxSandboxes     int           // at the same time, sleeping ones too
	MaxSandboxMemory int64         // bytes of those that are not asleep on disk, together
	MaxSandboxDisk   int64         // bytes of the files of one
	MaxSandboxLife   time.Duration // of one
	MaxSnapshots     int
	MaxSnapshotSize  int64 // bytes of all of them, together

	// Of requests to one server, on average over 10 s, and of the bytes of their
	// bodies: a second, of all keys together and of each. 0 for no bound.
	MaxRequestRate, MaxKeyRequestRate int64
	MaxUploadRate, MaxKeyUploadRate   int64

	// Of responses and the tokens of their models, for each model: a minute, of all keys
	// together and of each. 0 for no bound.
	MaxResponseRate, MaxKeyResponseRate int64
	MaxTokenRate, MaxKeyTokenRate       int64
}

// Plans are the contract's.
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
	Secrets   map[string]string  // likewise, stored encrypted, redacted from output and never shown again
	Bound     map[string]Binding // of those in Secrets that programs do not get
	CreatedAt time.Time

	Permissions runtime.Permissions
	Profile     string        // the rules that Permissions began with; "" for none
	Template    string        // the base_template that Image was asked for as; "" for none
	Timeout     time.Duration // longest run, and that of a request which names none; 0 for the plan's
	Isolation   string        // execution.Isolation; "" for IsolationRun
	AllowMCP    bool          // agents' MCP servers are asked also where the network does not allow their hosts

	Packages requirement.Set // that Image has in this environment, in its normal form

	variables map[string]string // see remember
}

// RunImage is what sandboxes of e are made from: Image, or the reference of an image that
// has the packages too.
func (e *Environment) RunImage() string { return requirement.Ref(e.Image, &e.Packages) }

// Variables are what e sets for every program: a secret wins over a plain
// variable of the same name, and of a bound one there is the placeholder. They
// must not be changed.
func (e *Environment) Variables() map[string]string {
	return variables(e.variables, e.Env, e.Secrets, e.Bound)
}

// variables merges variables, secrets over plain ones and placeholders over
// both, unless that was done before.
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

// remember has Variables merge no more. p must not be changed any more.
func (p *Principal) remember() {
	p.Environment.variables, p.Key.variables = p.Environment.Variables(), p.Key.Variables()
	p.variables = p.Variables()
}

// Scope is something a key may be used for.
type Scope string

const (
	ScopeExecute Scope = "execute" // run code, cancel it
	ScopeRead    Scope = "read"    // see executions, their output and usage
	ScopeTools   Scope = "tools"   // the tools that agents use
	// ScopeSandboxes is for named sandboxes as resources: all that can be done with
	// them, beyond what tools do.
	ScopeSandboxes Scope = "sandboxes"
	// ScopeEnvironments is for making and changing environments, also the one that the key
	// is bound to, and for the tenant's own keys for models: no key that a program's author holds should have it.
	ScopeEnvironments Scope = "environments"
	ScopeAdmin        Scope = "admin" // everything under /v1/admin, of every tenant
)

// Scopes lists every scope; DefaultScopes what a key gets that names none.
var (
	Scopes        = []Scope{ScopeExecute, ScopeRead, ScopeTools, ScopeSandboxes, ScopeEnvironments, ScopeAdmin}
	DefaultScopes = []Scope{ScopeExecute, ScopeRead, ScopeSandboxes, ScopeTools}
)

// Key is an API key. The key itself is shown once, when it is made.
type Key struct {
	ID            string // "key_" and 16 hexadecimal digits
	Tenant        ID
	Environment   string // id; what a request runs in, see Authority.Entrant. Empty for a key that only administers
	Name          string // unique within the tenant
	Hash          [32]byte
	Hint          string // the key's last four characters
	Scopes        []Scope
	WebhookURL    string // where asynchronous executions are told of; "" for nowhere
	WebhookSecret string // signs them; stored encrypted; "" for unsigned
	// Env and Secrets are variables of its executions, over those of the
	// environment and under the request's own; kept as the environment's are.
	Env, Secrets map[string]string
	Bound        map[string]Binding
	CreatedAt    time.Time
	ExpiresAt    *time.Time
	RevokedAt    *time.Time

	variables map[string]string // see Environment.remember
}

// Variables are what k sets for every program, as Environment.Variables.
func (k *Key) Variables() map[string]string {
	return variables(k.variables, k.Env, k.Secrets, k.Bound)
}

// Principal is an authenticated caller.
type Principal struct {
	Tenant      Tenant
	Key         Key
	Plan        Plan
	Environment Environment       // zero for a key that only administers
	Storage     []storage.Granted // what the key and the environment may mount
	// Token is what the caller has instead of the key; nil for the key itself. Key is then the
	// key that made it, with the token's id and what the token leaves of its scopes.
	Token *Token

	variables map[string]string // see remember
}

// Entered puts p into another environment of its tenant.
func (p *Principal) Entered(e Environment) { p.Environment, p.Storage, p.variables = e, nil, nil }

// Variables are those of the environment and, over them, those of the key. They
// must not be changed.
func (p *Principal) Variables() map[string]string {
	return variables(p.variables, p.Environment.Variables(), p.Key.Variables(), nil)
}

// Secrets are the values of p's secret variables, the key's after those of the
// environment that the key does not set anew.
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

// Policy is what the caller's plan and environment make of a request; longest
// is the server's own bound on a timeout.
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

// Template is an agent template: a population of agents that opts in to the
// sandbox together.
type Template struct {
	Tenant  ID
	Name    string // unique within the tenant
	Sandbox Network
}

// Network is what a template's sandboxes may reach; empty means that the
// template has not opted in.
type Network string

const (
	DefaultPublic Network = "default-public"
	InternalOnly  Network = "internal-only"
)

// PolicyEvent is an append-only note of a change to what a tenant may do.
type PolicyEvent struct {
	ID        int64
	Tenant    ID
	Actor     string // id of the key that made it, or "setup"
	Field     string // such as "sandbox_enabled" or "template/support"
	Old, New  string
	CreatedAt time.Time
}
