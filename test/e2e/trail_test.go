package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// trailRow is a row of the audit trail.
type trailRow struct {
	Source     string            `json:"source"`
	Session    string            `json:"session_id"`
	ExitStatus string            `json:"exit_status"`
	Reason     string            `json:"failure_reason"`
	Digest     string            `json:"executed_code_hash"`
	Metadata   map[string]string `json:"metadata"`
}

// rowsOf returns the audit rows of one request of the tenant dev.
func rowsOf(t *testing.T, s *atolltest.Server, traceID string) []trailRow {
	t.Helper()
	var page struct {
		Data []trailRow `json:"data"`
	}
	s.Must(t, s.AdminKey(t), http.MethodGet, "/v1/admin/tenants/dev/audit?trace_id="+traceID, nil).Into(t, http.StatusOK, &page)
	return page.Data
}

func TestWhatIsDoneWithSandboxesIsOnRecord(t *testing.T) {
	r := newResource(t, shared(t), atolltest.Key, "trail")
	id := r.path[len("/v1/sandboxes/"):]
	const fails = "error"
	for _, c := range []struct {
		method, path string
		in           any
		status       int
		source       string // "" for no row
		asked        string
		ended        string // "ok" if empty
	}{
		{"PUT", "/files?path=f", object{}, 200, "file_write", "f", ""},
		{"GET", "/files?path=f", nil, 200, "file_read", "f", ""},
		{"HEAD", "/files?path=f", nil, 200, "file_read", "f", ""},
		{"GET", "/files?path=none", nil, 404, "file_read", "none", fails},
		{"GET", "/files/stat?path=f", nil, 200, "", "", ""},
		{"GET", "/files/list", nil, 200, "", "", ""},
		{"POST", "/files/directories?path=d", nil, 200, "file_mkdir", "d", ""},
		{"POST", "/files/move?from=f&to=d/f", nil, 200, "file_move", "f\x00d/f", ""},
		{"GET", "/archive?path=d", nil, 200, "archive_read", "d", ""},
		{"PUT", "/archive?path=x", object{}, 400, "archive_write", "x", fails}, // no archive, says the guest
		{"DELETE", "/files?path=d&recursive=true", nil, 204, "file_delete", "d", ""},
		{"POST", "/processes", object{"command": "sleep 1000"}, 201, "process", "sleep 1000", ""},
		{"GET", "/processes", nil, 200, "", "", ""},
		{"POST", "/processes/none/signal", object{"signal": "TERM"}, 404, "process_signal", "none", fails},
		{"POST", "/processes/none/stdin", object{}, 404, "process_stdin", "none", fails},
		{"GET", "/processes/none/output", nil, 404, "process_output", "none", fails},
		{"DELETE", "/processes/none", nil, 404, "process_delete", "none", fails},
		{"POST", "/processes", object{"command": ""}, 400, "", "", ""}, // a mistake, of which nothing was asked
		{"GET", "/ports", nil, 200, "", "", ""},
		{"GET", "/metrics", nil, 200, "", "", ""},
		{"GET", "/terminal", nil, 426, "", "", ""},
		{"POST", "/terminal/ticket", nil, 201, "terminal_ticket", id, ""},
		{"PUT", "/previews/8000", nil, 200, "preview_open", "8000", ""},
		{"DELETE", "/previews/8000", nil, 204, "preview_close", "8000", ""},
		{"POST", "/contexts", object{"language": "bash"}, 201, "context_create", "bash", ""},
		{"POST", "/contexts/bash/run", object{"code": "cd /"}, 200, "context", "cd /", ""},
		{"POST", "/contexts/bash/restart", nil, 200, "context_restart", "bash", ""},
		{"DELETE", "/contexts/bash", nil, 204, "context_delete", "bash", ""},
		{"PUT", "/timeout", object{"timeout_ms": 3_600_000}, 200, "sandbox_timeout", id, ""},
		{"PUT", "/network", object{"enabled": true}, 409, "sandbox_network", id, fails},
		{"POST", "/fork?count=1", nil, 201, "sandbox_fork", id, ""},
		{"POST", "/sleep", nil, 200, "sandbox_sleep", id, ""},
		{"GET", "", nil, 200, "", "", ""},
		{"DELETE", "", nil, 204, "sandbox_destroy", id, ""},
		{"DELETE", "", nil, 404, "sandbox_destroy", id, fails},
		{"DELETE", "?session=%00", nil, 400, "", "", ""},
	} {
		answer := r.Must(t, r.key, c.method, r.path+c.path, c.in)
		if answer.Status != c.status {
			t.Fatalf("%s %s: HTTP %d: %s", c.method, c.path, answer.Status, answer.Body)
		}
		rows := rowsOf(t, r.Server, answer.Header.Get("X-Trace-Id"))
		if c.source == "" {
			if len(rows) != 0 {
				t.Errorf("%s %s: %+v", c.method, c.path, rows)
			}
			continue
		}
		if c.ended == "" {
			c.ended = "ok"
		}
		digest := sha256.Sum256([]byte(c.asked))
		if len(rows) != 1 || rows[0].Source != c.source || rows[0].Session != r.name || rows[0].Digest != hex.EncodeToString(digest[:]) ||
			rows[0].ExitStatus != c.ended || rows[0].Metadata["sandbox_id"] != id || (c.ended == "ok") != (rows[0].Reason == "") {
			t.Errorf("%s %s: %+v", c.method, c.path, rows)
		}
	}
	for _, c := range []struct {
		in     object
		status int
		rows   int
		ended  string
	}{
		{object{"name": "second", "session": r.name}, 201, 1, "ok"},
		{object{"name": "second", "session": r.name, "environment": "another"}, 403, 1, "error"},
		{object{"name": "third", "session": r.name, "timeout_ms": -1}, 400, 0, ""},
		{object{"name": "third", "session": "\x00"}, 400, 0, ""},
	} {
		answer := r.Must(t, r.key, http.MethodPost, "/v1/sandboxes", c.in)
		rows := rowsOf(t, r.Server, answer.Header.Get("X-Trace-Id"))
		if answer.Status != c.status || len(rows) != c.rows || c.rows == 1 && (rows[0].Source != "sandbox_create" || rows[0].ExitStatus != c.ended || rows[0].Session != r.name) {
			t.Errorf("%v: HTTP %d, %+v", c.in, answer.Status, rows)
		}
	}
	// What tools do names its sandbox, too; what the guest calls wrong was asked of it.
	made := map[string]string{} // ids
	for _, name := range []string{"second", "fourth"} {
		var sb struct {
			ID string `json:"sandbox_id"`
		}
		r.tool("sandbox_create", object{"sandbox": name}, http.StatusOK)
		r.Must(t, r.key, http.MethodGet, "/v1/sandboxes/"+name+"?session="+url.QueryEscape(r.name), nil).Into(t, http.StatusOK, &sb)
		made[name] = sb.ID
	}
	for _, c := range []struct {
		tool   string
		in     object
		status int
		on     string
		from   string
	}{
		{"sandbox_create", object{"sandbox": "second"}, 200, "second", ""},
		{"glob", object{"pattern": "[", "sandbox": "second"}, 400, "second", ""},
		{"shell", object{"command": "echo x >f", "sandbox": "second"}, 200, "second", ""},
		{"read_file", object{"path": "none", "sandbox": "second"}, 404, "second", ""},
		{"browse", object{"port": 8000, "sandbox": "fourth"}, 200, "fourth", ""},
		{"transfer", object{"from_sandbox": "second", "from_path": "f", "to_sandbox": "fourth", "to_path": "f"}, 200, "fourth", "second"},
		{"sandbox_list", object{}, 200, "", ""},
	} {
		answer := r.Must(t, r.key, http.MethodPost, "/v1/sessions/"+strings.ReplaceAll(r.name, " ", "%20")+"/tools/"+c.tool, c.in)
		rows := rowsOf(t, r.Server, answer.Header.Get("X-Trace-Id"))
		if answer.Status != c.status || len(rows) != 1 || (rows[0].ExitStatus == "ok") != (c.status == 200) ||
			rows[0].Metadata["sandbox_id"] != made[c.on] || rows[0].Metadata["from_sandbox_id"] != made[c.from] {
			t.Errorf("%s %v: HTTP %d, %+v", c.tool, c.in, answer.Status, rows)
		}
	}
}

// TestARevokedKeyFollowsNothing: what lasts ends with the key that began it.
func TestARevokedKeyFollowsNothing(t *testing.T) {
	t.Parallel() // the server validates keys every 10 seconds
	s := shared(t)
	r := newResource(t, s, s.Tenant(t, "leaver", "enterprise"), "leaver")
	base := "/v1/admin/tenants/leaver/keys"
	var made struct {
		ID  string `json:"id"`
		Key string `json:"key"`
	}
	s.Must(t, s.AdminKey(t), http.MethodPost, base, object{"name": "second", "environment": "main"}).Into(t, http.StatusCreated, &made)
	r.key = made.Key
	r.ask(http.MethodPost, "/processes", object{"command": "while :; do echo on; sleep 0.1; done"}, http.StatusCreated)
	all := r.ask(http.MethodGet, "/processes", nil, http.StatusOK)["data"].([]any)
	body := r.send(http.MethodGet, "/processes/"+all[0].(map[string]any)["process_id"].(string)+"/output", nil).Body
	ended := make(chan error, 1)
	go func() {
		for piece := make([]byte, 1024); ; {
			if _, err := body.Read(piece); err != nil {
				ended <- err
				return
			}
		}
	}()
	s.Must(t, s.AdminKey(t), http.MethodDelete, base+"/"+made.ID, nil).Into(t, http.StatusOK, nil)
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Error("a revoked key continues reading output")
	}
}
