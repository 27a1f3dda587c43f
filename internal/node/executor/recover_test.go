package executor_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/node/engine"
	"github.com/atoll-run/atoll/internal/node/executor"
	"github.com/atoll-run/atoll/test/atolltest"
)

// child is an executor on a folder that starts the jobs in it, says so, and goes
// on until it is killed, or told to leave by the end of its input.
func child(dir string) error {
	ctx := context.Background()
	o := options{concurrency: 16, detach: true}
	if at := filepath.Join(dir, "stuck"); exists(at) {
		o.blobs = stuck(at)
	}
	m, err := open(ctx, dir, o)
	if err != nil {
		return err
	}
	var jobs []execution.Job
	data, err := os.ReadFile(filepath.Join(dir, "jobs"))
	if err == nil {
		err = errors.Join(json.Unmarshal(data, &jobs), os.Remove(filepath.Join(dir, "jobs")))
	} else if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return err
	}
	for _, j := range jobs {
		if err := m.Start(ctx, j); err != nil {
			return err
		}
	}
	fmt.Println("started")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err == nil {
		select {} // the test writes nothing
	}
	defer fmt.Fprint(os.Stderr, m.messages.String())
	return m.close(0)
}

// process is a child that runs.
type process struct {
	cmd   *exec.Cmd
	leave func() error // closes its input
}

// spawn starts a child and returns when it has started its jobs.
func spawn(t *testing.T, dir string, jobs []execution.Job) *process {
	t.Helper()
	if len(jobs) > 0 {
		data, err := json.Marshal(jobs)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "jobs"), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "started\n" {
		t.Fatalf("the other process said %q: %v", line, err)
	}
	return &process{cmd, in.Close}
}

func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait() // it was killed, it says
}

// end has the child leave by itself.
func (p *process) end(t *testing.T) {
	t.Helper()
	if err := errors.Join(p.leave(), p.cmd.Wait()); err != nil {
		t.Fatal(err)
	}
}

// program is a job and how it ends undisturbed.
type program struct {
	execution.Job
	stdout, stderr string
	status         execution.Status
	exit           int
}

// programs are of every kind that a take-over may come upon.
func programs() []program {
	slow := func(n, exit int) program {
		var out, err strings.Builder
		for i := range n {
			fmt.Fprintf(&out, "line %d with a [redacted] in it\n", i)
			if i%10 == 0 {
				fmt.Fprintf(&err, "%d so far\n", i)
			}
		}
		j := job(fmt.Sprintf(`
import sys, time
for i in range(%d):
    sys.stdout.write("line %%d with a hun" %% i); sys.stdout.flush()
    sys.stdout.write("ter2x in it\n"); sys.stdout.flush()
    if i %% 10 == 0: print(i, "so far", file=sys.stderr)
    time.sleep(0.01)
sys.exit(%d)`, n, exit))
		j.Secrets = []string{"hunter2x"}
		return program{j, out.String(), err.String(), status(exit), exit}
	}
	fast := func(lines int) program {
		var out strings.Builder
		for i := range lines {
			fmt.Fprintf(&out, "%d%s\n", i, strings.Repeat("y", 500))
		}
		j := job(fmt.Sprintf("for i in range(%d): print(i, 'y' * 500, sep='')", lines))
		j.MaxOutput = 1 << 10
		j.Timeout = 2 * time.Minute // a slow machine takes half of it
		return program{j, out.String(), "", execution.Success, 0}
	}
	quiet := program{job("import time; time.sleep(3); print('done')"), "done\n", "", execution.Success, 0}
	late := program{job("import time; print('begun', flush=True); time.sleep(60)"), "begun\n", "", execution.Timeout, -1}
	late.Timeout = 4 * time.Second
	return []program{slow(100, 5), slow(400, 0), slow(600, 7), fast(150_000), quiet, late}
}

func status(exit int) execution.Status {
	if exit == 0 {
		return execution.Success
	}
	return execution.Failed
}

func jobsOf(all []program) (jobs []execution.Job) {
	for _, p := range all {
		jobs = append(jobs, p.Job)
	}
	return jobs
}

// check waits for a program's end and looks at everything that is left of it.
func (p *program) check(t *testing.T, dir string, m *machine) {
	t.Helper()
	m.result(t, p.TraceID)
	stdout, stderr, r := m.log.check(t, p.TraceID)
	if stdout != p.stdout || stderr != p.stderr {
		t.Errorf("the log has %d and %d bytes, not %d and %d; %q", len(stdout), len(stderr), len(p.stdout), len(p.stderr), stderr)
	}
	if r.Status != p.status || r.ExitCode != p.exit || r.NotStarted {
		r.Stdout, r.Stderr = nil, nil
		t.Errorf("%.60q ended as %+v", p.Code, r)
	}
	stored, err := os.ReadFile(filepath.Join(dir, "blobs", execution.OutputName(p.Tenant, p.TraceID, execution.Stdout)))
	if r.Stored && (err != nil || string(stored) != p.stdout) {
		t.Errorf("stored are %d of %d bytes: %v", len(stored), len(p.stdout), err)
	}
	if !r.Stored && string(r.Stdout) != p.stdout {
		t.Errorf("the answer has %d of %d bytes", len(r.Stdout), len(p.stdout))
	}
}

func TestRunsAreTakenOverFromAKilledProcess(t *testing.T) {
	for range atolltest.Count(1, 20) {
		dir := folderFor(t)
		all := programs()
		p := spawn(t, dir, jobsOf(all))
		// No file keeps the jobs that wait for a sandbox here.
		atolltest.Until(t, time.Minute, "the quiet one has a sandbox", func() bool { return hasSandbox(dir, all[4].TraceID) })
		log := &fileLog{dir: filepath.Join(dir, "log")}
		for _, i := range []int{0, 1, 2, 3, 5} { // not the quiet one
			seq := int64(4)
			if all[i].status == execution.Timeout {
				seq = 2
			}
			log.await(t, all[i].TraceID, seq)
		}
		for range 2 { // the load: it is killed at any moment, and is away for a while
			time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
			p.kill(t)
			time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
			p = spawn(t, dir, nil)
		}
		p.kill(t)
		time.Sleep(1200 * time.Millisecond) // the load: no server runs, and one of them ends meanwhile
		m := start(t, dir, options{})
		for i := range all {
			all[i].check(t, dir, m)
		}
	}
}

func TestRunsAreTakenOverFromOneThatLeft(t *testing.T) {
	dir := folderFor(t)
	all := programs()
	p := spawn(t, dir, jobsOf(all))
	atolltest.Until(t, time.Minute, "the quiet one has a sandbox", func() bool { return hasSandbox(dir, all[4].TraceID) })
	log := &fileLog{dir: filepath.Join(dir, "log")}
	for _, i := range []int{0, 1, 2, 3, 5} {
		log.await(t, all[i].TraceID, 2)
	}
	if err := p.leave(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	m := start(t, dir, options{})
	for i := range all {
		all[i].check(t, dir, m)
	}
}

// hasSandbox reports whether a job has begun, by the journals, which begin with
// their jobs.
func hasSandbox(dir, traceID string) bool { return sandboxOf(dir, traceID) != "" }

// sandboxOf returns the folder of a job's sandbox, "" if it has none.
func sandboxOf(dir, traceID string) string {
	for _, path := range atolltest.Trace(dir).Sandboxes() {
		data, _ := os.ReadFile(filepath.Join(path, "journal")) // not there yet, or no more
		if bytes.Contains(data[:min(len(data), 4<<10)], []byte(traceID)) {
			return path
		}
	}
	return ""
}

func TestWhatCannotBeTakenOverFails(t *testing.T) {
	dir := folderFor(t)
	j := job("import time\nprint('begun', flush=True)\ntime.sleep(60)")
	p := spawn(t, dir, []execution.Job{j})
	log := &fileLog{dir: filepath.Join(dir, "log")}
	log.await(t, j.TraceID, 2)
	p.kill(t)
	left := atolltest.Trace(dir).Sandboxes()
	if len(left) != 1 || !executor.HasJob(left[0]) {
		t.Fatalf("left is %v", left)
	}
	atolltest.KillSandbox(t, left[0])
	outputs := filepath.Join(dir, "state", engine.Server, "outputs")
	if err := os.WriteFile(filepath.Join(outputs, filepath.Base(left[0])+".files"), []byte("y"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := start(t, dir, options{})
	r := m.result(t, j.TraceID)
	if r.Status != execution.Failed || r.ExitCode != -1 || !strings.Contains(r.Error, "could not be taken over") || string(r.Stdout) != "begun\n" {
		t.Errorf("the result is %+v", r)
	}
	if n := m.count(t, "atoll_takeovers_total"); n != 1 {
		t.Errorf("%v take-overs were counted", n)
	}
	atolltest.Until(t, time.Minute, "its outputs are gone", func() bool {
		left, err := os.ReadDir(outputs)
		return err == nil && len(left) == 0
	})
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// The process is killed while it stores the files that programs give back: after
// their ends, and before their results.
func TestFilesAreCollectedAfterAKill(t *testing.T) {
	dir := folderFor(t)
	at := filepath.Join(dir, "stuck")
	if err := os.Mkdir(at, 0o700); err != nil {
		t.Fatal(err)
	}
	// How often a program has run shows in runs; large is more than the guest keeps of
	// output that no host has taken.
	const code = "open('runs', 'a').write('x'); open('large', 'w').write('y' * (4 << 20))\n"
	silent, loud, dies := job(code), job(code+"print('said')"), job("open('runs', 'a').write('x'); print('said')")
	all := []execution.Job{silent, loud, dies}
	for i := range all {
		all[i].Input.Outputs = []string{"runs", "large"}
	}
	p := spawn(t, dir, all)
	for _, j := range all {
		atolltest.Until(t, time.Minute, "files are being stored", func() bool { return exists(filepath.Join(at, j.TraceID)) })
	}
	p.kill(t)
	if err := os.RemoveAll(at); err != nil {
		t.Fatal(err)
	}
	atolltest.KillSandbox(t, sandboxOf(dir, dies.TraceID))
	m := start(t, dir, options{})
	for _, j := range []execution.Job{silent, loud} {
		m.result(t, j.TraceID)
		stdout, _, r := m.log.check(t, j.TraceID)
		want := []execution.OutputFile{{Name: "runs", Bytes: 1}, {Name: "large", Bytes: 4 << 20}}
		if r.Status != execution.Success || !slices.Equal(r.Files.Files, want) || stdout != strings.Repeat("said\n", strings.Count(j.Code, "print")) {
			t.Errorf("the result is %+v, the output %q", r, stdout)
		}
		stored, err := os.ReadFile(filepath.Join(dir, "blobs", execution.FilesName(j.Tenant, j.TraceID)))
		if err != nil || string(stored) != "x"+strings.Repeat("y", 4<<20) {
			t.Errorf("stored are %d bytes: %v", len(stored), err)
		}
		if r.CompletedAt.Before(r.StartedAt) {
			t.Errorf("completed at %s, started at %s", r.CompletedAt, r.StartedAt)
		}
	}
	r := m.result(t, dies.TraceID)
	if r.Status != execution.Failed || !strings.Contains(r.Error, "could not be stored") || string(r.Stdout) != "said\n" || len(r.Files.Files) > 0 {
		t.Errorf("the result is %+v", r)
	}
	left, err := os.ReadDir(filepath.Join(dir, "state", engine.Server, "outputs"))
	if err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}
