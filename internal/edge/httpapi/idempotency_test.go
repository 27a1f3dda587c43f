package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/control/connections"
	"github.com/atoll-run/atoll/internal/control/repeats"
	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/idempotency"
	"github.com/atoll-run/atoll/internal/core/share"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// memory is an idempotency.Store in memory.
type memory struct {
	mu  sync.Mutex
	all map[string]*idempotency.Record
}

func (m *memory) Begin(_ context.Context, r idempotency.Request) (*idempotency.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.all[id(r)]; e != nil {
		copied := *e
		return &copied, nil
	}
	m.all[id(r)] = &idempotency.Record{Body: r.Body, State: idempotency.Begun}
	return nil, nil
}

func (m *memory) Get(_ context.Context, r idempotency.Request) (*idempotency.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.all[id(r)]; e != nil {
		copied := *e
		return &copied, nil
	}
	return nil, nil
}

func id(r idempotency.Request) string { return r.Tenant + "/" + r.Caller + "/" + r.Key }

func (m *memory) Renew(context.Context, idempotency.Request) error { return nil }

func (m *memory) End(_ context.Context, r idempotency.Request, s idempotency.State, a idempotency.Answer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all[id(r)] = &idempotency.Record{Body: r.Body, State: s, Answer: a}
	return nil
}

func (m *memory) Release(_ context.Context, r idempotency.Request) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, id(r))
	return nil
}

func (m *memory) Forget(_ context.Context, of string, objects []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, e := range m.all {
		if strings.HasPrefix(key, of+"/") && slices.ContainsFunc(e.Answer.Objects, func(o string) bool { return slices.Contains(objects, o) }) {
			delete(m.all, key)
		}
	}
	return nil
}

func (m *memory) Purge(context.Context, int) (int, error) { return 0, nil }

// keyHolder lets every bearer in, whose text names the key.
type keyHolder struct{}

func (keyHolder) Authenticate(_ context.Context, bearer string) (tenant.Principal, error) {
	return tenant.Principal{Tenant: tenant.Tenant{ID: "ten_1"}, Key: tenant.Key{ID: bearer, Scopes: tenant.Scopes}}, nil
}

type made struct {
	Name string `json:"name"`
}

// maker is a server that makes what it is asked for, and counts.
type maker struct {
	*Server
	calls       atomic.Int32
	begun, goOn chan struct{}
}

// begunTrail is that of an operation that has asked a sandbox to do something.
func begunTrail() *sandboxes.Trail {
	t := &sandboxes.Trail{Begun: true}
	t.Drop()
	return t
}

func newMaker(t *testing.T) *maker {
	t.Helper()
	m := &maker{begun: make(chan struct{}, 1), goOn: make(chan struct{})}
	op := Operation{
		Method: http.MethodPost, Path: "/v1/agents", ID: "createAgent", Scope: tenant.ScopeExecute, Body: JSON(made{}), Answers: []Answer{Created(made{}, "")},
		Serve: Takes(func(c *Call, in *made) (*made, error) {
			n := m.calls.Add(1)
			switch in.Name {
			case "waits", "waits and is refused":
				m.begun <- struct{}{}
				<-m.goOn
				if c.Context().Err() != nil {
					t.Error("the work ended with its client")
				}
				if n == 1 && in.Name != "waits" {
					return nil, fault.New(fault.Conflict, "not now")
				}
			case "refused":
				return nil, fault.New(fault.Conflict, "not now")
			case "limited":
				return nil, fault.New(fault.Exhausted, "too many")
			case "asked":
				c.Trail = begunTrail()
				return nil, fault.New(fault.Conflict, "half of it")
			case "asked and limited":
				c.Trail = begunTrail()
				return nil, fault.New(fault.Exhausted, "too many")
			case "fails":
				return nil, errors.New("a bug")
			case "panics":
				panic("a bug")
			case "unkept":
				c.Unkept()
			case "agt_1":
				c.About("agt_1")
			case "long":
				return &made{strings.Repeat("x", idempotency.MaxAnswer)}, nil
			}
			c.W.Header().Set("Location", "/v1/agents/1")
			return in, nil
		}),
	}
	foreign := op
	foreign.Path, foreign.ID, foreign.Compat = "/v1/responses", "createResponse", &Compat{Refuse: func(w http.ResponseWriter, _ *http.Request, err error) {
		WriteRefusal(w, err, func(_ int, body ErrorResponse) any {
			return map[string]any{"error": map[string]string{"message": body.Message}}
		})
	}}
	var err error
	remove := Operation{Method: http.MethodDelete, Path: "/v1/agents/{agent}", ID: "deleteAgent", Scope: tenant.ScopeExecute, Params: []Param{{Name: "agent", In: InPath, Doc: "An id."}}, Answers: []Answer{OK(made{}, "")}, Serve: Returns(func(c *Call) (made, error) {
		if c.Path("agent") == "busy" {
			return made{}, fault.New(fault.Conflict, "not now")
		}
		return made{}, nil
	})}
	m.Server, err = New(Config{Operations: []Operation{op, foreign, remove}, Auth: keyHolder{}, Repeats: &memory{all: map[string]*idempotency.Record{}}, Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *maker) send(ctx context.Context, path, bearer, key, name string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(`{"name":"`+name+`"}`))
	r.Header.Set("Authorization", "Bearer "+bearer)
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set(IdempotencyHeader, key)
	}
	w := httptest.NewRecorder()
	m.ServeHTTP(w, r)
	return w
}

const agents = "/v1/agents"

// TestRepeated: a request with a key that is made again gets the first one's answer.
func TestRepeated(t *testing.T) {
	s := newMaker(t)
	for _, c := range []struct {
		name, bearer, key, body string
		status                  int
		calls                   int32 // how often it was served in all
		says                    string
		replayed                bool
	}{
		{"without a key", "a", "", "a", 201, 1, `{"name":"a"}`, false},
		{"the first", "a", "k", "a", 201, 2, `{"name":"a"}`, false},
		{"the same again", "a", "k", "a", 201, 2, `{"name":"a"}`, true},
		{"another body", "a", "k", "b", 409, 2, "different request", false},
		{"another key", "a", "l", "a", 201, 3, `{"name":"a"}`, false},
		{"another caller", "b", "k", "a", 201, 4, `{"name":"a"}`, false},
		{"refused", "a", "m", "refused", 409, 5, "not now", false},
		{"refused again", "a", "m", "refused", 409, 6, "not now", false},
		{"limited", "a", "m", "limited", 429, 7, "too many", false},
		{"limited again", "a", "m", "limited", 429, 8, "too many", false},
		{"wrong", "a", "m", `a","x":"`, 400, 8, "x", false},
		{"a sandbox was asked", "a", "r", "asked", 409, 9, "half of it", false},
		{"a sandbox was asked, again", "a", "r", "asked", 409, 9, "half of it", true},
		{"a sandbox had no room", "a", "s", "asked and limited", 429, 10, "too many", false},
		{"a sandbox had no room, again", "a", "s", "asked and limited", 429, 11, "too many", false},
		{"a failure", "a", "n", "fails", 500, 12, "internal_error", false},
		{"a failure again", "a", "n", "fails", 500, 12, "internal_error", true},
		{"a panic", "a", "o", "panics", 500, 13, "internal_error", false},
		{"a panic again", "a", "o", "panics", 409, 13, "not known", false},
		{"a long answer", "a", "p", "long", 201, 14, "xxx", false},
		{"a long answer again", "a", "p", "long", 409, 14, "too long", false},
		{"a bad key", "a", "é", "a", 400, 14, "printable", false},
	} {
		w := s.send(t.Context(), agents, c.bearer, c.key, c.body)
		if w.Code != c.status || s.calls.Load() != c.calls || !strings.Contains(w.Body.String(), c.says) || (w.Header().Get(ReplayedHeader) == "true") != c.replayed {
			t.Errorf("%s: %d %.200s %v, served %d times", c.name, w.Code, w.Body, w.Header(), s.calls.Load())
		}
		if c.replayed && c.status == 201 && w.Header().Get("Location") != "/v1/agents/1" {
			t.Errorf("%s: %v", c.name, w.Header())
		}
	}
}

// TestKeptAnswers: an answer goes with what it is about, and one that must not be stored is not.
func TestKeptAnswers(t *testing.T) {
	s := newMaker(t)
	remove := func(id string) int {
		r := httptest.NewRequest(http.MethodDelete, agents+"/"+id, nil)
		r.Header.Set("Authorization", "Bearer b")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Code
	}
	for _, key := range []string{"k", "l"} {
		s.send(t.Context(), agents, "a", key, "agt_1")
	}
	s.send(t.Context(), agents, "a", "m", "a")
	if code := remove("agt_2"); code != 200 {
		t.Fatal(code)
	}
	if w := s.send(t.Context(), agents, "a", "k", "agt_1"); w.Header().Get(ReplayedHeader) != "true" {
		t.Errorf("the answer went with another agent: %d %s", w.Code, w.Body)
	}
	remove("agt_1")
	for key, replayed := range map[string]string{"k": "", "l": "", "m": "true"} {
		name := "agt_1"
		if key == "m" {
			name = "a"
		}
		if w := s.send(t.Context(), agents, "a", key, name); w.Code != 201 || w.Header().Get(ReplayedHeader) != replayed {
			t.Errorf("%s: %d %s, replayed %q", key, w.Code, w.Body, w.Header().Get(ReplayedHeader))
		}
	}
	if first, again := s.send(t.Context(), agents, "a", "n", "unkept"), s.send(t.Context(), agents, "a", "n", "unkept"); first.Code != 201 || again.Code != 409 || !strings.Contains(again.Body.String(), "store: false") {
		t.Errorf("%d, %d %s", first.Code, again.Code, again.Body)
	}
}

// TestInAnswer: answers are about what deletions name, such as a sandbox by its name.
func TestInAnswer(t *testing.T) {
	for answer, want := range map[string]string{
		`{"sandbox_id":"sb-1","name":"builder","session":"s"}`: "s/builder sb-1",
		`{"id":"agt_1","slug":"a","name":"A"}`:                 "agt_1 a",
		`{"trace_id":"trc_1","stdout":"secret"}`:               "trc_1",
		`data: {"id":"x"}`:                                     "",
	} {
		if got := strings.Join(repeats.Objects([]byte(answer)), " "); got != want {
			t.Errorf("%s is about %q, want %q", answer, got, want)
		}
	}
}

// TestRepeatedRefusal: what another protocol's client was refused with, its repetition is told
// in the same form.
func TestRepeatedRefusal(t *testing.T) {
	s := newMaker(t)
	first, again := s.send(t.Context(), "/v1/responses", "a", "k", "fails"), s.send(t.Context(), "/v1/responses", "a", "k", "fails")
	if first.Code != 500 || !strings.HasPrefix(first.Body.String(), `{"error":{"message":`) || again.Code != 500 || again.Body.String() != first.Body.String() || again.Header().Get(ReplayedHeader) != "true" {
		t.Errorf("%d %s, and then %d %s", first.Code, first.Body, again.Code, again.Body)
	}
	if a, b := first.Header().Get(TraceHeader), again.Header().Get(TraceHeader); a == "" || a != b {
		t.Errorf("the trace ids are %q and %q", a, b)
	}
}

// TestRepeatedAtOnce: a request waits for the one that it repeats, whose work outlives its
// client, and is told to come again if that takes long.
func TestRepeatedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMaker(t)
		var all sync.WaitGroup
		ctx, leave := context.WithCancel(t.Context())
		all.Go(func() { s.send(ctx, agents, "a", "k", "waits") })
		<-s.begun
		leave()
		if w := s.send(t.Context(), agents, "a", "k", "waits"); w.Code != 409 || w.Header().Get("Retry-After") == "" {
			t.Errorf("while the first is served: %d %s", w.Code, w.Body)
		}
		if w := s.send(t.Context(), agents, "a", "k", "a"); w.Code != 409 || w.Header().Get("Retry-After") != "" {
			t.Errorf("another request: %d %s", w.Code, w.Body)
		}
		gone, left := context.WithCancel(t.Context())
		left()
		s.send(gone, agents, "a", "k", "waits") // which returns
		for range 3 {
			all.Go(func() {
				if w := s.send(t.Context(), agents, "a", "k", "waits"); w.Code != 201 || w.Header().Get(ReplayedHeader) != "true" {
					t.Errorf("one that waited: %d %s", w.Code, w.Body)
				}
			})
		}
		synctest.Wait()
		close(s.goOn)
		all.Wait()
		if n := s.calls.Load(); n != 1 {
			t.Errorf("it was served %d times", n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := newMaker(t)
		var all sync.WaitGroup
		all.Go(func() { s.send(t.Context(), agents, "a", "k", "waits and is refused") })
		<-s.begun
		all.Go(func() {
			if w := s.send(t.Context(), agents, "a", "k", "waits and is refused"); w.Code != 201 || w.Header().Get(ReplayedHeader) != "" {
				t.Errorf("after a refusal: %d %s", w.Code, w.Body)
			}
		})
		synctest.Wait()
		close(s.goOn)
		all.Wait()
	})
}

// TestKeyedBodyIsCountedBySize: a body of unknown size with a key is counted as the largest one while
// it is read, and not again when it is decoded.
func TestKeyedBodyIsCountedBySize(t *testing.T) {
	s := newMaker(t)
	s.decoding = connections.Bodies{Pool: share.NewPool(connections.TenantDecoding, "bytes for request bodies", 5*MaxBody)}
	r := httptest.NewRequest(http.MethodPost, agents, strings.NewReader(`{"name":"`+strings.Repeat("x", 2*connections.FreeBytes)+`"}`))
	r.ContentLength = -1
	r.Header.Set("Authorization", "Bearer a")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(IdempotencyHeader, "k")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code != http.StatusCreated || s.decoding.Held("ten_1") != 0 {
		t.Errorf("%d %.200s, %d bytes are held", w.Code, w.Body, s.decoding.Held("ten_1"))
	}
}
