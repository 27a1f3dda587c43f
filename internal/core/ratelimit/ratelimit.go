// Package ratelimit holds keys and tenants to the rates of their plan: requests,
// and bytes of request bodies.
//
// A Limiter counts within one process. The servers of an installation divide each rate evenly, so a
// caller whose requests reach all of them has the whole rate.
package ratelimit

import (
	"context"
	"io"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

const (
	// burst is how long a rate may be used ahead: a caller who was quiet may send at
	// once what the rate gives in this time.
	burst = 10 * time.Second
	// idle is after how long without a request a caller is forgotten. All of the
	// burst is there again by then, so that nothing is lost.
	idle = time.Minute
	// maxPiece is how many bytes of a body are read before their rate is waited for.
	// The smallest burst is larger (tenant.MinPlanUploadRate).
	maxPiece = 1 << 20
	// maxWhole is the size up to which a body is taken from the rate as a whole,
	// before any of it is read; a larger one is read as slowly as the rate gives.
	maxWhole = 8 << 20
)

// Dimensions of rates, which refusals name.
const (
	TenantRequests    = "tenant_requests"
	KeyRequests       = "key_requests"
	TenantUploadBytes = "tenant_upload_bytes"
	KeyUploadBytes    = "key_upload_bytes"
)

// Dimensions lists them.
func Dimensions() []string {
	return []string{TenantRequests, KeyRequests, TenantUploadBytes, KeyUploadBytes, TenantResponses, KeyResponses, TenantTokens, KeyTokens}
}

// Servers returns how many servers divide the rates; nil means one.
type Servers func() int

// share returns this server's part of a rate. It is at least 1.
func (s Servers) share(rate int64) int64 {
	if s == nil {
		return rate
	}
	n := int64(max(1, s()))
	return (rate + n - 1) / n
}

// Limiter counts requests and bytes.
type Limiter struct {
	now     func() time.Time
	servers Servers

	mu      sync.Mutex
	callers map[string]*caller // guarded by mu: by id of a key or a tenant
	swept   time.Time          // guarded by mu
}

// New returns a Limiter.
func New(servers Servers) *Limiter {
	return &Limiter{now: time.Now, servers: servers, callers: map[string]*caller{}}
}

// caller is a key or a tenant that has sent something lately.
type caller struct {
	requests, bytes *rate.Limiter
	used            time.Time // guarded by Limiter.mu
}

// bound is one rate of a request's caller.
type bound struct {
	limiter   *rate.Limiter
	dimension string
	perSecond int64 // on all servers
}

// bounds returns the rates of p, the key's before the tenant's; those without a
// bound are left out.
func (l *Limiter) bounds(p *tenant.Principal, now time.Time, bytes bool) []bound {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.swept) > idle {
		l.swept = now
		for id, c := range l.callers {
			if now.Sub(c.used) > idle {
				delete(l.callers, id)
			}
		}
	}
	var all []bound
	add := func(id, dimension string, perSecond int64) {
		if perSecond == 0 || id == "" {
			return
		}
		c := l.callers[id]
		if c == nil {
			c = &caller{}
			l.callers[id] = c
		}
		c.used = now
		limiter := &c.requests
		if bytes {
			limiter = &c.bytes
		}
		own := l.servers.share(perSecond)
		ahead := own * int64(burst/time.Second)
		if bytes {
			ahead = max(ahead, maxPiece)
		}
		switch {
		case *limiter == nil:
			*limiter = rate.NewLimiter(rate.Limit(own), int(ahead))
		case (*limiter).Limit() != rate.Limit(own): // the plan or the number of servers has changed
			(*limiter).SetLimitAt(now, rate.Limit(own))
			(*limiter).SetBurstAt(now, int(ahead))
		}
		all = append(all, bound{*limiter, dimension, perSecond})
	}
	if bytes {
		add(p.KeyID(), KeyUploadBytes, p.Plan.MaxKeyUploadRate)
		add(p.Tenant.ID, TenantUploadBytes, p.Plan.MaxUploadRate)
	} else {
		add(p.KeyID(), KeyRequests, p.Plan.MaxKeyRequestRate)
		add(p.Tenant.ID, TenantRequests, p.Plan.MaxRequestRate)
	}
	return all
}

// Request counts a request of p. Above a rate the error is an Exhausted fault.
func (l *Limiter) Request(p *tenant.Principal) error {
	now := l.now()
	return take(p, l.bounds(p, now, false), now, 1)
}

// take takes n of each bound, or nothing.
func take(p *tenant.Principal, bounds []bound, now time.Time, n int) error {
	var taken []*rate.Reservation
	for _, b := range bounds {
		r := b.limiter.ReserveN(now, min(n, b.limiter.Burst()))
		taken = append(taken, r)
		if wait := r.DelayFrom(now); wait > 0 {
			for _, r := range taken {
				r.CancelAt(now)
			}
			return refuse(p, b, now.Add(wait))
		}
	}
	return nil
}

// refuse says which rate is used up, and until when.
func refuse(p *tenant.Principal, b bound, until time.Time) error {
	whose := "this tenant"
	if b.dimension == KeyRequests || b.dimension == KeyUploadBytes {
		whose = "this key"
	}
	if b.dimension == KeyUploadBytes || b.dimension == TenantUploadBytes {
		return fault.Limit(b.dimension, until, "upload rate limit reached: the plan %s allows %s %s per second. Send more slowly, or ask the operator to raise the limit.", p.Plan.Name, whose, runtime.FormatBytes(b.perSecond))
	}
	return fault.Limit(b.dimension, until, "request rate limit reached: the plan %s allows %s %d requests per second. Send fewer requests, or ask the operator to raise the limit.", p.Plan.Name, whose, b.perSecond)
}

// Body counts the body of a request of p, of which announced bytes are to come; -1
// if that is not known. One of up to 8 MiB is refused with an Exhausted fault if
// the rate does not give all of it now. A larger or unknown one is refused if the
// rate is used up; otherwise the reader that is returned reads it no faster than
// the rate allows, until ctx ends.
func (l *Limiter) Body(ctx context.Context, p *tenant.Principal, announced int64, body io.ReadCloser) (io.ReadCloser, error) {
	if announced == 0 {
		return body, nil
	}
	now := l.now()
	bounds := l.bounds(p, now, true)
	if len(bounds) == 0 {
		return body, nil
	}
	if announced > 0 && announced <= maxWhole {
		return body, take(p, bounds, now, int(announced))
	}
	if err := take(p, bounds, now, 1); err != nil {
		return body, err
	}
	return &paced{ReadCloser: body, ctx: ctx, l: l, p: p}, nil
}

// paced is a body that is read as fast as its caller's rates allow.
type paced struct {
	io.ReadCloser
	ctx context.Context
	l   *Limiter
	p   *tenant.Principal
}

func (r *paced) Read(b []byte) (int, error) {
	n, err := r.ReadCloser.Read(b[:min(len(b), maxPiece)])
	if n == 0 {
		return n, err
	}
	now := r.l.now()
	var wait time.Duration
	for _, bound := range r.l.bounds(r.p, now, true) {
		wait = max(wait, bound.limiter.ReserveN(now, min(n, bound.limiter.Burst())).DelayFrom(now))
	}
	if wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-r.ctx.Done():
			return n, context.Cause(r.ctx)
		}
	}
	return n, err
}
