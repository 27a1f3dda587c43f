package httpapi

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// act is one method of a path of named sandboxes.
type act struct {
	method, path string
	// source is what the audit trail calls it: each request leaves a row. "" is for
	// what only tells how things are, which clients ask for again and again.
	source string
	serve  handler
}

// acts makes routes, those of one path one. What may change something leaves rows,
// or there is no server.
func (s *Server) acts(all []act) []route {
	var out []route
	serve := map[string]map[string]handler{}
	for _, a := range all {
		if a.source == "" && a.method != http.MethodGet {
			panic("httpapi: " + a.method + " " + a.path + " would leave no audit row")
		}
		do := s.watched(a.serve)
		if a.source != "" {
			do = s.trailed(a.source, do)
		}
		i := slices.IndexFunc(out, func(r route) bool { return r.path == a.path })
		if i < 0 {
			i = len(out)
			serve[a.path] = map[string]handler{}
			out = append(out, route{path: a.path, serve: s.methods(serve[a.path])})
		}
		out[i].methods = append(out[i].methods, a.method)
		if a.method == http.MethodGet {
			out[i].methods = append(out[i].methods, http.MethodHead)
		}
		serve[a.path][a.method] = do
	}
	return out
}

// trail is what the audit trail will tell of a request. A nil one is that of a
// request which leaves no row.
type trail struct {
	record func(context.Context, *tenant.Principal, sandbox.Call) error
	caller *tenant.Principal // nil until the key was found to be valid
	row    sandbox.Call
	begun  bool  // a sandbox was asked to do something
	late   bool  // the row is left when all is over, not ahead of the answer
	left   bool  // the row is, or none is to be
	err    error // why it could not be
}

type trailKey struct{}

func trailOf(ctx context.Context) *trail {
	t, _ := ctx.Value(trailKey{}).(*trail)
	return t
}

// trailed has each request leave a row, ahead of the first byte of its answer or
// at its end: an answer whose row could not be written is not given.
func (s *Server) trailed(source string, serve handler) handler {
	return func(w http.ResponseWriter, r *http.Request) (err error) {
		t := &trail{record: s.sandboxes.Record, row: sandbox.Call{TraceID: traceOf(w), Source: source, Began: time.Now()}}
		ctx := r.Context()
		defer func() {
			if p := recover(); p != nil {
				_ = t.leave(ctx, errors.New("panic")) // which is answered and logged as one
				panic(p)
			}
		}()
		err = serve(&trailedAnswer{w, ctx, t}, r.WithContext(context.WithValue(ctx, trailKey{}, t)))
		if failed := t.leave(ctx, err); failed != nil {
			return failed
		}
		return err
	}
}

// by notes who asks for something in a session, and with which words.
func (t *trail) by(caller *tenant.Principal, session, command string) {
	if t != nil {
		t.caller, t.row.Session, t.row.Command = caller, session, []byte(command)
	}
}

// on notes which sandbox is meant.
func (t *trail) on(sb *sandbox.Sandbox) {
	if t != nil {
		t.row.Session, t.row.Mounts = sb.Session, storage.Labels(sb.Mounts)
		t.row.SetSandbox(sb)
	}
}

// asks notes what is asked for, of which the row has the digest.
func (t *trail) asks(command string) {
	if t != nil {
		t.row.Command = []byte(command)
	}
}

// leave leaves the row, once. A request that is wrong by itself leaves none.
func (t *trail) leave(ctx context.Context, err error) error {
	if t == nil || t.left {
		if t != nil {
			return t.err
		}
		return nil
	}
	t.left = true
	if t.caller == nil {
		if err == nil {
			t.err = errors.New("a request was served of which nobody knows whose it is")
		}
		return t.err
	}
	if p, ok := errors.AsType[*protocolError](err); ok {
		err = fault.New(fault.Invalid, "%s", p.msg)
	}
	if t.row.Ended(ctx, err, t.begun) {
		t.err = t.record(ctx, t.caller, t.row)
	}
	return t.err
}

// trailedAnswer is an answer that comes after its row.
type trailedAnswer struct {
	http.ResponseWriter
	ctx context.Context
	t   *trail
}

func (w *trailedAnswer) WriteHeader(status int) {
	var err error
	if status >= http.StatusBadRequest {
		err = fault.New(fault.Forbidden, "HTTP %d", status)
	}
	if w.t.late || w.t.leave(w.ctx, err) == nil {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *trailedAnswer) Write(p []byte) (int, error) {
	if !w.t.late {
		if err := w.t.leave(w.ctx, nil); err != nil {
			return 0, err
		}
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController find the server's own writer.
func (w *trailedAnswer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
