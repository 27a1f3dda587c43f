package session

import (
	"context"
	"net/http"
	"time"

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
			Description: "Oldest first, with those of agents that work was handed to. The contents are there until the session is deleted or `keep_executions` has passed.",
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
	page, next, err := h.sharedBy(c.Context(), s, agent.Page{Cursor: cursor, Limit: int(c.Int("limit"))})
	return httpapi.Page[SessionFile]{Data: page, NextPage: httpapi.OrNull(next)}, err
}

func (h *Handlers) sharedBy(ctx context.Context, s *session.Session, p agent.Page) ([]SessionFile, string, error) {
	page, next, err := h.Store.Tree(ctx, s.Tenant, s.ID, run.ToldFile, p)
	return httpapi.Each(page, func(e session.TreeEvent) SessionFile {
		out := fileOf(&e.Event)
		out.ThreadID = httpapi.OrNull(e.Thread)
		return out
	}), next, err
}

// SharedBy returns a page of the files that the agents of a session have shared, oldest first.
func (h *Handlers) SharedBy(ctx context.Context, t tenant.ID, id session.ID, p agent.Page) ([]SessionFile, string, error) {
	s, err := h.Store.Get(ctx, t, id)
	if err != nil {
		return nil, "", err
	}
	return h.sharedBy(ctx, s, p)
}

// SharedFile finds a file that the agent of any session of a tenant has shared.
func (h *Handlers) SharedFile(ctx context.Context, t tenant.ID, fileID string) (session.ID, *sandboxtool.FileUse, error) {
	r, err := h.Turns.Store.Run(ctx, t, sandboxtool.RunOf(fileID))
	if err != nil && fault.KindOf(err) != fault.NotFound {
		return "", nil, err
	}
	if err != nil || r.Session == "" {
		return "", nil, errNoFile()
	}
	s, err := h.Store.Get(ctx, t, session.ID(r.Session))
	if err != nil {
		return "", nil, err
	}
	u, err := h.sharedFile(ctx, s, fileID)
	return s.ID, u, err
}

// ServeShared answers with the bytes of a file that an agent has shared.
func (h *Handlers) ServeShared(c *httpapi.Call, u *sandboxtool.FileUse, gone error) error {
	return h.Turns.ServeFile(c, u, gone)
}

func errNoFile() error { return fault.New(fault.NotFound, "the session has no such file") }

func (h *Handlers) fileContent(c *httpapi.Call) error {
	s, err := h.find(c)
	if err != nil {
		return err
	}
	u, err := h.sharedFile(c.Context(), s, c.Path("file_id"))
	if err != nil {
		return err
	}
	return h.Turns.ServeFile(c, u, errNoFile())
}

// sharedFile finds a file that an agent of s has shared.
func (h *Handlers) sharedFile(ctx context.Context, s *session.Session, fileID string) (*sandboxtool.FileUse, error) {
	of := sandboxtool.RunOf(fileID)
	if of == "" {
		return nil, errNoFile()
	}
	for p := (agent.Page{Limit: 100}); ; {
		page, next, err := h.Store.Tree(ctx, s.Tenant, s.ID, run.ToldFile, p)
		if err != nil {
			return nil, err
		}
		for i := range page {
			if u := shared(&page[i].Event); page[i].Run == of && u.FileID == fileID {
				return &u, nil
			}
		}
		if p.Cursor = next; next == "" {
			return nil, errNoFile()
		}
	}
}

func shared(e *session.Event) (u sandboxtool.FileUse) {
	read(e, &u)
	return u
}

func fileOf(e *session.Event) SessionFile {
	u := shared(e)
	return FileOf(&u, e.At)
}

// FileOf is a file that an agent has shared as it is shown.
func FileOf(u *sandboxtool.FileUse, at time.Time) SessionFile {
	f := SessionFile{ID: u.FileID, FileName: u.Name, CreatedAt: at}
	if u.Size != nil {
		f.Bytes = *u.Size
	}
	return f
}
