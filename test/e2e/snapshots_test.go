package e2e

import (
	"net/http"
	"regexp"
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
	pid := strings.TrimSpace(r.shell("until [ -s now ]; do sleep 0.05; done; cat pid"))
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
	if out := inside("whole", "cat file pid; kill -0 $(cat pid) && a=$(cat now) && until [ $a != $(cat now) ]; do sleep 0.1; done && echo continues"); out != "kept\n"+pid+"\ncontinues\n" {
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
