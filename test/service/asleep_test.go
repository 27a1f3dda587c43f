package service

import (
	"context"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// sleeper is a program with something of everything that a sleep has to bring back.
const sleeper = `cat > sleeper.py <<'END'
import hashlib, os, socket, threading, time
heap = os.urandom(4 << 20)
kept = open("/home/user/kept", "w+"); kept.write("open-file"); kept.flush()
ticks = 0
def tick():
    global ticks
    while True:
        time.sleep(0.005); ticks += 1
threading.Thread(target=tick, daemon=True).start()
l = socket.create_server(("127.0.0.1", 7000))
open("/tmp/ready", "w").close()
while True:
    c, _ = l.accept()
    kept.seek(0)
    c.sendall(f"{os.getpid()} {hashlib.sha256(heap).hexdigest()} {kept.read()} {ticks}\n".encode()); c.close()
END
setsid python3 sleeper.py > log 2>&1 < /dev/null &
until [ -e /tmp/ready ]; do sleep 0.05; done`

// asleep is a server that is killed while sandboxes fall asleep, wake and are copied.
type asleep struct {
	*testing.T
	server   *atolltest.Server
	settings []string
	data     string
}

// listed are the ids of the session's sandboxes, by name.
func (a *asleep) listed() map[string]string {
	a.Helper()
	var out struct {
		Data []struct {
			ID     string `json:"sandbox_id"`
			Name   string
			Status string
		}
	}
	a.server.Must(a, atolltest.Key, http.MethodGet, "/v1/sandboxes?session=kills", nil).Into(a, http.StatusOK, &out)
	ids := map[string]string{}
	for _, sb := range out.Data {
		if sb.Status != "running" && sb.Status != "sleeping" {
			a.Errorf("%s is %s\n%s", sb.Name, sb.Status, a.server.Log())
		}
		ids[sb.Name] = sb.ID
	}
	return ids
}

// tells is what the sleeper of a sandbox says, and how often its timer went off.
func (a *asleep) tells(name string) (what string, ticks int) {
	a.Helper()
	var out shellAnswer
	callTool(a.T, func() *atolltest.Server { return a.server }, "shell", map[string]any{"sandbox": name, "command": "exec 3<>/dev/tcp/127.0.0.1/7000; cat <&3"}, &out)
	text := strings.TrimSpace(out.Stdout)
	i := strings.LastIndexByte(text, ' ')
	ticks, err := strconv.Atoi(text[i+1:])
	if err != nil {
		a.Fatalf("the sleeper of %s says %+v\n%s", name, out, a.server.Log())
	}
	return text[:i], ticks
}

// post calls without caring for the answer: the server may be killed meanwhile.
func post(ctx context.Context, s *atolltest.Server, path string, body any) {
	_, _ = s.Call(ctx, atolltest.Key, http.MethodPost, path, body, nil)
}

// folders is where the sandboxes' files are.
func (a *asleep) folders() string { return filepath.Join(a.data, "state", "server", "sandboxes") }

// restart kills the server and starts the next one.
func (a *asleep) restart() {
	a.Helper()
	if err := a.server.Signal(syscall.SIGKILL); err != nil {
		a.Fatal(err)
	}
	_ = a.server.Wait(a.Context()) // it was killed
	next, err := atolltest.Launch(a.Context(), atolltest.Options{Data: a.data, Env: a.settings})
	if err != nil {
		a.Fatal(err)
	}
	a.server = next
}

// reach waits until something is done, or has come to a step; without one for a
// random while.
func reach(done <-chan struct{}, step func() bool) {
	over := time.After(10 * time.Second)
	if step == nil {
		over, step = time.After(time.Duration(rand.IntN(400))*time.Millisecond), func() bool { return false }
	}
	look := time.NewTicker(200 * time.Microsecond) // some steps last no longer
	defer look.Stop()
	for {
		select {
		case <-over:
			return
		case <-done:
			return
		case <-look.C:
			if step() {
				return
			}
		}
	}
}

// TestKilledServerLosesNoSleeper kills the server while a sandbox falls asleep,
// wakes or is copied, at random moments and as soon as each step shows on the disk.
func TestKilledServerLosesNoSleeper(t *testing.T) {
	a := &asleep{T: t, settings: []string{"ATOLL_ON_EXIT=detach", "ATOLL_POOL_SIZE=0"}}
	a.server = atolltest.Start(t, atolltest.Options{Env: a.settings})
	a.data = a.server.Keep(t)
	t.Cleanup(func() { // whatever has failed
		_ = a.server.Signal(syscall.SIGKILL)
		_ = a.server.Wait(context.Background())
		last, err := atolltest.Launch(context.Background(), atolltest.Options{Data: a.data, Env: []string{"ATOLL_ON_EXIT=destroy", "ATOLL_POOL_SIZE=0"}})
		if err == nil {
			err = last.Close()
		}
		if err != nil {
			t.Error(err)
		}
		if err := atolltest.Trace(a.data).Gone(context.Background()); err != nil {
			t.Error(err)
		}
	})
	var out shellAnswer
	callTool(t, func() *atolltest.Server { return a.server }, "shell", map[string]any{"sandbox": "sleeper", "command": sleeper}, &out)
	was, ticks := a.tells("sleeper")
	id := a.listed()["sleeper"]
	there := func(name string) func() bool {
		return func() bool { _, err := os.Lstat(filepath.Join(a.folders(), id, name)); return err == nil }
	}
	copies := func(name string) func() bool {
		return func() bool {
			found, _ := filepath.Glob(filepath.Join(a.folders(), "sb-*", name))
			return slices.ContainsFunc(found, func(path string) bool { return !strings.Contains(path, id) })
		}
	}
	ctx := t.Context()
	sleep := func(s *atolltest.Server) { post(ctx, s, "/v1/sandboxes/sleeper/sleep?session=kills", nil) }
	use := func(s *atolltest.Server) {
		post(ctx, s, "/v1/sessions/kills/tools/glob", map[string]any{"sandbox": "sleeper", "pattern": "x"})
	}
	fork := func(s *atolltest.Server) { post(ctx, s, "/v1/sandboxes/sleeper/fork?count=2&session=kills", nil) }
	ways := []struct {
		name       string
		before, do func(*atolltest.Server)
		steps      []func() bool // each shows on the disk
	}{
		{"sleep", use, sleep, []func() bool{there("memory.new"), there("memory.new/pages.img"), there("memory.new/record.json"), there("memory")}},
		{"wake", sleep, use, []func() bool{there("memory.used")}},
		{"fork", use, fork, []func() bool{copies("image"), there("memory"), copies("memory"), copies("memory.used")}},
		{"fork of one asleep", sleep, fork, []func() bool{copies("image"), copies("memory"), copies("memory.used")}},
	}
	kills, made := 0, 0
	for range atolltest.Count(1, 10) {
		for _, way := range ways {
			for _, step := range append(slices.Clone(way.steps), nil) {
				s, done := a.server, make(chan struct{})
				way.before(s)
				go func() { defer close(done); way.do(s) }()
				reach(done, step)
				a.restart()
				<-done
				kills++
				all := a.listed()
				entries, err := os.ReadDir(a.folders())
				if err != nil || all["sleeper"] != id || len(entries) != len(all) {
					t.Fatalf("killed in %s, there are the sandboxes %v and the folders %v, %v\n%s", way.name, all, entries, err, a.server.Log())
				}
				for name := range all {
					what, now := a.tells(name)
					if what != was || now <= ticks {
						t.Fatalf("killed in %s, %s says %q after %d ticks; the first one said %q after %d\n%s", way.name, name, what, now, was, ticks, a.server.Log())
					}
					if name == "sleeper" {
						continue
					}
					made++
					a.server.Must(t, atolltest.Key, http.MethodDelete, "/v1/sandboxes/"+all[name], nil)
				}
			}
		}
	}
	t.Logf("the server was killed %d times; %d copies had been made", kills, made)
}
