package service

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/test/openapitest"
	"github.com/atoll-run/atoll/test/openresponses"
)

// recorder stands between a client and a server. It holds what they tell each other about
// responses against the open specification and the OpenAPI document, and keeps what the
// client did.
type recorder struct {
	t    *testing.T
	base http.RoundTripper // holds answers against the OpenAPI document
	raw  http.RoundTripper // for the bytes of files, whose type is by their names

	mu  sync.Mutex
	did map[string]int // guarded by mu
}

// recorded starts a recorder before a server, and returns its URL.
func recorded(t *testing.T, server string) (*recorder, string) {
	t.Helper()
	target, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	raw := &http.Transport{MaxIdleConnsPerHost: 16}
	r := &recorder{t: t, base: openapitest.Transport{Base: raw}, raw: raw, did: map[string]int{}}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(p *httputil.ProxyRequest) { p.SetURL(target) },
		Transport:     r,
		FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, in *http.Request, err error) {
			if in.Context().Err() == nil {
				t.Errorf("%s %s: %v", in.Method, in.URL.Path, err)
			}
			w.WriteHeader(http.StatusBadGateway)
		},
	}
	s := httptest.NewServer(proxy)
	t.Cleanup(s.Close)
	return r, s.URL
}

// wants fails the test unless the client did all of these.
func (r *recorder) wants(done ...string) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, what := range done {
		if r.did[what] == 0 {
			r.t.Errorf("it did not do %q; it did %v", what, r.did)
		}
	}
}

func (r *recorder) note(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.did[what]++
}

func (r *recorder) check(err error) {
	if err != nil {
		r.t.Error(err)
	}
}

var (
	responsePath = regexp.MustCompile(`^/v1/(?:responses|agent)(/[^/]+)?(/.*)?$`)
	fileContent  = regexp.MustCompile(`^/files/[^/]+/content$`)
)

// RoundTrip implements http.RoundTripper.
func (r *recorder) RoundTrip(in *http.Request) (*http.Response, error) {
	at := responsePath.FindStringSubmatch(in.URL.Path)
	if at == nil {
		return r.base.RoundTrip(in)
	}
	switch {
	case in.Method == http.MethodPost && at[1] == "":
		if err := r.request(in); err != nil {
			return nil, err
		}
	case in.URL.Query().Get("starting_after") != "":
		r.note("resume")
	case fileContent.MatchString(at[2]):
		r.note("download")
		return r.raw.RoundTrip(in)
	default:
		r.note(in.Method + at[2])
	}
	res, err := r.base.RoundTrip(in)
	if err != nil {
		return nil, err
	}
	media, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err != nil {
		return nil, err
	}
	res.Body = &checkedBody{ReadCloser: res.Body, r: r, status: res.StatusCode, streams: media == "text/event-stream"}
	return res, nil
}

// request checks the body of a request for a response, and notes what it asks for.
func (r *recorder) request(in *http.Request) error {
	raw, err := io.ReadAll(in.Body)
	if err != nil {
		return err
	}
	in.Body = io.NopCloser(bytes.NewReader(raw))
	var body map[string]any
	if err := json.Unmarshal(raw, &body); err != nil {
		return err
	}
	r.note("create")
	for _, member := range []string{"stream", "background"} {
		if body[member] == true {
			r.note(member)
		}
	}
	for _, member := range []string{"previous_response_id", "text", "instructions"} {
		if body[member] != nil {
			r.note(member)
		}
	}
	tools, _ := body["tools"].([]any)
	for _, tool := range tools {
		if members, ok := tool.(map[string]any); ok {
			kind, _ := members["type"].(string)
			r.note("tool " + kind)
		}
	}
	items, _ := body["input"].([]any)
	for _, it := range items {
		if members, ok := it.(map[string]any); ok {
			if kind, ok := members["type"].(string); ok {
				r.note("input " + kind)
			}
		}
	}
	r.check(openresponses.Request(plain(body)))
	return nil
}

// plain is a request without what published clients send beside the specification, and a
// server has to bear.
func plain(body map[string]any) map[string]any {
	items, ok := body["input"].([]any)
	if !ok {
		return body
	}
	for _, it := range items {
		message, ok := it.(map[string]any)
		if !ok || message["role"] == nil {
			continue
		}
		// OpenAI's clients leave out the type of a message, which the specification
		// requires.
		message["type"] = "message"
	}
	return body
}

// checkedBody is the body of an answer, which is checked while it is read.
type checkedBody struct {
	io.ReadCloser
	r       *recorder
	status  int
	streams bool
	held    bytes.Buffer
	numbers []float64 // of the events
}

func (b *checkedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.held.Write(p[:n])
	switch {
	case b.streams:
		b.lines()
	case err == io.EOF:
		b.whole()
	}
	return n, err
}

// lines checks the events that are there as a whole.
func (b *checkedBody) lines() {
	for {
		line, err := b.held.ReadString('\n')
		if err != nil {
			b.held.WriteString(line)
			return
		}
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok {
			continue
		}
		var e map[string]any
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			b.r.check(err)
			continue
		}
		b.r.check(openresponses.Event(e))
		number, _ := e["sequence_number"].(float64)
		if last := len(b.numbers) - 1; last >= 0 && number != b.numbers[last]+1 {
			b.r.t.Errorf("event %v comes after %v", number, b.numbers[last])
		}
		b.numbers = append(b.numbers, number)
	}
}

// whole checks an answer that is one value.
func (b *checkedBody) whole() {
	var body map[string]any
	if err := json.Unmarshal(b.held.Bytes(), &body); err != nil {
		b.r.check(err)
		return
	}
	switch {
	case b.status >= http.StatusBadRequest:
		b.r.check(openresponses.Refusal(body))
	case body["object"] == "response":
		b.r.check(openresponses.Response(body))
	case body["object"] == "list":
		data, _ := body["data"].([]any)
		for _, it := range data {
			item, _ := it.(map[string]any)
			if kind := item["type"]; slices.Contains([]any{"message", "function_call", "function_call_output", "reasoning"}, kind) {
				b.r.check(openresponses.Check("ItemField", item))
			}
		}
	}
}
