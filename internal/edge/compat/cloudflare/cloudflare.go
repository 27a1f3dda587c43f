// Package cloudflare serves the protocol of Cloudflare's sandbox bridge below /v1/sandbox,
// for clients that were written for it.
//
// It serves named sandboxes, with the same keys, scopes, quotas and audit rows as the native
// API. Its sandboxes belong to the session "cloudflare"; their names are the ids that clients
// know.
package cloudflare

import (
	"context"
	"errors"
	"net/http"
	"regexp"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// session has the sandboxes of this API.
const session = "cloudflare"

// Handlers serves the protocol.
type Handlers struct{ sandboxes *sandboxes.Service }

// New returns Handlers for the sandboxes of s.
func New(s *sandboxes.Service) *Handlers { return &Handlers{s} }

// Operations is the table of what is served. None of it is in our OpenAPI document: the
// protocol is another vendor's.
func (d *Handlers) Operations() []httpapi.Operation {
	const (
		get, post, put, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
		root, one           = "/v1/sandbox", "/v1/sandbox/{sandbox}"
		file                = one + "/file/{path...}"
	)
	bytes := &httpapi.Body{Media: httpapi.OctetStream, Optional: true}
	text := func(name string) httpapi.Param { return httpapi.Param{Name: name, Type: httpapi.Text} }
	size := func(name string, usual int64) httpapi.Param {
		return httpapi.Param{Name: name, Type: httpapi.Int, Min: 1, Max: 1000, Default: usual}
	}
	ops := []httpapi.Operation{
		{Method: post, Path: root, Audit: "create", Serve: httpapi.Returns(d.create)},
		{Method: del, Path: one, Audit: "destroy", Answers: []httpapi.Answer{httpapi.NoContent("")}, Serve: httpapi.Does(d.remove)},
		{Method: get, Path: one + "/running", Serve: httpapi.Returns(d.running)},
		{Method: post, Path: one + "/exec", Audit: "process", Body: httpapi.JSON(Exec{}), Serve: httpapi.WritesFrom(d.exec)},
		{Method: get, Path: one + "/pty", Audit: "terminal", Params: []httpapi.Param{size("cols", 80), size("rows", 24), text("shell"), text("session")}, Serve: httpapi.Writes(d.terminal)},
		{Method: get, Path: file, Audit: "file_read", Serve: httpapi.Writes(d.read)},
		{Method: put, Path: file, Audit: "file_write", Body: bytes, Serve: httpapi.Returns(d.write)},
		{Method: post, Path: one + "/persist", Audit: "archive_read", Params: []httpapi.Param{text("excludes")}, Serve: httpapi.Writes(d.persist)},
		{Method: post, Path: one + "/hydrate", Audit: "archive_write", Body: bytes, Serve: httpapi.Returns(d.hydrate)},
	}
	for _, what := range []string{"session", "tunnel/{port}", "mount", "unmount"} {
		ops = append(ops, httpapi.Operation{Method: post, Path: one + "/" + what, Body: bytes, Serve: httpapi.Writes(d.nothing)})
	}
	compat := &httpapi.Compat{Refuse: refuse}
	for i := range ops {
		ops[i].Scope, ops[i].Watched, ops[i].Compat = tenant.ScopeSandboxes, true, compat
		if ops[i].Answers == nil {
			ops[i].Answers = []httpapi.Answer{{Status: http.StatusOK}}
		}
	}
	return ops
}

// Refusal is the body of every error.
type Refusal struct {
	Error string `json:"error"`
	Code  string `json:"code"`
}

// codes are the protocol's, by status.
var codes = map[int]string{
	http.StatusBadRequest: "invalid_request", http.StatusUnauthorized: "unauthorized", http.StatusForbidden: "invalid_request",
	http.StatusTooManyRequests: "capacity_exceeded", http.StatusServiceUnavailable: "capacity_exceeded",
}

// failed is an error with a code of the protocol.
type failed struct {
	error
	code string
}

func (e *failed) Unwrap() error { return e.error }

func refusalOf(err error) Refusal {
	status, body := httpapi.Render(err)
	code, ok := codes[status]
	if f, named := errors.AsType[*failed](err); named {
		code, ok = f.code, true
	}
	if !ok {
		code = body.Error
	}
	return Refusal{Error: body.Message, Code: code}
}

func refuse(w http.ResponseWriter, _ *http.Request, err error) {
	httpapi.WriteRefusal(w, err, func(int, httpapi.ErrorResponse) any { return refusalOf(err) })
}

// nothing rejects operations of the protocol that Atoll does not support.
func (d *Handlers) nothing(c *httpapi.Call) error {
	return httpapi.Invalid("%s: sessions, tunnels and mounts of buckets are not served here", c.R.URL.Path)
}

// Created is the answer to a new sandbox.
type Created struct {
	ID string `json:"id"`
}

var idPattern = regexp.MustCompile(`^[a-z2-7]{1,64}$`)

func (d *Handlers) create(c *httpapi.Call) (out Created, err error) {
	out.ID = sandboxes.NewName("")
	return out, d.sandboxes.CreateDefault(c.Context(), c.Caller, c.Trail, session, out.ID)
}

// idOf is the sandbox that a request names.
func idOf(c *httpapi.Call) (string, error) {
	id := c.Path("sandbox")
	if !idPattern.MatchString(id) {
		return "", httpapi.Invalid("the id of a sandbox has 1 to 64 characters of a-z and 2-7")
	}
	return id, nil
}

// within runs f with the sandbox that a request names. The protocol makes one when it is used
// first, also where one of that id was deleted.
func (d *Handlers) within(ctx context.Context, c *httpapi.Call, f func(*sandboxes.Use) error) error {
	id, err := idOf(c)
	if err != nil {
		return err
	}
	return d.sandboxes.WithinNew(ctx, c.Caller, c.Trail, session, id, f)
}

func (d *Handlers) remove(c *httpapi.Call) error {
	id, err := idOf(c)
	if err != nil {
		return err
	}
	c.Trail.By(c.Caller, session, id)
	err = d.sandboxes.Delete(c.Context(), sandboxes.Ref{Caller: c.Caller, Session: session, Name: id})
	if fault.KindOf(err) != fault.NotFound {
		return err
	}
	// For the protocol that is no error; in the trail it is a refused call, of which many
	// share a row.
	return c.Leave(c.Context(), err)
}

// Running says whether there is a sandbox.
type Running struct {
	Running bool `json:"running"`
}

// running counts a sandbox that sleeps: its programs and files are there.
func (d *Handlers) running(c *httpapi.Call) (out Running, err error) {
	id, err := idOf(c)
	if err != nil {
		return out, err
	}
	out.Running, err = d.sandboxes.Exists(c.Context(), sandboxes.Ref{Caller: c.Caller, Session: session, Name: id})
	return out, err
}
