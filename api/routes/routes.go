// Package routes joins the operations of all resources in the one table that is served and
// documented.
package routes

import (
	"slices"

	"github.com/atoll-run/atoll/internal/edge/compat/anthropic"
	"github.com/atoll-run/atoll/internal/edge/compat/cloudflare"
	"github.com/atoll-run/atoll/internal/edge/compat/e2b"
	"github.com/atoll-run/atoll/internal/edge/compat/openai"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/activity"
	"github.com/atoll-run/atoll/internal/edge/httpapi/admin"
	"github.com/atoll-run/atoll/internal/edge/httpapi/agent"
	"github.com/atoll-run/atoll/internal/edge/httpapi/approval"
	"github.com/atoll-run/atoll/internal/edge/httpapi/docs"
	"github.com/atoll-run/atoll/internal/edge/httpapi/environment"
	"github.com/atoll-run/atoll/internal/edge/httpapi/execute"
	"github.com/atoll-run/atoll/internal/edge/httpapi/file"
	"github.com/atoll-run/atoll/internal/edge/httpapi/help"
	"github.com/atoll-run/atoll/internal/edge/httpapi/model"
	"github.com/atoll-run/atoll/internal/edge/httpapi/response"
	"github.com/atoll-run/atoll/internal/edge/httpapi/sandbox"
	"github.com/atoll-run/atoll/internal/edge/httpapi/session"
	"github.com/atoll-run/atoll/internal/edge/httpapi/skill"
	"github.com/atoll-run/atoll/internal/edge/httpapi/thread"
	"github.com/atoll-run/atoll/internal/edge/httpapi/token"
	"github.com/atoll-run/atoll/internal/edge/httpapi/tool"
	"github.com/atoll-run/atoll/internal/edge/httpapi/usage"
	"github.com/atoll-run/atoll/internal/edge/httpapi/vault"
	"github.com/atoll-run/atoll/internal/edge/httpapi/web"
)

// Handlers serve the resources; those that are nil are not served.
type Handlers struct {
	Execute      *execute.Handlers
	Responses    *response.Handlers
	Containers   *openai.Handlers
	Agents       *agent.Handlers
	Managed      *anthropic.Handlers
	Sessions     *session.Handlers
	Skills       *skill.Handlers
	Vaults       *vault.Handlers
	Files        *file.Handlers
	Usage        *usage.Handlers
	Activity     *activity.Handlers
	Approvals    *approval.Handlers
	Tokens       *token.Handlers
	Threads      *thread.Handlers
	Tools        *tool.Handlers
	Sandboxes    *sandbox.Handlers
	Environments *environment.Handlers
	Models       *model.Handlers
	Web          *web.Handlers
	Admin        *admin.Handlers
	Cloudflare   *cloudflare.Handlers
	E2B          *e2b.Handlers
}

// Operations is the table of what the handlers serve, and the documentation.
func (h Handlers) Operations() []httpapi.Operation {
	table := append(docs.Operations(), help.Operations()...)
	if h.Execute != nil {
		table = append(table, h.Execute.Operations()...)
	}
	if h.Responses != nil {
		table = append(table, h.Responses.Operations()...)
	}
	if h.Containers != nil {
		table = append(table, h.Containers.Operations()...)
	}
	if h.Agents != nil {
		table = append(table, h.Agents.Operations()...)
	}
	if h.Managed != nil {
		table = append(table, h.Managed.Operations(h.shared()...)...)
	}
	if h.Sessions != nil {
		table = append(table, h.Sessions.Operations()...)
	}
	if h.Skills != nil {
		table = append(table, h.Skills.Operations()...)
	}
	if h.Vaults != nil {
		table = append(table, h.Vaults.Operations()...)
	}
	if h.Files != nil {
		table = append(table, h.Files.Operations()...)
	}
	if h.Usage != nil {
		table = append(table, h.Usage.Operations()...)
	}
	if h.Activity != nil {
		table = append(table, h.Activity.Operations()...)
	}
	if h.Approvals != nil {
		table = append(table, h.Approvals.Operations()...)
	}
	if h.Tokens != nil {
		table = append(table, h.Tokens.Operations()...)
	}
	if h.Sandboxes != nil {
		table = append(table, h.Sandboxes.Operations()...)
	}
	if h.Threads != nil {
		table = append(table, h.Threads.Operations()...)
	}
	if h.Tools != nil {
		table = append(table, h.Tools.Operations()...)
	}
	if h.Environments != nil {
		table = append(table, h.Environments.Operations()...)
	}
	if h.Models != nil {
		table = append(table, h.Models.Operations()...)
	}
	if h.Web != nil {
		table = append(table, h.Web.Operations()...)
	}
	if h.Admin != nil {
		table = append(table, h.Admin.Operations()...)
	}
	if h.Cloudflare != nil {
		table = append(table, h.Cloudflare.Operations()...)
	}
	if h.E2B != nil {
		table = append(table, h.E2B.Operations()...)
	}
	return table
}

// shared returns the operations that the Anthropic-compatible API serves unchanged.
func (h Handlers) shared() (ops []httpapi.Operation) {
	if h.Skills != nil {
		ops = append(ops, h.Skills.Operations()...)
	}
	if h.Files != nil {
		ops = append(ops, h.Files.Operations()...)
	}
	return ops
}

// Documented is the table of everything that a server answers, for its documentation: its
// endpoints cannot be called.
func Documented() []httpapi.Operation {
	var server *httpapi.Server
	return slices.Concat(Handlers{
		Execute: &execute.Handlers{}, Responses: &response.Handlers{}, Containers: &openai.Handlers{}, Agents: &agent.Handlers{}, Sessions: &session.Handlers{}, Skills: &skill.Handlers{}, Vaults: &vault.Handlers{}, Files: &file.Handlers{}, Usage: &usage.Handlers{}, Activity: &activity.Handlers{}, Approvals: &approval.Handlers{}, Tokens: &token.Handlers{}, Threads: &thread.Handlers{}, Tools: &tool.Handlers{},
		Sandboxes: &sandbox.Handlers{}, Environments: &environment.Handlers{}, Models: &model.Handlers{}, Web: &web.Handlers{}, Admin: &admin.Handlers{},
		Cloudflare: &cloudflare.Handlers{}, E2B: &e2b.Handlers{},
	}.Operations(), server.Probes())
}
