package e2e

import (
	"bufio"
	"context"
	"fmt"
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

// on runs a program with a thread.
func on(t *testing.T, s *atolltest.Server, key, thread, language, code string) *atolltest.Result {
	t.Helper()
	a := s.Must(t, key, http.MethodPost, "/v1/sandbox/execute", map[string]any{"language": language, "code": code, "timeout": 120, "thread_id": thread})
	r := &atolltest.Result{Status: a.Status, Header: a.Header}
	a.Into(t, a.Status, r)
	return r
}

// awaitLine follows an execution's output until a line has come.
func awaitLine(t *testing.T, s *atolltest.Server, traceID, line string) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/v1/executions/"+traceID+"/output?after=0", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+atolltest.Key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	in := bufio.NewScanner(res.Body)
	for in.Scan() {
		if strings.Contains(in.Text(), line) {
			return
		}
	}
	t.Fatalf("the output ended without %q: %v", line, in.Err())
}

// threadRecord is what the API says of a thread.
type threadRecord struct {
	ID    string `json:"thread_id"`
	Bytes int64  `json:"bytes"`
	Files int64  `json:"files"`
}

// TestThread checks what an execution finds of an earlier one of its thread, in
// every language, and what it does not.
func TestThread(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{})
	for _, c := range []struct{ name, language, write, read, want string }{
		{
			"Python", atolltest.Python,
			"import os; open('a', 'w').write('kept'); os.mkdir('d'); os.symlink('../a', 'd/l'); os.chmod('a', 0o640); open('/tmp/t', 'w'); open('m.py', 'w').write('x = 1')",
			"import os, m; print(open('d/l').read(), oct(os.stat('a').st_mode), m.x, os.path.exists('/tmp/t'), os.getcwd(), os.stat('a').st_uid)",
			"kept 0o100640 1 False /home/user 1000\n",
		},
		{
			"Node", atolltest.Node,
			"fs = require('fs'); fs.writeFileSync('m.js', 'module.exports = 7'); fs.writeFileSync('b', Buffer.from([0, 255]))",
			"console.log(require('./m'), fs = require('fs').readFileSync('b'), process.cwd())",
			"7 <Buffer 00 ff> /home/user\n",
		},
		{
			"Bash", atolltest.Bash,
			"echo kept > 'odd name'; mkdir -p .local/bin; printf '#!/bin/sh\\necho mine\\n' > .local/bin/mine; chmod +x .local/bin/mine; truncate -s 512M sparse; echo end >> sparse; exit 3",
			"cat 'odd name'; mine; stat -c %s sparse; tail -c 4 sparse",
			"kept\nmine\n536870916\nend\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			id := "lang-" + strings.ToLower(c.name)
			if r := on(t, s, atolltest.Key, id, c.language, c.write); r.Status != http.StatusOK || r.Reason() != "" || r.Stderr != "" {
				t.Fatalf("writing: %v", r)
			}
			if r := on(t, s, atolltest.Key, id, c.language, c.read); r.Stdout != c.want {
				t.Errorf("want %q, got %v", c.want, r)
			}
			if r := on(t, s, atolltest.Key, id+"-other", atolltest.Bash, "ls -A"); strings.Trim(r.Stdout, "\n") != "main.sh" {
				t.Errorf("another thread begins with %v", r)
			}
		})
	}
}

// TestThreadEnds checks which state a thread has after each way to end.
func TestThreadEnds(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{})
	const id = "ends"
	state := func(want string) {
		t.Helper()
		if r := on(t, s, atolltest.Key, id, atolltest.Bash, "cat state"); r.Stdout != want+"\n" {
			t.Errorf("want %q, got %v", want, r)
		}
	}
	on(t, s, atolltest.Key, id, atolltest.Bash, "echo first > state")
	state("first")
	on(t, s, atolltest.Key, id, atolltest.Bash, "echo failed > state; exit 1")
	state("failed")

	// The time runs from the program's start: one that is kept from writing for so long gets
	// twice as much.
	for timeout, wrote := 1, false; !wrote; timeout *= 2 {
		var r atolltest.Result
		s.Must(t, atolltest.Key, http.MethodPost, "/v1/sandbox/execute",
			map[string]any{"language": "bash", "code": "echo timed-out > state; echo written; sleep 60", "timeout": timeout, "thread_id": id}).Into(t, http.StatusGatewayTimeout, &r)
		if wrote = r.Stdout == "written\n"; !wrote && timeout > 10 {
			t.Fatalf("after %d s: %v", timeout, &r)
		}
	}
	state("timed-out")

	// A cancelled one leaves the thread as it was; while it runs no other run has it.
	a, err := s.Call(t.Context(), atolltest.Key, http.MethodPost, "/v1/sandbox/execute",
		map[string]any{"language": "bash", "code": "echo cancelled > state; echo begun; sleep 60", "thread_id": id}, http.Header{"Prefer": {"respond-async"}})
	if err != nil {
		t.Fatal(err)
	}
	var running struct {
		TraceID string `json:"trace_id"`
	}
	a.Into(t, http.StatusAccepted, &running)
	awaitLine(t, s, running.TraceID, "begun")
	busy := on(t, s, atolltest.Key, id, atolltest.Bash, "true")
	if busy.Status != http.StatusConflict || !strings.Contains(busy.Message, "is in use") {
		t.Errorf("a second one at the same time: %v", busy)
	}
	s.Must(t, atolltest.Key, http.MethodPost, "/v1/executions/"+running.TraceID+"/cancel", nil).Into(t, http.StatusOK, nil)
	state("timed-out")
}

// TestThreadQuota checks that a thread that is too large is not saved, and says
// so.
func TestThreadQuota(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{})
	admin := s.AdminKey(t)
	s.Must(t, admin, http.MethodPut, "/v1/admin/plans/small", map[string]any{"max_thread_size": 1 << 20, "max_threads": 1}).Into(t, http.StatusOK, nil)
	key := s.Tenant(t, "little", "small")
	if r := on(t, s, key, "a", atolltest.Bash, "echo small > f"); r.Reason() != "" {
		t.Fatalf("within the quota: %v", r)
	}
	r := on(t, s, key, "a", atolltest.Bash, "echo big > f; head -c 3000000 /dev/zero > big; sync; sleep 1; echo end")
	if r.Reason() == "" || !strings.Contains(r.Reason(), "1 MiB") {
		t.Errorf("beyond the quota: %v", r)
	}
	if r := on(t, s, key, "a", atolltest.Bash, "cat f; ls"); r.Stdout != "small\nf\nmain.sh\n" {
		t.Errorf("after that: %v", r)
	}
	if r := on(t, s, key, "b", atolltest.Bash, "true"); r.Status != http.StatusTooManyRequests || !strings.Contains(r.Message, "thread limit reached (1)") {
		t.Errorf("a second thread: %v", r)
	}
}

// TestThreadSurvivesItsServer kills a server under a program with a thread: the
// next one takes it over, and saves.
func TestThreadSurvivesItsServer(t *testing.T) {
	t.Parallel() // the program sleeps
	s := atolltest.Start(t, atolltest.Options{Env: []string{"ATOLL_ON_EXIT=detach"}})
	a, err := s.Call(t.Context(), atolltest.Key, http.MethodPost, "/v1/sandbox/execute",
		map[string]any{"language": "bash", "code": "echo before > f; echo begun; sleep 5; echo after >> f", "thread_id": "t", "timeout": 60}, http.Header{"Prefer": {"respond-async"}})
	if err != nil {
		t.Fatal(err)
	}
	var running struct {
		TraceID string `json:"trace_id"`
	}
	a.Into(t, http.StatusAccepted, &running)
	awaitLine(t, s, running.TraceID, "begun")
	data := s.Keep(t)
	if err := s.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = s.Wait(context.Background())
	next := atolltest.Start(t, atolltest.Options{Data: data})
	var ended struct {
		Status string  `json:"status"`
		Error  *string `json:"error"`
	}
	atolltest.Until(t, 60*time.Second, "the program that was taken over ended", func() bool {
		next.Must(t, atolltest.Key, http.MethodGet, "/v1/executions/"+running.TraceID, nil).Into(t, http.StatusOK, &ended)
		return ended.Status != "running"
	})
	if ended.Status != "success" {
		t.Fatalf("it ended as %s, %v", ended.Status, ended.Error)
	}
	if r := on(t, next, atolltest.Key, "t", atolltest.Bash, "cat f"); r.Stdout != "before\nafter\n" {
		t.Errorf("the thread has %v", r)
	}
}

// TestThreadOverHTTP checks that what is put into a thread a program finds, and
// the other way round.
func TestThreadOverHTTP(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{})
	const id = "over-http"
	s.Must(t, atolltest.Key, http.MethodPut, "/v1/threads/"+id+"/files/in/data", "from outside").Into(t, http.StatusOK, nil)
	if r := on(t, s, atolltest.Key, id, atolltest.Python, "d = open('in/data').read(); print(d); open('out', 'w').write(d.upper()); open('in/data', 'a').write('!')"); r.ExitCode != 0 || !strings.Contains(r.Stdout, "from outside") {
		t.Fatalf("got %v", r)
	}
	if a := s.Must(t, atolltest.Key, http.MethodGet, "/v1/threads/"+id+"/files/out", nil); !strings.Contains(string(a.Body), "FROM OUTSIDE") {
		t.Errorf("out has %q", a.Body)
	}
	var th threadRecord
	s.Must(t, atolltest.Key, http.MethodGet, "/v1/threads/"+id, nil).Into(t, http.StatusOK, &th)
	if th.ID != id || th.Files < 3 || th.Bytes < 20 {
		t.Errorf("the record says %+v", th)
	}
	cached := func() int {
		homes, err := os.ReadDir(filepath.Join(s.Data, "state", "server", "threads", "homes"))
		if err != nil {
			t.Fatal(err)
		}
		return len(homes)
	}
	if cached() != 1 {
		t.Errorf("%d homes are cached, want 1", cached())
	}
	s.Must(t, atolltest.Key, http.MethodDelete, "/v1/threads/"+id, nil).Into(t, http.StatusNoContent, nil)
	atolltest.Until(t, 60*time.Second, "its files are gone from the machine's cache", func() bool { return cached() == 0 })
	if r := on(t, s, atolltest.Key, id, atolltest.Bash, "ls -A"); r.Stdout != "main.sh\n" {
		t.Errorf("after deletion: %v", r)
	}
}

// TestThreadPackages installs real packages into a thread, and uses them in its
// next executions.
func TestThreadPackages(t *testing.T) {
	t.Parallel() // it waits for a network
	s := atolltest.Start(t, atolltest.Options{Env: []string{"ATOLL_SANDBOX_CA_BUNDLE=" + machineCA(t)}})
	hosts := append(pipHosts(t), host(t, npmRegistry(t)))
	key := networked(t, s, "builders", map[string]any{"enabled": true, "allowed_hosts": hosts})
	for i, c := range []struct{ install, language, use, want string }{
		{"pip install -q --no-cache-dir -i " + pipIndex(t) + " six", atolltest.Python, "import six; print(six.__name__)", "six\n"},
		{"pip install -q --no-cache-dir --user -i " + pipIndex(t) + " pygments", atolltest.Bash, "echo 'x = 1' | pygmentize -l python -f null; python3 -m pygments -V | cut -d' ' -f1", "x = 1\nPygments\n"},
		{"npm install --silent --registry " + npmRegistry(t) + " is-odd", atolltest.Node, "console.log(require('is-odd')(3))", "true\n"},
	} {
		id := fmt.Sprint("packages-", i)
		if r := on(t, s, key, id, atolltest.Bash, c.install); r.ExitCode != 0 {
			t.Errorf("%s: %v", c.install, r)
			continue
		}
		if r := on(t, s, key, id, c.language, c.use); r.Stdout != c.want {
			t.Errorf("after %s: want %q, got %v", c.install, c.want, r)
		}
	}
}

// TestThreadUnderRules checks that rules about paths hold for the home of a thread
// as they do for the image's.
func TestThreadUnderRules(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{})
	key, admin := s.Tenant(t, "ruled-threads", "enterprise"), s.AdminKey(t)
	rules := func(writable, readOnly, blocked []string) {
		t.Helper()
		s.Must(t, admin, http.MethodPatch, "/v1/admin/tenants/ruled-threads/environments/main", map[string]any{"permissions": map[string]any{
			"filesystem": map[string]any{"writable_paths": writable, "read_only_paths": readOnly, "blocked_paths": blocked},
		}}).Into(t, http.StatusOK, nil)
	}
	home, none := []string{"/home/user", "/tmp"}, []string{}
	for name, language := range map[string]string{"bash": atolltest.Bash, "python": atolltest.Python} {
		t.Run(name, func(t *testing.T) {
			id := "ruled-" + name
			run := func(code string) *atolltest.Result {
				t.Helper()
				if language == atolltest.Python {
					code = "import subprocess; subprocess.run(['bash', '-c', " + strconv.Quote(code) + "])"
				}
				return on(t, s, key, id, language, code)
			}
			rules(home, none, none)
			if r := run("mkdir -p ro secret; echo a > ro/f; echo b > secret/f; touch /opt/x 2>/dev/null || echo refused"); r.Stdout != "refused\n" {
				t.Fatalf("with the home writable: %v", r)
			}
			rules(home, []string{"/home/user/ro"}, []string{"/home/user/secret"})
			if r := run("cat ro/f; (echo x > ro/f) 2>/dev/null || echo refused; cat secret/f 2>/dev/null || echo hidden; echo c > w; mv secret s2 2>/dev/null || echo stays; cat w"); r.Stdout != "a\nrefused\nhidden\nstays\nc\n" {
				t.Errorf("with rules below the home: %v", r)
			}
			rules([]string{"/tmp"}, none, none)
			if r := run("cat w secret/f; (echo x > w) 2>/dev/null || echo refused; touch /tmp/t && echo tmp"); r.Stdout != "c\nb\nrefused\ntmp\n" {
				t.Errorf("with the home read-only: %v", r)
			}
			rules(home, none, none)
			if r := run("cat w ro/f secret/f; ls"); !strings.HasPrefix(r.Stdout, "c\na\nb\n") {
				t.Errorf("afterwards: %v", r)
			}
		})
	}
}
