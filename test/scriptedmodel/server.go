package scriptedmodel

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/model"
)

// Request is what the provider was asked.
type Request struct {
	Provider model.Provider
	Header   http.Header
	Body     map[string]any // the JSON
}

// Provider answers requests of all protocols by a script: POST /v1/responses,
// /v1/chat/completions and /v1/messages.
type Provider struct {
	// Next is the turn for a request; ok is false where the script has none. It may be
	// called by several goroutines at once.
	Next func(Request) (_ Turn, ok bool)
}

// paths are where the protocols are.
var paths = map[string]model.Provider{"/v1/responses": "openai", "/v1/chat/completions": "openai-chat", "/v1/messages": "anthropic"}

// maxBody bounds a request's body.
const maxBody = 64 << 20

// ServeHTTP implements http.Handler.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	in := Request{Provider: paths[r.URL.Path], Header: r.Header.Clone()}
	if in.Provider == "" || r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, maxBody)).Decode(&in.Body); err != nil {
		http.Error(w, `{"error":{"message":"the body is no JSON","type":"invalid_request_error"}}`, http.StatusBadRequest)
		return
	}
	turn, ok := p.Next(in)
	if !ok {
		http.Error(w, `{"error":{"message":"the script is over","type":"invalid_request_error"}}`, http.StatusBadRequest)
		return
	}
	turn.serve(w, r, in)
}

// serve answers a request.
func (t *Turn) serve(w http.ResponseWriter, r *http.Request, in Request) {
	if t.Left != nil {
		defer func() {
			if r.Context().Err() != nil {
				t.Left()
			}
		}()
	}
	if !pause(r, t.Wait) {
		return
	}
	for name, values := range t.Header {
		w.Header()[name] = values
	}
	send := func(status int, body []byte) {
		w.WriteHeader(status)
		_, _ = w.Write(body) // the client may have left
	}
	switch {
	case t.Refuse != nil:
		if w.Header().Get("Content-Type") == "" {
			w.Header().Set("Content-Type", "application/json")
		}
		send(t.Refuse.Status, []byte(t.Refuse.body(in.Provider)))
		return
	case t.Body != nil:
		send(http.StatusOK, t.Body)
		return
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	w.WriteHeader(http.StatusOK)
	flusher := http.NewResponseController(w)
	_ = flusher.Flush() // fails with the client gone, which the next write shows
	lines := t.Events
	if lines == nil {
		lines = t.render(in)
	}
	for i, data := range lines {
		if t.After > 0 && i == t.After {
			t.end(w, r, in.Provider)
			return
		}
		if !pause(r, t.Pace) {
			return
		}
		if _, err := fmt.Fprint(w, frame(data)); err != nil {
			return
		}
		_ = flusher.Flush()
		if t.Sent != nil {
			t.Sent(i+1, len(lines))
		}
	}
}

// end ends a stream before its time.
func (t *Turn) end(w http.ResponseWriter, r *http.Request, p model.Provider) {
	flush := func(data string) {
		fmt.Fprint(w, frame(data))
		_ = http.NewResponseController(w).Flush()
	}
	switch t.Ending {
	case EndCut:
		panic(http.ErrAbortHandler)
	case EndSilent:
		<-r.Context().Done()
	case EndError:
		flush(t.Fault.event(p))
	case EndGarbage:
		flush(`{"choices": [`)
	}
}

// frame is data as a server-sent event, which has the name that the data's type says.
func frame(data string) string {
	var typed struct {
		Type string `json:"type"`
	}
	if json.Unmarshal([]byte(data), &typed) == nil && typed.Type != "" {
		return "event: " + typed.Type + "\ndata: " + data + "\n\n"
	}
	return "data: " + data + "\n\n"
}

// pause waits, and reports whether the client is still there.
func pause(r *http.Request, d time.Duration) bool {
	if d == 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-r.Context().Done():
		return false
	case <-t.C:
		return true
	}
}

// Server is a Provider on loopback whose script is a list of turns, one for each request.
type Server struct {
	*httptest.Server
	mu    sync.Mutex
	turns []Turn
	asked []Request
	first chan struct{} // closed with the first request
}

// New starts a server that ends with the test. A test that asks it more often than it has
// turns fails, and so does one that leaves turns over.
func New(t testing.TB, turns ...Turn) *Server {
	s := &Server{turns: turns, first: make(chan struct{})}
	s.Server = httptest.NewServer(&Provider{Next: func(r Request) (Turn, bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.asked = append(s.asked, r); len(s.asked) == 1 {
			close(s.first)
		}
		if len(s.turns) == 0 {
			t.Errorf("the provider was asked %d times, more often than the script says", len(s.asked))
			return Turn{}, false
		}
		turn := s.turns[0]
		s.turns = s.turns[1:]
		return turn, true
	}})
	t.Cleanup(func() {
		s.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.turns) > 0 {
			t.Errorf("%d turns of the script are left over", len(s.turns))
		}
	})
	return s
}

// Add appends turns to the script.
func (s *Server) Add(turns ...Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns = append(s.turns, turns...)
}

// Asked is closed with the first request.
func (s *Server) Asked() <-chan struct{} { return s.first }

// Requests returns what was asked so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// Base returns the base URL of a protocol.
func (s *Server) Base(p model.Provider) string {
	if p == "anthropic" {
		return s.URL
	}
	return s.URL + "/v1"
}

// Record returns a record of a model of this server that can do everything.
func (s *Server) Record(p model.Provider) model.Record {
	return model.Record{
		ID: "mdl_0000000000000001", Name: "scripted", Provider: p, Upstream: "scripted-1", BaseURL: s.Base(p), Key: "sk-provider-" + strings.Repeat("k", 24),
		Spec: model.Spec{Capabilities: model.Capabilities}, AllTenants: true,
	}
}
