package home

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/test/atolltest"
)

// childDir names the folder that a process of TestKill works in.
const childDir = "ATOLL_TEST_THREAD_CHILD"

// TestKill kills a process that saves a home again and again. The home is always
// one that was recorded, whole, and nothing that a killed process left is used.
func TestKill(t *testing.T) {
	if dir := os.Getenv(childDir); dir != "" {
		saveForever(t, dir)
		return
	}
	dir := t.TempDir()
	rnd := rand.New(rand.NewPCG(1, 5))
	states, whole := map[string]bool{}, map[State]bool{}
	for range atolltest.Count(20, 200) {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKill$", "-test.v")
		cmd.Env = append(os.Environ(), childDir+"="+dir)
		out, err := cmd.StdoutPipe()
		must(t, err)
		var said strings.Builder
		cmd.Stderr = &said
		must(t, cmd.Start())
		in := bufio.NewScanner(out)
		for saves := 1 + rnd.IntN(3); saves > 0 && in.Scan(); {
			said.WriteString(in.Text() + "\n")
			if in.Text() == "saving" {
				saves--
			}
		}
		<-time.NewTimer(time.Duration(rnd.Int64N(int64(40 * time.Millisecond)))).C // somewhere in the save, or after it
		_ = cmd.Process.Kill()
		io.Copy(io.Discard, out)
		if err := cmd.Wait(); err == nil || strings.Contains(said.String(), "FAIL") {
			t.Fatalf("the process ended by itself: %v: %s", err, said.String())
		}
		data, err := os.ReadFile(filepath.Join(dir, "recorded"))
		if os.IsNotExist(err) {
			continue
		}
		must(t, err)
		state, sum, _ := strings.Cut(string(data), " ")
		states[state] = true
		s, b := storeAt(t, "file://"+filepath.Join(dir, "blobs"))
		into := t.TempDir()
		restore(t, s, load(t, s, State(state)), into, nil)
		if got := digest(t, into); got != sum {
			t.Fatal("the home is not what was recorded")
		}
		for info, err := range b.List(t.Context(), "threads/ten_a/states") {
			must(t, err)
			if state := State(filepath.Base(info.Name)); !whole[state] { // whatever is a state is whole, and does not change
				load(t, s, state)
				whole[state] = true
			}
		}
	}
	if len(states) < 3 {
		t.Errorf("only %d states were recorded: nothing was tried", len(states))
	}
	t.Logf("%d states were saved, %d of them recorded when their process was killed", len(whole), len(states))
}

func digest(t *testing.T, dir string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(mirror(t, dir))))
}

func saveForever(t *testing.T, dir string) {
	s, _ := storeAt(t, "file://"+filepath.Join(dir, "blobs"))
	c, err := OpenCache(CacheConfig{Store: s, Dir: filepath.Join(dir, "cache"), Bytes: 1 << 30, Log: slog.Default()})
	must(t, err)
	recorded := filepath.Join(dir, "recorded")
	for {
		data, _ := os.ReadFile(recorded)
		state, sum, _ := strings.Cut(string(data), " ")
		h, err := c.Take(t.Context(), "ten_a", execution.Thread{ID: "one", State: state})
		must(t, err)
		if state != "" && digest(t, h.Dir()) != sum {
			fmt.Println("FAIL: the home that was taken is not what was recorded")
			os.Exit(1)
		}
		g := &grower{t: t, rnd: rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0)), dir: h.Dir()}
		g.own(g.dir)
		g.change(8)
		g.ownAll()
		fmt.Println("saving")
		st, err := h.Save(t.Context(), h.Dir())
		must(t, err)
		must(t, os.WriteFile(recorded+".tmp", []byte(st.State+" "+digest(t, h.Dir())), 0o600))
		must(t, os.Rename(recorded+".tmp", recorded))
		must(t, h.Close(true))
	}
}
