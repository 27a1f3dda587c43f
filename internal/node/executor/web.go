package executor

import (
	"bufio"
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// webPort is where programs find the services of the web, at 127.0.0.1 of their sandbox.
// Programs have ports below 1024 only as root.
const webPort = 980

// maxWebCalls bounds the calls of one execution.
const maxWebCalls = 1000

// Variables by which programs find the services: ours, and those of the contract's client.
const (
	webURLVariable    = "ATOLL_WEB_URL"
	webTokenVariable  = "ATOLL_WEB_TOKEN"
	clientURLVariable = "PERPLEXITY_BASE_URL"
	clientKeyVariable = "PERPLEXITY_API_KEY"
)

// webCalls answers the HTTP requests of a program, which may be anything.
type webCalls struct {
	x     *Executor
	job   *execution.Job
	calls atomic.Int64
}

// offerWeb lets a program call the services of the web.
func (t *task) offerWeb(p *execution.Program) {
	w := &webCalls{x: t.x, job: &t.job}
	p.Port, p.Serve, p.Env = webPort, w.serve, webEnv(&t.job)
}

// webEnv are the variables of a job whose program may call the services. A caller's own
// for the contract's client win: neither its key nor ours goes where the other belongs.
func webEnv(job *execution.Job) map[string]string {
	env := maps.Clone(job.Env)
	if env == nil {
		env = map[string]string{}
	}
	set := func(name string) bool { return job.Env[name] != "" || job.BaseEnv[name] != "" }
	base := "http://127.0.0.1:" + strconv.Itoa(webPort)
	env[webURLVariable], env[webTokenVariable] = base, job.Web.Token
	if !set(clientURLVariable) && !set(clientKeyVariable) {
		env[clientURLVariable], env[clientKeyVariable] = base, job.Web.Token
	}
	return env
}

// serve answers one request.
func (w *webCalls) serve(ctx context.Context, request []byte) (response []byte) {
	defer func() {
		if v := recover(); v != nil {
			w.x.cfg.Log.Error("cannot answer a program's request", "trace_id", w.job.TraceID, "panic", v, "stack", string(debug.Stack()))
			response = webRefusal(http.StatusInternalServerError, "internal_error", "something went wrong on our side")
		}
	}()
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(request)))
	if err != nil {
		return webRefusal(http.StatusBadRequest, "validation_error", "this is no HTTP request")
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return webRefusal(http.StatusBadRequest, "validation_error", "the body of the request is not whole")
	}
	path, known := web.Paths[r.URL.Path]
	switch {
	case !known:
		return webRefusal(http.StatusNotFound, "not_found", "programs in a sandbox have POST /search and POST /fetch here")
	case r.Method != http.MethodPost:
		return webRefusal(http.StatusMethodNotAllowed, "method_not_allowed", r.URL.Path+" answers to POST")
	case !w.authorized(r):
		return webRefusal(http.StatusUnauthorized, "unauthorized", "send the token of this execution, "+webTokenVariable+", as Authorization: Bearer …; it ends with the execution")
	case w.calls.Add(1) > maxWebCalls:
		return webRefusal(http.StatusTooManyRequests, "rate_limited", fmt.Sprintf("an execution makes at most %d calls", maxWebCalls))
	}
	a, err := w.x.cfg.Web.CallWeb(ctx, execution.WebCall{TraceID: w.job.TraceID, Tenant: w.job.Tenant, Key: w.job.Web.Key, Environment: w.job.Web.Environment, Held: w.job.Web.Held, Path: path, Body: body, Left: w.job.Web.Left})
	if err != nil {
		return w.failed(err)
	}
	return webResponse(a)
}

func (w *webCalls) authorized(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "bearer") && subtle.ConstantTimeCompare([]byte(strings.TrimSpace(token)), []byte(w.job.Web.Token)) == 1
}

// failed answers a call of which nothing is known.
func (w *webCalls) failed(err error) []byte {
	w.x.cfg.Log.Warn("a program's call was not answered", "trace_id", w.job.TraceID, "error", err)
	msg := "the call was not answered; whether it was made is not known"
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind == fault.Unavailable {
		msg = f.Msg
	}
	return webRefusal(http.StatusBadGateway, "bad_gateway", msg)
}

func webRefusal(status int, code, message string) []byte {
	body, _ := json.Marshal(map[string]string{"error": code, "message": message}) // strings always can
	return webResponse(execution.WebAnswer{Status: status, Body: body})
}

// webResponse is an answer as HTTP has it.
func webResponse(a execution.WebAnswer) []byte {
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
