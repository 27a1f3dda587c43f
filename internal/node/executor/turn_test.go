package executor_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/node/engine"
	"github.com/atoll-run/atoll/internal/node/executor"
	"github.com/atoll-run/atoll/test/atolltest"
)

// turnJob is a job of a turn.
func turnJob(turn, code string) execution.Job {
	j := job(code)
	j.Turn = turn
	return j
}

func TestJobsOfATurnShareASandbox(t *testing.T) {
	dir := folderFor(t)
	m := start(t, dir, options{poolSize: 1})
	if r := m.run(t, turnJob("a", "open('kept', 'w').write('first'); x = 1")); r.Status != execution.Success {
		t.Fatalf("the first ended as %+v", r)
	}
	// At once: each waits for the one before it, in an interpreter of its own.
	var jobs []execution.Job
	for range 3 {
		j := turnJob("a", "s = open('kept').read(); print(s, 'x' in globals()); open('kept', 'w').write(s + '+')")
		if err := m.Start(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, j)
	}
	seen := map[string]bool{}
	for _, j := range jobs {
		seen[string(m.result(t, j.TraceID).Stdout)] = true
	}
	if !seen["first False\n"] || !seen["first+ False\n"] || !seen["first++ False\n"] {
		t.Errorf("the others saw %v", seen)
	}
	bash := turnJob("a", "cat kept; kill -9 $$")
	bash.Language = execution.Bash
	if r := m.run(t, bash); string(r.Stdout) != "first+++" || r.ExitCode != 137 {
		t.Errorf("another language saw %q: %+v", r.Stdout, r)
	}
	if r := m.run(t, turnJob("a", "x = bytearray(600 << 20)")); r.Status != execution.OOM {
		t.Errorf("one that takes too much memory ended as %+v", r)
	}
	if r := m.run(t, turnJob("a", "import sys; sys.exit(3)")); r.Status != execution.Failed || r.ExitCode != 3 {
		t.Errorf("the one after it ended as %+v", r)
	}
	if r := m.run(t, turnJob("b", "import os; print(os.path.exists('kept'))")); string(r.Stdout) != "False\n" {
		t.Errorf("another turn saw %q", r.Stdout)
	}
	bound := turnJob("a", "import os; print(os.path.exists('kept'))")
	bound.BoundSecrets = []execution.BoundSecret{{Placeholder: "atoll-bound-0123456789", Value: "12345678", Hosts: []string{"a.test"}}}
	if r := m.run(t, bound); !r.Reused { // without a network they have no effect
		t.Errorf("one with other secrets saw %q: %+v", r.Stdout, r)
	}
	foreign := turnJob("a", "print(1)")
	foreign.Tenant = "other"
	if err := m.Start(t.Context(), foreign); fault.KindOf(err) != fault.Forbidden {
		t.Error("another tenant's job was met with", err)
	}
	m.EndTurn("a")
	m.EndTurn("a")
	if r := m.run(t, turnJob("a", "import os; print(os.path.exists('kept'))")); string(r.Stdout) != "False\n" {
		t.Errorf("after its end the turn saw %q", r.Stdout)
	}
}

// TestAForkBombEndsWhole: processes that are born while all are killed do not stay for the next
// job of the turn.
func TestAForkBombEndsWhole(t *testing.T) {
	m := start(t, folderFor(t), options{})
	for i := range atolltest.Count(10, 100) {
		bomb := turnJob("a", "b() { b | b & }; b; sleep 60")
		bomb.Language, bomb.Timeout = execution.Bash, 300*time.Millisecond
		if r := m.run(t, bomb); r.Status != execution.Timeout {
			t.Fatalf("bomb %d ended as %+v", i, r)
		}
		// In a pipe ps would see the others of it before they are something else than bash.
		look := turnJob("a", "ps -C bash -o stat=,pid= > /tmp/ps; grep -v '^[XZ]' /tmp/ps | grep -vw $$ || true")
		look.Language = execution.Bash
		if r := m.run(t, look); len(r.Stdout) > 0 || r.Status != execution.Success || !r.Reused {
			t.Fatalf("after bomb %d there is %q: %+v", i, r.Stdout, r)
		}
	}
}

func TestATurnsSandboxThatDiedIsReplaced(t *testing.T) {
	dir := folderFor(t)
	m := start(t, dir, options{})
	m.run(t, turnJob("a", "open('kept', 'w')"))
	left := atolltest.Trace(dir).Sandboxes()
	if len(left) != 1 {
		t.Fatalf("there are %v", left)
	}
	atolltest.KillSandbox(t, left[0])
	if r := m.run(t, turnJob("a", "import os; print(os.path.exists('kept'))")); string(r.Stdout) != "False\n" {
		t.Errorf("the next job ended as %+v", r)
	}
}

func TestIdleTurnsEnd(t *testing.T) {
	dir := folderFor(t)
	m := start(t, dir, options{turnIdle: 200 * time.Millisecond})
	m.run(t, turnJob("a", "print(1)"))
	atolltest.Until(t, 30*time.Second, "the turn's sandbox is gone", func() bool { return len(atolltest.Trace(dir).Sandboxes()) == 0 })
}

func TestATurnIsTakenOver(t *testing.T) {
	dir := folderFor(t)
	first := turnJob("a", "open('kept', 'w').write('here'); print(1, flush=True)\nimport time; time.sleep(1)")
	p := spawn(t, dir, []execution.Job{first})
	log := &fileLog{dir: dir + "/log"}
	log.await(t, first.TraceID, 2)
	p.kill(t)
	m := start(t, dir, options{})
	r := m.run(t, turnJob("a", "print(open('kept').read())"))
	if string(r.Stdout) != "here\n" {
		t.Errorf("the next job ended as %+v", r)
	}
	m.log.check(t, first.TraceID)
}

// idleTurns has a process run a job of each turn to its end, and keep the sandboxes, whose
// folders it returns.
func idleTurns(t *testing.T, dir string, turns ...string) (p *process, folders []string) {
	t.Helper()
	var jobs []execution.Job
	for _, turn := range turns {
		j := turnJob(turn, "open('kept', 'w').write('here')")
		j.Secrets, j.Env = []string{"hunter2x"}, map[string]string{"A": "of one call"}
		jobs = append(jobs, j)
	}
	p = spawn(t, dir, jobs)
	atolltest.Until(t, time.Minute, "the turns are idle", func() bool {
		folders = atolltest.Trace(dir).Sandboxes()
		idle := func(folder string) bool {
			journal := journalOf(t, folder)
			for _, gone := range []string{"write", "of one call", base64.StdEncoding.EncodeToString([]byte("hunter2x"))} {
				if strings.HasPrefix(journal, "i") && strings.Contains(journal, gone) {
					t.Fatalf("the journal of an idle turn has %q: %q", gone, journal)
				}
			}
			return strings.HasPrefix(journal, "i")
		}
		return len(folders) == len(turns) && !slices.ContainsFunc(folders, func(f string) bool { return !idle(f) })
	})
	for _, j := range jobs {
		(&fileLog{dir: filepath.Join(dir, "log")}).check(t, j.TraceID)
	}
	return p, folders
}

func journalOf(t *testing.T, folder string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, "journal"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(data)
}

func TestAnIdleTurnIsTakenOver(t *testing.T) {
	for name, end := range map[string]func(*process, *testing.T){"killed": (*process).kill, "left": (*process).end} {
		t.Run(name, func(t *testing.T) {
			dir := folderFor(t)
			p, folders := idleTurns(t, dir, "a")
			end(p, t)
			output := filepath.Join(dir, "state", engine.Server, "outputs", filepath.Base(folders[0])+".stdout")
			if err := os.WriteFile(output, nil, 0o600); err != nil { // what a kill leaves that comes a moment earlier
				t.Fatal(err)
			}
			end(spawn(t, dir, nil), t) // leaves it, too, whether it has come to open it or not
			m := start(t, dir, options{})
			if r := m.run(t, turnJob("a", "print(open('kept').read())")); string(r.Stdout) != "here\n" || !r.Reused {
				t.Errorf("the next job ended as %+v", r)
			}
			if n := len(atolltest.Trace(dir).Sandboxes()); n != 1 {
				t.Errorf("there are %d sandboxes", n)
			}
			if exists(output) {
				t.Error("the output of its last job is left")
			}
		})
	}
}

func TestAnIdleTurnThatDiedIsReplaced(t *testing.T) {
	dir := folderFor(t)
	p, folders := idleTurns(t, dir, "a")
	p.kill(t)
	atolltest.KillSandbox(t, folders[0])
	m := start(t, dir, options{})
	if r := m.run(t, turnJob("a", "import os; print(os.path.exists('kept'))")); string(r.Stdout) != "False\n" || r.Reused {
		t.Errorf("the next job ended as %+v", r)
	}
	if left := atolltest.Trace(dir).Sandboxes(); len(left) != 1 || left[0] == folders[0] {
		t.Errorf("there are %v", left)
	}
}

// unfit are sandboxes that were taken over and can run no more.
type unfit struct{ executor.Sandboxes }

type unfitSandbox struct{ executor.Claimed }

func (s unfit) OpenIdle(ctx context.Context, folder string, job *execution.Job) (executor.Claimed, error) {
	c, err := s.Sandboxes.OpenIdle(ctx, folder, job)
	return unfitSandbox{c}, err
}

func (unfitSandbox) Check() error { return errors.New("of another version") }

func TestAnIdleTurnThatIsUnfitIsReplaced(t *testing.T) {
	dir := folderFor(t)
	p, folders := idleTurns(t, dir, "a")
	p.kill(t)
	m := start(t, dir, options{sandboxes: func(s executor.Sandboxes) executor.Sandboxes { return unfit{s} }})
	if r := m.run(t, turnJob("a", "import os; print(os.path.exists('kept'))")); string(r.Stdout) != "False\n" || r.Reused {
		t.Errorf("the next job ended as %+v", r)
	}
	atolltest.Until(t, time.Minute, "the unfit one is gone", func() bool {
		left := atolltest.Trace(dir).Sandboxes()
		return len(left) == 1 && left[0] != folders[0]
	})
}

func TestATurnTakesOverOneSandbox(t *testing.T) {
	dir := folderFor(t)
	p, folders := idleTurns(t, dir, "a", "b")
	p.kill(t)
	for _, folder := range folders {
		journal := strings.Replace(journalOf(t, folder), `"Turn":"b"`, `"Turn":"a"`, 1)
		if err := os.WriteFile(filepath.Join(folder, "journal"), []byte(journal), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := start(t, dir, options{})
	if r := m.run(t, turnJob("a", "print(open('kept').read())")); string(r.Stdout) != "here\n" || !r.Reused {
		t.Errorf("the next job ended as %+v", r)
	}
	if left := atolltest.Trace(dir).Sandboxes(); len(left) != 1 {
		t.Errorf("there are %v", left)
	}
}

func TestAnIdleTurnThatIsTakenOverEnds(t *testing.T) {
	dir := folderFor(t)
	p, _ := idleTurns(t, dir, "a")
	p.kill(t)
	m, err := open(t.Context(), dir, options{}) // ends what it has when it closes
	if err == nil {
		err = m.close(time.Second)
	}
	if left := atolltest.Trace(dir).Sandboxes(); err != nil || len(left) > 0 {
		t.Errorf("left are %v: %v", left, err)
	}

	p, _ = idleTurns(t, dir, "a")
	p.kill(t)
	start(t, dir, options{turnIdle: 200 * time.Millisecond})
	atolltest.Until(t, 30*time.Second, "the turn's sandbox is gone", func() bool { return len(atolltest.Trace(dir).Sandboxes()) == 0 })
}

func TestShutdownEndsRunsWithAReason(t *testing.T) {
	dir := folderFor(t)
	m, err := open(t.Context(), dir, options{concurrency: 1, queue: 1})
	if err != nil {
		t.Fatal(err)
	}
	runs, waits := job("import time; print('begun', flush=True); time.sleep(60)"), job("print(2)")
	for _, j := range []execution.Job{runs, waits} {
		if err := m.Start(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		m.log.await(t, runs.TraceID, 2)
	}
	if err := m.close(50 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	_, _, r := m.log.check(t, runs.TraceID)
	if r.Status != execution.Failed || r.Error != "the server is shutting down" || string(r.Stdout) != "begun\n" {
		t.Errorf("the one that ran ended as %+v", r)
	}
	_, _, r = m.log.check(t, waits.TraceID)
	if r.Status != execution.Failed || !r.NotStarted || r.Kind != fault.Unavailable {
		t.Errorf("the one that waited ended as %+v", r)
	}
	if left := atolltest.Trace(dir).Sandboxes(); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

func TestHugeOutputTakesLittleMemory(t *testing.T) {
	dir := folderFor(t)
	b := openBus(t, dir)
	m := start(t, dir, options{bus: b})
	const lines = 200 << 10 // of 1 KiB
	j := job(strings.ReplaceAll(`
import sys
block = (b'x' * 1023 + b'\n') * 64
for i in range(LINES // 64): sys.stdout.buffer.write(block)`, "LINES", "(200 << 10)"))
	j.Timeout = 5 * time.Minute
	for range 2 { // what other tests have left goes, out of pools at the second time
		runtime.GC()
	}
	begun := time.Now()
	if err := b.Runner().Start(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	most := uint64(0)
	sample := time.NewTicker(20 * time.Millisecond)
	defer sample.Stop()
	for ; m.Alive(j.TraceID); <-sample.C {
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		most = max(most, s.HeapInuse)
	}
	took := time.Since(begun)
	r, err := b.Log().Result(t.Context(), j.TraceID)
	if err != nil || r.Status != execution.Success || r.StdoutBytes != lines<<10 || r.LastSeq != lines+1 || !r.Stored {
		t.Errorf("the result is %+v: %v", r, err)
	}
	t.Logf("%.0f MB/s, %d MiB of memory", lines/1024/took.Seconds(), most>>20)
	if most > 128<<20 {
		t.Errorf("%d MiB of memory were in use", most>>20)
	}
}

// TestWindowsOfATurn: its sandbox stays until the window's end, and each window is counted
// once, by the job that it began with.
func TestWindowsOfATurn(t *testing.T) {
	dir := folderFor(t)
	m := start(t, dir, options{turnIdle: 50 * time.Millisecond})
	const length = 4 * time.Second
	turn := 0
	windowed := func(code string) execution.Job {
		j := turnJob(fmt.Sprint("a", turn), code)
		j.Window = length
		return j
	}
	for ; ; turn++ {
		first := m.run(t, windowed("open('kept', 'w')"))
		time.Sleep(500 * time.Millisecond) // ten times as long as a turn waits otherwise
		second := m.run(t, windowed("print(open('kept').read())"))
		third := m.run(t, windowed("import time; time.sleep(9)"))
		if turn < 4 && !third.StartedAt.Before(first.StartedAt.Add(length)) {
			continue // the machine was too slow for three jobs in a window
		}
		if first.Windows != 1 || second.Windows != 0 || !second.Reused || second.Status != execution.Success {
			t.Errorf("%+v\n%+v", first, second)
		}
		// It runs into two more, and into others if its end is late.
		if want := int(third.CompletedAt.Sub(first.StartedAt) / length); want < 2 || third.Windows != want {
			t.Errorf("one that runs into %d more: %+v", want, third)
		}
		break
	}
	atolltest.Until(t, 30*time.Second, "the turn's sandbox is gone", func() bool { return len(atolltest.Trace(dir).Sandboxes()) == 0 })
	if r := m.run(t, windowed("import os; print(os.path.exists('kept'))")); r.Windows != 1 || r.Reused || string(r.Stdout) != "False\n" {
		t.Errorf("after it: %+v", r)
	}
}

func TestAWindowIsTakenOver(t *testing.T) {
	dir := folderFor(t)
	windowed := func(code string) execution.Job {
		j := turnJob("a", code)
		j.Window = 20 * time.Minute
		return j
	}
	first := windowed("print(1, flush=True)\nimport time; time.sleep(1)")
	p := spawn(t, dir, []execution.Job{first})
	log := &fileLog{dir: dir + "/log"}
	log.await(t, first.TraceID, 2)
	p.kill(t)
	m := start(t, dir, options{})
	if r := m.result(t, first.TraceID); r.Windows != 1 {
		t.Errorf("the one that was taken over began %d windows", r.Windows)
	}
	if r := m.run(t, windowed("print(2)")); r.Windows != 0 || !r.Reused {
		t.Errorf("the next one began %d windows", r.Windows)
	}
}

// TestFileToolRunsInATurn: it needs no interpreter and leaves no file behind.
func TestFileToolRunsInATurn(t *testing.T) {
	dir := folderFor(t)
	tool := func(code string) execution.Job {
		j := turnJob("a", code)
		j.Input.Tool = true
		return j
	}
	m := start(t, dir, options{poolSize: 1})
	if r := m.run(t, tool(`{"op": "write", "path": "f", "content": "text"}`)); r.Status != execution.Success || string(r.Stdout) != "{\"bytes\":4,\"created\":true}\n" {
		t.Errorf("%+v: %s", r, r.Stdout)
	}
	if r := m.run(t, tool(`{"op": "read", "path": "g"}`)); r.Status != execution.Failed || r.ExitCode != 1 || !strings.HasPrefix(string(r.Stdout), "{\"failed\":true}\ng: no such file or folder") {
		t.Errorf("%+v: %s", r, r.Stdout)
	}
	if r := m.run(t, tool(`{"op": "glob", "pattern": "*"}`)); string(r.Stdout) != "{\"count\":1,\"paths\":1}\nf\n" {
		t.Errorf("%+v: %s", r, r.Stdout)
	}
	// What a tool fails to share is not collected.
	j := tool(`{"op": "share", "path": "."}`)
	j.Input.Outputs = []string{"f"}
	if r := m.run(t, j); len(r.Files.Files) != 0 {
		t.Errorf("%+v", r)
	}
	j = tool(`{"op": "share", "path": "f"}`)
	j.Input.Outputs = []string{"f"}
	if r := m.run(t, j); len(r.Files.Files) != 1 || r.Files.Files[0].Bytes != 4 {
		t.Errorf("%+v", r)
	}
	if r := m.run(t, turnJob("a", "print(open('f').read())")); string(r.Stdout) != "text\n" {
		t.Errorf("%+v: %s", r, r.Stderr)
	}
}
