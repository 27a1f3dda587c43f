package e2e

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/atoll-run/atoll/test/atolltest"
)

// resource is a named sandbox as a resource.
type resource struct {
	session
	path string // of the sandbox
}

func newResource(t *testing.T, s *atolltest.Server, key, name string) resource {
	t.Helper()
	r := resource{session: newSession(t, s, key, "resources "+t.Name())}
	var made struct {
		ID string `json:"sandbox_id"`
	}
	s.Must(t, key, http.MethodPost, "/v1/sandboxes", object{"name": name, "session": r.name}).Into(t, http.StatusCreated, &made)
	r.path = "/v1/sandboxes/" + made.ID
	return r
}

// send makes a request whose body is bytes.
func (r resource) send(method, path string, body []byte, header ...string) *http.Response {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.URL+r.path+path, bytes.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.key)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// got reads an answer of a status.
func (r resource) got(res *http.Response, status int) []byte {
	r.t.Helper()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != status {
		r.t.Fatalf("HTTP %d (%v), want %d: %.300s", res.StatusCode, err, status, body)
	}
	return body
}

func (r resource) ask(method, path string, in any, status int) (out map[string]any) {
	r.t.Helper()
	answer := r.Must(r.t, r.key, method, r.path+path, in)
	if status == http.StatusNoContent {
		answer.Into(r.t, status, nil)
		return nil
	}
	answer.Into(r.t, status, &out)
	return out
}

func TestSandboxFiles(t *testing.T) {
	r := newResource(t, shared(t), atolltest.Key, "files")
	content := bytes.Repeat([]byte("0123456789"), 300_000)
	const name = "/files?path=dir/na%FFme%0A%22" // neither UTF-8 nor without a newline
	r.got(r.send(http.MethodPut, name+"&mode=0750", content), http.StatusOK)
	if got := r.got(r.send(http.MethodGet, name, nil), http.StatusOK); !bytes.Equal(got, content) {
		t.Errorf("%d bytes came back", len(got))
	}
	if got := r.got(r.send(http.MethodGet, name, nil, "Range", "bytes=11-14"), http.StatusPartialContent); string(got) != "1234" {
		t.Errorf("got %q", got)
	}
	r.got(r.send(http.MethodGet, name, nil, "Range", "bytes=9000000-"), http.StatusRequestedRangeNotSatisfiable)
	if got := r.ask(http.MethodGet, "/files/stat?path=dir/na%FFme%0A%22", nil, http.StatusOK); got["mode"] != "0750" || got["size"] != 3e6 || got["kind"] != "file" || got["path_base64"] == nil {
		t.Errorf("got %v", got)
	}
	r.ask(http.MethodPost, "/files/directories?path=/home/user/a/b", nil, http.StatusOK)
	r.ask(http.MethodPost, "/files/move?from=dir/na%FFme%0A%22&to=a/b/-moved", nil, http.StatusOK)
	var paths []string
	for _, f := range r.ask(http.MethodGet, "/files/list?path=a&depth=3", nil, http.StatusOK)["data"].([]any) {
		paths = append(paths, f.(map[string]any)["path"].(string))
	}
	if got := strings.Join(paths, " "); got != "/home/user/a/b /home/user/a/b/-moved" {
		t.Errorf("got %s", got)
	}
	archive := r.got(r.send(http.MethodGet, "/archive?path=a", nil), http.StatusOK)
	if got := r.got(r.send(http.MethodPut, "/archive?path=copy", archive), http.StatusOK); !bytes.Contains(got, []byte(`"bytes":3000000`)) {
		t.Errorf("got %s", got)
	}
	r.ask(http.MethodDelete, "/files?path=copy", nil, http.StatusConflict)
	r.ask(http.MethodDelete, "/files?path=copy&recursive=true", nil, http.StatusNoContent)
	r.ask(http.MethodGet, "/files/stat?path=copy", nil, http.StatusNotFound)

	// No key of another tenant, and no key without the scope, sees it.
	other := r
	other.key = r.Server.Tenant(t, "strangers", "enterprise")
	other.ask(http.MethodGet, "", nil, http.StatusNotFound)
	other.ask(http.MethodGet, "/files/stat?path=a", nil, http.StatusNotFound)
}

func TestSandboxProcesses(t *testing.T) {
	r := newResource(t, shared(t), atolltest.Key, "processes")
	p := r.ask(http.MethodPost, "/processes", object{"argv": []string{"sh", "-c", `while read -r line; do echo "got $line"; echo "err $line" >&2; done; exit 9`}, "stdin": true, "env_vars": object{"A": "1"}}, http.StatusCreated)
	at := "/processes/" + p["process_id"].(string)
	r.got(r.send(http.MethodPost, at+"/stdin", []byte("one\n")), http.StatusOK)

	// A reader that goes away, and comes back with the cursor that it had.
	events := json.NewDecoder(r.send(http.MethodGet, at+"/output", nil).Body)
	read := func() (e struct {
		Type, Stream, Data string
		Cursor             int64
		ExitCode           int `json:"exit_code"`
	}) {
		t.Helper()
		if err := events.Decode(&e); err != nil {
			t.Fatal(err)
		}
		return e
	}
	var before, after strings.Builder
	var cursor int64
	for before.Len() < len("got one\nerr one\n") {
		e := read()
		before.WriteString(e.Data)
		cursor = e.Cursor
	}
	r.got(r.send(http.MethodPost, at+"/stdin?close=true", []byte("two\n")), http.StatusOK)
	events = json.NewDecoder(r.send(http.MethodGet, at+"/output?after="+strconv.FormatInt(cursor, 10), nil).Body)
	e := read()
	for ; e.Type != "exit"; e = read() {
		after.WriteString(e.Data)
	}
	if e.ExitCode != 9 || strings.Contains(after.String(), "one") || !strings.Contains(after.String(), "got two\n") || !strings.Contains(after.String(), "err two\n") {
		t.Errorf("after %q came %q, %+v", before.String(), after.String(), e)
	}
	if got := r.ask(http.MethodGet, at+"/wait", nil, http.StatusOK); got["state"] != "exited" || got["exit_code"] != 9.0 {
		t.Errorf("got %v", got)
	}
	r.ask(http.MethodDelete, at, nil, http.StatusNoContent)
	r.ask(http.MethodGet, at, nil, http.StatusNotFound)

	p = r.ask(http.MethodPost, "/processes", object{"command": "exec python3 -m http.server 8123"}, http.StatusCreated)
	at = "/processes/" + p["process_id"].(string)
	deadline := time.Now().Add(30 * time.Second)
	for len(r.ask(http.MethodGet, "/ports", nil, http.StatusOK)["data"].([]any)) == 0 {
		if time.Now().After(deadline) {
			t.Fatal("nothing listens")
		}
	}
	if got := r.ask(http.MethodGet, "/ports", nil, http.StatusOK); got["data"].([]any)[0].(map[string]any)["port"] != 8123.0 {
		t.Errorf("got %v", got)
	}
	r.ask(http.MethodPost, at+"/signal", object{"signal": "kill"}, http.StatusOK)
	if got := r.ask(http.MethodGet, at+"/wait", nil, http.StatusOK); got["exit_code"] != 137.0 || got["signal"] != "SIGKILL" {
		t.Errorf("got %v", got)
	}
	for _, bad := range []object{{}, {"command": "x", "argv": []string{"y"}}, {"argv": []string{"a\x00"}}, {"command": "x", "env_vars": object{"PATH": "x"}}, {"command": "x", "terminal": object{"rows": 0, "columns": 1}}} {
		r.ask(http.MethodPost, "/processes", bad, http.StatusBadRequest)
	}
}

// TestSandboxEndsHaveReasons: who follows a process, waits for it or looks at it
// later is told why it was ended, when that was for a bound of the sandbox.
func TestSandboxEndsHaveReasons(t *testing.T) {
	s := shared(t)
	s.Must(t, s.AdminKey(t), http.MethodPut, "/v1/admin/plans/narrow", object{"max_sandbox_disk": 32 << 20}).Into(t, http.StatusOK, nil)
	key := s.Tenant(t, "narrow", "narrow")
	r := newResource(t, s, key, "full")
	start := func(command string) string {
		p := r.ask(http.MethodPost, "/processes", object{"command": command}, http.StatusCreated)
		return "/processes/" + p["process_id"].(string)
	}
	plain := start("kill -9 $$")
	if got := r.ask(http.MethodGet, plain+"/wait", nil, http.StatusOK); got["signal"] != "SIGKILL" || got["reason"] != nil {
		t.Errorf("one that was ended otherwise: %v", got)
	}
	idle := start("sleep 1000")
	followed := r.send(http.MethodGet, idle+"/output", nil)
	waited := make(chan *atolltest.Answer, 1)
	go func() {
		got, err := s.Call(t.Context(), key, http.MethodGet, r.path+idle+"/wait?timeout_ms=60000", nil, nil)
		if err != nil {
			t.Error(err)
		}
		waited <- got
	}()
	start("while :; do head -c 4194304 /dev/zero; sleep 0.05; done >f")
	reason := func(what string, got map[string]any) {
		t.Helper()
		if text, _ := got["reason"].(string); got["exit_code"] != 137.0 || !strings.Contains(text, "more than 32 MiB of disk") {
			t.Errorf("%s: %v", what, got)
		}
	}
	var last map[string]any
	for events := json.NewDecoder(followed.Body); last["type"] != "exit"; {
		if err := events.Decode(&last); err != nil {
			t.Fatal(err)
		}
	}
	reason("followed", last)
	var got map[string]any
	(<-waited).Into(t, http.StatusOK, &got)
	reason("waited for", got)
	reason("looked at", r.ask(http.MethodGet, idle, nil, http.StatusOK))
	if got := r.ask(http.MethodGet, plain, nil, http.StatusOK); got["reason"] != nil {
		t.Errorf("one that had ended before: %v", got)
	}
	c := newConsole(t, s)
	c.session, c.env[2] = r.name, "ATOLL_API_KEY="+key
	if _, stderr, code := c.try(nil, "logs", "full", strings.TrimPrefix(idle, "/processes/")); code != 0 || !strings.Contains(stderr, "ended with status 137: ") || !strings.Contains(stderr, "32 MiB") {
		t.Errorf("logs: %d, %s", code, stderr)
	}
}

// TestSandboxRedaction looks for a secret that stands across the place from which
// a reader goes on.
func TestSandboxRedaction(t *testing.T) {
	s := shared(t)
	key := s.Tenant(t, "covered", "enterprise")
	const secret = "hunter2-correct-horse-battery"
	s.Must(t, s.AdminKey(t), http.MethodPatch, "/v1/admin/tenants/covered/environments/main", object{"secrets": object{"TOKEN": secret}}).Into(t, http.StatusOK, nil)
	r := newResource(t, s, key, "covered")
	if out := r.tool("shell", object{"command": "echo $TOKEN; env > f; : > \"of $TOKEN\""}, http.StatusOK); out["stdout"] != "[redacted]\n" {
		t.Errorf("got %v", out)
	}
	if out := r.tool("read_file", object{"path": "f"}, http.StatusOK); strings.Contains(out["content"].(string), secret) {
		t.Errorf("got %v", out)
	}
	if out := r.tool("glob", object{"pattern": "*"}, http.StatusOK); !strings.Contains(fmt.Sprint(out), "of [redacted]") || strings.Contains(fmt.Sprint(out), secret) {
		t.Errorf("got %v", out)
	}
	p := r.ask(http.MethodPost, "/processes", object{"command": "printf 'before %s after' $TOKEN"}, http.StatusCreated)
	at := "/processes/" + p["process_id"].(string)
	r.ask(http.MethodGet, at+"/wait", nil, http.StatusOK)
	for cursor := range len("before ") + len(secret) {
		got := string(r.got(r.send(http.MethodGet, fmt.Sprintf("%s/output?after=%d", at, cursor), nil), http.StatusOK))
		for i := 4; i < len(secret); i++ {
			if strings.Contains(got, secret[i-4:i]) {
				t.Fatalf("from %d on: %s", cursor, got)
			}
		}
	}
}

func TestSandboxTerminal(t *testing.T) {
	r := newResource(t, shared(t), atolltest.Key, "terminal")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	open := func(q url.Values) *websocket.Conn {
		t.Helper()
		conn, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(r.URL, "http")+r.path+"/terminal?"+q.Encode(), &websocket.DialOptions{
			HTTPHeader: http.Header{"Authorization": {"Bearer " + r.key}},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.CloseNow() })
		return conn
	}
	type message struct {
		Type      string
		ProcessID string `json:"process_id"`
		Cursor    int64
		ExitCode  int `json:"exit_code"`
	}
	// until reads until what is shown has a text, or the terminal ends.
	until := func(conn *websocket.Conn, text string) (shown string, last message) {
		t.Helper()
		for text == "" || !strings.Contains(shown, text) || last.Cursor == 0 {
			kind, data, err := conn.Read(ctx)
			if err != nil {
				t.Fatalf("after %q: %v", shown, err)
			}
			if kind == websocket.MessageBinary {
				shown += string(data)
				last.Cursor = 0
				continue
			}
			id := last.ProcessID
			if err := json.Unmarshal(data, &last); err != nil {
				t.Fatal(err)
			}
			if last.ProcessID == "" {
				last.ProcessID = id
			}
			if last.Type == "exit" {
				return shown, last
			}
		}
		return shown, last
	}
	typed := func(conn *websocket.Conn, text string) {
		t.Helper()
		if err := conn.Write(ctx, websocket.MessageBinary, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	r.got(r.send(http.MethodGet, "/terminal", nil), http.StatusUpgradeRequired)
	elsewhere := []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "MDEyMzQ1Njc4OWFiY2RlZg==", "Origin", "https://elsewhere.example"}
	r.got(r.send(http.MethodGet, "/terminal", nil, elsewhere...), http.StatusForbidden)
	if left := r.ask(http.MethodGet, "/processes", nil, http.StatusOK)["data"].([]any); len(left) != 0 {
		t.Errorf("requests that are none for a terminal have started %v", left)
	}
	var described struct {
		Paths map[string]map[string]struct{ Responses map[string]any }
	}
	r.Must(t, r.key, http.MethodGet, "/openapi.json", nil).Into(t, http.StatusOK, &described)
	for query, status := range map[string]int{"": 426, "?rows=0": 400, "?process=none": 426, "?x=1": 400} {
		r.got(r.send(http.MethodGet, "/terminal"+query, nil), status)
		if described.Paths["/v1/sandboxes/{sandbox}/terminal"]["get"].Responses[strconv.Itoa(status)] == nil {
			t.Errorf("the description does not have %d", status)
		}
	}
	var refusal struct{ Error string }
	if err := json.Unmarshal(r.got(r.send(http.MethodGet, "/terminal", nil, elsewhere...), http.StatusForbidden), &refusal); err != nil || refusal.Error != "forbidden" {
		t.Errorf("a page of another origin was refused with %+v, %v", refusal, err)
	}
	testTickets(ctx, t, r)
	conn := open(url.Values{"rows": {"40"}, "columns": {"100"}})
	// Not before its prompt, for which readline reads the size and writes it back.
	typed(conn, "stty size; v=kept; PS1=$v'> '\n")
	first, begun := until(conn, "kept> ")
	if begun.ProcessID == "" || !strings.Contains(first, "40 100") {
		t.Fatalf("the terminal %q shows %q", begun.ProcessID, first)
	}
	if err := wsjson.Write(ctx, conn, object{"type": "resize", "rows": 50, "columns": 120}); err != nil {
		t.Fatal(err)
	}
	typed(conn, "stty size\n")
	_, last := until(conn, "50 120")
	_ = conn.CloseNow()

	// The connection is gone, the terminal is not.
	conn = open(url.Values{"process": {begun.ProcessID}, "after": {strconv.FormatInt(last.Cursor, 10)}})
	typed(conn, "echo $v-$((6*7)); exit 3\n")
	shown, last := until(conn, "")
	if !strings.Contains(shown, "kept-42") || strings.Contains(shown, "50 120") || last.ExitCode != 3 {
		t.Errorf("got %q, %+v", shown, last)
	}
	// A client that comes back after the end is shown the last output, and the end.
	conn = open(url.Values{"process": {begun.ProcessID}, "after": {"0"}})
	typed(conn, "too late\n")
	if shown, last = until(conn, ""); !strings.Contains(shown, "kept-42") || last.ExitCode != 3 {
		t.Errorf("after the end: %q, %+v", shown, last)
	}
}

// testTickets opens terminals as a page of another origin does, without a key.
func testTickets(ctx context.Context, t *testing.T, r resource) {
	dial := func(sandbox, ticket string) (int, error) {
		conn, res, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(r.URL, "http")+sandbox+"/terminal?command=true&ticket="+ticket, &websocket.DialOptions{
			HTTPHeader: http.Header{"Origin": {"https://app.example.com"}},
		})
		if err == nil {
			_ = conn.CloseNow()
		}
		if res == nil {
			return 0, err
		}
		return res.StatusCode, nil
	}
	issue := func() string {
		return r.ask(http.MethodPost, "/terminal/ticket", nil, http.StatusCreated)["ticket"].(string)
	}
	good, other := issue(), issue()
	for _, c := range []struct {
		says, sandbox, ticket string
		status                int
	}{
		{"a ticket", r.path, good, http.StatusSwitchingProtocols},
		{"the same again", r.path, good, http.StatusUnauthorized},
		{"another sandbox's", "/v1/sandboxes/another", other, http.StatusUnauthorized},
		{"one that was tried elsewhere", r.path, other, http.StatusUnauthorized},
		{"none", r.path, "", http.StatusUnauthorized},
	} {
		if status, err := dial(c.sandbox, c.ticket); status != c.status || err != nil {
			t.Errorf("%s: %d, %v; want %d", c.says, status, err, c.status)
		}
	}
}

func TestSandboxWatch(t *testing.T) {
	r := newResource(t, shared(t), atolltest.Key, "watch")
	changes := json.NewDecoder(r.send(http.MethodGet, "/files/watch?recursive=true", nil).Body)
	r.got(r.send(http.MethodPut, "/files?path=seen", []byte("x")), http.StatusOK)
	for {
		var c struct{ Type, Path string }
		if err := changes.Decode(&c); err != nil {
			t.Fatal(err)
		}
		if c.Path == "/home/user/seen" && (c.Type == "created" || c.Type == "modified") {
			break
		}
	}
}

func TestSandboxRecords(t *testing.T) {
	r := newResource(t, shared(t), atolltest.Key, "records")
	got := r.ask(http.MethodPut, "/timeout", object{"timeout_ms": 3_600_000, "sleep_after_ms": -1}, http.StatusOK)
	if got["expires_at"] == nil || got["sleep_after_ms"] != nil || got["status"] != "running" {
		t.Errorf("got %v", got)
	}
	if got := r.ask(http.MethodGet, "/metrics", nil, http.StatusOK); got["memory_bytes"].(float64) <= 0 {
		t.Errorf("got %v", got)
	}
	r.ask(http.MethodPut, "/network", object{"enabled": true}, http.StatusConflict)
	r.ask(http.MethodPut, "/timeout", object{}, http.StatusBadRequest)
	r.ask(http.MethodGet, "?x=1", nil, http.StatusBadRequest)
	for _, c := range []struct {
		method, path, says string
		in                 object
	}{
		{http.MethodPut, "/timeout", "timeout_ms must be an integer", object{"timeout_ms": "1"}},
		{http.MethodPut, "/timeout", "timeout_ms must be an integer", object{"timeout_ms": 1.5}},
		{http.MethodPut, "/network", "enabled must be true or false", object{"enabled": "x"}},
		{http.MethodPost, "/processes", "argv must be an array", object{"argv": "x"}},
		{http.MethodPost, "/processes", "terminal must be an object", object{"command": "true", "terminal": true}},
		{http.MethodPost, "/processes", "terminal.rows must be an integer from 0 to 65535", object{"command": "true", "terminal": object{"rows": 70_000, "columns": 1}}},
	} {
		if got := r.ask(c.method, c.path, c.in, http.StatusBadRequest); !strings.Contains(got["message"].(string), c.says) {
			t.Errorf("%s %v: %v, want %q", c.path, c.in, got["message"], c.says)
		}
	}
	var orphans struct{ Data []string }
	r.Must(t, r.AdminKey(t), http.MethodGet, "/v1/admin/sandboxes/orphans", nil).Into(t, http.StatusOK, &orphans)
	if len(orphans.Data) != 0 {
		t.Errorf("orphans: %v", orphans.Data)
	}
	r.Must(t, r.key, http.MethodGet, "/v1/admin/sandboxes/orphans", nil).Into(t, http.StatusForbidden, nil)
	r.Must(t, r.key, http.MethodPost, "/v1/sandboxes", object{"name": "records", "session": r.name}).Into(t, http.StatusOK, nil)
	r.Must(t, r.key, http.MethodPost, "/v1/sandboxes", object{"name": "x", "environment": "another"}).Into(t, http.StatusForbidden, nil)
	r.ask(http.MethodDelete, "", nil, http.StatusNoContent)
	if got := r.ask(http.MethodGet, "", nil, http.StatusOK); got["status"] != "destroyed" {
		t.Errorf("got %v", got)
	}
}

// TestArchivesStayWhereTheyAreUnpacked: an archive that is a link itself cannot have
// what comes behind written where that leads.
func TestArchivesStayWhereTheyAreUnpacked(t *testing.T) {
	r := newResource(t, shared(t), atolltest.Key, "archives")
	r.ask(http.MethodPost, "/files/directories?path=/tmp/elsewhere", nil, http.StatusOK)
	for _, behind := range []tar.Header{{Typeflag: tar.TypeReg, Name: "f", Mode: 0o644}, {Typeflag: tar.TypeDir, Name: ".", Mode: 0o777}} {
		var archive bytes.Buffer
		w := tar.NewWriter(&archive)
		for _, h := range []tar.Header{{Typeflag: tar.TypeSymlink, Name: ".", Linkname: "/tmp/elsewhere"}, behind} {
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		before := r.ask(http.MethodGet, "/files/stat?path=/tmp/elsewhere", nil, http.StatusOK)
		got := r.got(r.send(http.MethodPut, "/archive?path=x/"+behind.Name+"x", archive.Bytes(), "Content-Type", "application/x-tar"), http.StatusForbidden)
		if !bytes.Contains(got, []byte("no folder")) {
			t.Errorf("got %s", got)
		}
		if after := r.ask(http.MethodGet, "/files/stat?path=/tmp/elsewhere", nil, http.StatusOK); after["mode"] != before["mode"] {
			t.Errorf("before %v, after %v", before, after)
		}
		if left := r.ask(http.MethodGet, "/files/list?path=/tmp/elsewhere", nil, http.StatusOK)["data"].([]any); len(left) > 0 {
			t.Errorf("written: %v", left)
		}
	}
}
