package e2e

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

// look is a program that prints all that it can find out about the state it was
// started in, a line for each thing.
type look struct {
	name, language, code string
}

// facts is Python that prints what the kernel knows of the process.
const facts = `
def read(p):
    with open(p, 'rb') as f: return f.read().decode()
for fd in sorted(os.listdir('/proc/self/fd'), key=int):
    try:
        st = os.fstat(int(fd)); fl = fcntl.fcntl(int(fd), fcntl.F_GETFL)
        print('fd', fd, oct(st.st_mode), st.st_uid, oct(fl), fcntl.fcntl(int(fd), fcntl.F_GETFD))
    except OSError: pass
for k in sorted(os.environ):
    if k != '` + cold + `': print('env', k, os.environ[k])
for line in read('/proc/self/status').splitlines():
    if line.split(':')[0] in ('Name Umask State Tgid TracerPid Uid Gid Groups Threads SigQ SigPnd ShdPnd SigBlk SigIgn SigCgt CapInh CapPrm CapEff CapBnd CapAmb NoNewPrivs Seccomp').split():
        if not line.startswith('Tgid'): print('status', line)
print('cwd', os.getcwd(), 'exe', os.readlink('/proc/self/exe'), 'root', os.readlink('/proc/self/root'))
print('cmdline', read('/proc/self/cmdline'))
print('limits', read('/proc/self/limits'))
print('session', os.getpgid(0) == os.getpid(), os.getsid(0) == os.getpid(), os.getppid() == 1, os.getpriority(os.PRIO_PROCESS, 0))
print('oom', read('/proc/self/oom_score_adj'), 'affinity', len(os.sched_getaffinity(0)))
print('mounts', read('/proc/self/mounts'))
print('home', sorted(os.listdir('.')), 'tmp', os.listdir('/tmp'), 'shm', os.listdir('/dev/shm'))
`

// Left out is what documentation names as the difference: gc.get_freeze_count(),
// because the interpreter's own objects are spared collection, Node's own modules
// that were loaded ahead, which descriptors the preloads keep open and atexit as
// one of the modules that come with them, and what Bash's PIPESTATUS and RANDOM hold before the
// first command.
var looks = []look{
	{"Python process", atolltest.Python, "import fcntl, os\n" + facts},
	{"Python signals", atolltest.Python, "import signal\nfor s in sorted(signal.valid_signals()): print(s, signal.getsignal(s))\nprint(signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.getitimer(signal.ITIMER_REAL), signal.set_wakeup_fd(-1))"},
	{"Python modules", atolltest.Python, "import sys\nfor m in sorted(sys.modules): print(m, sys.modules[m].__spec__ and sys.modules[m].__spec__.origin)"},
	{"Python state", atolltest.Python, `import re, sys
def show(name, value):
    if isinstance(value, (set, frozenset)): value = sorted(value)
    if isinstance(value, (list, tuple)) and len(value) > 20:
        for v in value: show(name, v)
    else: print(name, re.sub('0x[0-9a-f]+', '0x', repr(value)))
for n in sorted(dir(sys)):
    v = getattr(sys, n)
    if not callable(v) and n not in ('modules', 'path_importer_cache'): show(n, v)
show('importers', [sorted(sys.path_importer_cache), sys.meta_path, sys.path_hooks])
import builtins, gc, threading, atexit, os, time, locale, site, codecs, warnings
show('builtins', sorted(vars(builtins)))
show('gc', [gc.isenabled(), gc.callbacks, gc.get_threshold(), gc.get_debug()])
show('threads', [str(t).split(',')[0] for t in threading.enumerate()])
show('atexit', atexit._ncallbacks())
show('time', time.tzname)
show('umask', os.umask(18))
show('locale', sorted(locale.localeconv().items(), key=str))
show('site', sorted(vars(site)))
show('os', sorted(vars(os)))
show('tracing', [sys.getprofile(), sys.gettrace(), threading.gettrace(), sys.monitoring.get_tool(0)])
show('environ', [len(os.environ) - ('` + cold + `' in os.environ), os.environb[b'HOME'], len(os.environ) == len(os.environb)])
show('warnings', warnings.filters)
show('main', sorted(vars(sys.modules['__main__'])))
show('streams', [getattr(f, n) for f in (sys.stdin, sys.stdout, sys.stderr) for n in ('name', 'mode', 'encoding', 'errors', 'line_buffering', 'write_through')])
f = sys._getframe()
show('frame', [f.f_back, f.f_code.co_filename, f.f_lineno, f.f_code.co_name])
`},
	{"Python objects of ours", atolltest.Python, `import gc, sys
found = [o for o in gc.get_objects() if 'atoll' in str(getattr(o, '__module__', '')) or 'atoll' in str(getattr(getattr(o, '__code__', None), 'co_filename', ''))]
print(found, [k for k in sys.path_importer_cache if 'atoll' in k], [m for m in list(sys.modules) if 'atoll' in m])
print([c for c in sys.meta_path])
`},
	{"Python with preloads: process", atolltest.Python, "import fcntl, os, numpy, pandas\n" + strings.Replace(facts, "print('fd', fd,", "print('fd', fd if int(fd) < 3 else 'N',", 1)},
	{"Python with preloads: state", atolltest.Python, `import pandas, sys, signal, warnings, threading, gc, os, random
for m in sorted(sys.modules): m == 'atexit' or print(m)
print(sys.path, sys.meta_path, sys.argv, sorted(globals()))
for s in sorted(signal.valid_signals()): print(s, signal.getsignal(s))
for f in warnings.filters: print(f)
print([t.name for t in threading.enumerate()], gc.isenabled(), gc.callbacks)
`},
	{"Node process", atolltest.Node, "const r = require('child_process').spawnSync('python3', ['-c', process.env.LOOK], {stdio: 'inherit'});\n"},
	{"Node state", atolltest.Node, `const fs = require('fs');
console.log(Object.entries(process.env).filter(([k]) => k !== '` + cold + `'));
for (const line of fs.readFileSync('/proc/self/status', 'utf8').split('\n')) if (/^(Name|Uid|Gid|Groups|SigBlk|SigIgn|SigCgt|Cap|NoNew|Seccomp|Threads)/.test(line)) console.log(line);
console.log(fs.readFileSync('/proc/self/cmdline', 'utf8'), fs.readFileSync('/proc/self/limits', 'utf8'));
console.log(fs.readdirSync('/proc/self/fd').map(f => { try { return f + ' ' + fs.readlinkSync('/proc/self/fd/' + f).replace(/\d+/g, 'N') } catch { return '' } }).filter(Boolean));
console.log(Object.keys(require.cache), Object.keys(module.constructor._pathCache), module.constructor._extensions, module.constructor.globalPaths, module.children, module.parent, require.main === module);
console.log(Reflect.ownKeys(globalThis).map(String).sort(), process.execArgv, process.argv, process.title, process.cwd(), process.umask());
console.log(process.eventNames(), process.getActiveResourcesInfo());
console.log(new Error('x').stack, Error.prepareStackTrace, require('module').isBuiltin('fs'));
console.log(process._getActiveHandles().length, process._getActiveRequests().length, process._preload_modules, require('vm').constants !== undefined);
`},
	{"Bash state", atolltest.Bash, `declare -p | grep -v -e ` + cold + ` -e EPOCH -e RANDOM -e BASHPID -e '\$\$' -e ' PPID' -e 'BASH_ARG' -e SECONDS -e PIPESTATUS -e ' _='
shopt; set -o; trap; alias; hash 2>&1; ulimit -a; umask; jobs; enable | wc -l; declare -F; dirs; history; bind -l 2>/dev/null | wc -l
echo "$0" "$#" "$-" "${BASH_SOURCE[@]}" "${BASH_LINENO[@]}" "$LINENO" "$BASH_SUBSHELL" "${BASH_ARGC[@]}" "${BASH_ARGV[@]}"
`},
	{"Bash process", atolltest.Bash, `for f in /proc/$$/fd/*; do echo "${f##*/} $(readlink "$f" | tr -d 0-9)"; done
tr '\0' '\n' < /proc/$$/cmdline; grep -e Sig -e Cap -e Uid -e Gid -e Groups -e Name -e Seccomp -e NoNew /proc/$$/status
env | grep -v -e ` + cold + ` -e ^_= | sort; cat /proc/self/mounts`},
}

// TestWarmLooksFreshlyStarted compares what a program sees of a warm interpreter
// with what it sees of one that was started for it.
func TestWarmLooksFreshlyStarted(t *testing.T) {
	for _, l := range looks {
		t.Run(strings.ReplaceAll(l.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			s := shared(t)
			run := func(env map[string]string) string {
				r := s.Run(t, atolltest.Program{Language: l.language, Code: l.code, Env: env})
				if r.Status != http.StatusOK || r.ExitCode != 0 || r.Stderr != "" || r.Stdout == "" {
					if l.name != "Node process" {
						t.Fatal(r)
					}
				}
				return r.Stdout
			}
			if l.name == "Node process" {
				l.code = strings.Replace(l.code, "process.env.LOOK", "'import fcntl, os\\n' + "+fmt.Sprintf("%q", strings.ReplaceAll(facts, cold, "X"))+`.replaceAll("'X'", "'`+cold+`'")`, 1)
			}
			compareLines(t, withoutMark(run(map[string]string{cold: "1"})), withoutMark(run(nil)))
		})
	}
}

// fileLocks is the limit that holds the mark of a run: see docs/contribute/guest-protocol.md.
var fileLocks = regexp.MustCompile(`(Max file locks|file locks) .*`)

func withoutMark(text string) string { return fileLocks.ReplaceAllString(text, "file locks") }

// compareLines reports the lines that only one of two texts has.
func compareLines(t *testing.T, cold, warm string) {
	t.Helper()
	if cold == warm {
		return
	}
	a, b := strings.Split(cold, "\n"), strings.Split(warm, "\n")
	for _, line := range a {
		if !slices.Contains(b, line) {
			t.Errorf("only freshly started: %.1500s", line)
		}
	}
	for _, line := range b {
		if !slices.Contains(a, line) {
			t.Errorf("only warm:            %.1500s", line)
		}
	}
	if !t.Failed() {
		t.Errorf("the same lines in another order:\n%s\n%s", cold, warm)
	}
}
