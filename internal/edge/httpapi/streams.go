package httpapi

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

func newStreams(connections int) *share.Pool {
	if connections == 0 {
		connections = maxStreams
	}
	return share.NewPool(TenantStreams, "streams", int64(connections))
}

// OpenStream counts a stream of the caller until end is called. It is an Exhausted fault above a
// limit of the token, key or tenant, and above the tenant's share of the server.
func (c *Call) OpenStream() (end func(), err error) {
	if c.Caller == nil {
		return func() {}, nil
	}
	return c.server.OpenStream(c.Caller)
}

// OpenStream is Call.OpenStream for what is served without a Call.
func (s *Server) OpenStream(p *tenant.Principal) (end func(), err error) {
	token, most := "", s.streamLimits
	if p.Token != nil {
		token = p.Token.ID
	}
	return s.streams.Take(p.Tenant.ID, 1,
		share.Level{Dimension: TokenStreams, ID: token, Max: int64(most.Token), Who: "this token"},
		share.Level{Dimension: KeyStreams, ID: p.KeyID(), Max: int64(most.Key), Who: "this key"},
		share.Level{Dimension: TenantStreams, ID: p.Tenant.ID, Max: int64(most.Tenant), Who: "this tenant"})
}
