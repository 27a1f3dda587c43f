package executor_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/test/atolltest"
)

func TestARunIsLoggedLineByLine(t *testing.T) {
	m := start(t, folderFor(t), options{})
	j := job("import sys\nprint('one'); print('two', end='')\nprint('oops', file=sys.stderr)\nsys.exit(3)")
	r := m.run(t, j)
	stdout, stderr, _ := m.log.check(t, j.TraceID)
	if stdout != "one\ntwo" || stderr != "oops\n" || string(r.Stdout) != stdout || string(r.Stderr) != stderr {
		t.Errorf("the log has %q and %q, the result %q and %q", stdout, stderr, r.Stdout, r.Stderr)
	}
	if r.Status != execution.Failed || r.ExitCode != 3 || r.StdoutBytes != 7 || r.Stored || r.LastSeq != 4 {
		t.Errorf("the result is %+v", r)
	}
	if r.PeakMemory < 1<<20 {
		t.Errorf("peak memory is %d", r.PeakMemory)
	}
	atolltest.Until(t, 10*time.Second, "the run is forgotten", func() bool { return !m.Alive(j.TraceID) })
	if err := m.Start(t.Context(), j); err != nil {
		t.Error("a job that is sent again:", err)
	}
	if m.Alive(j.TraceID) {
		t.Error("a job that was sent again runs again")
	}
	if err := m.Cancel(t.Context(), j.TraceID); fault.KindOf(err) != fault.NotFound {
		t.Error("cancelling what has ended:", err)
	}
}

func TestEndsHaveTheirNames(t *testing.T) {
	m := start(t, folderFor(t), options{poolSize: 1})
	for _, c := range []struct {
		name, code string
		change     func(*execution.Job)
		status     execution.Status
		exit       int
		error      string
	}{
		{"success", "print(1)", nil, execution.Success, 0, ""},
		{"timeout", "while True: pass", func(j *execution.Job) { j.Timeout = time.Second }, execution.Timeout, -1, "execution timed out after 1s"},
		{"oom", "x = bytearray(600 << 20)", nil, execution.OOM, 137, "memory limit of 512 MiB exceeded"},
		{"image", "", func(j *execution.Job) { j.Image = "nowhere" }, execution.Failed, -1, "import it with 'atoll image import'"},
		{"secret", "", func(j *execution.Job) { j.Secrets = []string{"x"} }, execution.Blocked, -1, "provisioning: "},
		{"limits", "", func(j *execution.Job) { j.Limits.Memory = 1 << 20 }, execution.Failed, -1, "limits cannot be held"},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := job(c.code)
			if c.change != nil {
				c.change(&j)
			}
			r := m.run(t, j)
			if r.Status != c.status || r.ExitCode != c.exit || !strings.Contains(r.Error, c.error) || (c.error == "") != (r.Error == "") {
				t.Errorf("the result is %+v", r)
			}
			if notStarted := c.code == ""; r.NotStarted != notStarted || notStarted && r.Kind != fault.Invalid {
				t.Errorf("not started is %v, for %v", r.NotStarted, r.Kind)
			}
			m.log.check(t, j.TraceID)
		})
	}
}

func TestAFailureWithoutNetworkHasAHint(t *testing.T) {
	m := start(t, folderFor(t), options{})
	for code, want := range map[string]bool{
		"import urllib.request; urllib.request.urlopen('http://example.com')":                                  true,
		"import socket, sys; socket.create_connection(('192.0.2.1', 443), 5)":                                  true,
		"import sys; print('Temporary failure in name resolution', file=sys.stderr)":                           false, // it did not fail
		"import sys; print('x' * 9000); print('Could not resolve host: a', file=sys.stderr); sys.exit(1)":      true,
		"import sys; print('Could not resolve host: a', 'x' * 9000, file=sys.stderr, flush=True); sys.exit(1)": false, // the end of the output is of something else
	} {
		r := m.run(t, job(code))
		if got := strings.Contains(r.Hint, "the environment has no network"); got != want {
			t.Errorf("%s: the hint is %q: %s", code, r.Hint, r.Stderr)
		}
	}
}

func TestAFullLineRefuses(t *testing.T) {
	m := start(t, folderFor(t), options{concurrency: 1, queue: 1})
	jobs := []execution.Job{job("import time; print('begun', flush=True); time.sleep(60)"), job("print(2)"), job("print(3)")}
	for _, j := range jobs[:2] {
		if err := m.Start(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		m.log.await(t, jobs[0].TraceID, 2)
	}
	if err := m.Start(t.Context(), jobs[2]); fault.KindOf(err) != fault.Unavailable {
		t.Error("a third job was met with", err)
	}
	// One is cancelled in the line, one in its sandbox.
	for _, j := range []execution.Job{jobs[1], jobs[0]} {
		if err := m.Cancel(t.Context(), j.TraceID); err != nil {
			t.Fatal(err)
		}
		_, _, r := m.log.check(t, j.TraceID)
		if r.Status != execution.Cancelled || r.Error != "Cancelled by user" {
			t.Errorf("a cancelled job ended as %+v", r)
		}
		if waited := j.TraceID == jobs[1].TraceID; waited && !r.NotStarted {
			t.Error("a job that waited was started")
		}
	}
	m.Drain()
	if err := m.Start(t.Context(), jobs[2]); fault.KindOf(err) != fault.Unavailable {
		t.Error("a job after Drain was met with", err)
	}
}

func TestEndsRace(t *testing.T) {
	m := start(t, folderFor(t), options{poolSize: 2, queue: 1000})
	var wait sync.WaitGroup
	ends := map[execution.Status]int{}
	var mu sync.Mutex
	for i := range atolltest.Count(24, 1000) {
		j := job("import time; print('begun', flush=True); time.sleep(0.9 + 0.01 * " + fmt.Sprint(i%24) + ")")
		j.Timeout = time.Second
		wait.Go(func() {
			if err := m.Start(t.Context(), j); err != nil {
				t.Error(err)
				return
			}
			<-m.log.begun(j.TraceID) // from when it prints on
			// The load: its caller cancels around the moment at which it ends.
			time.Sleep(time.Duration(940+5*(i%24)) * time.Millisecond)
			err := m.Cancel(t.Context(), j.TraceID)
			if err != nil && fault.KindOf(err) != fault.NotFound {
				t.Error(err)
			}
			r := m.result(t, j.TraceID)
			mu.Lock()
			ends[r.Status]++
			mu.Unlock()
			m.log.check(t, j.TraceID)
		})
	}
	wait.Wait()
	t.Log(ends)
}

func TestSecretsAreCoveredAcrossFrames(t *testing.T) {
	m := start(t, folderFor(t), options{})
	j := job(`
import sys, time
for part in "the pass", "word is hun", "ter2", "x and no more\n":
    sys.stdout.write(part); sys.stdout.flush(); time.sleep(0.05)
sys.stderr.write("aHVudGVyMng="); sys.stderr.flush()
`)
	j.Secrets = []string{"hunter2x"}
	r := m.run(t, j)
	stdout, stderr, _ := m.log.check(t, j.TraceID)
	if want := "the password is [redacted] and no more\n"; stdout != want || string(r.Stdout) != want {
		t.Errorf("the log has %q, the result %q", stdout, r.Stdout)
	}
	if strings.Contains(stderr, "aHVudGVyMng") {
		t.Errorf("stderr is %q", stderr)
	}
}

func TestLongOutputIsStored(t *testing.T) {
	dir := folderFor(t)
	m := start(t, dir, options{})
	j := job("for i in range(60000): print('line', i, 'x' * 40)")
	j.MaxOutput = 1 << 20
	var want strings.Builder
	for i := range 60000 {
		fmt.Fprintln(&want, "line", i, strings.Repeat("x", 40))
	}
	r := m.run(t, j)
	if !r.Stored || len(r.Stdout) > 0 || !r.StdoutTruncated || r.StderrTruncated || r.StdoutBytes != int64(want.Len()) {
		r.Stdout = nil
		t.Errorf("the result is %+v", r)
	}
	stdout, _, _ := m.log.check(t, j.TraceID)
	if stdout != want.String() {
		t.Error("the log is not what the program wrote")
	}
	for s, want := range map[execution.Stream]string{execution.Stdout: want.String(), execution.Stderr: ""} {
		blob, err := os.ReadFile(filepath.Join(dir, "blobs", execution.OutputName(j.Tenant, j.TraceID, s)))
		if err != nil || string(blob) != want {
			t.Errorf("%s is stored with %d of %d bytes: %v", s, len(blob), len(want), err)
		}
	}
}
