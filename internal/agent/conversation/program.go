package conversation

import (
	"github.com/atoll-run/atoll/internal/agent/mcpclient"
	"github.com/atoll-run/atoll/internal/agent/mcptool"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// programs returns the MCP servers of an agent that run in the sandbox of a session.
func (r *rule) programs(p *tenant.Principal, s *session.Session) (out []mcptool.Server) {
	d := r.own
	for i := range d.Tools {
		server := d.Server(d.Tools[i].Server)
		if d.Tools[i].Type != agent.MCP || server == nil || server.Command == "" || r.excludes(server) {
			continue
		}
		out = append(out, mcptool.Server{
			Label: server.Name, Description: server.Description, Never: &mcptool.Filter{}, Allowed: mcptool.Filter{Names: server.AllowedTools}, Optional: true,
			Target: mcpclient.Target{Command: &mcpclient.Command{
				Tenant: p.Tenant.ID, Key: p.Key.ID, Environment: s.Environment, Session: string(s.ID),
				Argv: append([]string{server.Command}, server.Args...), Env: server.Env,
			}},
		})
	}
	return out
}
