package session

import (
	"net/http"

	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/response"
)

func (h *Handlers) fileOperations(one, suffix string, id []httpapi.Param, unknown httpapi.Answer) []httpapi.Operation {
	return []httpapi.Operation{
		{
			Method: http.MethodGet, Path: one + "/files", ID: "listSessionFiles" + suffix, Summary: "List the files that the agent has shared", Scope: tenant.ScopeRead,
			Description: "Oldest first. The contents are there until the session is deleted or `keep_executions` has passed.",
			Params:      append(httpapi.PageParams(100, 100), id...),
			Answers:     []httpapi.Answer{httpapi.OK(httpapi.Page[SessionFile]{}, "A page."), unknown}, Serve: httpapi.Returns(h.files),
		},
		{
			Method: http.MethodGet, Path: one + "/files/{file_id}/content", ID: "getSessionFile" + suffix, Summary: "Get a file that the agent has shared", Scope: tenant.ScopeRead,
			Description: "Its bytes, with a Content-Type by its name and a Content-Disposition that has it. `Range` works.",
			Params:      append([]httpapi.Param{response.FileParam}, id...),
			Answers:     response.FileAnswers(unknown), Serve: httpapi.Writes(h.fileContent),
		},
	}
}

func (h *Handlers) files(c *httpapi.Call) (out httpapi.Page[SessionFile], err error) {
	cursor, err := c.Cursor()
	if err != nil {
		return out, err
	}
	s, err := h.find(c)
	if err != nil {
		return out, err
	}
	page, next, err := h.Store.Events(c.Context(), s.Tenant, s.ID, session.EventFilter{Page: agent.Page{Cursor: cursor, Limit: int(c.Int("limit"))}, Sorts: run.ToldFile.Sorts()})
	out = httpapi.Page[SessionFile]{Data: []SessionFile{}, NextPage: httpapi.OrNull(next)}
	for i := range page {
		out.Data = append(out.Data, fileOf(&page[i]))
	}
	return out, err
}

func (h *Handlers) fileContent(c *httpapi.Call) error {
	gone := fault.New(fault.NotFound, "the session has no such file")
	s, err := h.find(c)
	if err != nil {
		return err
	}
	of := sandboxtool.RunOf(c.Path("file_id"))
	if of == "" {
		return gone
	}
	f := session.EventFilter{Page: agent.Page{Limit: 100}, Run: of, Kinds: []run.ToldKind{run.ToldFile}}
	thread, err := h.Store.Thread(c.Context(), s.Tenant, s.ID, run.ThreadOf(of)) // of work that was handed on
	if err != nil && fault.KindOf(err) != fault.NotFound {
		return err
	}
	within := err == nil
	for {
		var page []session.Event
		var next string
		if within {
			page, next, err = h.Store.ThreadEvents(c.Context(), thread, f)
		} else {
			page, next, err = h.Store.Events(c.Context(), s.Tenant, s.ID, f)
		}
		if err != nil {
			return err
		}
		for i := range page {
			if u := shared(&page[i]); u.FileID == c.Path("file_id") {
				return h.Turns.ServeFile(c, &u, gone)
			}
		}
		if f.Cursor = next; next == "" {
			return gone
		}
	}
}

func shared(e *session.Event) (u sandboxtool.FileUse) {
	read(e, &u)
	return u
}

func fileOf(e *session.Event) SessionFile {
	u := shared(e)
	f := SessionFile{ID: u.FileID, FileName: u.Name, CreatedAt: e.At}
	if u.Size != nil {
		f.Bytes = *u.Size
	}
	return f
}
