package openapitest

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6" // document.go says why

	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// undeclared are headers that HTTP itself brings, or that every answer may have.
var undeclared = []string{
	"Cache-Control", "Connection", "Content-Length", "Content-Type", "Date", "Keep-Alive", "Sec-Websocket-Accept", "Transfer-Encoding",
	"Trailer", "Upgrade", "X-Content-Type-Options",
}

// Answer is an answer that is being checked. Its body is written to it.
type Answer struct {
	op     *Operation // nil for what the document does not have, of which the envelope of refusals is checked
	status int
	media  string   // "" for no body
	at     []string // of the answer, in the document
	held   bytes.Buffer
	err    error
}

// clientGone is the status of an answer that no client is there for.
const clientGone = 499

// maxHeld bounds what is kept of a body, or of a line of one.
const maxHeld = 64 << 20

// NewAnswer checks the head of the answer to a request.
func NewAnswer(r *http.Request, status int, header http.Header) (*Answer, error) {
	d := load()
	a := &Answer{op: d.find(r.Method, r.URL), status: status}
	if r.Method == http.MethodHead && a.op == nil {
		a.op = d.find(http.MethodGet, r.URL)
	}
	media, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil && header.Get("Content-Type") != "" {
		return a, a.fail("Content-Type is %q", header.Get("Content-Type"))
	}
	if status == clientGone {
		return a, nil
	}
	if a.op == nil {
		if media == "application/json" && status >= http.StatusBadRequest {
			a.media = media
		}
		return a, nil
	}
	count(a.op.ID, status)
	said := a.op.answer(status)
	if said == nil {
		return a, a.fail("the status is not declared")
	}
	a.at = append(slices.Clone(a.op.at), "responses", strconv.Itoa(status))
	if err := a.headers(said, header); err != nil {
		return a, err
	}
	content := child(said, "content")
	if child(content, media) == nil && child(content, httpapi.AnyMedia) != nil {
		media = httpapi.AnyMedia // bytes of a type that is a file's
	}
	switch {
	case r.Method == http.MethodHead, status == http.StatusNoContent, status == http.StatusSwitchingProtocols:
	case content == nil && media != "":
		return a, a.fail("a body of %s is not declared", media)
	case content != nil && child(content, media) == nil:
		return a, a.fail("the media type %q is not declared", media)
	default:
		a.media = media
	}
	return a, nil
}

func (a *Answer) headers(said map[string]any, header http.Header) error {
	declared := map[string]string{}
	for name := range child(said, "headers") {
		declared[http.CanonicalHeaderKey(name)] = name
		if child(said, "headers", name)["required"] == true && header.Get(name) == "" {
			return a.fail("the header %s is not there", name)
		}
	}
	for name, values := range header {
		if declared[name] == "" {
			if !slices.Contains(undeclared, name) {
				return a.fail("the header %s is not declared", name)
			}
			continue
		}
		for _, v := range values {
			at := append(slices.Clone(a.at), "headers", declared[name], "schema")
			var value any = v
			switch child(said, "headers", declared[name], "schema")["type"] {
			case "integer", "number":
				n, err := jsonschema.UnmarshalJSON(strings.NewReader(v))
				if err != nil {
					return a.fail("%s is %q", name, v)
				}
				value = n
			case "boolean":
				value = v == "true"
			}
			if err := load().check(value, at...); err != nil {
				return a.fail("%s is %q: %w", name, v, err)
			}
		}
	}
	return nil
}

func (a *Answer) fail(format string, args ...any) error {
	name := "a path that is not in the document"
	if a.op != nil {
		name = a.op.ID
	}
	a.err = fmt.Errorf("the answer %d of %s contradicts the OpenAPI document: "+format, append([]any{a.status, name}, args...)...)
	return a.err
}

// Write takes a part of the body.
func (a *Answer) Write(p []byte) (int, error) {
	n := len(p)
	if a.err != nil {
		return n, a.err
	}
	switch a.media {
	case "application/json":
		if a.held.Len()+len(p) > maxHeld {
			return n, a.fail("the body has more than %d bytes", maxHeld)
		}
		a.held.Write(p)
	case httpapi.NDJSON, httpapi.EventStream:
		for {
			line, rest, ok := bytes.Cut(p, []byte("\n"))
			if a.held.Write(line); !ok {
				return n, a.err
			}
			p = rest
			if a.line(); a.err != nil {
				return n, a.err
			}
		}
	}
	return n, nil
}

// line checks a line of a stream.
func (a *Answer) line() {
	line := bytes.TrimSuffix(a.held.Bytes(), []byte("\r"))
	defer a.held.Reset()
	if a.media == httpapi.NDJSON {
		a.value(line)
		return
	}
	switch name, value, _ := bytes.Cut(line, []byte(":")); string(name) {
	case "data":
		if value = bytes.TrimPrefix(value, []byte(" ")); len(value) > 0 {
			a.value(value)
		}
	case "", "id", "event", "retry":
	default:
		_ = a.fail("%q is no line of server-sent events", line)
	}
}

// value checks a value of JSON.
func (a *Answer) value(text []byte) {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		_ = a.fail("%.300q is no JSON: %w", text, err)
		return
	}
	if a.op == nil {
		err = load().check(value, "components", "schemas", "ErrorResponse")
	} else {
		err = load().check(value, append(slices.Clone(a.at), "content", a.media, "schema")...)
	}
	if err != nil {
		_ = a.fail("%.1000s: %w", text, err)
	}
}

// Close checks the whole of the body.
func (a *Answer) Close() error {
	if a.err == nil && (a.media == "application/json" || a.media == httpapi.NDJSON && a.held.Len() > 0) {
		a.value(a.held.Bytes())
	}
	a.held = bytes.Buffer{}
	return a.err
}

var calls struct {
	mu  sync.Mutex
	all map[string]map[int]int // guarded by mu; answers by operation and status
}

func count(id string, status int) {
	calls.mu.Lock()
	defer calls.mu.Unlock()
	if calls.all == nil {
		calls.all = map[string]map[int]int{}
	}
	if calls.all[id] == nil {
		calls.all[id] = map[int]int{}
	}
	calls.all[id][status]++
}

// Called returns how often this process saw each status of an operation.
func Called(id string) map[int]int {
	calls.mu.Lock()
	defer calls.mu.Unlock()
	out := map[int]int{}
	for status, n := range calls.all[id] {
		out[status] = n
	}
	return out
}
