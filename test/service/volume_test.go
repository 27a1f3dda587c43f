package service

import (
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// TestKilledServerLeavesVolumesAlone kills the server while it makes, copies, puts to
// sleep and removes sandboxes that have a volume mounted. Nothing stays mounted on
// the host, and nothing in the volume is lost.
func TestKilledServerLeavesVolumesAlone(t *testing.T) {
	volumes := filepath.Join(t.TempDir(), "volumes")
	line := newSuccession(t, "ATOLL_VOLUMES="+volumes)
	s := line.now()
	admin, base := s.AdminKey(t), "/v1/admin/tenants/dev/connections"
	s.Must(t, admin, http.MethodPost, base, map[string]any{"slug": "team", "kind": "volume"}).Into(t, http.StatusCreated, nil)
	s.Must(t, admin, http.MethodPost, base+"/team/grants", map[string]any{"environment": "default"}).Into(t, http.StatusCreated, nil)

	var made struct {
		Mounts []string `json:"mounts"`
	}
	s.Must(t, atolltest.Key, http.MethodPost, "/v1/sandboxes", map[string]any{"name": "one", "session": "kills"}).Into(t, http.StatusCreated, &made)
	if strings.Join(made.Mounts, " ") != "team/:rw" {
		t.Errorf("it says that it has %v", made.Mounts)
	}
	var narrow struct {
		Mounts []string `json:"mounts"`
	}
	s.Must(t, atolltest.Key, http.MethodPost, "/v1/sandboxes", map[string]any{"name": "narrow", "session": "kills", "sub_paths": []string{"/data/team/of/narrow"}}).Into(t, http.StatusCreated, &narrow)
	if strings.Join(narrow.Mounts, " ") != "team/of/narrow:rw" {
		t.Errorf("with sub_paths it says that it has %v", narrow.Mounts)
	}
	var out shellAnswer
	line.tool("shell", map[string]any{"sandbox": "narrow", "command": "echo kept > /data/team/kept && ls /data/team"}, &out)
	if out.Stdout != "kept\n" {
		t.Fatalf("%+v", out)
	}
	line.tool("shell", map[string]any{"sandbox": "one", "command": "cat /data/team/of/narrow/kept; nohup sh -c 'exec 5>>/data/team/log; while sleep 0.1; do echo x >&5; done' > /dev/null 2>&1 & echo $! > pid"}, &out)

	// What is under way when the server is killed; whether it was done is not asked.
	steps := []struct{ method, path string }{
		{http.MethodPost, "/v1/sandboxes"},
		{http.MethodPost, "/v1/sandboxes/one/fork?session=kills&count=2"},
		{http.MethodPost, "/v1/sandboxes/one/sleep?session=kills"},
		{http.MethodDelete, "/v1/sandboxes/narrow?session=kills"},
	}
	for i := range atolltest.Count(4, 40) {
		step := steps[i%len(steps)]
		var body any
		if step.path == "/v1/sandboxes" {
			body = map[string]any{"name": "narrow", "session": "kills", "sub_paths": []string{"/data/team/of/narrow"}}
		}
		answered, asked := make(chan struct{}), s
		go func() {
			defer close(answered)
			_, _ = asked.Call(t.Context(), atolltest.Key, step.method, step.path, body, nil) // it may be cut off
		}()
		select {
		case <-answered:
		case <-time.After(time.Duration(rand.IntN(1000)) * time.Millisecond): // it is killed at any moment
		}
		line.next(syscall.SIGKILL)
		s = line.now()
		atolltest.Heard(t, answered, "the cut call ends")
		if left, err := os.ReadDir(filepath.Join(line.data, "state", "server", "mounts")); err == nil && len(left) > 0 {
			t.Errorf("after %s %s there are %v", step.method, step.path, left)
		}
		all, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(all), volumes) || strings.Contains(string(all), filepath.Join(line.data, "state", "server", "mounts")) {
			t.Errorf("after %s %s something is mounted:\n%s", step.method, step.path, all)
		}
		line.tool("shell", map[string]any{"sandbox": "one", "command": "kill -0 $(cat pid) && cat /data/team/of/narrow/kept"}, &out)
		if out.Stdout != "kept\n" {
			t.Fatalf("after %s %s: %+v", step.method, step.path, out)
		}
		var page struct {
			Data []struct {
				Name string `json:"name"`
			} `json:"data"`
		}
		s.Must(t, atolltest.Key, http.MethodGet, "/v1/sandboxes?session=kills", nil).Into(t, http.StatusOK, &page)
		for _, sb := range page.Data {
			if sb.Name != "one" {
				s.Must(t, atolltest.Key, http.MethodDelete, "/v1/sandboxes/"+sb.Name+"?session=kills", nil)
			}
		}
	}
	s.Must(t, atolltest.Key, http.MethodDelete, "/v1/sandboxes/one?session=kills", nil)
	kept, err := filepath.Glob(filepath.Join(volumes, "*", "*", "of", "narrow", "kept"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("of the volume there is %v, %v", kept, err)
	}
	if text, err := os.ReadFile(kept[0]); err != nil || string(text) != "kept\n" {
		t.Errorf("it has %q, %v", text, err)
	}
}
