package service

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	nats "github.com/nats-io/nats-server/v2/server"

	"github.com/atoll-run/atoll/test/atolltest"
)

// natsServer starts a NATS server that several processes share.
func natsServer(t *testing.T, users ...*nats.User) (url string) {
	t.Helper()
	n, err := nats.NewServer(&nats.Options{Host: "127.0.0.1", Port: nats.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, MaxPayload: 8 << 20, Users: users})
	if err != nil {
		t.Fatal(err)
	}
	n.Start()
	t.Cleanup(func() {
		n.Shutdown()
		n.WaitForShutdown()
	})
	if !n.ReadyForConnections(30 * time.Second) {
		t.Fatal("the NATS server does not start")
	}
	return n.ClientURL()
}

// together starts servers that share records, bus and bucket; each has an
// executor.
func together(t *testing.T, n int, env []string) (all []*atolltest.Server) {
	t.Helper()
	for range n {
		all = append(all, atolltest.Start(t, atolltest.Options{Env: env}))
	}
	return all
}

// sharing are the settings of servers that share records, bus and bucket.
func sharing(t *testing.T) []string {
	t.Helper()
	return []string{
		"ATOLL_DATABASE=" + atolltest.Postgres(t).URL, "ATOLL_NATS=" + natsServer(t), "ATOLL_SECRET_KEY=" + strings.Repeat("ab", 32),
		"ATOLL_VOLUMES=" + filepath.Join(t.TempDir(), "volumes"),
		"ATOLL_BLOBS=" + atolltest.StartS3(t).URL, "AWS_ACCESS_KEY_ID=" + atolltest.S3AccessKey, "AWS_SECRET_ACCESS_KEY=" + atolltest.S3SecretKey,
	}
}

// TestTwoExecutorsAndOneThread has clients of two servers count in one thread.
// One execution at a time has it, whichever executor it runs on; the others are
// told so, and each finds what the last one left.
func TestTwoExecutorsAndOneThread(t *testing.T) {
	env := sharing(t)
	servers := together(t, 2, env)
	run := func(s *atolltest.Server, code string) (*atolltest.Answer, *atolltest.Result) {
		a := s.Must(t, atolltest.Key, http.MethodPost, "/v1/sandbox/execute", map[string]any{"language": "bash", "code": code, "timeout": 60, "thread_id": "shared"})
		r := &atolltest.Result{}
		if a.Status == http.StatusOK {
			a.Into(t, http.StatusOK, r)
		}
		return a, r
	}
	const each = 8
	var mu sync.Mutex
	var counted []int
	conflicts := 0
	free := make(chan struct{}) // guarded by mu; closed when an execution was answered, which ended before
	release := func() { close(free); free = make(chan struct{}) }
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			defer func() { mu.Lock(); defer mu.Unlock(); release() }() // whatever has failed
			for done := 0; done < each && !t.Failed(); {
				mu.Lock()
				next := free
				mu.Unlock()
				a, r := run(servers[i%2], "n=$(($(cat n 2>/dev/null) + 1)); echo $n | tee n")
				n, err := strconv.Atoi(strings.TrimSpace(r.Stdout))
				mu.Lock()
				switch {
				case a.Status == http.StatusConflict && strings.Contains(string(a.Body), `"conflict"`):
					conflicts++
				case a.Status != http.StatusOK || err != nil || r.ExitCode != 0:
					t.Errorf("HTTP %d: %s", a.Status, a.Body)
				default:
					counted = append(counted, n)
					done++
				}
				if a.Status != http.StatusConflict {
					release()
				}
				mu.Unlock()
				if a.Status == http.StatusConflict {
					select {
					case <-next:
					case <-time.After(time.Minute):
						t.Error("the thread is taken, and no execution of it ends")
					}
				}
			}
		})
	}
	clients.Wait()
	slices.Sort(counted)
	for i, n := range counted {
		if n != i+1 {
			t.Fatalf("an update was lost: %v", counted)
		}
	}
	if len(counted) != 4*each || conflicts == 0 {
		t.Errorf("%d counted, %d were told to wait", len(counted), conflicts)
	}
	var saves []float64
	for _, s := range servers {
		saves = append(saves, s.Metrics(t).Sum("atoll_thread_saves_total"))
	}
	if slices.Min(saves) == 0 {
		t.Errorf("one executor ran everything: %v", saves)
	}
	t.Logf("%d executions in turn, on the two executors %v; %d conflicts", len(counted), saves, conflicts)

	// While one has it, no request changes it through the other server either.
	var long sync.WaitGroup
	long.Go(func() { refusedBeside(t, env) }) // it touches no execution of theirs
	long.Go(func() {
		if a, r := run(servers[0], "echo last > n; sleep 6; cat n"); a.Status != http.StatusOK || r.Stdout != "last\n" {
			t.Errorf("HTTP %d: %s", a.Status, a.Body)
		}
	})
	atolltest.Until(t, 30*time.Second, "an execution runs", func() bool {
		var page struct {
			Data []record
		}
		servers[1].Must(t, atolltest.Key, http.MethodGet, "/v1/executions?status=running", nil).Into(t, http.StatusOK, &page)
		return len(page.Data) == 1
	})
	if a, _ := run(servers[1], "true"); a.Status != http.StatusConflict {
		t.Errorf("another execution: HTTP %d: %s", a.Status, a.Body)
	}
	for method, path := range map[string]string{http.MethodPut: "/v1/threads/shared/files/n", http.MethodDelete: "/v1/threads/shared"} {
		if a := servers[1].Must(t, atolltest.Key, method, path, nil); a.Status != http.StatusConflict {
			t.Errorf("%s %s: HTTP %d: %s", method, path, a.Status, a.Body)
		}
	}
	long.Wait()
	for i, s := range servers {
		if a := s.Must(t, atolltest.Key, http.MethodGet, "/v1/threads/shared/files/n", nil); string(a.Body) != "last\n" {
			t.Errorf("server %d has %d %s", i, a.Status, a.Body)
		}
		if _, r := run(s, "cat n"); r.Stdout != "last\n" {
			t.Errorf("an execution through server %d finds %v", i, fmt.Sprint(r))
		}
	}
}

// refusedBeside starts a server with the database of others and nothing else of theirs.
func refusedBeside(t *testing.T, env []string) {
	var alone []string
	for _, setting := range env {
		if name, _, _ := strings.Cut(setting, "="); name == "ATOLL_DATABASE" || name == "ATOLL_SECRET_KEY" {
			alone = append(alone, setting)
		}
	}
	s, err := atolltest.Launch(t.Context(), atolltest.Options{Env: alone})
	if err == nil {
		t.Error("a server without nats, blobs and volumes started", s.Close())
		return
	}
	if want := "shares its database with server"; !strings.Contains(err.Error(), want) ||
		!strings.Contains(err.Error(), "nats (not set on this server), blobs (not set on this server), volumes (not set on this server)") {
		t.Errorf("it does not say %q: %v", want, err)
	}
}
