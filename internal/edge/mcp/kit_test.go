package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/control/tools"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	edgemcp "github.com/atoll-run/atoll/internal/edge/mcp"
)

// kit is a Server behind HTTP, over tools whose calls a test answers. What
// they really do is tried with real sandboxes in test/service.
type kit struct {
	*httptest.Server
	t       testing.TB
	mcp     *edgemcp.Server
	metrics *prometheus.Registry
	// answer is what a tool does.
	answer func(ctx context.Context, name string, c *tools.Caller, input []byte) (any, error)

	mu        sync.Mutex
	cancelled []string            // guarded by mu; trace ids
	pools     map[string][]string // guarded by mu; names of sandboxes by session
	rows      []sandbox.Call      // guarded by mu; of the audit trail
}

// keys are the callers of a kit, by their tokens.
var keys = map[string]tenant.Principal{
	"alice":  principal("acme", "key_alice", tenant.DefaultScopes...),
	"albert": principal("acme", "key_albert", tenant.DefaultScopes...),
	"bob":    principal("bcme", "key_bob", tenant.DefaultScopes...),
	"tools":  principal("acme", "key_tools", tenant.ScopeTools),
	"reader": principal("acme", "key_reader", tenant.ScopeRead),
}

func principal(tenantID, key string, scopes ...tenant.Scope) tenant.Principal {
	return tenant.Principal{
		Tenant: tenant.Tenant{ID: tenantID}, Environment: tenant.Environment{ID: "env_" + tenantID},
		Key: tenant.Key{ID: key, Name: key, Scopes: scopes},
	}
}

func open(t testing.TB, change ...func(*edgemcp.Config)) *kit {
	t.Helper()
	k := unserved(t, change...)
	k.Server = httptest.NewServer(http.HandlerFunc(k.serve))
	t.Cleanup(func() {
		k.mcp.Close()
		k.Server.Close()
		if n := k.sessions(); n != 0 {
			t.Errorf("%d sessions are left", n)
		}
	})
	return k
}

// unserved is a kit without HTTP, for tests of time.
func unserved(t testing.TB, change ...func(*edgemcp.Config)) *kit {
	t.Helper()
	k := &kit{t: t, metrics: prometheus.NewRegistry(), pools: map[string][]string{}}
	k.answer = func(_ context.Context, name string, c *tools.Caller, input []byte) (any, error) {
		return &echo{Tool: name, Session: c.Session, Agent: c.Agent, Template: c.Template, Key: c.Principal.Key.ID, Input: string(input)}, nil
	}
	cfg := edgemcp.Config{
		OpenStream: func(*tenant.Principal) (func(), error) { return func() {}, nil },
		Tools:      k, Pool: k, Version: "test", Idle: time.Hour, Log: slog.New(slog.DiscardHandler), Metrics: k.metrics,
		Cancel: func(_ context.Context, _, traceID string) error {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.cancelled = append(k.cancelled, traceID)
			return nil
		},
	}
	for _, f := range change {
		f(&cfg)
	}
	var err error
	if k.mcp, err = edgemcp.New(cfg); err != nil {
		t.Fatal(err)
	}
	return k
}

// serve is what the HTTP interface does before.
func (k *kit) serve(w http.ResponseWriter, r *http.Request) {
	p, ok := keys[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	if !ok {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = k.mcp.Serve(w, r, body, &p)
	}
	if err != nil {
		status := map[fault.Kind]int{fault.Invalid: 400, fault.Forbidden: 403, fault.NotFound: 404, fault.Exhausted: 429, fault.Unavailable: 503}[fault.KindOf(err)]
		http.Error(w, err.Error(), max(status, 400))
	}
}

type echo struct {
	Tool, Session, Agent, Template, Key, Input string
}

func (k *kit) Definitions() []tools.Definition { return tools.Definitions() }
func (k *kit) Apart() tools.Definition         { return new(tools.Set).Apart() }

func (k *kit) Call(ctx context.Context, name string, c *tools.Caller, input []byte) (any, error) {
	return k.answer(ctx, name, c, input)
}

func (k *kit) CallApart(ctx context.Context, c *tools.Caller, input []byte) (any, error) {
	return k.answer(ctx, tools.SandboxExecuteName, c, input)
}

func (k *kit) List(_ context.Context, _ *tenant.Principal, session string) (out []*sandbox.Sandbox, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, name := range k.pools[session] {
		out = append(out, &sandbox.Sandbox{Name: name})
	}
	return out, nil
}

func (k *kit) Record(_ context.Context, _ *tenant.Principal, c sandbox.Call) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rows = append(k.rows, c)
	return nil
}

func (k *kit) Destroy(_ context.Context, _ *tenant.Principal, session, _ string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pools[session] = k.pools[session][1:]
	return nil
}

func (k *kit) sessions() int {
	families, err := k.metrics.Gather()
	if err != nil {
		k.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "atoll_mcp_sessions" {
			return int(f.GetMetric()[0].GetGauge().GetValue())
		}
	}
	k.t.Fatal("no figure of the sessions")
	return 0
}

// bearer is a transport that sends a key.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// versions are with sessions and without.
var versions = map[string]string{"sessions": "2025-11-25", "stateless": "2026-07-28"}

// connect is the official client; query may be empty.
func (k *kit) connect(t testing.TB, key, version, query string, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o).Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: k.URL + "/mcp" + query, HTTPClient: &http.Client{Transport: bearer(key)}, MaxRetries: -1,
	}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// post sends a message as bytes.
func (k *kit) post(t testing.TB, key, query, body string, header ...string) *http.Response {
	t.Helper()
	return k.do(t, http.MethodPost, key, query, body, header...)
}

func (k *kit) do(t testing.TB, method, key, query, body string, header ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, k.URL+"/mcp"+query, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
			continue
		}
		r.Header.Set(header[i], header[i+1])
	}
	res, err := bearer(key).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

// message reads the one JSON-RPC message of an answer.
func message(t testing.TB, res *http.Response) (out struct {
	ID     json.RawMessage
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
	}
}) {
	t.Helper()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(raw) {
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok && len(bytes.TrimSpace(data)) > 0 {
			raw = data
		}
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatalf("%s: %q: %v", res.Status, raw, err)
	}
	return out
}

const (
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	callShell  = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"shell","arguments":{"command":"true"}}}`
)

// session opens a session by hand.
func (k *kit) session(t testing.TB, key string) string {
	t.Helper()
	res := k.post(t, key, "", initialize)
	id := res.Header.Get("Mcp-Session-Id")
	if res.StatusCode != http.StatusOK || id == "" {
		t.Fatalf("got %s without a session", res.Status)
	}
	message(t, res)
	return id
}
