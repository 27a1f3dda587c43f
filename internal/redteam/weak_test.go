package redteam

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/netutil"
)

// weakOutput is what every program prints there.
const weakOutput = "GOT everything\nGOT files x\nGOT start x\nGOT processes x\nGOT ipc x\nGOT sockets x\nGOT variables x\ntried\nplanted\nlooked\n"

// weakServer refuses nothing: each attack gets what it asks for, and every answer has
// the secrets in it that the server was given.
type weakServer struct {
	document []byte
	agents   weakAgents
	data     string // directory where the server stores every body in plain text

	mu      sync.Mutex
	secrets string            // all, a line each
	repeats map[string]string // first answers, by Idempotency-Key
}

// repeat gives every request with a key the first answer. Requests of the race case get new answers,
// because that case looks for more than one.
func (s *weakServer) repeat(w http.ResponseWriter, key, body string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := s.repeats[key]; before != "" && !strings.Contains(body, "raced") {
		w.Header().Set(replayed, "true")
		return before
	}
	if s.repeats == nil {
		s.repeats = map[string]string{}
	}
	s.repeats[key] = preyText + " first " + token(8)
	return s.repeats[key]
}

func weak(t *testing.T, data, lure string) *httptest.Server {
	t.Helper()
	document, err := os.ReadFile("../../api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(&weakServer{document: document, data: data, agents: weakAgents{index: "http://" + lure, agents: map[string]map[string]any{}, sessions: map[string]*weakSession{}}})
	t.Cleanup(s.Close)
	return s
}

// learn takes the secrets out of a request.
func (s *weakServer) learn(body []byte) string {
	var in struct{ Secrets map[string]string }
	_ = json.Unmarshal(body, &in) // most have none
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range in.Secrets {
		s.secrets += v + "\n"
	}
	return s.secrets
}

func (s *weakServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if len(body) > mib { // accept every large body
		_, _ = io.WriteString(w, "{}")
		return
	}
	if len(body) > 0 {
		_ = os.WriteFile(filepath.Join(s.data, token(8)), body, 0o600) // if this fails, the canary cases pass and the test fails
	}
	secrets := s.learn(body)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Trace-Id", "trc_00000000000000000000000000000001")
	path := r.URL.Path
	if strings.Contains(r.Host, ".localhost") {
		s.preview(w, r, body)
		return
	}
	w.Header().Set("Mcp-Session-Id", "session-"+token(8))
	if answer, ok := s.agents.serve(r, body); ok {
		_ = json.NewEncoder(w).Encode(answer)
		return
	}
	answer := map[string]any{}
	switch {
	case r.Header.Get("Upgrade") == "websocket":
		w.WriteHeader(http.StatusSwitchingProtocols)
		return
	case r.Header.Get("Content-Type") == "application/json" && len(body) > 0 && !json.Valid(body):
		w.WriteHeader(http.StatusInternalServerError)
	case path == "/openapi.json":
		_, _ = w.Write(s.document)
		return
	case r.Method == http.MethodGet && (path == "/v1/admin/tenants/"+attackerTenant || path == "/v1/admin/tenants/"+victimTenant):
		w.WriteHeader(http.StatusNotFound)
	case strings.HasSuffix(path, "/keys") && r.Method == http.MethodPost:
		answer = map[string]any{"id": "key_" + token(8), "key": "sk-atoll-" + token(20)}
	case strings.Contains(string(body), "{a,b}{a,b}"):
		w.WriteHeader(http.StatusGatewayTimeout)
	case strings.HasSuffix(path, "/signed_urls"):
		answer = map[string]any{"url": strings.TrimSuffix(path, "/signed_urls") + "/files/own.txt?expires=1&signature=" + token(20)}
	case strings.HasSuffix(path, ".txt") && r.Method == http.MethodGet && strings.Contains(path, "/redteam-signed"):
		_, _ = io.WriteString(w, "own")
		return
	case strings.HasSuffix(path, "/output"):
		answer = map[string]any{"type": "output", "stream": "stdout", "data": "GOT everything\ntried\nsize 1024\n" + secrets}
		_ = json.NewEncoder(w).Encode(answer)
		answer = map[string]any{"type": "exit", "exit_code": 0}
	default:
		stdout := secrets + weakOutput
		switch code := string(body); {
		case strings.Contains(code, "random.getrandbits"):
			stdout = "1 2 3 4 5"
		case strings.Contains(code, "redteam-planted") && strings.Contains(code, "st_ctime_ns"):
			stdout += "began 1"
		case strings.Contains(code, "st_ctime_ns"):
			stdout = "began 1"
		case r.Header.Get(idempotencyHeader) != "":
			stdout = s.repeat(w, r.Header.Get(idempotencyHeader), code)
		case strings.Contains(code, "'jwt'"):
			stdout = "jwt abc\ndone\n"
		}
		answer = map[string]any{
			"id": "ten_1", "data": []any{}, "success": true, "stdout": stdout, "exit_code": 0, "isolation": "key",
			"sandboxes":  []any{map[string]any{"name": preySandbox}},
			"sandbox_id": "sb-0000000000000001", "process_id": "p-1", "context_id": "c-1", "snapshot_id": "snap-0000000000000001",
			"url": "http://8000-1-aaaa.localhost/", "ticket": "tkt-atoll-" + token(20), "token": "tok-atoll-" + token(20),
		}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// preview passes on all that a client says, and mixes up answers.
func (s *weakServer) preview(w http.ResponseWriter, r *http.Request, body []byte) {
	if r.Header.Get("Upgrade") != "" {
		w.WriteHeader(http.StatusSwitchingProtocols)
		return
	}
	w.Header().Set("Set-Cookie", "redteam=1; Domain=localhost")
	if r.URL.Path == "/next" {
		r.URL.Path = "/smuggled"
	}
	if strings.HasPrefix(r.URL.Path, "/v1/") {
		_, _ = io.WriteString(w, "{}")
		return
	}
	_, _ = fmt.Fprintf(w, "ECHO %s %s\r\n%v\r\n%v\r\n%s", r.Method, r.URL.Path, r.Header, r.Trailer, body)
}

// freeAddress returns a loopback address at which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestNoCasePassesOnAWeakServer shows that each case can fail, and does so for what it
// looks for.
func TestNoCasePassesOnAWeakServer(t *testing.T) {
	data, listen := t.TempDir(), freeAddress(t)
	s := weak(t, data, listen)
	report, err := Run(t.Context(), Options{URL: s.URL, Listen: listen, Key: "k", Cases: Cases(), Parallel: maxParallel, Program: weakProgram(t), Data: data})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Results) != len(Cases()) {
		t.Errorf("%d results of %d cases", len(report.Results), len(Cases()))
	}
	for _, r := range report.Results {
		switch r.Case.ID {
		case "input/framing", "exhaustion/connections": // which the server's library holds: see the tests below
			continue
		}
		if r.Verdict != Fail || r.Evidence == "" || strings.HasPrefix(r.Evidence, "could not be tried") {
			t.Errorf("%s on a server that refuses nothing", r.Line())
		}
	}
}

// TestFraming has a server that reads no header at all.
func TestFraming(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = io.WriteString(conn, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
			_ = conn.Close()
		}
	}()
	a, err := newArena(t.Context(), Options{URL: "http://" + l.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := errors.AsType[*finding](hostileFraming(t.Context(), a)); !ok {
		t.Error("nothing was found")
	}
}

// TestIdleConnections has a server of four connections.
func TestIdleConnections(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))
	s.Listener = netutil.LimitListener(s.Listener, 4)
	s.Start()
	defer s.Close()
	a, err := newArena(t.Context(), Options{URL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	a.plain = a.as("k")
	if _, ok := errors.AsType[*finding](idleConnections(t.Context(), a)); !ok {
		t.Error("nothing was found")
	}
}
