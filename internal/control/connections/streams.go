package connections

import (
	"github.com/atoll-run/atoll/internal/core/share"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// StreamLimits are how many streams one caller may have open in this process; 0 for no limit. A
// stream is an answer that continues until something ends, such as a session's events, the output of
// a process, or a terminal.
type StreamLimits struct{ Token, Key, Tenant int }

// Dimensions of the limits of streams, which refusals name.
const (
	TokenStreams  = "token_streams"
	KeyStreams    = "key_streams"
	TenantStreams = "tenant_streams"
)

// maxStreams is how many streams are open in this process where connections have no limit.
const maxStreams = 1 << 16

// Streams shares the streams of this process among callers.
type Streams struct {
	pool   *share.Pool
	limits StreamLimits
}

// NewStreams returns the streams of a process with so many connections, 0 for any number.
func NewStreams(connections int, limits StreamLimits) *Streams {
	if connections == 0 {
		connections = maxStreams
	}
	return &Streams{share.NewPool(TenantStreams, "streams", int64(connections)), limits}
}

// Open counts a stream of p until end is called. It is an Exhausted fault above a limit of the token,
// key or tenant, and above the tenant's share of the server.
func (s *Streams) Open(p *tenant.Principal) (end func(), err error) {
	token := ""
	if p.Token != nil {
		token = p.Token.ID
	}
	return s.pool.Take(p.Tenant.ID, 1,
		share.Level{Dimension: TokenStreams, ID: token, Max: int64(s.limits.Token), Who: "this token"},
		share.Level{Dimension: KeyStreams, ID: p.KeyID(), Max: int64(s.limits.Key), Who: "this key"},
		share.Level{Dimension: TenantStreams, ID: p.Tenant.ID, Max: int64(s.limits.Tenant), Who: "this tenant"})
}
