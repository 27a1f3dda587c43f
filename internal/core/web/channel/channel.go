// Package channel serves the HTTP requests that programs in a sandbox send to the web services.
// Programs are untrusted and may send anything.
package channel

import (
	"bufio"
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/web"
)

// Port is the port of the services at 127.0.0.1 in a sandbox. Only root may listen on ports below
// 1024, so other programs cannot take it.
const Port = 980

// maxCalls limits the calls of one channel.
const maxCalls = 1000

// Variables by which programs find the services: ours, and those of the contract's client.
const (
	urlVariable       = "ATOLL_WEB_URL"
	tokenVariable     = "ATOLL_WEB_TOKEN"
	clientURLVariable = "PERPLEXITY_BASE_URL"
	clientKeyVariable = "PERPLEXITY_API_KEY"
)

// Channel handles the calls of one execution's programs.
type Channel struct {
	Calls   execution.Web
	TraceID string
	Tenant  string
	Access  *execution.WebAccess
	Log     *slog.Logger

	made atomic.Int64
}

// Env returns env plus the variables that tell programs where the services are. set reports which
// variables the caller sets. If it sets one for the contract's client, Env adds neither, so that no
// key goes to the wrong server.
func Env(env map[string]string, token string, set func(name string) bool) map[string]string {
	env = maps.Clone(env)
	if env == nil {
		env = map[string]string{}
	}
	base := "http://127.0.0.1:" + strconv.Itoa(Port)
	env[urlVariable], env[tokenVariable] = base, token
	if !set(clientURLVariable) && !set(clientKeyVariable) {
		env[clientURLVariable], env[clientKeyVariable] = base, token
	}
	return env
}

// Serve answers one request.
func (d *Channel) Serve(ctx context.Context, request []byte) []byte {
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(request)))
	if err != nil {
		return refusal(http.StatusBadRequest, "validation_error", "this is no HTTP request")
	}
	return d.Answer(ctx, r)
}

// Answer answers one request whose header has been read.
func (d *Channel) Answer(ctx context.Context, r *http.Request) (response []byte) {
	defer func() {
		if v := recover(); v != nil {
			d.Log.Error("cannot answer a program's request", "trace_id", d.TraceID, "panic", v, "stack", string(debug.Stack()))
			response = refusal(http.StatusInternalServerError, "internal_error", "something went wrong on our side")
		}
	}()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return refusal(http.StatusBadRequest, "validation_error", "the body of the request is not whole")
	}
	path, known := web.Paths[r.URL.Path]
	switch {
	case !known:
		return refusal(http.StatusNotFound, "not_found", "programs in a sandbox have POST /search and POST /fetch here")
	case r.Method != http.MethodPost:
		return refusal(http.StatusMethodNotAllowed, "method_not_allowed", r.URL.Path+" answers to POST")
	case subtle.ConstantTimeCompare([]byte(Token(r)), []byte(d.Access.Token)) != 1:
		return Unauthorized()
	case d.made.Add(1) > maxCalls:
		return refusal(http.StatusTooManyRequests, "rate_limited", fmt.Sprintf("an execution makes at most %d calls", maxCalls))
	}
	a, err := d.Calls.CallWeb(ctx, execution.WebCall{TraceID: d.TraceID, Tenant: d.Tenant, Key: d.Access.Key, Environment: d.Access.Environment, Held: d.Access.Held, Path: path, Body: body, Left: d.Access.Left})
	if err != nil {
		return d.failed(err)
	}
	return written(a)
}

// Token returns the bearer token of a request; "" for none.
func Token(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// Unauthorized returns the response to a request without the token of a running execution.
func Unauthorized() []byte {
	return refusal(http.StatusUnauthorized, "unauthorized", "send the token of this execution, "+tokenVariable+", as Authorization: Bearer …; it ends with the execution")
}

// failed answers a call with an unknown outcome.
func (d *Channel) failed(err error) []byte {
	d.Log.Warn("a program's call was not answered", "trace_id", d.TraceID, "error", err)
	msg := "the call was not answered; whether it was made is not known"
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind == fault.Unavailable {
		msg = f.Msg
	}
	return refusal(http.StatusBadGateway, "bad_gateway", msg)
}

func refusal(status int, code, message string) []byte {
	body, _ := json.Marshal(map[string]string{"error": code, "message": message}) // strings always can
	return written(execution.WebAnswer{Status: status, Body: body})
}

// written encodes an answer as HTTP.
func written(a execution.WebAnswer) []byte {
	if a.Status < 200 || a.Status > 599 {
		a.Status = http.StatusBadGateway
	}
	h := http.Header{"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(len(a.Body))}, "Connection": {"close"}}
	if a.RetryAfter != "" {
		h.Set("Retry-After", a.RetryAfter)
	}
	b := bytes.NewBuffer(make([]byte, 0, len(a.Body)+512))
	fmt.Fprintf(b, "HTTP/1.1 %d %s\r\n", a.Status, http.StatusText(a.Status))
	_ = h.Write(b) // a buffer takes all
	b.WriteString("\r\n")
	b.Write(a.Body)
	return b.Bytes()
}
