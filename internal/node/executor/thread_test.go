package executor_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/idmap"
	"github.com/atoll-run/atoll/test/atolltest"
)

// TestAThreadKeepsItsHome: what programs leave in their home is there for the
// next one, whatever its language, and nothing else is.
func TestAThreadKeepsItsHome(t *testing.T) {
	m := start(t, folderFor(t), options{})
	state := ""
	step := func(language, code, want string) map[string]string {
		t.Helper()
		r := m.run(t, threadJob("t", state, language, code))
		if r.Status != execution.Success || r.Thread == nil || strings.TrimSpace(string(r.Stdout)) != want {
			t.Fatalf("%s: %+v, thread %+v: %s%s", code, r, r.Thread, r.Stdout, r.Stderr)
		}
		state = r.Thread.State
		return m.homes.restored(t, state)
	}
	files := step("python", `
import os
print(os.getcwd(), os.listdir())
open('a', 'w').write('of python')
os.makedirs('deep/er')
open('/home/user/deep/er/b', 'w').write('more')
open('/tmp/c', 'w').write('not kept')
os.symlink('/etc/passwd', 'link')
`, "/home/user ['main.py']")
	if !maps.Equal(files, map[string]string{"a": "of python", "deep/er/b": "more"}) {
		t.Errorf("kept: %q", files)
	}
	step("bash", `cat a deep/er/b; ls /tmp; readlink link; ls; echo of bash >>a; stat -c %U a deep`, "of pythonmore/etc/passwd\na\ndeep\nlink\nmain.sh\nuser\nuser")
	files = step("node", `const fs = require('fs'); console.log(fs.readFileSync('a', 'utf8').split('\n')[0], fs.readdirSync('.').join()); fs.rmSync('deep', {recursive: true})`,
		"of pythonof bash a,deep,link,main.js")
	if keys := slices.Sorted(maps.Keys(files)); !slices.Equal(keys, []string{"a"}) {
		t.Errorf("kept: %q", files)
	}
	key := threadJob("t", "", "bash", "").Thread.Key
	for _, text := range []string{string(key), fmt.Sprint(key), fmt.Sprintf("%x", key), base64.StdEncoding.EncodeToString(key)} {
		if strings.Contains(m.messages.String(), text) {
			t.Errorf("the log has the key %q", text)
		}
	}
	// An older state is still what it was.
	before := state
	step("bash", "rm a", "")
	state = before
	step("bash", "cat a", "of pythonof bash")
}

// runOut runs a job of a thread that runs out of its time once it has written something. The time
// runs from the program's start: one that is kept from writing for so long gets twice as much.
func (m *machine) runOut(t *testing.T, j execution.Job, wrote string) (r execution.Result) {
	t.Helper()
	for j.Timeout = time.Second; j.Timeout < 20*time.Second; j.Timeout *= 2 {
		j.TraceID = execution.NewTraceID()
		if r = m.run(t, j); r.Status != execution.Timeout || r.Thread == nil || strings.HasSuffix(string(r.Stdout), wrote) {
			break
		}
	}
	return r
}

// TestTheEndOfAProgramDecidesAboutItsThread: an end of its own counts, one by
// others leaves the thread as it was.
func TestTheEndOfAProgramDecidesAboutItsThread(t *testing.T) {
	m := start(t, folderFor(t), options{})
	for name, c := range map[string]struct {
		code    string
		timeout bool
		cancel  bool
		status  execution.Status
		kept    bool
	}{
		"failure":  {code: "echo x >a; exit 3", status: execution.Failed, kept: true},
		"time-out": {code: "echo x >a; echo on; sleep 100", timeout: true, status: execution.Timeout, kept: true},
		"cancel":   {code: "echo x >a; echo on; sleep 100", cancel: true, status: execution.Cancelled},
		// With Python and the sandbox's kernel about 547 MiB: more than the limit of 512 MiB, where
		// the host comes, and less than the group's own of 576 MiB, with which the sandbox ends.
		"memory": {code: "echo x >a; python3 -c '\nimport time\nb = bytearray(528 << 20)\ntime.sleep(60)'", status: execution.OOM, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := threadJob(name, "", "bash", c.code)
			var r execution.Result
			switch {
			case c.timeout:
				r = m.runOut(t, j, "on\n")
			case c.cancel:
				begun := m.log.begun(j.TraceID)
				if err := m.Start(t.Context(), j); err != nil {
					t.Fatal(err)
				}
				<-begun
				if err := m.Cancel(t.Context(), j.TraceID); err != nil {
					t.Fatal(err)
				}
				r = m.result(t, j.TraceID)
			default:
				r = m.run(t, j)
			}
			if r.Status != c.status || (r.Thread != nil) != c.kept {
				t.Fatalf("%+v, thread %+v", r, r.Thread)
			}
			if c.kept {
				if got := m.homes.restored(t, r.Thread.State); got["a"] != "x\n" || len(got) != 1 {
					t.Errorf("kept: %q", got)
				}
			}
			// The next job finds what counts, in this process too.
			state := ""
			if r.Thread != nil {
				state = r.Thread.State
			}
			if r := m.run(t, threadJob(name, state, "bash", "cat a || true")); c.kept != (string(r.Stdout) == "x\n") {
				t.Errorf("the next job reads %q%q", r.Stdout, r.Stderr)
			}
		})
	}
}

// TestWhatAProgramLeavesRunningIsEndedFirst: nothing writes to a home that is
// being saved, or after it.
func TestWhatAProgramLeavesRunningIsEndedFirst(t *testing.T) {
	m := start(t, folderFor(t), options{})
	r := m.run(t, threadJob("t", "", "bash", `
for i in 1 2 3; do setsid bash -c 'while :; do date +%s%N >"$0".new; mv "$0".new "$0"; done' w$i </dev/null & done
until [ -e w1 -a -e w2 -a -e w3 ]; do sleep .01; done
echo done
`))
	if r.Status != execution.Success || r.Thread == nil {
		t.Fatalf("%+v: %s", r, r.Stderr)
	}
	first := m.homes.restored(t, r.Thread.State)
	again := m.run(t, threadJob("t", r.Thread.State, "bash", "cat w1 w2 w3; pgrep date"))
	if want := first["w1"] + first["w2"] + first["w3"]; string(again.Stdout) != want || want == "" {
		t.Errorf("the next job reads %q, saved was %q", again.Stdout, want)
	}
}

// TestAThreadThatCannotBeSavedIsAsItWas: the Result says why.
func TestAThreadThatCannotBeSavedIsAsItWas(t *testing.T) {
	m := start(t, folderFor(t), options{})
	r := m.run(t, threadJob("t", "", "bash", "echo 1 >a"))
	state := r.Thread.State
	m.homes.blobs.away.Store(true)
	r = m.run(t, threadJob("t", state, "bash", "head -c 100000 /dev/urandom >a; echo out"))
	if r.Status != execution.Failed || r.Thread != nil || !strings.Contains(r.Error, "not saved") || string(r.Stdout) != "out\n" || r.ExitCode != -1 {
		t.Errorf("%+v: %s", r, r.Stdout)
	}
	m.homes.blobs.away.Store(false)
	j := threadJob("t", state, "bash", "cat a; head -c 3000000 /dev/urandom >b")
	j.Thread.Quota = 1 << 20
	r = m.run(t, j)
	if string(r.Stdout) != "1\n" || r.Thread != nil || r.Status != execution.Failed || !strings.Contains(r.Error, "MiB") {
		t.Errorf("%+v: %s", r, r.Stdout)
	}
	// A failure of the program is named, too.
	j = threadJob("t", state, "bash", "ls; head -c 3000000 /dev/urandom >b; echo written; exec sleep 100")
	j.Thread.Quota = 1 << 20
	r = m.runOut(t, j, "written\n")
	if strings.TrimSuffix(string(r.Stdout), "written\n") != "a\nmain.sh\n" || r.Thread != nil || r.Status == execution.Success || !strings.Contains(r.Error, "MiB") {
		t.Errorf("%+v: %s", r, r.Stdout)
	}
}

// TestAProgramSeesItsQuota checks that a program with a thread sees its home's quota as the size of
// the disk.
func TestAProgramSeesItsQuota(t *testing.T) {
	m := start(t, folderFor(t), options{})
	j := threadJob("t", "", "bash", "head -c 3M /dev/urandom >a; df -B1M --output=size,used ~ | tail -n 1")
	j.Thread.Quota = 32 << 20
	r := m.run(t, j)
	if got := strings.Fields(string(r.Stdout)); r.Status != execution.Success || !slices.Equal(got, []string{"32", "4"}) {
		t.Errorf("it sees %q: %+v", got, r)
	}
}

// TestAProgramThatFillsItsHomeIsEnded, long before the disk is full.
func TestAProgramThatFillsItsHomeIsEnded(t *testing.T) {
	m := start(t, folderFor(t), options{})
	j := threadJob("t", "", "bash", "while :; do head -c 4000000 /dev/zero >>file; done")
	j.Thread.Quota = 32 << 20
	begun := time.Now()
	r := m.run(t, j)
	if r.Status != execution.Failed || r.Thread != nil || !strings.Contains(r.Error, "quota") || !strings.Contains(r.Error, "32 MiB") {
		t.Errorf("%+v", r)
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("it was ended after %s", took)
	}
	j = threadJob("t", "", "bash", "i=0; while :; do mkdir $((i++)); done")
	j.Thread.Quota = 1 << 20
	if r := m.run(t, j); r.Status != execution.Failed || !strings.Contains(r.Error, "1 MiB") {
		t.Errorf("with folders alone: %+v", r)
	}
	if r := m.run(t, threadJob("t", "", "bash", "ls")); string(r.Stdout) != "main.sh\n" || r.Thread == nil {
		t.Errorf("the next job: %+v: %s", r, r.Stdout)
	}
}

func TestAThreadThatCannotBeHadIsRefused(t *testing.T) {
	m := start(t, folderFor(t), options{})
	j := threadJob("t", "", "bash", "ls")
	j.Turn = "turn"
	if err := m.Start(t.Context(), j); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a thread in a turn: %v", err)
	}
	r := m.run(t, threadJob("t", strings.Repeat("ab", 16), "bash", "ls"))
	if !r.NotStarted || r.Thread != nil || r.Error == "" {
		t.Errorf("a state that there is not: %+v", r)
	}
	j = threadJob("t", "", "bash", "ls")
	j.Tenant, j.Thread.Key = "other", nil
	if r := m.run(t, j); !r.NotStarted || r.Thread != nil || r.Kind != fault.Unavailable || !strings.Contains(r.Error, "no key") {
		t.Errorf("a thread whose key the executor does not have: %+v", r)
	}
	if left, err := filepath.Glob(filepath.Join(m.homes.dir, "threads", "other")); err != nil || left != nil {
		t.Errorf("it left %q, %v", left, err)
	}
	// Two jobs at a time: one of them is told so.
	first := threadJob("t", "", "bash", "echo on; sleep 100")
	begun := m.log.begun(first.TraceID)
	if err := m.Start(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	<-begun
	if r := m.run(t, threadJob("t", "", "bash", "ls")); !r.NotStarted || r.Kind != fault.Conflict {
		t.Errorf("the second job of a thread: %+v", r)
	}
	if err := m.Cancel(t.Context(), first.TraceID); err != nil {
		t.Fatal(err)
	}
	if r := m.run(t, threadJob("t", "", "bash", "ls")); r.Status != execution.Success {
		t.Errorf("after that: %+v", r)
	}
}

// TestAHomeBelongsToNoUserOfTheHost: what programs make in it belongs to no user of the
// machine, and leads nowhere.
func TestAHomeBelongsToNoUserOfTheHost(t *testing.T) {
	dir := folderFor(t)
	m := start(t, dir, options{})
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("the host's"), 0o644); err != nil {
		t.Fatal(err)
	}
	j := threadJob("t", "", "bash", "exec 2>/tmp/errors; echo x >file; ln -s "+secret+" out; cat out; ls /.home; cp /bin/true suid; chmod 4755 suid; mknod null c 1 3; cat /tmp/errors; sleep 100")
	begun := m.log.begun(j.TraceID)
	if err := m.Start(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	<-begun
	homes, err := filepath.Glob(filepath.Join(dir, "state", "*", "homes", "sb-*", "home"))
	if err != nil || len(homes) != 1 {
		t.Fatalf("homes: %q, %v", homes, err)
	}
	for _, name := range []string{"file", "out", "suid", "."} {
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(homes[0], name), &st); err != nil || st.Uid != idmap.Base+runtime.UID || st.Gid != idmap.Base+runtime.GID {
			t.Errorf("%s belongs to %d:%d, %v", name, st.Uid, st.Gid, err)
		}
	}
	if err := m.Cancel(t.Context(), j.TraceID); err != nil {
		t.Fatal(err)
	}
	out, _, _ := m.log.check(t, j.TraceID)
	if strings.Count(out, "No such file") != 2 || !strings.Contains(out, "null") {
		t.Errorf("the program found out: %q", out)
	}
}

// TestAKillLeavesAThreadOldOrNew: a server that is killed at any moment leaves
// each thread with what it had, or with all that its program left.
func TestAKillLeavesAThreadOldOrNew(t *testing.T) {
	const threads = 4
	dir := folderFor(t)
	m, err := open(t.Context(), dir, options{})
	if err != nil {
		t.Fatal(err)
	}
	var states [threads]string
	var have [threads]map[string]string
	for i := range threads {
		r := m.run(t, threadJob(fmt.Sprint("t", i), "", "bash", "echo 0 >round"))
		states[i], have[i] = r.Thread.State, map[string]string{"round": "0\n"}
	}
	if err := m.close(0); err != nil {
		t.Fatal(err)
	}
	news, olds := 0, 0
	for round := range atolltest.Count(12, 60) {
		var jobs []execution.Job
		for i := range threads {
			// The program sees what there was, and changes all of it bit by bit.
			jobs = append(jobs, threadJob(fmt.Sprint("t", i), states[i], "bash", fmt.Sprintf(`
cat round
echo %d >round; for i in 1 2 3 4 5 6 7 8; do echo %[1]d >f$i; head -c 50000 /dev/urandom | sha256sum >>f$i; done
cat f* | sha256sum >sum`, round+1)))
		}
		p := spawn(t, dir, jobs)
		if round%4 > 0 { // while programs run, and homes are saved
			(&fileLog{dir: filepath.Join(dir, "log")}).await(t, jobs[round%threads].TraceID, 2)
		}
		time.Sleep(rand.N(400 * time.Millisecond)) // any moment
		p.kill(t)
		m, err := open(t.Context(), dir, options{})
		if err != nil {
			t.Fatal(err)
		}
		for i, j := range jobs {
			if !m.Alive(j.TraceID) {
				if e, err := m.log.newest(j.TraceID, func(logLine) bool { return true }); err == nil && e.Result == nil {
					olds++ // it had not been begun
					continue
				}
			}
			r := m.result(t, j.TraceID)
			if r.Thread == nil {
				olds++
				if r.Status == execution.Success {
					t.Errorf("round %d: a success that was not saved: %+v", round, r)
				}
				continue
			}
			news++
			if want := have[i]["round"]; string(r.Stdout) != want {
				t.Errorf("round %d: thread %d began with %q, not %q", round, i, r.Stdout, want)
			}
			states[i], have[i] = r.Thread.State, m.homes.restored(t, r.Thread.State)
			if have[i]["round"] != fmt.Sprintln(round+1) || len(have[i]) != 10 {
				t.Errorf("round %d: thread %d has %q", round, i, slices.Sorted(maps.Keys(have[i])))
			}
			var all strings.Builder
			for n := range 8 {
				all.WriteString(have[i][fmt.Sprint("f", n+1)])
			}
			if want := fmt.Sprintf("%x  -\n", sha256.Sum256([]byte(all.String()))); have[i]["sum"] != want {
				t.Errorf("round %d: thread %d is of two rounds", round, i)
			}
		}
		if err := m.close(0); err != nil {
			t.Fatal(err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "state", "*", "homes", "*")); len(left) > 0 {
			t.Errorf("round %d: left behind: %q", round, left)
		}
		if left := atolltest.Trace(dir).Sandboxes(); len(left) > 0 {
			t.Errorf("round %d: sandboxes are left: %v", round, left)
		}
		if t.Failed() {
			t.Fatal(m.messages.String())
		}
	}
	t.Logf("%d new, %d old", news, olds)
	if news == 0 {
		t.Error("no thread was ever saved")
	}
}

// TestPackagesStay: what pip and npm install in one run the next one imports, and
// finds the programs of on PATH.
func TestPackagesStay(t *testing.T) {
	m := start(t, folderFor(t), options{})
	state := ""
	step := func(language, code, want string) {
		t.Helper()
		j := threadJob("t", state, language, code)
		j.Timeout = 2 * time.Minute
		r := m.run(t, j)
		if r.Status != execution.Success || r.Thread == nil || !strings.HasSuffix(strings.TrimSpace(string(r.Stdout)), want) {
			t.Fatalf("%s: %+v: %s%s", code, r, r.Stdout, r.Stderr)
		}
		state = r.Thread.State
	}
	// Packages from folders: an installation from elsewhere needs a network.
	step("python", `
import os, zipfile
def wheel(name):
    info = f"{name}-1.dist-info"
    with zipfile.ZipFile(f"{name}-1-py3-none-any.whl", "w") as z:
        z.writestr(f"{name}.py", f"def main(): print('{name} runs')")
        z.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        z.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr(f"{info}/entry_points.txt", f"[console_scripts]\n{name}={name}:main\n")
        z.writestr(f"{info}/RECORD", "")
wheel("plainly"); wheel("foruser")
for name in "locally", "globally":
    os.makedirs("src/" + name)
    open(f"src/{name}/package.json", "w").write('{"name": "%s", "version": "1.0.0", "bin": "run.js"}' % name)
    open(f"src/{name}/index.js", "w").write(f"module.exports = '{name} loaded'")
    open(f"src/{name}/run.js", "w").write(f"#!/usr/bin/env node\nconsole.log('{name} runs')")
print("made")`, "made")
	step("bash", "pip install --no-index -q ./plainly-1-py3-none-any.whl && pip install --user --no-index -q ./foruser-1-py3-none-any.whl && echo done", "done")
	step("python", "import plainly, foruser, sys\nplainly.main(); foruser.main()", "plainly runs\nforuser runs")
	step("bash", "plainly; foruser", "plainly runs\nforuser runs")
	step("bash", "npm install --offline --silent --install-links ./src/locally && npm install -g --offline --silent --install-links ./src/globally && rm -r src && echo done", "done")
	step("bash", "locally; globally", "locally runs\nglobally runs")
	step("node", "console.log(require('locally'))", "locally loaded")
	step("python", "import plainly; print('numpy' in __import__('sys').modules); plainly.main()", "False\nplainly runs")
	step("python", "import numpy, plainly; print(numpy.arange(3).sum()); plainly.main()", "3\nplainly runs")
}
