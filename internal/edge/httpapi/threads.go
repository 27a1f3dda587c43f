package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/thread"
)

// threadIDSchema is what execution.CheckThread checks.
const threadIDSchema = "^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$"

const (
	threadPath      = "/v1/threads/{thread_id}"
	threadArchive   = threadPath + "/archive"
	threadFiles     = threadPath + "/files"
	threadFile      = threadPath + "/files/{path...}"
	threadSignedURL = threadPath + "/signed_urls"
)

func (s *Server) threadRoutes() []route {
	get := []string{http.MethodGet, http.MethodHead}
	return []route{
		{get, "/v1/threads", s.listThreads},
		{append(get, http.MethodPatch, http.MethodDelete), threadPath, s.methods(map[string]handler{
			http.MethodGet: s.getThread, http.MethodPatch: s.patchThread, http.MethodDelete: s.deleteThread,
		})},
		{append(get, http.MethodPut), threadArchive, s.methods(map[string]handler{http.MethodGet: s.exportThread, http.MethodPut: s.importThread})},
		{get, threadFiles, s.listFiles},
		{append(get, http.MethodPut, http.MethodDelete), threadFile, s.methods(map[string]handler{
			http.MethodGet: s.getFile, http.MethodPut: s.putFile, http.MethodDelete: s.deleteFile,
		})},
		{[]string{http.MethodPost}, threadSignedURL, s.signURL},
	}
}

// methods serves the methods of a path by handlers of their own; HEAD is served
// as GET.
func (s *Server) methods(by map[string]handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		return by[method](w, r)
	}
}

// threadOf returns the id in a request's path. One that no thread can have is
// answered like one that none has.
func threadOf(r *http.Request) (string, error) {
	id := r.PathValue("thread_id")
	if id == "" || execution.CheckThread(id) != nil {
		return "", fault.New(fault.NotFound, "no such thread")
	}
	return id, nil
}

// onThread finds the caller, whose key must have a scope, and the thread.
func (s *Server) onThread(r *http.Request, scope tenant.Scope) (*tenant.Principal, string, error) {
	caller, err := s.authorize(r, scope)
	if err != nil {
		return nil, "", err
	}
	id, err := threadOf(r)
	return caller, id, err
}

// ownerOf is what a caller may have.
func ownerOf(p *tenant.Principal) thread.Owner {
	return thread.Owner{Tenant: p.Tenant.ID, Threads: p.Plan.MaxThreads, Size: p.Plan.MaxThreadSize}
}

func (s *Server) listThreads(w http.ResponseWriter, r *http.Request) error {
	caller, err := s.authorize(r, tenant.ScopeRead)
	if err != nil {
		return err
	}
	q, err := parseQuery(r, "prefix", "limit", "page")
	if err != nil {
		return err
	}
	f := thread.Filter{Tenant: caller.Tenant.ID, Prefix: q.Get("prefix"), Cursor: q.Get("page")}
	if err := execution.CheckThread(f.Prefix); err != nil {
		return invalid("prefix must be the beginning of a thread_id: letters, digits, hyphens and underscores")
	}
	if q.Has("page") && f.Cursor == "" {
		return invalid("page must be the next_page of an earlier answer")
	}
	limit, err := queryInt(q, "limit", defaultPage, 1, maxPage)
	if err != nil {
		return err
	}
	f.Limit = int(limit)
	page, next, err := s.threads.List(r.Context(), f)
	if err != nil {
		return err
	}
	body := ThreadPage{Data: make([]Thread, len(page))}
	for i, t := range page {
		body.Data[i] = threadWire(t)
	}
	if next != "" {
		body.NextPage = &next
	}
	return writeJSON(w, http.StatusOK, body)
}

func (s *Server) getThread(w http.ResponseWriter, r *http.Request) error {
	caller, id, err := s.onThread(r, tenant.ScopeRead)
	if err != nil {
		return err
	}
	return s.showThread(r.Context(), w, caller.Tenant.ID, id)
}

func (s *Server) showThread(ctx context.Context, w http.ResponseWriter, tenantID, id string) error {
	t, err := s.threads.Get(ctx, tenantID, id)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, threadWire(t))
}

func (s *Server) patchThread(w http.ResponseWriter, r *http.Request) error {
	caller, id, err := s.onThread(r, tenant.ScopeExecute)
	if err != nil {
		return err
	}
	var in ThreadChange
	if err := decodeRequest(w, r, &in); err != nil {
		return err
	}
	if in.ExpiresAt != nil && !in.ExpiresAt.After(time.Now()) {
		return invalid("expires_at must be in the future; DELETE deletes a thread at once")
	}
	if err := s.threads.SetExpiry(r.Context(), caller.Tenant.ID, id, in.ExpiresAt); err != nil {
		return err
	}
	return s.showThread(r.Context(), w, caller.Tenant.ID, id)
}

func (s *Server) deleteThread(w http.ResponseWriter, r *http.Request) error {
	caller, id, err := s.onThread(r, tenant.ScopeExecute)
	if err != nil {
		return err
	}
	if err := s.threads.Delete(r.Context(), caller.Tenant.ID, id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
