package httpapi

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

var traceIDPattern = regexp.MustCompile(`^trc_[0-9a-f]{32}$`)

func (s *Server) executionRoutes() []route {
	get, post := []string{http.MethodGet, http.MethodHead}, []string{http.MethodPost}
	return []route{
		{get, "/v1/executions", s.listExecutions},
		{get, "/v1/executions/{trace_id}", s.getExecution},
		{get, "/v1/executions/{trace_id}/output", s.getOutput},
		{post, "/v1/executions/{trace_id}/cancel", s.cancelExecution},
		{get, "/v1/usage", s.getUsage},
	}
}

// traceParamOf returns the trace id in a request's path. One that no execution can
// have is answered like one that none has.
func traceParamOf(r *http.Request) (string, error) {
	id := r.PathValue("trace_id")
	if !traceIDPattern.MatchString(id) {
		return "", noExecution()
	}
	return id, nil
}

// noExecution is the answer to every id that is not one of the caller's.
func noExecution() error { return fault.New(fault.NotFound, "there is no such execution") }

// alike makes every way of not being there the same answer.
func alike(err error) error {
	if fault.KindOf(err) == fault.NotFound {
		return noExecution()
	}
	return err
}

// about begins a request about one execution: who asks, what the query says,
// which execution it is.
func (s *Server) about(r *http.Request, scope tenant.Scope, query ...string) (caller *tenant.Principal, q url.Values, traceID string, err error) {
	if caller, err = s.authorize(r, scope); err != nil {
		return nil, nil, "", err
	}
	if q, err = parseQuery(r, query...); err != nil {
		return nil, nil, "", err
	}
	traceID, err = traceParamOf(r)
	return caller, q, traceID, err
}

func (s *Server) getExecution(w http.ResponseWriter, r *http.Request) error {
	caller, _, id, err := s.about(r, tenant.ScopeRead)
	if err != nil {
		return err
	}
	e, err := s.gateway.GetOutput(r.Context(), caller.Tenant.ID, id)
	if err != nil {
		return alike(err)
	}
	return s.sendExecution(r.Context(), w, e)
}

// sendExecution answers with e and, once it has ended, its output.
func (s *Server) sendExecution(ctx context.Context, w http.ResponseWriter, e *execution.Execution) error {
	body := Execution{ExecutionSummary: summarize(e)}
	if e.Status == execution.Running {
		return writeJSON(w, http.StatusOK, body)
	}
	out, err := s.openOutputs(ctx, e)
	if err != nil {
		return err
	}
	defer out.Close()
	body.Stdout, body.Stderr = new(string), new(string)
	startJSON(w, http.StatusOK)
	return writeWith(w, body, out)
}

func (s *Server) cancelExecution(w http.ResponseWriter, r *http.Request) error {
	caller, _, id, err := s.about(r, tenant.ScopeExecute)
	if err != nil {
		return err
	}
	e, err := s.gateway.Cancel(r.Context(), caller.Tenant.ID, id)
	if err != nil {
		return alike(err)
	}
	return s.sendExecution(r.Context(), w, e)
}

// getOutput replays an execution's output and follows it, or sends one of its
// streams whole.
func (s *Server) getOutput(w http.ResponseWriter, r *http.Request) error {
	caller, q, id, err := s.about(r, tenant.ScopeRead, "after", "stream")
	if err != nil {
		return err
	}
	if q.Has("stream") {
		if q.Has("after") {
			return invalid("after goes with the stream of events, not with stream")
		}
		return s.getRaw(w, r, caller, id, execution.Stream(q.Get("stream")))
	}
	after, err := queryInt(q, "after", 0, 0, math.MaxInt64-1)
	if err != nil {
		return err
	}
	media := ndjson
	if accepts(r.Header, eventStream) {
		media = eventStream
		if seen := r.Header.Get("Last-Event-ID"); seen != "" {
			if after, err = queryInt(url.Values{"Last-Event-ID": {seen}}, "Last-Event-ID", 0, 0, math.MaxInt64-1); err != nil {
				return err
			}
		}
	}
	e, err := s.gateway.Get(r.Context(), caller.Tenant.ID, id)
	if err != nil {
		return alike(err)
	}
	if e.Status != execution.Running && after > max(e.LastSeq, 1) {
		// The client has it all. An EventSource takes this as the end.
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if r.Method == http.MethodHead { // does not wait for what it will not get
		w.Header().Set("Content-Type", media)
		w.WriteHeader(http.StatusOK)
		return nil
	}
	return s.follow(w, r, e, media, after, 0)
}

// getRaw sends a whole stream as the bytes it was kept as.
func (s *Server) getRaw(w http.ResponseWriter, r *http.Request, caller *tenant.Principal, id string, name execution.Stream) error {
	if name != execution.Stdout && name != execution.Stderr {
		return invalid("stream must be stdout or stderr")
	}
	e, err := s.gateway.GetOutput(r.Context(), caller.Tenant.ID, id)
	if err != nil {
		return alike(err)
	}
	if e.Status == execution.Running {
		return fault.New(fault.Conflict, "the execution is still running: its output is whole when it has ended")
	}
	body, err := s.gateway.Whole(r.Context(), e, name)
	if err != nil {
		return err
	}
	defer body.Close()
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", id+"-"+string(name)))
	h.Set("Cache-Control", "no-store")
	out := &ranged{ResponseWriter: w}
	http.ServeContent(out, r, "", time.Time{}, body)
	if out.refused {
		h.Del("Content-Disposition")
		return &protocolError{http.StatusRequestedRangeNotSatisfiable, "range_not_satisfiable", "Range is beyond the end: Content-Range has the length"}
	}
	return nil
}

// ranged holds back what http.ServeContent says of a range that there is not,
// so that it can be said as everything else is.
type ranged struct {
	http.ResponseWriter
	refused bool
}

func (w *ranged) WriteHeader(status int) {
	if w.refused = status == http.StatusRequestedRangeNotSatisfiable; !w.refused {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *ranged) Write(p []byte) (int, error) {
	if w.refused {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}

// Bounds of a page.
const (
	defaultPage = 20
	maxPage     = 100
)

// metadataPrefix begins the query parameters that filter by metadata.
const metadataPrefix = "metadata."

func (s *Server) listExecutions(w http.ResponseWriter, r *http.Request) error {
	caller, err := s.authorize(r, tenant.ScopeRead)
	if err != nil {
		return err
	}
	filter, err := parseFilter(r)
	if err != nil {
		return err
	}
	filter.Tenant = caller.Tenant.ID
	page, next, err := s.gateway.List(r.Context(), filter)
	if err != nil {
		return err
	}
	body := ExecutionPage{Data: make([]ExecutionSummary, len(page))}
	for i, e := range page {
		body.Data[i] = summarize(e)
	}
	if next != "" {
		body.NextPage = &next
	}
	return writeJSON(w, http.StatusOK, body)
}

func parseFilter(r *http.Request) (f execution.Filter, err error) {
	q, err := parseQuery(r, "status", "language", "thread_id", "key", "since", "before", "limit", "page", metadataPrefix)
	if err != nil {
		return f, err
	}
	f.Thread = q.Get("thread_id")
	if q.Has("thread_id") && f.Thread == "" {
		return f, invalid("thread_id must be the id of a thread")
	}
	if err := execution.CheckThread(f.Thread); err != nil {
		return f, err
	}
	f.Status, f.Language = execution.Status(q.Get("status")), execution.Language(q.Get("language"))
	f.Key, f.Cursor = q.Get("key"), q.Get("page")
	switch {
	case q.Has("status") && !slices.Contains(execution.Statuses, f.Status):
		return f, invalid("status must be one of running, success, failed, timeout, oom, blocked, cancelled")
	case q.Has("language") && !slices.Contains(execution.Languages, f.Language):
		return f, invalid("language must be one of python, node, bash")
	case q.Has("key") && f.Key == "":
		return f, invalid("key must be the id of a key")
	case q.Has("page") && f.Cursor == "":
		return f, invalid("page must be the next_page of an earlier answer")
	}
	if f.Since, f.Before, err = querySpan(q); err != nil {
		return f, err
	}
	limit, err := queryInt(q, "limit", defaultPage, 1, maxPage)
	if err != nil {
		return f, err
	}
	f.Limit = int(limit)
	for name, values := range q {
		key, ok := strings.CutPrefix(name, metadataPrefix)
		switch {
		case !ok:
		case key == "":
			return f, invalid("%sKEY needs a key", metadataPrefix)
		case f.Metadata == nil:
			f.Metadata = map[string]string{key: values[0]}
		default:
			f.Metadata[key] = values[0]
		}
	}
	if len(f.Metadata) > execution.MaxMetadata {
		return f, invalid("at most %d filters by metadata", execution.MaxMetadata)
	}
	return f, nil
}
