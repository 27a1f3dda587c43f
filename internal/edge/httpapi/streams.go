package httpapi

import "github.com/atoll-run/atoll/internal/core/tenant"

// OpenStream counts a stream of the caller until end is called; see connections.Streams.
func (c *Call) OpenStream() (end func(), err error) {
	if c.Caller == nil {
		return func() {}, nil
	}
	return c.server.OpenStream(c.Caller)
}

// OpenStream is Call.OpenStream for what is served without a Call.
func (s *Server) OpenStream(p *tenant.Principal) (end func(), err error) { return s.streams.Open(p) }
