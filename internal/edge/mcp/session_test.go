package mcp_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atoll-run/atoll/internal/control/tools"
	edgemcp "github.com/atoll-run/atoll/internal/edge/mcp"
	"github.com/atoll-run/atoll/test/atolltest"
)

func TestASessionIsItsKeysAlone(t *testing.T) {
	k := open(t)
	id := k.session(t, "alice")
	unknown := k.post(t, "alice", "", callShell, "Mcp-Session-Id", "nothing")
	for _, key := range []string{"bob", "albert"} {
		for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
			if res := k.do(t, method, key, "", callShell, "Mcp-Session-Id", id); res.StatusCode != unknown.StatusCode || res.StatusCode != http.StatusNotFound {
				t.Errorf("%s by %s: %s", method, key, res.Status)
			}
		}
	}
	if res := k.post(t, "alice", "", callShell, "Mcp-Session-Id", id); res.StatusCode != http.StatusOK {
		t.Errorf("its own key: %s", res.Status)
	}
	if res := k.post(t, "reader", "", initialize); res.StatusCode != http.StatusForbidden {
		t.Errorf("a key without the scopes: %s", res.Status)
	}
}

func TestPools(t *testing.T) {
	k := open(t)
	pool := func(key, query string, header ...string) string {
		t.Helper()
		res := message(t, k.post(t, key, query, callShell, header...))
		_, after, _ := strings.Cut(string(res.Result), `"Session":"`)
		name, _, _ := strings.Cut(after, `"`)
		return name
	}
	one, two := k.session(t, "alice"), k.session(t, "alice")
	first, second := pool("alice", "", "Mcp-Session-Id", one), pool("alice", "", "Mcp-Session-Id", two)
	if !strings.HasPrefix(first, "mcp-") || first == second || strings.Contains(first, one) || first != pool("alice", "", "Mcp-Session-Id", one) {
		t.Errorf("two sessions have the pools %q and %q", first, second)
	}
	if a, b := pool("alice", ""), pool("albert", "?stateless=true"); a != "mcp-key_alice" || b != "mcp-key_albert" {
		t.Errorf("without a session, keys have the pools %q and %q", a, b)
	}
	if got := pool("alice", "?session=my+work"); got != "my work" {
		t.Errorf("a pool by name is %q", got)
	}

	// The end of a session destroys the sandboxes that no other session can name.
	k.pools[first], k.pools[second] = []string{"default", "db"}, []string{"default"}
	if res := k.do(t, http.MethodDelete, "alice", "", "", "Mcp-Session-Id", one); res.StatusCode != http.StatusNoContent {
		t.Errorf("got %s", res.Status)
	}
	if len(k.rows) != 2 || k.rows[1].Source != "sandbox_destroy" || k.rows[1].Session != first || string(k.rows[1].Command) != "db" && string(k.rows[0].Command) != "db" {
		t.Errorf("on record: %+v", k.rows)
	}
	if len(k.pools[first]) != 0 || len(k.pools[second]) != 1 {
		t.Errorf("left %v", k.pools)
	}
	if res := k.post(t, "alice", "", callShell, "Mcp-Session-Id", one); res.StatusCode != http.StatusNotFound {
		t.Errorf("a session that is over: %s", res.Status)
	}
	res := k.post(t, "alice", "?session=kept", initialize)
	message(t, res)
	k.pools["kept"] = []string{"default"}
	if res := k.do(t, http.MethodDelete, "alice", "?session=kept", "", "Mcp-Session-Id", res.Header.Get("Mcp-Session-Id")); res.StatusCode != http.StatusNoContent || len(k.pools["kept"]) != 1 {
		t.Errorf("%s, left %v", res.Status, k.pools)
	}
}

func TestTheEndOfASessionEndsItsCalls(t *testing.T) {
	k := open(t)
	began, ended := k.blocked()
	c := k.connect(t, "alice", versions["sessions"], "", nil)
	failed := make(chan error, 1)
	go func() {
		_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "shell"})
		failed <- err
	}()
	<-began
	if res := k.do(t, http.MethodDelete, "alice", "", "", "Mcp-Session-Id", c.ID()); res.StatusCode != http.StatusNoContent {
		t.Errorf("got %s", res.Status)
	}
	<-ended
	if err := <-failed; err == nil {
		t.Error("the call succeeded")
	}
}

func TestSessionsExpire(t *testing.T) {
	k := open(t, func(c *edgemcp.Config) { c.Idle = 50 * time.Millisecond })
	id := k.session(t, "alice")
	atolltest.Until(t, 10*time.Second, "an idle session goes", func() bool { return k.sessions() == 0 })
	if res := k.post(t, "alice", "", callShell, "Mcp-Session-Id", id); res.StatusCode != http.StatusNotFound {
		t.Errorf("got %s", res.Status)
	}
}

func TestSessionsAreBounded(t *testing.T) {
	const most = 100
	k := open(t)
	var ids []string
	for range most {
		ids = append(ids, k.session(t, "alice"))
	}
	k.post(t, "alice", "", callShell, "Mcp-Session-Id", ids[0])
	k.session(t, "bob") // has room of his own
	k.session(t, "alice")
	if n := k.sessions(); n != most+1 {
		t.Errorf("%d sessions", n)
	}
	for i, want := range map[int]int{0: http.StatusOK, 1: http.StatusNotFound, 2: http.StatusOK} {
		if res := k.post(t, "alice", "", callShell, "Mcp-Session-Id", ids[i]); res.StatusCode != want {
			t.Errorf("session %d: %s", i, res.Status)
		}
	}
}

func TestSessionsInUseMakeNoRoom(t *testing.T) {
	const most = 100
	k := open(t)
	began := make(chan struct{}, most)
	k.answer = func(ctx context.Context, _ string, _ *tools.Caller, _ []byte) (any, error) {
		began <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	var posts sync.WaitGroup
	for range most {
		id := k.session(t, "alice")
		posts.Go(func() { k.post(t, "alice", "", callShell, "Mcp-Session-Id", id) })
	}
	for range most {
		<-began
	}
	if res := k.post(t, "alice", "", initialize); res.StatusCode != http.StatusTooManyRequests {
		t.Errorf("got %s", res.Status)
	}
	k.mcp.Close() // ends the calls
	posts.Wait()
}

func TestCallsAreBounded(t *testing.T) {
	const most = 64
	k := open(t)
	began := make(chan struct{}, most)
	k.answer = func(ctx context.Context, _ string, _ *tools.Caller, _ []byte) (any, error) {
		began <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	c := k.connect(t, "alice", versions["sessions"], "", nil)
	ctx, cancel := context.WithCancel(t.Context())
	for range most {
		go func() { _, _ = c.CallTool(ctx, &mcp.CallToolParams{Name: "shell"}) }()
	}
	for range most {
		<-began
	}
	got, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "shell"})
	if err != nil || !got.IsError || !strings.Contains(got.Content[0].(*mcp.TextContent).Text, "limit: calls") {
		t.Errorf("got %+v %v", got, err)
	}
	cancel()
}

// TestResume takes up the answer to a call whose connection broke.
func TestResume(t *testing.T) {
	k := open(t)
	id := k.session(t, "alice")
	began, goOn := make(chan struct{}), make(chan struct{})
	k.answer = func(ctx context.Context, _ string, _ *tools.Caller, _ []byte) (any, error) {
		close(began)
		<-goOn
		return &tools.ShellOutput{Stdout: "after all"}, ctx.Err()
	}
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, k.URL+"/mcp", strings.NewReader(callShell))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Session-Id": {id}, "Mcp-Protocol-Version": {"2025-11-25"}}
	res, err := bearer("alice").RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	event := ""
	for in := bufio.NewScanner(res.Body); event == "" && in.Scan(); {
		event, _ = strings.CutPrefix(in.Text(), "id: ")
		if !strings.HasPrefix(in.Text(), "id: ") {
			event = ""
		}
	}
	<-began
	cancel()
	res.Body.Close()
	close(goOn)
	var again *http.Response
	atolltest.Until(t, 10*time.Second, "the stream can be taken up", func() bool { // the server may not have seen yet that its client is gone
		again = k.do(t, http.MethodGet, "alice", "", "", "Mcp-Session-Id", id, "Last-Event-ID", event, "Mcp-Protocol-Version", "2025-11-25")
		return again.StatusCode != http.StatusConflict
	})
	if got := message(t, again); !strings.Contains(string(got.Result), "after all") {
		t.Errorf("%s: %s", again.Status, got.Result)
	}
	if res := k.do(t, http.MethodGet, "alice", "", "", "Mcp-Session-Id", k.session(t, "alice"), "Last-Event-ID", event); res.StatusCode != http.StatusBadRequest {
		t.Errorf("another session's stream: %s", res.Status)
	}
}

// TestResumeOpening takes up an initialize whose client was gone before it was
// answered.
func TestResumeOpening(t *testing.T) {
	k := open(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(gone, http.MethodPost, k.URL+"/mcp", strings.NewReader(initialize))
	r.Header = http.Header{"Authorization": {"Bearer alice"}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	w := httptest.NewRecorder()
	k.serve(w, r)
	_, event, _ := strings.Cut(w.Body.String(), "id: ")
	event, _, _ = strings.Cut(event, "\n")
	again := k.do(t, http.MethodGet, "alice", "", "", "Mcp-Session-Id", w.Header().Get("Mcp-Session-Id"), "Last-Event-ID", event, "Mcp-Protocol-Version", "2025-11-25")
	if got := message(t, again); !strings.Contains(string(got.Result), `"serverInfo"`) {
		t.Errorf("%s: %s", again.Status, got.Result)
	}
}

func TestDrainEndsStreamsThatWait(t *testing.T) {
	k := open(t)
	id := k.session(t, "alice")
	res := k.do(t, http.MethodGet, "alice", "", "", "Mcp-Session-Id", id)
	if res.StatusCode != http.StatusOK {
		t.Fatal(res.Status)
	}
	k.mcp.Drain()
	for in := bufio.NewScanner(res.Body); in.Scan(); {
	}
	if res := k.post(t, "alice", "", callShell, "Mcp-Session-Id", id); res.StatusCode != http.StatusOK {
		t.Errorf("a call after that: %s", res.Status)
	}
}

func TestVersions(t *testing.T) {
	k := open(t)
	for asked, want := range map[string]string{
		"2025-11-25": "2025-11-25", "2025-06-18": "2025-06-18", "2025-03-26": "2025-03-26", "2024-11-05": "2024-11-05", "1999-01-01": "2025-11-25",
	} {
		res := message(t, k.post(t, "alice", "", strings.Replace(initialize, "2025-11-25", asked, 1)))
		if !strings.Contains(string(res.Result), fmt.Sprintf(`"protocolVersion":%q`, want)) {
			t.Errorf("%s: %s", asked, res.Result)
		}
	}
	if res := k.post(t, "alice", "", callShell, "Mcp-Protocol-Version", "1999-01-01"); res.StatusCode != http.StatusBadRequest {
		t.Errorf("a version that there is not: %s", res.Status)
	}
}

func TestRefusals(t *testing.T) {
	k := open(t, func(c *edgemcp.Config) {
		c.Origins = []string{"https://console.example"}
		c.Proxied = func(r *http.Request) bool { return r.Header.Get("X-Proxied") != "" }
	})
	for _, c := range []struct {
		name   string
		body   string
		query  string
		header []string
		want   int
		code   int // of JSON-RPC, where this package writes the answer
	}{
		{name: "a call", want: http.StatusOK},
		{name: "not JSON", body: "{", want: http.StatusBadRequest, code: -32700},
		{name: "nothing", body: " ", want: http.StatusBadRequest, code: -32700},
		{name: "no JSON-RPC", body: `{"id":2}`, want: http.StatusBadRequest, code: -32600},
		{name: "no method", body: `{"jsonrpc":"2.0","id":2,"method":"a/b"}`, want: http.StatusOK, code: -32601},
		{name: "no method of the newest version", body: `{"jsonrpc":"2.0","id":2,"method":"a/b"}`, header: []string{"Mcp-Protocol-Version", "2026-07-28"}, want: http.StatusNotFound, code: -32601},
		{name: "no notification", body: `{"jsonrpc":"2.0","method":"a/b"}`, want: http.StatusBadRequest, code: -32601},
		{name: "a version that there is not", header: []string{"Mcp-Protocol-Version", "1999-01-01"}, want: http.StatusBadRequest, code: -32600},
		{name: "a bound of events that is none", header: []string{"X-Atoll-Max-Event", "1"}, want: http.StatusBadRequest},
		{name: "not said to be JSON", header: []string{"Content-Type", "text/plain"}, want: http.StatusUnsupportedMediaType, code: -32600},
		{name: "an answer that cannot be", header: []string{"Accept", "text/html"}, want: http.StatusBadRequest, code: -32600},
		{name: "a parameter that is none", query: "?sub_paths=/", want: http.StatusBadRequest},
		{name: "a parameter twice", query: "?session=a&session=b", want: http.StatusBadRequest},
		{name: "a session with control characters", query: "?session=%01", want: http.StatusBadRequest},
		{name: "an agent that no audit row can hold", query: "?agent=%00", want: http.StatusBadRequest},
		{name: "an agent that is no text", query: "?agent=%ff", want: http.StatusBadRequest},
		{name: "a template that no audit row can hold", query: "?template=%00", want: http.StatusBadRequest},
		{name: "neither true nor false", query: "?stateless=1", want: http.StatusBadRequest},
		{name: "another web page", header: []string{"Origin", "https://evil.example"}, want: http.StatusForbidden},
		{name: "a file's page", header: []string{"Origin", "null"}, want: http.StatusForbidden},
		{name: "the page that is allowed", header: []string{"Origin", "https://console.example"}, want: http.StatusOK},
		{name: "our own page", header: []string{"Origin", "http://127.0.0.1:1", "Host", "127.0.0.1:1"}, want: http.StatusOK},
		{name: "a rebound name", header: []string{"Host", "evil.example"}, want: http.StatusForbidden},
		{name: "a rebound page", header: []string{"Host", "evil.example", "Origin", "http://evil.example"}, want: http.StatusForbidden},
		{name: "by a proxy", header: []string{"Host", "atoll.example", "X-Proxied", "1"}, want: http.StatusOK},
		{name: "a page by a proxy", header: []string{"Host", "atoll.example", "X-Proxied", "1", "Origin", "https://atoll.example"}, want: http.StatusForbidden},
		{name: "localhost", header: []string{"Host", "localhost"}, want: http.StatusOK},
	} {
		if c.body == "" {
			c.body = callShell
		}
		res := k.post(t, "alice", c.query, c.body, c.header...)
		if res.StatusCode != c.want {
			t.Errorf("%s: %s, want %d", c.name, res.Status, c.want)
		}
		if c.code == 0 {
			continue
		}
		got := message(t, res)
		if got.Error == nil || got.Error.Code != c.code || got.Error.Message == "" || res.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %+v, want the code %d", c.name, got.Error, c.code)
		}
		if id := map[bool]string{true: "2", false: "null"}[strings.Contains(c.body, `"id":2`)]; string(got.ID) != id {
			t.Errorf("%s: the id %s, want %s", c.name, got.ID, id)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		if res := k.do(t, method, "alice", "", ""); res.StatusCode != http.StatusBadRequest {
			t.Errorf("%s without a session: %s", method, res.Status)
		}
	}
}

// FuzzServe sends arbitrary bytes, and looks for sessions without a client.
func FuzzServe(f *testing.F) {
	for _, body := range []string{
		initialize, callShell, `[` + callShell + `,` + initialize + `]`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`,
		`{"jsonrpc":"2.0","id":null,"result":{}}`, `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"shell","_meta":{"progressToken":{}}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize"}`, `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
	} {
		for _, version := range []string{"", "2025-03-26", "2026-07-28"} {
			f.Add(body, version, "")
		}
	}
	k := open(f)
	known := []int{http.StatusOK, http.StatusAccepted, http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound}
	f.Fuzz(func(t *testing.T, body, version, session string) {
		if strings.ContainsFunc(version+session, func(r rune) bool { return r < ' ' || r > '~' }) || strings.Contains(body, "subscriptions/listen") {
			return // no header can have it; or waits for what never comes
		}
		res := k.post(t, "alice", "?session=x", body, "Mcp-Protocol-Version", version, "Mcp-Session-Id", session)
		if !slices.Contains(known, res.StatusCode) {
			t.Errorf("%q: %s", body, res.Status)
		}
		if id := res.Header.Get("Mcp-Session-Id"); id != "" {
			k.do(t, http.MethodDelete, "alice", "", "", "Mcp-Session-Id", id)
		}
		if n := k.sessions(); n != 0 {
			t.Errorf("%d sessions are left of %q", n, body)
		}
	})
}
