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

	"github.com/atoll-run/atoll/internal/core/sandbox/sandboxtest"
	"github.com/atoll-run/atoll/test/atolltest"
)

// asleep are servers that are killed while sandboxes fall asleep, wake and are copied.
type asleep struct{ *succession }

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
	a.now().Must(a, atolltest.Key, http.MethodGet, "/v1/sandboxes?session=kills", nil).Into(a, http.StatusOK, &out)
	ids := map[string]string{}
	for _, sb := range out.Data {
		if sb.Status != "running" && sb.Status != "sleeping" {
			a.Errorf("%s is %s\n%s", sb.Name, sb.Status, a.now().Log())
		}
		ids[sb.Name] = sb.ID
	}
	return ids
}

// tells is what the sleeper of a sandbox says, and how often its timer went off.
func (a *asleep) tells(name string) (what string, ticks int) {
	a.Helper()
	var out shellAnswer
	a.tool("shell", map[string]any{"sandbox": name, "command": sandboxtest.Told}, &out)
	text := strings.TrimSpace(out.Stdout)
	i := strings.LastIndexByte(text, ' ')
	ticks, err := strconv.Atoi(text[i+1:])
	if err != nil {
		a.Fatalf("the sleeper of %s says %+v\n%s", name, out, a.now().Log())
	}
	return text[:i], ticks
}

// post calls without caring for the answer: the server may be killed meanwhile.
func post(ctx context.Context, s *atolltest.Server, path string, body any) {
	_, _ = s.Call(ctx, atolltest.Key, http.MethodPost, path, body, nil)
}

// folders is where the sandboxes' files are.
func (a *asleep) folders() string { return filepath.Join(a.data, "state", "server", "sandboxes") }

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
	a := &asleep{newSuccession(t)}
	var out shellAnswer
	a.tool("shell", map[string]any{"sandbox": "sleeper", "command": sandboxtest.Program}, &out)
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
				s, done := a.now(), make(chan struct{})
				way.before(s)
				go func() { defer close(done); way.do(s) }()
				reach(done, step)
				a.next(syscall.SIGKILL)
				atolltest.Heard(t, done, "the cut call ends")
				kills++
				all := a.listed()
				entries, err := os.ReadDir(a.folders())
				if err != nil || all["sleeper"] != id || len(entries) != len(all) {
					t.Fatalf("killed in %s, there are the sandboxes %v and the folders %v, %v\n%s", way.name, all, entries, err, a.now().Log())
				}
				for name := range all {
					what, now := a.tells(name)
					if what != was || now <= ticks {
						t.Fatalf("killed in %s, %s says %q after %d ticks; the first one said %q after %d\n%s", way.name, name, what, now, was, ticks, a.now().Log())
					}
					if name == "sleeper" {
						continue
					}
					made++
					a.now().Must(t, atolltest.Key, http.MethodDelete, "/v1/sandboxes/"+all[name], nil)
				}
			}
		}
	}
	t.Logf("the server was killed %d times; %d copies had been made", kills, made)
}
