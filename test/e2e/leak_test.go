package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// mixed are programs of every kind of end.
var mixed = []atolltest.Program{
	{Language: atolltest.Python, Code: "print(1)"},
	{Language: atolltest.Node, Code: "console.log(1)"},
	{Language: atolltest.Bash, Code: "echo 1"},
	{Language: atolltest.Python, Code: "import pandas; print(pandas.__version__)"},
	{Language: atolltest.Python, Code: "1/0"},
	{Language: atolltest.Python, Code: "import time; time.sleep(60)", Timeout: 1},
	{Language: atolltest.Bash, Code: "while :; do :; done", Timeout: 1},
	{Language: atolltest.Python, Code: "b = b'x' * (1 << 30)"},
	{Language: atolltest.Bash, Code: "sleep 60 & setsid sleep 60 & echo left"},
	{Language: atolltest.Python, Code: "import sys; sys.stdout.write('x' * 20_000_000)"},
	{Language: atolltest.Python, Code: "import sys; print(sys.flags.utf8_mode)", Env: map[string]string{"PYTHONUTF8": "1"}},
	{Language: atolltest.Bash, Code: "cat /dev/zero > f"},
	{Language: atolltest.Bash, Code: "kill -9 $$"},
	{Language: atolltest.Node, Code: "process.abort()"},
	{Language: atolltest.Bash, Code: ":(){ :|:& };:; sleep 60", Timeout: 1},
	{Language: "cobol", Code: "refused"},
}

// figures is all that must be the same when nothing goes on.
type figures struct {
	left       string // on the machine, by kind
	fds        string // of the server, by what they are of
	goroutines float64
	files      int // in the data folder
}

// idle waits until a server's pool is what it was at its start and everything
// else is gone, and takes the figures. Connections of clients are closed, so that
// they count neither as descriptors nor as goroutines.
func idle(t *testing.T, s *atolltest.Server) (figures, atolltest.Left) {
	t.Helper()
	s.Settle(t)
	s.CloseIdle()
	m := s.Settle(t)
	s.CloseIdle()
	atolltest.Until(t, 10*time.Second, "the server has closed all connections", func() bool { return connections(t, s) == 0 })
	var l atolltest.Left
	atolltest.Until(t, 30*time.Second, "the processes that start sandboxes have ended", func() bool {
		var err error
		if l, err = atolltest.Trace(s.Data).Find(); err != nil {
			t.Fatal(err)
		}
		return !slices.ContainsFunc(l.Processes, starts)
	})
	f := figures{left: l.Counts(), fds: descriptors(t, s), goroutines: m.Sum("go_goroutines")}
	err := filepath.WalkDir(s.Data, func(path string, _ os.DirEntry, err error) error {
		if path == filepath.Join(s.Data, "blobs") || path == filepath.Join(s.Data, "nats") {
			return filepath.SkipDir // outputs and logs are kept
		}
		f.files++
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return f, l
}

// starts reports a process that starts sandboxes.
func starts(process string) bool { return strings.Contains(process, "/atoll-runsc ") }

// rest waits until nothing of a server that has just started begins any more, and
// takes the figures. The job queue's maintenance is what is late: its services
// start one after the other, each up to a second after the one before.
func rest(t *testing.T, s *atolltest.Server) figures {
	t.Helper()
	least := func() figures { // some goroutine is always just doing something
		low, _ := idle(t, s)
		for until := time.Now().Add(3 * time.Second); time.Now().Before(until); {
			if f, _ := idle(t, s); f.goroutines < low.goroutines {
				low = f
			}
		}
		return low
	}
	was, same := least(), 0
	atolltest.Until(t, 2*time.Minute, "the server is at rest", func() bool {
		now := least()
		if same++; now != was {
			same = 0
		}
		was = now
		return same == 2 // on a busy machine, the services start seconds apart
	})
	return was
}

// descriptors lists what a server has open, but for the files of the database and
// of the log: connections and blocks of those come and go.
func descriptors(t *testing.T, s *atolltest.Server) string {
	t.Helper()
	folder := fmt.Sprintf("/proc/%d/fd", s.Pid)
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var open []string
	for _, e := range entries {
		link, err := os.Readlink(filepath.Join(folder, e.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue // closed while we looked
		}
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(link, filepath.Join(s.Data, "atoll.db")) || strings.HasPrefix(link, filepath.Join(s.Data, "nats")+"/") {
			continue
		}
		open = append(open, strings.TrimRight(filepath.Base(link), "[0123456789]")) // a socket's or a pipe's number says nothing
	}
	slices.Sort(open)
	return strings.Join(open, " ")
}

// connections counts those of clients that a server has not closed.
func connections(t *testing.T, s *atolltest.Server) (n int) {
	t.Helper()
	table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", s.Pid))
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(s.URL[strings.LastIndex(s.URL, ":")+1:])
	if err != nil {
		t.Fatal(err)
	}
	const listening, closed = "0A", "0" // a state, and the inode of what no process has
	for line := range strings.Lines(string(table)) {
		f := strings.Fields(line)
		if strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) && f[3] != listening && f[9] != closed {
			n++
		}
	}
	return n
}

// TestNothingIsLeaked checks that executions of every kind leave the machine and
// the server as they were.
func TestNothingIsLeaked(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{Env: []string{"ATOLL_POOL_SIZE=1"}})
	run := func(n int) {
		for i := range n {
			s.Settle(t) // so that every claim finds its sandbox, and demand does not enlarge the pool
			p := mixed[i%len(mixed)]
			if r := s.Run(t, p); r.Status >= 500 && r.Status != http.StatusGatewayTimeout {
				t.Fatalf("%s %q: %v", p.Language, p.Code, r)
			}
		}
	}
	run(len(mixed)) // what is made once and kept, such as the preloads' checkpoint
	before := rest(t, s)
	_, earlier := idle(t, s)
	if len(earlier.Processes) == 0 || len(earlier.Cgroups) == 0 {
		t.Fatalf("the test does not see the pool's own sandboxes: %v", earlier)
	}
	run(atolltest.Count(2*len(mixed), 500))

	var after figures
	var later atolltest.Left
	for deadline := time.Now().Add(30 * time.Second); ; { // descriptors and goroutines of the last request end soon
		if after, later = idle(t, s); after == before || time.Now().After(deadline) {
			break
		}
	}
	if after != before {
		t.Errorf("before: %+v\nafter:  %+v\n%v\n%v", before, after, earlier, later)
	}
}

// TestNothingIsLeakedByABurst checks the same for executions at the same time,
// by what exists for each sandbox of the enlarged pool.
func TestNothingIsLeakedByABurst(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{})
	perSandbox := func() (float64, float64, float64) {
		m := s.Settle(t)
		l, err := atolltest.Trace(s.Data).Find()
		if err != nil {
			t.Fatal(err)
		}
		return m.Sum("atoll_pool_idle"), float64(len(l.Processes)), m.Sum("process_open_fds")
	}
	n0, p0, d0 := perSandbox()
	burst(t, s, atolltest.Count(30, 300))
	n1, p1, d1 := perSandbox()
	if p1/n1 > 1.5*p0/n0 || d1-d0 > 10*(n1-n0)+16 {
		t.Errorf("%v sandboxes had %v processes and %v descriptors, after a burst %v have %v and %v", n0, p0, d0, n1, p1, d1)
	}
}

// burst runs programs all at once; all must succeed.
func burst(t *testing.T, s *atolltest.Server, n int) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			language := []string{atolltest.Python, atolltest.Node, atolltest.Bash}[i%3]
			code := map[string]string{atolltest.Python: "print(%d)", atolltest.Node: "console.log(%d)", atolltest.Bash: "echo %d"}[language]
			r, err := s.Execute(t.Context(), atolltest.Program{Language: language, Code: fmt.Sprintf(code, i)})
			if err != nil || r.Status != http.StatusOK || r.Stdout != fmt.Sprintf("%d\n", i) || r.Stderr != "" {
				t.Errorf("execution %d: %v %v", i, err, r)
			}
		})
	}
	wg.Wait()
}

// load keeps a server busy until stop is called.
func load(t *testing.T, s *atolltest.Server, clients int) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for i := c; ctx.Err() == nil; i++ {
				_, _ = s.Execute(ctx, mixed[i%len(mixed)]) // the server is about to die
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}

// TestKilledServer checks that what kill -9 of a busy server leaves is swept by
// the next one, of the same folder, and by no other.
func TestKilledServer(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{Env: []string{"ATOLL_POOL_SIZE=2"}})
	data := s.Keep(t)
	other := atolltest.Start(t, atolltest.Options{})
	stop := load(t, s, 4)
	// Some have ended, others are in the middle of whatever they do.
	atolltest.Until(t, time.Minute, "executions end", func() bool { return s.Metrics(t).Sum("atoll_executions_total") >= 6 })
	if err := s.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(t.Context()); err == nil {
		t.Fatal("a killed server ended in good order")
	}
	stop()
	atolltest.Until(t, 10*time.Second, "what starts sandboxes has ended with its server", func() bool {
		l, err := atolltest.Trace(data).Find()
		return err == nil && !slices.ContainsFunc(l.Processes, starts)
	})
	orphans := atolltest.Trace(data).Sandboxes()
	if len(orphans) == 0 {
		t.Fatal("the killed server left nothing to sweep")
	}

	next := atolltest.Start(t, atolltest.Options{Data: data})
	// Sandboxes of runs that were under way end with their runs, which the server took over.
	atolltest.Until(t, time.Minute, "the sandboxes of the killed server are gone", func() bool {
		l, err := atolltest.Trace(data).Find()
		return err == nil && !slices.ContainsFunc(orphans, func(path string) bool {
			_, err := os.Stat(path)
			return err == nil || slices.ContainsFunc(l.Processes, func(p string) bool { return strings.Contains(p, filepath.Base(path)) })
		})
	})
	next.Settle(t)
	next.CheckHealthy(t)
	other.CheckHealthy(t)

	if err := next.Close(); err != nil {
		t.Error(err)
	}
	if err := atolltest.Trace(data).Gone(t.Context()); err != nil {
		t.Error(err)
	}
	other.CheckHealthy(t)
}

// TestShutdown checks that SIGTERM waits for what runs, refuses what is new, and
// leaves nothing.
func TestShutdown(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{})
	begun := make(chan *atolltest.Result, 1)
	go func() {
		r, err := s.Execute(t.Context(), atolltest.Program{Code: "import time\ntime.sleep(3)\nprint('finished')"})
		if err != nil {
			t.Error(err)
		}
		begun <- r
	}()
	awaitExecutions(t, s, 1)
	if err := s.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if r := <-begun; r == nil || r.Status != http.StatusOK || r.Stdout != "finished\n" {
		t.Errorf("a shutdown did not wait for an execution: %v", r)
	}
	if err := s.Wait(t.Context()); err != nil {
		t.Errorf("the shutdown was not in good order: %v\n%s", err, s.Log())
	}
	if err := atolltest.Trace(s.Data).Gone(t.Context()); err != nil {
		t.Error(err)
	}
}

// awaitExecutions returns when n requests to execute are being answered.
func awaitExecutions(t *testing.T, s *atolltest.Server, n float64) {
	t.Helper()
	atolltest.Until(t, 20*time.Second, fmt.Sprintf("%v executions have begun", n), func() bool {
		return s.Metrics(t).Sum("atoll_pool_claims_total") >= n
	})
}

// TestShutdownLosesPatience checks that after the grace period an execution is
// ended and says so.
func TestShutdownLosesPatience(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{Env: []string{"ATOLL_SHUTDOWN_GRACE=1s"}})
	begun := make(chan *atolltest.Result, 1)
	go func() {
		r, err := s.Execute(t.Context(), atolltest.Program{Code: "print('so far', flush=True)\nimport time\ntime.sleep(60)"})
		if err != nil {
			t.Error(err)
		}
		begun <- r
	}()
	awaitExecutions(t, s, 1)
	var running struct {
		Data []struct {
			TraceID string `json:"trace_id"`
		}
	}
	s.Must(t, atolltest.Key, http.MethodGet, "/v1/executions?status=running", nil).Into(t, http.StatusOK, &running)
	if len(running.Data) != 1 {
		t.Fatalf("%d executions run", len(running.Data))
	}
	awaitLine(t, s, running.Data[0].TraceID, "so far")
	at := time.Now()
	if err := s.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if r := <-begun; r == nil || r.Success || r.ExitCode != -1 || r.Stdout != "so far\n" || !strings.Contains(r.Reason(), "shutting down") {
		t.Errorf("want an answer that says why, got %v", r)
	}
	if err := s.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if took := time.Since(at); took > 10*time.Second {
		t.Errorf("a shutdown with a grace of 1 s took %v", took)
	}
}

// TestTwoServers checks that a second server of one data folder is refused and
// does the first one no harm.
func TestTwoServers(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{})
	before := atolltest.Trace(s.Data).Sandboxes()
	if second, err := atolltest.Launch(t.Context(), atolltest.Options{Data: s.Data}); err == nil {
		t.Errorf("a second server runs: %v", second.Close())
	}
	s.CheckHealthy(t)
	if len(before) == 0 {
		t.Error("the pool was empty")
	}
}
