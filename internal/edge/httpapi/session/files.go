package session

import (
	"net/http"

	"github.com/atoll-run/atoll/internal/agent/conversation"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

func (h *Handlers) fileOperations(one, suffix string, id []httpapi.Param, unknown httpapi.Answer) []httpapi.Operation {
	return []httpapi.Operation{
		{
			Method: http.MethodGet, Path: one + "/files", ID: "listSessionFiles" + suffix, Summary: "List the files that the agent has shared", Scope: tenant.ScopeRead,
			Description: "Oldest first, with those of agents that work was handed to. The contents are there until the session is deleted or `keep_executions` has passed.",
			Params:      append(httpapi.PageParams(100, 100), id...),
			Answers:     []httpapi.Answer{httpapi.OK(httpapi.Page[SessionFile]{}, "A page."), unknown}, Serve: httpapi.Returns(h.files),
		},
		{
			Method: http.MethodGet, Path: one + "/files/{file_id}/content", ID: "getSessionFile" + suffix, Summary: "Get a file that the agent has shared", Scope: tenant.ScopeRead,
			Description: "Its bytes, with a Content-Type by its name and a Content-Disposition that has it. `Range` works.",
			Params:      append([]httpapi.Param{httpapi.FileParam}, id...),
			Answers:     httpapi.FileAnswers(unknown), Serve: httpapi.Writes(h.fileContent),
		},
	}
}

func (h *Handlers) files(c *httpapi.Call) (out httpapi.Page[SessionFile], err error) {
	cursor, err := c.Cursor()
	if err != nil {
		return out, err
	}
	page, next, err := h.Service.SharedFiles(c.Context(), c.Caller.Tenant.ID, session.ID(c.Path("session_id")), agent.Page{Cursor: cursor, Limit: int(c.Int("limit"))})
	return httpapi.Page[SessionFile]{NextPage: httpapi.OrNull(next), Data: httpapi.Each(page, func(e session.TreeEvent) SessionFile {
		out := fileOf(&e.Event)
		out.ThreadID = httpapi.OrNull(e.Thread)
		return out
	})}, err
}

func (h *Handlers) fileContent(c *httpapi.Call) error {
	u, err := h.Service.FileIn(c.Context(), c.Caller.Tenant.ID, session.ID(c.Path("session_id")), c.Path("file_id"))
	if err != nil {
		return err
	}
	return c.ServeOutput(h.Outputs, u.Execution, u.Stored, u.Name, conversation.ErrNoFile)
}

func fileOf(e *session.Event) SessionFile {
	u := conversation.FileOf(e)
	f := SessionFile{ID: u.FileID, FileName: u.Name, CreatedAt: e.At}
	if u.Size != nil {
		f.Bytes = *u.Size
	}
	return f
}
