package service

import (
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// TestKilledServerLeavesNoHalfSnapshot kills the server while it makes snapshots of
// a sandbox. Whatever is listed afterwards is whole, nothing is left on disk, and
// the sandbox has gone on.
func TestKilledServerLeavesNoHalfSnapshot(t *testing.T) {
	line := newSuccession(t)
	var out shellAnswer
	line.tool("sandbox_create", map[string]any{"sandbox": "one", "image": "default"}, nil)
	line.tool("shell", map[string]any{"sandbox": "one", "command": "head -c 50000000 /dev/urandom > data; sha256sum data > sum; " +
		"nohup python3 -c 'import os,time; heap=os.urandom(50<<20); open(\"up\",\"w\").close(); time.sleep(1e6)' > /dev/null 2>&1 & echo $! > pid; until [ -e up ]; do sleep 0.05; done"}, &out)
	if out.ExitCode != 0 {
		t.Fatalf("%+v", out)
	}
	for range atolltest.Count(4, 30) {
		answered := make(chan int, 1)
		asked := line.now()
		go func() {
			a, err := asked.Call(t.Context(), atolltest.Key, http.MethodPost, "/v1/sandboxes/one/snapshots?session=kills", nil, nil)
			if err != nil {
				answered <- 0
				return
			}
			answered <- a.Status
		}()
		select {
		case status := <-answered:
			if status != http.StatusCreated {
				t.Fatalf("a snapshot returns %d\n%s", status, asked.Log())
			}
			answered <- status
		case <-time.After(time.Duration(rand.IntN(1500)) * time.Millisecond): // it is killed at any moment
		}
		line.next(syscall.SIGKILL)
		atolltest.Heard(t, answered, "the cut call ends")
		line.tool("shell", map[string]any{"sandbox": "one", "command": "sha256sum -c sum && kill -0 $(cat pid)"}, &out)
		if out.ExitCode != 0 {
			t.Fatalf("the sandbox has not gone on: %+v", out)
		}
		// The server sweeps the unfinished copy while it already answers.
		atolltest.Until(t, time.Minute, "only the sandbox is left", func() bool {
			left, err := os.ReadDir(filepath.Join(line.data, "state", "server", "sandboxes"))
			return err == nil && len(left) == 1
		})
	}
	var page struct {
		Data []struct {
			ID string `json:"snapshot_id"`
		}
	}
	s := line.now()
	s.Must(t, atolltest.Key, http.MethodPost, "/v1/sandboxes/one/snapshots?session=kills", nil).Into(t, http.StatusCreated, nil)
	s.Must(t, atolltest.Key, http.MethodGet, "/v1/snapshots?limit=100", nil).Into(t, http.StatusOK, &page)
	t.Logf("%d snapshots", len(page.Data))
	for i, sn := range page.Data {
		name := "of-" + strconv.Itoa(i)
		s.Must(t, atolltest.Key, http.MethodPost, "/v1/sandboxes", map[string]any{"name": name, "session": "kills", "snapshot": sn.ID}).Into(t, http.StatusCreated, nil)
		line.tool("shell", map[string]any{"sandbox": name, "command": "sha256sum -c sum && kill -0 $(cat pid)"}, &out)
		if out.ExitCode != 0 || !strings.Contains(out.Stdout, "OK") {
			t.Errorf("%s: %+v", sn.ID, out)
		}
		s.Must(t, atolltest.Key, http.MethodDelete, "/v1/sandboxes/"+name+"?session=kills", nil).Into(t, http.StatusNoContent, nil)
	}
}
