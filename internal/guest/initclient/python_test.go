package initclient_test

import (
	"testing"

	"github.com/atoll-run/atoll/internal/guest/guesttest"
)

// endsLate begins programs that leave something to be destroyed where Python's
// own start-up keeps its things.
const endsLate = `
import os, sys
class End:
    def __del__(self, write=os.write): write(1, b"destroyed\n")
    def find_spec(self, name, path=None, target=None): return None
print("on", flush=True)
`

// pythonEnds are programs after whose last line something is still to come, or
// to be decided.
var pythonEnds = []program{
	{name: "exit that hides", code: "import sys\nprint(1)\ndel __file__\ndel __cached__\nsys.exit(3)\n"},
	{name: "exit that hides all", code: "import sys\nprint(1)\nleave = sys.exit\nfor name in [*globals()]:\n    if name not in ('leave', 'name'): del globals()[name]\nleave(3)\n"},
	{name: "error that hides", code: "import atexit, sys\ndef hide(): del sys.last_type, sys.last_value, sys.last_traceback\natexit.register(hide)\n1/0\n"},
	{name: "exit well", code: "import sys\nprint(1)\nsys.exit()\n"},
	{name: "error and hook", code: "import sys\nsys.excepthook = lambda *a: print('hook', a[0])\nraise KeyError(1)\n"},
	{name: "uninterrupted", code: "print(1)\nraise KeyboardInterrupt\n"},
	{name: "much at the end", code: "import sys\nsys.stdout.write('x' * (1 << 20) + 'y')\nsys.stderr.write('z' * (1 << 20))\n"},
	{name: "detached", code: "import sys\nprint('x', flush=True)\nb = sys.stdout.detach()\n"},
	{name: "wrapped", code: "import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.detach(), 'utf-16')\nprint('x')\n"},
	{name: "output of its own", code: "import sys\nclass O:\n    def write(self, s): sys.stderr.write(s.upper())\n    def flush(self): 1/0\nsys.stdout = O()\nprint('x')\n", blur: true},
	{name: "output closed", code: "import sys\nprint('x')\nsys.stdout.close()\n"},
	{name: "output to a full disk", code: "import os\nprint('x', flush=True)\nos.dup2(os.open('/dev/full', os.O_WRONLY), 1)\nprint('y')\n"},
	{name: "output that does not block", code: "import os, sys\nsys.stderr.write('x')\nos.set_blocking(1, False)\nprint('y')\n"},
	{name: "file left open", code: "f = open('/dev/stdout', 'w')\nf.write('late')\nprint('first', flush=True)\n"},
	{name: "file left open in a cycle", code: "f = open('/dev/stdout', 'w')\nf.write('late')\nl = [f]; l.append(l); del f, l\nprint('first', flush=True)\n"},
	{name: "daemon", code: "import threading, time\nup = threading.Event()\ndef f():\n    print('thread', flush=True)\n    up.set()\n    time.sleep(60)\nt = threading.Thread(target=f, daemon=True)\nt.start(); up.wait(); print('main')\n"},
	{name: "child that goes on", code: "import subprocess\nprint('x', flush=True)\nsubprocess.Popen(['sleep', '2'])\n", blur: true},
	{name: "child that says more", code: "import os\nr, w = os.pipe()\nif os.fork() == 0:\n    print('child')\nelse:\n    os.wait()\n    print('parent')\n"},
	{name: "child that never ends a line", code: "import os, signal\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\nprint(os.system('echo -n a'))\n"},
	{name: "buffer of C", code: "import ctypes\nctypes.CDLL(None).printf(b'unfinished')\n"},
	{name: "exit handler of C", code: "import ctypes\nl = ctypes.CDLL(None)\nl.puts(b'x')\ndel ctypes\n"},
	{name: "audited", code: "import sys, os\nprint('x', flush=True)\nsys.addaudithook(lambda e, a, write=os.write: write(1, e.encode() + b'\\n') and None)\n"},
	{name: "destructor of a thread's data", code: endsLate + "import threading\nd = threading.local(); d.x = End()\n"},
	{name: "destructor of a context's data", code: endsLate + "import contextvars\nv = contextvars.ContextVar('v'); v.set(End())\n"},
	{name: "destructor of a hook of codecs", code: endsLate + "import codecs\ncodecs.register_error('mine', End().find_spec); codecs.register(End().find_spec)\n"},
	{name: "destructor of hooks of generators", code: endsLate + "sys.set_asyncgen_hooks(End().find_spec, End().find_spec)\n"},
	{name: "destructor of hooks of forks", code: endsLate + "class C(End):\n    def __call__(self): os.write(1, b'fork\\n')\nos.register_at_fork(after_in_child=C(), before=C(), after_in_parent=C())\nr, w = os.pipe()\nif os.fork(): os.write(w, b'x'); os.wait()\nelse: os.read(r, 1)\n"},
	{name: "destructor of what a finder's cache holds", code: endsLate + "sys.path_importer_cache['x'] = End()\n"},
	{name: "finders forgotten early", code: "import sys\nprint('x')\nsys.path_importer_cache.clear()\nsys.path_importer_cache = None\nsys.exit(4)\n"},
	{name: "another main module", code: "import sys\nprint('x')\nsys.modules['__main__'] = None\ndel sys.modules['sys']\nsys.exit(5)\n"},
	{name: "odd modules", code: "import sys\nclass M:\n    def __getattr__(self, name): raise ValueError(name)\nsys.modules['odd'] = M()\nsys.modules[3] = 4\nprint('x')\n"},
	{name: "return, then an error", code: "exec(compile('print(1)', __file__, 'exec'))\nraise SystemExit(3)\n"},
	{name: "exit from afar", code: "import argparse, sys\nsys.argv = ['x', '--what']\nargparse.ArgumentParser().parse_args()\n"},
	{name: "exit in disguise", code: "import base64\nprint(1)\nexec(base64.b64decode(b'aW1wb3J0IHN5czsgc3lzLmV4aXQoMyk='))\n"},
	{name: "monitored and exit", code: "import sys\nprint(1)\nif sys.version_info >= (3, 12): sys.monitoring.restart_events()\nraise SystemExit('no')\n"},
	{name: "traced by a debugger", code: "import pdb\nprint(1)\npdb.set_trace()\nprint(2)\n"},
}

var pythonPrograms = append(pythonEnds, []program{
	{name: "traceback", code: `
def f(x):
    return 1 / x

print("before")
f(0)
`},
	{name: "syntax error", code: "x = 1\nif x\n  print(x)\n"},
	{name: "exit status", code: "import sys\nprint('x')\nsys.exit(3)\n"},
	{name: "exit message", code: "raise SystemExit('a message')\n"},
	{name: "exit at once", code: "import os, sys\nsys.stdout.write('lost')\nos._exit(7)\n"},
	{name: "atexit", code: `
import atexit, sys
atexit.register(lambda: print("last"))
class C:
    def __del__(self): sys.stderr.write("del\n")
c = C()
sys.stdout.write("unflushed")
`},
	{name: "error in atexit", code: "import atexit\natexit.register(lambda: 1/0)\n", blur: true},
	{name: "terminated", code: "import os, signal\nprint('x', flush=True)\nos.kill(os.getpid(), signal.SIGTERM)\n"},
	{name: "killed", code: "import os, signal\nos.kill(os.getpid(), 9)\n"},
	{name: "interrupted", code: "import os, signal\nprint('x')\nos.kill(os.getpid(), signal.SIGINT)\n"},
	{name: "aborted", code: "import os\nprint('lost', end='')\nos.abort()\n"},
	{name: "segfault", code: "import ctypes\nprint('x', flush=True)\nctypes.string_at(0)\n"},
	{name: "faulthandler", code: "import faulthandler, ctypes\nfaulthandler.enable()\nctypes.string_at(0)\n", blur: true},
	{name: "threads", code: `
import threading, time
def f():
    threading.main_thread().join()
    print("thread", threading.current_thread() is threading.main_thread())
threading.Thread(target=f).start()
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print("main", threading.current_thread() is threading.main_thread())
`},
	{name: "error in thread", code: "import threading\ndef g(): raise ValueError('x')\nt = threading.Thread(target=g)\nt.start(); t.join()\nprint('on')\n"},
	{name: "subprocess", code: `
import subprocess, sys, os
print("one", flush=True)
subprocess.run([sys.executable, "-c", "import sys; print(sys.argv, sorted(set(sys.modules) & {'atoll', 'warm'}))", "a"])
print(subprocess.run("echo two; exit 4", shell=True, capture_output=True))
os.system("ls -A ~; pwd; env | sort | grep -v ^_=")
print(subprocess.run(["cat"], capture_output=True))
`},
	{name: "fork", code: `
import os
pid = os.fork()
if pid == 0:
    print("child")
    raise SystemExit(5)
print("parent", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`},
	{name: "multiprocessing", code: `
import multiprocessing as mp
def f(x):
    return x * x
class K: pass
def g(q):
    q.put((__name__ != "__main__", K.__module__))
if __name__ == "__main__":
    for method in "fork", "spawn", "forkserver":
        ctx = mp.get_context(method)
        with ctx.Pool(2) as p:
            print(method, p.map(f, range(4)))
        q = ctx.Queue()
        p = ctx.Process(target=g, args=(q,))
        p.start()
        print(q.get()[1:])
        p.join()
        print(p.exitcode)
`},
	{name: "pool of processes", code: `
from concurrent.futures import ProcessPoolExecutor
def f(x): return x + 1
if __name__ == "__main__":
    with ProcessPoolExecutor(2) as e:
        print(list(e.map(f, [1, 2, 3])))
`},
	{name: "asyncio", code: `
import asyncio
async def f(n):
    await asyncio.sleep(n / 100)
    return n
async def main():
    print(await asyncio.gather(f(2), f(1)))
    p = await asyncio.create_subprocess_shell("echo sub", stdout=-1)
    print(await p.communicate())
    asyncio.create_task(f(1000))
    raise RuntimeError("end")
asyncio.run(main())
`},
	{name: "imports what it wrote", code: `
open("helper.py", "w").write("def f():\n    raise KeyError(__name__, __file__)\n")
import helper
helper.f()
`},
	{name: "imports what came along", code: "import pkg.mod\nprint(pkg.mod.__file__, pkg.mod.x)\n", files: map[string]string{"pkg/mod.py": "x = 1\n"}},
	{name: "input at the end", code: "import sys\nprint(repr(sys.stdin.read()), sys.stdin.isatty())\ninput('? ')\n"},
	{name: "names", code: "import sys\nprint(__name__, __file__, sys.argv, __doc__, __annotations__ if '__annotations__' in globals() else None)\n"},
	{name: "warnings", code: "import warnings\nwarnings.warn('w', DeprecationWarning)\ndef f(): warnings.warn('u')\nf()\nx = '\\d'\n"},
	{name: "chained errors", code: "try:\n    1/0\nexcept Exception as e:\n    raise ExceptionGroup('g', [e, ValueError('v')]) from e\n"},
	{name: "error in a destructor", code: "class C:\n    def __del__(self): raise ValueError('x')\nc = C()\ndel c\nprint('on')\n", blur: true},
	{name: "destructor of what a module holds", code: endsLate + "os.mine = End()\n"},
	{name: "destructor of what a function's module holds", code: endsLate + "os.path.mine = End()\n"},
	{name: "destructor of what a finder holds", code: endsLate + "sys.meta_path.append(End())\n"},
	{name: "destructor of what a hook of sys holds", code: endsLate + "sys.mine = End()\n"},
	{name: "destructor of what a builtin holds", code: endsLate + "import builtins\nbuiltins.mine = End()\n"},
	{name: "destructor of what a class holds", code: endsLate + "os.PathLike.register(End)\nabc = sys.modules['abc']\nabc.mine = End()\n"},
	{name: "recursion", code: "def f(n): return f(n + 1)\nf(0)\n"},
	{name: "own source", code: "import inspect\ndef f():\n    return 1  # one\nprint(inspect.getsource(f), open(__file__).read())\n"},
	{name: "unicode", code: "# -*- coding: utf-8 -*-\nprint('ä€😀')\nprint('\\udc80')\n"},
	{name: "bytes", code: "import sys\nsys.stdout.buffer.write(bytes(range(256)))\n"},
	{name: "closed stdout", code: "import os, sys\nprint('x', flush=True)\nos.close(1)\nprint('y')\n"},
	{name: "standard streams by name", code: "open('/dev/stdout', 'w').write('a\\n')\nopen('/dev/stderr', 'w').write('b\\n')\nopen('/proc/self/fd/1', 'w').write('c\\n')\nprint(repr(open('/dev/stdin').read()))\n"},
	{name: "no newline, no bytes", code: "\ufeffprint(1)"},
	{name: "null byte", code: "print(1)\n\x00\n"},
	{name: "runpy", code: "import runpy, sys\nif len(sys.argv) < 2:\n    sys.argv.append('x')\n    print(sorted(runpy.run_path('main.py', run_name='again')))\nelse:\n    y = 1\n"},
	{name: "signal handler", code: "import signal, os\nsignal.signal(signal.SIGUSR1, lambda *a: print('got', a[0]))\nos.kill(os.getpid(), signal.SIGUSR1)\nsignal.alarm(1)\nsignal.pause()\n"},
	{name: "exec", code: "import os\nos.execvp('sh', ['sh', '-c', 'echo $0; ls /proc/self/fd | wc -l; exit 9'])\n"},
	{name: "replaces its outputs", code: "import os\nfd = os.open('out', os.O_CREAT | os.O_RDWR)\nprint(fd)\nr, w = os.pipe()\nprint(r, w)\n"},
}...)

func TestPythonSemantics(t *testing.T) {
	// With preloads these show threads' own exit handler, which nothing else imports.
	same(t, guesttest.Python, nil, append(pythonPrograms,
		program{name: "monitored", code: "import sys\nm = sys.monitoring if sys.version_info >= (3, 12) else None\nprint(1)\nif m:\n    m.use_tool_id(2, 'mine')\n    m.register_callback(2, m.events.PY_RETURN, lambda c, o, v: print(c.co_name))\n    m.set_events(2, m.events.PY_RETURN)\ndef f(): return 1\nf()\n"},
		program{name: "watched", code: "import sys, os\nprint('x', flush=True)\nsys.settrace(lambda f, e, a: os.write(1, (f.f_code.co_filename + e).encode()) and None)\nsys.setprofile(lambda f, e, a: os.write(1, (f.f_code.co_filename + e).encode()) and None)\n"},
	))
}

// With modules imported ahead a program still does the same, whether it uses
// them or not, to its very end.
func TestPythonPreloaded(t *testing.T) {
	preload := []string{"logging", "json", "decimal", "random", "asyncio", "concurrent.futures", "multiprocessing.pool", "tempfile"}
	same(t, guesttest.Python, preload, append(pythonPrograms,
		program{name: "uses a preload at its end", code: `
import atexit, logging, json, decimal, sys, threading
logging.basicConfig(format="%(levelname)s %(message)s")
class C:
    def __del__(self):
        sys.stderr.write(json.dumps({"a": str(decimal.Decimal(1) / 3)}) + "\n")
        logging.error("deleted")
c = C()
@atexit.register
def last():
    import json as again, tempfile, random
    logging.warning("last %s", again.dumps([1]))
    print(again is json, "json" in sys.modules, tempfile.gettempdir(), random.random() < 1)
threading.Thread(target=lambda: (threading.main_thread().join(), print(json.dumps({"thread": 1})))).start()
`},
		program{name: "holds objects of preloads", code: `
import tempfile, sys, weakref, random
d = tempfile.TemporaryDirectory()
class R(random.Random):
    def __del__(self): sys.stderr.write("R gone\n")
r = R(); r.me = r
w = weakref.finalize(d, print, "finalized")
print(type(d).__name__)
`},
	))
}

// The introspection programs show everything a program may ask of its
// interpreter and its process that is the same for two bare runs.
func TestPythonIntrospection(t *testing.T) {
	same(t, guesttest.Python, nil, []program{
		{name: "modules", code: "import sys\nfor m in sys.modules: print(m)\n"},
		{name: "environment", code: "import os, posix\nprint(list(os.environ.items()), posix.environ, list(os.environb), open('/proc/self/environ').read())\n"},
		{name: "descriptors", code: "import os, stat\nfor fd in sorted(os.listdir('/proc/self/fd'), key=int):\n    try: print(fd, stat.S_IFMT(os.fstat(int(fd)).st_mode), os.get_inheritable(int(fd)), os.get_blocking(int(fd)), os.fstat(int(fd)).st_uid)\n    except OSError as e: print(fd, e)\nprint(os.readlink('/proc/self/fd/0'))\n"},
		{name: "signals", code: "import signal\nfor s in sorted(signal.valid_signals()): print(s, signal.getsignal(s))\nprint(signal.pthread_sigmask(0, []), signal.sigpending())\nprint([l for l in open('/proc/self/status') if l.startswith(('Sig', 'Shd', 'Cap', 'NoNew', 'Seccomp', 'Groups', 'Uid', 'Gid', 'Umask', 'TracerPid', 'Threads'))])\n"},
		{name: "sys", code: `
import sys
for name in sorted(dir(sys)):
    v = getattr(sys, name)
    if not callable(v) and name not in ("modules", "stdlib_module_names"):
        print(name, v)
print(sys.getrecursionlimit(), sys.getswitchinterval(), sys.gettrace(), sys.getprofile(), sys.getdlopenflags(), sys.get_asyncgen_hooks(), sys.excepthook, sys.displayhook, sys.unraisablehook, sys.breakpointhook)
for s in sys.stdin, sys.stdout, sys.stderr:
    print(s.name, s.mode, s.encoding, s.errors, s.line_buffering, s.write_through, s.fileno(), s.isatty(), s.newlines)
`, blur: true},
		{name: "globals", code: "for k, v in list(globals().items()): print(k, v)\nprint(list(globals()))\n", blur: true},
		{name: "builtins", code: "import builtins, site\nprint(dir(builtins), sorted(site.__dict__))\nprint(site.ENABLE_USER_SITE, site.USER_SITE, site.USER_BASE, site.PREFIXES)\n"},
		{name: "process", code: `
import os, resource, time, locale
pid = os.getpid()
print(os.getpgrp() == pid, os.getsid(0) == pid, os.umask(0), os.getuid(), os.geteuid(), os.getgid(), os.getgroups(), os.getcwd(), os.nice(0))
print([(n, resource.getrlimit(getattr(resource, n))) for n in sorted(dir(resource)) if n.startswith("RLIMIT_")])
print(open("/proc/self/cmdline").read(), open("/proc/self/comm").read(), open("/proc/self/oom_score_adj").read(), os.readlink("/proc/self/exe"), os.readlink("/proc/self/cwd"), os.readlink("/proc/self/root"))
print(time.tzname, time.timezone, time.altzone, locale.getlocale(), locale.setlocale(locale.LC_ALL), locale.getpreferredencoding())
print(len(os.listdir("/proc/self/task")), os.sched_getaffinity(0) == os.sched_getaffinity(1), os.sched_getscheduler(0))
print(os.ttyname(0) if os.isatty(0) else "no tty", os.path.exists("/dev/tty"))
`},
		{name: "interpreter", code: `
import gc, atexit, threading, warnings, linecache, codecs, importlib, sys, _imp, signal, contextvars
print(gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), gc.callbacks, gc.get_debug(), gc.garbage)
print(atexit._ncallbacks(), threading.enumerate(), threading.main_thread().ident == threading.get_ident(), warnings.filters)
print(sorted(linecache.cache), sorted(sys.path_importer_cache), sys.meta_path, len(sys.path_hooks))
print(list(contextvars.copy_context()), sys._getframe().f_back, sys.exc_info(), sys._current_exceptions() if len(sys._current_frames()) > 1 else 1)
`, blur: true},
		{name: "mapped files", code: "seen = []\nfor l in open('/proc/self/maps'):\n    f = l.split()\n    if len(f) > 5 and f[5] not in seen and '/resource.' not in f[5]: seen.append(f[5])\nprint(sorted(seen))\n"},
		{name: "files", code: "import os\nfor d, _, fs in os.walk('/home'):\n    for f in fs:\n        s = os.stat(os.path.join(d, f)); print(d, f, oct(s.st_mode), s.st_uid, s.st_gid, s.st_nlink, s.st_size)\nimport site\nfor d in site.getsitepackages():\n    if os.path.isdir(d): print(d, [f for f in sorted(os.listdir(d)) if f.endswith('.pth')], oct(os.stat(d).st_mode), os.stat(d).st_mtime)\nprint(sorted(os.listdir('/tmp')))\n"},
	})
}

func TestPythonVariables(t *testing.T) {
	got, bare := withVariable(t, guesttest.Python, "import os, posix\nprint(list(os.environ.items()), posix.environ, os.getenv('X'))\nos.system('env | grep ^X')\n", "X=a=b\nü\xff")
	if got.stdout != bare.stdout || got.stderr != bare.stderr {
		t.Errorf("got %+v\nbare %+v", got, bare)
	}
}
