package e2e

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

var snapshotIDs = regexp.MustCompile(`\bsnap-[0-9a-f]{16}\b`)

// TestSnapshots keeps a sandbox, destroys it, and goes on with what was kept.
func TestSnapshots(t *testing.T) {
	s := shared(t)
	r := newResource(t, s, atolltest.Key, "default")
	r.shell(`echo kept > file; (while :; do date +%N > next; mv next now; sleep 0.05; done) > /dev/null 2>&1 & echo $! > pid`)
	pid := strings.TrimSpace(r.shell("cat pid"))
	sn := r.ask(http.MethodPost, "/snapshots?keep_ms=3600000", nil, http.StatusCreated)
	id, _ := sn["snapshot_id"].(string)
	if !snapshotIDs.MatchString(id) || sn["memory"] != true || sn["name"] != "default" || sn["session"] != r.name || sn["size_bytes"].(float64) < 1<<20 || sn["expires_at"] == nil {
		t.Fatalf("snapshot: %v", sn)
	}
	path := "/v1/snapshots/" + id
	var got map[string]any
	s.Must(t, atolltest.Key, http.MethodGet, path, nil).Into(t, http.StatusOK, &got)
	if got["snapshot_id"] != id || got["size_bytes"] != sn["size_bytes"] {
		t.Errorf("got %v", got)
	}
	var page struct {
		Data []struct {
			ID string `json:"snapshot_id"`
		}
	}
	s.Must(t, atolltest.Key, http.MethodGet, "/v1/snapshots?limit=100", nil).Into(t, http.StatusOK, &page)
	if len(page.Data) == 0 || page.Data[0].ID != id {
		t.Errorf("list: %+v", page)
	}
	r.ask(http.MethodDelete, "", nil, http.StatusNoContent)

	make := func(name string, more object, status int) map[string]any {
		t.Helper()
		in := object{"name": name, "session": r.name, "snapshot": id}
		for k, v := range more {
			in[k] = v
		}
		var out map[string]any
		s.Must(t, atolltest.Key, http.MethodPost, "/v1/sandboxes", in).Into(t, status, &out)
		return out
	}
	make("whole", nil, http.StatusCreated)
	inside := func(name, command string) string {
		t.Helper()
		return r.tool("shell", object{"sandbox": name, "command": command}, http.StatusOK)["stdout"].(string)
	}
	if out := inside("whole", "cat file pid; kill -0 $(cat pid) && a=$(cat now) && sleep 0.5 && [ $a != $(cat now) ] && echo goes on"); out != "kept\n"+pid+"\ngoes on\n" {
		t.Errorf("with its memory: %q", out)
	}
	make("files", object{"files_only": true}, http.StatusCreated)
	if out := inside("files", "cat file; a=$(cat now); sleep 0.5; [ $a = $(cat now) ] && echo stands still"); out != "kept\nstands still\n" {
		t.Errorf("with its files: %q", out)
	}
	make("whole", nil, http.StatusConflict)
	make("x", object{"snapshot": "snap-0000000000000000"}, http.StatusNotFound)
	make("x", object{"snapshot": "default"}, http.StatusBadRequest)
	make("x", object{"image": "no-such"}, http.StatusBadRequest)
	for _, bad := range []string{"/v1/snapshots?limit=0", "/v1/snapshots?page=x", "/v1/snapshots?session=x"} {
		s.Must(t, atolltest.Key, http.MethodGet, bad, nil).Into(t, http.StatusBadRequest, nil)
	}
	s.Must(t, atolltest.Key, http.MethodGet, "/v1/snapshots/default", nil).Into(t, http.StatusNotFound, nil)
	s.Must(t, atolltest.Key, http.MethodDelete, path, nil).Into(t, http.StatusNoContent, nil)
	s.Must(t, atolltest.Key, http.MethodDelete, path, nil).Into(t, http.StatusNotFound, nil)
}

// TestSnapshotCommands does the same from the command line.
func TestSnapshotCommands(t *testing.T) {
	c := newConsole(t, shared(t))
	c.do("create", "one")
	c.do("exec", "one", "--", "sh", "-c", "echo kept > file")
	id := snapshotIDs.FindString(c.do("snapshot", "one", "--keep", "1h"))
	if got := c.do("create", "two", "--snapshot", id); !strings.Contains(got, "running") {
		t.Errorf("create: %q", got)
	}
	if got := c.do("create", "three", "--snapshot", id, "--files-only"); !strings.Contains(got, "running") {
		t.Errorf("create: %q", got)
	}
	for _, name := range []string{"two", "three"} {
		if got := c.do("exec", name, "--", "cat", "file"); got != "kept\n" {
			t.Errorf("%s has %q", name, got)
		}
	}
	snapshots := func(args ...string) string {
		t.Helper()
		c := *c
		c.group = "snapshot"
		return c.do(args...)
	}
	if got := snapshots("list"); !strings.Contains(got, id) {
		t.Errorf("list: %q", got)
	}
	if got := snapshots("show", id); !strings.Contains(got, "one") {
		t.Errorf("show: %q", got)
	}
	snapshots("rm", id)
	if got := snapshots("list"); strings.Contains(got, id) {
		t.Errorf("after rm there is %q", got)
	}
}

// TestResourceCallsAreAudited finds a row for each call on a sandbox as a resource.
func TestResourceCallsAreAudited(t *testing.T) {
	s := shared(t)
	r := newResource(t, s, atolltest.Key, "default")
	row := func(res *http.Response) map[string]any {
		t.Helper()
		var page struct {
			Data []map[string]any `json:"data"`
		}
		s.Must(t, s.AdminKey(t), http.MethodGet, "/v1/admin/tenants/dev/audit?trace_id="+res.Header.Get("X-Trace-Id"), nil).Into(t, http.StatusOK, &page)
		if len(page.Data) > 1 {
			t.Fatalf("%d rows: %v", len(page.Data), page.Data)
		}
		if len(page.Data) == 0 {
			return nil
		}
		return page.Data[0]
	}
	for _, c := range []struct {
		method, path, body, source string
		status                     int
		ends                       string // "" for no row
	}{
		{http.MethodPut, "/files?path=a/b", "content", "write_file", 200, "ok"},
		{http.MethodGet, "/files?path=a/b", "", "read_file", 200, "ok"},
		{http.MethodGet, "/files?path=nothing", "", "read_file", 404, "error"},
		{http.MethodGet, "/files", "", "", 400, ""},
		{http.MethodGet, "/files/stat?path=a", "", "stat_file", 200, "ok"},
		{http.MethodGet, "/files/list?path=a", "", "list_files", 200, "ok"},
		{http.MethodPost, "/files/directories?path=c/d", "", "make_directory", 200, "ok"},
		{http.MethodPost, "/files/move?from=a/b&to=c/b", "", "move_file", 200, "ok"},
		{http.MethodGet, "/archive?path=c", "", "pack", 200, "ok"},
		{http.MethodDelete, "/files?path=c&recursive=true", "", "remove_file", 204, "ok"},
		{http.MethodPut, "/previews/8000", "", "browse", 200, "ok"},
		{http.MethodDelete, "/previews/8000", "", "close_preview", 204, "ok"},
		{http.MethodPost, "/snapshots", "", "snapshot_create", 201, "ok"},
		{http.MethodDelete, "", "", "sandbox_destroy", 204, "ok"},
		{http.MethodGet, "/files?path=a", "", "read_file", 404, "error"},
	} {
		res := r.send(c.method, c.path, []byte(c.body))
		if r.got(res, c.status); res.StatusCode != c.status {
			continue
		}
		got := row(res)
		if c.ends == "" {
			if got != nil {
				t.Errorf("%s %s: a row %v", c.method, c.path, got)
			}
			continue
		}
		if got == nil || got["source"] != c.source || got["exit_status"] != c.ends || c.status < 400 && got["session_id"] != r.name {
			t.Errorf("%s %s: row %v, not of %s with %s in %q", c.method, c.path, got, c.source, c.ends, r.name)
		}
	}
	var all struct {
		Data []struct {
			ID      string `json:"snapshot_id"`
			Session string `json:"session"`
		}
	}
	s.Must(t, atolltest.Key, http.MethodGet, "/v1/snapshots?limit="+strconv.Itoa(100), nil).Into(t, http.StatusOK, &all)
	for _, sn := range all.Data {
		if sn.Session == r.name {
			s.Must(t, atolltest.Key, http.MethodDelete, "/v1/snapshots/"+sn.ID, nil).Into(t, http.StatusNoContent, nil)
		}
	}
}
