package executor

import (
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/web/channel"
)

// offerWeb lets a program call the services of the web.
func (t *task) offerWeb(p *execution.Program) {
	d := &channel.Channel{Calls: t.x.cfg.Web, TraceID: t.job.TraceID, Tenant: t.job.Tenant, Access: t.job.Web, Log: t.x.cfg.Log}
	p.Port, p.Serve = channel.Port, d.Serve
	p.Env = channel.Env(t.job.Env, t.job.Web.Token, func(name string) bool { return t.job.Env[name] != "" || t.job.BaseEnv[name] != "" })
}
