package ratelimit

import (
	"math"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Dimensions of the per-model rates in Exhausted faults.
const (
	TenantResponses = "tenant_responses"
	KeyResponses    = "key_responses"
	TenantTokens    = "tenant_tokens"
	KeyTokens       = "key_tokens"
)

// Models enforces a plan's responses and tokens per minute, per model, for keys and tenants. Like a
// Limiter it counts within one process, whose share of a rate is even.
//
// The token count of an answer is known only at its end. A response may therefore begin while any
// tokens are left; overuse delays the next ones.
type Models struct {
	now     func() time.Time
	servers Servers

	mu      sync.Mutex
	callers map[string]*modelCaller // guarded by mu: by id of a key or a tenant
	swept   time.Time               // guarded by mu
}

// NewModels returns a Models that uses a clock.
func NewModels(now func() time.Time, servers Servers) *Models {
	return &Models{now: now, servers: servers, callers: map[string]*modelCaller{}}
}

// modelCaller is a key or a tenant that recently used a model. Models.mu guards its fields.
type modelCaller struct {
	responses, tokens int64 // a minute, this server's share; 0 for no bound
	of                map[string]*[2]bucket
	used              time.Time
}

// Kinds of buckets.
const (
	responsesKind = iota
	tokensKind
)

// bucket holds the remainder of a rate and refills within a minute. A [rate.Limiter] does not work
// here, because an answer may take any number of tokens, even more than the burst.
type bucket struct {
	left float64
	at   time.Time
}

func (b *bucket) fill(perMinute int64, now time.Time) {
	if b.at.IsZero() {
		b.left = float64(perMinute)
	}
	if passed := now.Sub(b.at); passed > 0 {
		b.left = min(float64(perMinute), b.left+float64(perMinute)*passed.Minutes())
		b.at = now
	}
}

// until returns how long it takes until amount is available.
func (b *bucket) until(amount float64, perMinute int64) time.Duration {
	minutes := max(0, amount-b.left) / float64(perMinute)
	return time.Duration(math.Ceil(min(minutes, 1<<20) * float64(time.Minute)))
}

// Rate is this server's share of a limit, and its remainder.
type Rate struct {
	Limit     int64 // per minute; 0 for unlimited
	Remaining int64
	Reset     time.Duration // time until the full limit is available
}

// Rates holds the tighter of the key's and the tenant's rates for one model: the one with less
// remaining.
type Rates struct{ Responses, Tokens Rate }

// rated is one limit of a caller.
type rated struct {
	id                           string
	responses, tokens            int64  // on all servers
	responseLimits, tokensLimits string // dimensions
	whose                        string
	own                          [2]int64 // this server's shares of responses and tokens
}

func (m *Models) ratedOf(p *tenant.Principal) [2]rated {
	plan := &p.Plan
	all := [2]rated{
		{id: p.KeyID(), responses: plan.MaxKeyResponseRate, tokens: plan.MaxKeyTokenRate, responseLimits: KeyResponses, tokensLimits: KeyTokens, whose: "this key"},
		{id: p.Tenant.ID, responses: plan.MaxResponseRate, tokens: plan.MaxTokenRate, responseLimits: TenantResponses, tokensLimits: TenantTokens, whose: "this tenant"},
	}
	for i := range all {
		all[i].own = [2]int64{m.servers.share(all[i].responses), m.servers.share(all[i].tokens)}
	}
	return all
}

// Begin counts a response of p for a model. It returns an Exhausted fault if a rate is used up.
func (m *Models) Begin(p *tenant.Principal, model string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	m.sweep(now)
	callers := m.ratedOf(p)
	for _, c := range callers {
		b := m.buckets(c, model, now)
		if b == nil {
			continue
		}
		if c.responses > 0 && b[responsesKind].left < 1 {
			return fault.Limit(c.responseLimits, now.Add(b[responsesKind].until(1, c.own[responsesKind])),
				"rate limit reached: the plan %s allows %s %d responses per minute of the model %s. Send fewer requests, or ask the operator to raise the limit.", p.Plan.Name, c.whose, c.responses, model)
		}
		if c.tokens > 0 && b[tokensKind].left < 1 {
			return fault.Limit(c.tokensLimits, now.Add(b[tokensKind].until(1, c.own[tokensKind])),
				"rate limit reached: the plan %s allows %s %d tokens per minute of the model %s. Send less text, or ask the operator to raise the limit.", p.Plan.Name, c.whose, c.tokens, model)
		}
	}
	for _, c := range callers {
		if b := m.buckets(c, model, now); b != nil && c.responses > 0 {
			b[responsesKind].left--
		}
	}
	return nil
}

// Use subtracts the tokens of an answer from the rates of a key and its tenant. It ignores callers
// whose responses this process did not count.
func (m *Models) Use(t tenant.ID, key, model string, tokens int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for _, id := range []string{tenant.KeyOf(key), t} {
		c := m.callers[id]
		if c == nil || c.tokens == 0 {
			continue
		}
		b := c.bucketsOf(model, now)
		b[tokensKind].left -= float64(tokens)
	}
}

// Left returns the current rates of p for a model.
func (m *Models) Left(p *tenant.Principal, model string) Rates {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	var out Rates
	for _, c := range m.ratedOf(p) {
		b := m.buckets(c, model, now)
		if b == nil {
			continue
		}
		out.Responses.narrow(&b[responsesKind], c.own[responsesKind])
		out.Tokens.narrow(&b[tokensKind], c.own[tokensKind])
	}
	return out
}

// narrow replaces r with a limit that has less remaining.
func (r *Rate) narrow(b *bucket, perMinute int64) {
	if perMinute == 0 {
		return
	}
	left := max(0, int64(b.left))
	if r.Limit == 0 || left < r.Remaining {
		*r = Rate{perMinute, left, b.until(float64(perMinute), perMinute)}
	}
}

// buckets returns the current buckets of a caller and a model, or nil without limits.
func (m *Models) buckets(r rated, model string, now time.Time) *[2]bucket {
	if r.id == "" || r.responses == 0 && r.tokens == 0 {
		return nil
	}
	c := m.callers[r.id]
	if c == nil {
		c = &modelCaller{responses: r.own[responsesKind], tokens: r.own[tokensKind], of: map[string]*[2]bucket{}}
		m.callers[r.id] = c
	}
	c.change(r.own, now)
	return c.bucketsOf(model, now)
}

// change applies new limits after the plan or the number of servers has changed. It scales the
// remainder, or the debt, of each bucket in proportion.
func (c *modelCaller) change(own [2]int64, now time.Time) {
	was := [2]int64{c.responses, c.tokens}
	if was == own {
		return
	}
	for model := range c.of {
		b := c.bucketsOf(model, now)
		for kind := range b {
			if was[kind] == 0 {
				b[kind] = bucket{} // it was unlimited
				continue
			}
			b[kind].left *= float64(own[kind]) / float64(was[kind])
		}
	}
	c.responses, c.tokens = own[responsesKind], own[tokensKind]
}

func (c *modelCaller) bucketsOf(model string, now time.Time) *[2]bucket {
	c.used = now
	b := c.of[model]
	if b == nil {
		b = &[2]bucket{}
		c.of[model] = b
	}
	b[responsesKind].fill(c.responses, now)
	b[tokensKind].fill(c.tokens, now)
	return b
}

// sweep deletes callers whose rates are full again.
func (m *Models) sweep(now time.Time) {
	if now.Sub(m.swept) <= idle {
		return
	}
	m.swept = now
	for id, c := range m.callers {
		if now.Sub(c.used) <= idle {
			continue
		}
		for model, b := range c.of {
			b[responsesKind].fill(c.responses, now)
			b[tokensKind].fill(c.tokens, now)
			if b[responsesKind].left >= float64(c.responses) && b[tokensKind].left >= float64(c.tokens) {
				delete(c.of, model)
			}
		}
		if len(c.of) == 0 {
			delete(m.callers, id)
		}
	}
}
