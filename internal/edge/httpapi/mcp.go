package httpapi

import (
	"net/http"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// MCP answers clients of the Model Context Protocol.
type MCP interface {
	// Serve answers a request whose body has been read. It returns an error before
	// it has written anything, or none.
	Serve(w http.ResponseWriter, r *http.Request, body []byte, p *tenant.Principal) error
	// Drain ends streams that only wait for news.
	Drain()
}

const mcpPath = "/mcp"

func (s *Server) serveMCP(w http.ResponseWriter, r *http.Request) error {
	caller, err := s.authenticate(r)
	if err != nil {
		return err
	}
	var body []byte
	if r.Method == http.MethodPost {
		if body, err = readBody(w, r); err != nil {
			return err
		}
	}
	if s.isDraining() && r.Method != http.MethodDelete {
		return fault.New(fault.Unavailable, "%s", errShutdown)
	}
	ctx, stop := s.living(r.Context())
	defer stop()
	return s.mcp.Serve(w, r.WithContext(ctx), body, &caller)
}
