package e2e

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// hostile is a program that tries to do harm.
type hostile struct {
	name, language, code string
	timeout              int    // seconds; 20 when zero
	status               int    // of HTTP; 200 when zero, -1 for any answer
	stdout               string // a pattern for all of it; empty matches anything
}

// contained runs each program, and after each of them checks that the server is
// healthy, the next execution clean, and no sandbox left but the pool.
func contained(t *testing.T, programs []hostile) {
	s := shared(t)
	for _, h := range programs {
		t.Run(strings.ReplaceAll(h.name, " ", "_"), func(t *testing.T) {
			if h.timeout == 0 {
				h.timeout = 20
			}
			if h.status == 0 {
				h.status = http.StatusOK
			}
			r := s.Run(t, atolltest.Program{Language: h.language, Code: h.code, Timeout: h.timeout})
			t.Logf("exit code %d, error %q, %v", r.ExitCode, r.Reason(), r.Elapsed)
			if r.Status != h.status && h.status != -1 {
				t.Errorf("want HTTP %d, got %v", h.status, r)
			}
			if h.stdout != "" && !matches("~"+h.stdout, r.Stdout) {
				t.Errorf("want %s, got %v", h.stdout, r)
			}
			if late := time.Duration(h.timeout)*time.Second + 10*time.Second; r.Elapsed > late {
				t.Errorf("the answer took %v", r.Elapsed)
			}
			s.CheckHealthy(t)
			s.Settle(t)
		})
	}
}

// TestHostile runs programs that use up what they can, or fight their end.
func TestHostile(t *testing.T) {
	contained(t, []hostile{
		{name: "fork bomb in Bash", language: atolltest.Bash, code: ":(){ :|:& };:; wait; sleep 60", timeout: 2, status: -1},
		{name: "fork bomb in Python", language: atolltest.Python, code: "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass", timeout: 2, status: -1},
		{name: "fork bomb that outlives its parent", language: atolltest.Python, code: "import os\nos.setsid() if os.fork() == 0 else None\nfor i in range(20):\n  try:\n    if os.fork() == 0: os.setsid()\n  except OSError: pass\nwhile True: pass", timeout: 2, status: -1},
		{name: "fork bomb left behind", language: atolltest.Bash, code: "f() { while :; do (f &) ; done; }; sleep 1 & s=$!; f > /dev/null 2>&1 & wait $s; echo done", stdout: "done\n"},
		{name: "thread bomb", language: atolltest.Python, code: "import threading\ndef f():\n  while True:\n    try: threading.Thread(target=f, daemon=True).start()\n    except RuntimeError: pass\nf()", timeout: 2, status: -1},
		{name: "zombie flood", language: atolltest.Python, code: "import os\nn = 0\ntry:\n  while n < 5000:\n    if os.fork() == 0: os._exit(0)\n    n += 1\nexcept OSError as e: print(e.errno, n)", timeout: 60, stdout: "11 2[0-9][0-9]\n"},
		{name: "orphaned zombies", language: atolltest.Python, code: "import os\nfor i in range(300):\n  pid = os.fork()\n  if pid == 0:\n    if os.fork() == 0: os._exit(0)\n    os._exit(0)\n  os.waitpid(pid, 0)\nprint('ok')", timeout: 60, stdout: "ok\n"},
		{name: "memory bomb", language: atolltest.Bash, code: "for i in $(seq 30); do python3 -c 'l = []\nwhile True: l.append(bytes(1 << 22))' & done; wait", status: -1},
		{name: "memory bomb that forks", language: atolltest.Python, code: "import os\nb = []\nwhile True:\n  try: os.fork()\n  except OSError: pass\n  b.append(b'x' * (1 << 20))", timeout: 10, status: -1},
		{name: "pages of the kernel", language: atolltest.Python, code: "import os, socket\nk = []\ntry:\n  while True:\n    a, b = socket.socketpair(); a.setblocking(False); k.append((a, b))\n    try:\n      while True: a.send(b'x' * 65536)\n    except BlockingIOError: pass\nexcept OSError as e: print(e.errno)", status: -1},
		{name: "pipes full", language: atolltest.Python, code: "import os, fcntl\ntry:\n  while True:\n    r, w = os.pipe2(os.O_NONBLOCK)\n    try: fcntl.fcntl(w, 1031, 1 << 20)\n    except OSError: pass\n    try:\n      while True: os.write(w, b'x' * 65536)\n    except BlockingIOError: pass\nexcept OSError as e: print(e.errno)", status: -1},
		{name: "descriptor flood", language: atolltest.Python, code: "import os\nfor i in range(50):\n  if os.fork() == 0:\n    try:\n      while True: os.open('/dev/null', 0)\n    except OSError: pass\n    import time; time.sleep(1); os._exit(0)\nfor i in range(50): os.wait()\nprint('ok')", stdout: "ok\n"},
		{name: "descriptors sent in circles", language: atolltest.Python, code: "import socket, array, os\na, b = socket.socketpair()\nn = 0\na.setblocking(False)\ntry:\n  while n < 20000:\n    c, d = socket.socketpair(); a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [c.fileno(), d.fileno()]))]); c.close(); d.close(); n += 1\nexcept OSError as e: print('stopped')\n", status: -1},
		{name: "file flood in every place", language: atolltest.Python, code: "import os\nfor d in '/tmp', '/dev/shm', '/home/user', '/var/tmp', '/run/lock', '/dev', '/dev/mqueue':\n  try:\n    for i in range(" + strconv.Itoa(atolltest.Count(30_000, 200_000)) + "): os.close(os.open(f'{d}/{i}', os.O_CREAT))\n  except OSError as e: print(d, e.errno)\n", timeout: 40, status: -1},
		{name: "deep folders", language: atolltest.Python, code: "import os\nn = 0\ntry:\n  while n < 200000: os.mkdir('d'); os.chdir('d'); n += 1\nexcept OSError as e: print(e.errno)\nelse: print('deep')", timeout: 40, status: -1},
		{name: "sparse terabyte", language: atolltest.Bash, code: "truncate -s 1T f && cp --sparse=always f g; ls -l f | cut -d' ' -f5; dd if=/dev/zero of=f bs=1 seek=1T count=1 2>&1 | tail -1 | cut -c1-6", timeout: atolltest.Count(2, 5), status: -1},
		{name: "file system of a namespace", language: atolltest.Bash, code: "unshare -Urm sh -c 'mount -t tmpfs none /mnt && head -c 2G /dev/zero > /mnt/f'; echo $?", status: -1},
		{name: "files in a namespace", language: atolltest.Bash, code: "unshare -Urm sh -c 'mount -t tmpfs none /mnt && cd /mnt && python3 -c \"for i in range(1000000): open(str(i), \\\"w\\\").close()\"'; echo $?", timeout: 30, status: -1},
		{name: "huge arguments", language: atolltest.Python, code: "import os\ntry: os.execv('/bin/true', ['x' * (100 << 10)] * 200)\nexcept OSError as e: print(e.errno)", stdout: "(7|36)\n"},
		{name: "huge environment", language: atolltest.Bash, code: "x=$(printf %0120000d 0); for i in $(seq 60); do export v$i=$x; done; /bin/true || echo too long", status: -1},
		{name: "inotify", language: atolltest.Python, code: "import ctypes, os\nc = ctypes.CDLL(None)\nn = 0\nfor i in range(900):\n  fd = c.inotify_init1(0)\n  if fd < 0: break\n  for p in (b'/', b'/tmp', b'/home'): c.inotify_add_watch(fd, p, 0xfff)\nfor i in range(20000): open('/tmp/x', 'w').close()\nprint('ok')", stdout: "(ok\n)?"},
		{name: "timers and eventfds", language: atolltest.Python, code: "import ctypes, os, signal\nc = ctypes.CDLL(None)\nfor i in range(900): c.timerfd_create(1, 0); \nfor i in range(3000):\n  t = ctypes.c_void_p()\n  if c.timer_create(1, None, ctypes.byref(t)) != 0: break\nprint('ok')", stdout: "ok\n"},
		{name: "signals in queues", language: atolltest.Python, code: "import ctypes, os, signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(34, 64))\nc = ctypes.CDLL(None)\nn = 0\nfor i in range(300000):\n  if c.sigqueue(os.getpid(), 40, 0) != 0: print('full'); break\nelse: print('all')", timeout: 40, status: -1},
		{name: "message queues and semaphores", language: atolltest.Python, code: "import ctypes\nc = ctypes.CDLL(None)\nfor f in (lambda i: c.shmget(0, 1 << 24, 0o1600), lambda i: c.semget(0, 200, 0o1600), lambda i: c.msgget(0, 0o1600)):\n  n = 0\n  while n < 5000 and f(n) >= 0: n += 1\n  print(n > 0)", status: -1},
		{name: "ignored SIGTERM", language: atolltest.Bash, code: "trap '' TERM; while :; do sleep 1; done", timeout: 2, status: 504},
		{name: "daemon", language: atolltest.Python, code: "import os, time\nif os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0:\n    for i in range(3): os.close(i)\n    while True: time.sleep(1)\n  os._exit(0)\nos.wait(); print('left')", stdout: "left\n"},
		{name: "stopped daemon", language: atolltest.Bash, code: "(setsid sh -c 'kill -STOP $$' &) ; sleep 0.2; echo left", stdout: "left\n"},
		{name: "kill everyone", language: atolltest.Bash, code: "kill -9 -1; echo on; kill -9 1; kill -STOP 1; kill -TERM 1; echo still", stdout: "on\nstill\n"},
		{name: "kill everyone in Python", language: atolltest.Python, code: "import os\nfor s in 9, 15, 19, 1:\n  for p in -1, 1, 0 if s == 1 else 1:\n    try: os.kill(p, s)\n    except OSError as e: print(e.strerror)\n", status: -1},
		{name: "busy with system calls", language: atolltest.Python, code: "import os, threading\ndef f():\n  while True: os.getppid(); os.stat('/'); os.sched_yield()\nfor i in range(40): threading.Thread(target=f, daemon=True).start()\nf()", timeout: atolltest.Count(1, 3), status: 504},
		{name: "random system calls", language: atolltest.Python, code: `import ctypes, os, random, signal
libc = ctypes.CDLL(None)
spare = {60, 231, 34, 35, 61, 247, 130, 128, 219, 230, 23, 270, 271, 7, 232, 281, 202, 449, 29 << 30}
buf = ctypes.create_string_buffer(1 << 16)
def arg(): return random.choice((0, 1, -1, 3, 4096, 1 << 31, 1 << 63, random.getrandbits(64), random.getrandbits(12), ctypes.addressof(buf), ctypes.addressof(buf) + random.getrandbits(15)))
for i in range(60):
    if os.fork() == 0:
        signal.alarm(1); random.seed()
        for j in range(2000):
            n = random.randrange(470)
            if n not in spare: libc.syscall(ctypes.c_long(n), *(ctypes.c_ulong(arg() & (1 << 64) - 1) for k in range(6)))
        os._exit(0)
    try: os.wait()
    except OSError: pass
print('done')`, timeout: atolltest.Count(4, 120), status: -1},
		{name: "regular expression", language: atolltest.Node, code: "/^(a+)+$/.test('a'.repeat(40) + 'b')", timeout: atolltest.Count(1, 3), status: 504},
	})
}

// TestHostileOutput runs programs that write without end, in every size.
func TestHostileOutput(t *testing.T) {
	flood := strconv.Itoa(atolltest.Count(100, 1000))
	writes := strconv.Itoa(atolltest.Count(100_000, 1_000_000))
	contained(t, []hostile{
		{name: "flood", language: atolltest.Bash, code: "head -c " + flood + "M /dev/zero | tr '\\0' x; echo end >&2", timeout: 120},
		{name: "flood of stderr", language: atolltest.Bash, code: "head -c " + flood + "M /dev/zero | tr '\\0' x >&2", timeout: 120},
		{name: "tiny writes", language: atolltest.Python, code: "import os\nfor i in range(" + writes + "): os.write(1 + i % 2, b'x')", timeout: 240, stdout: "x{" + strconv.Itoa(min(1000, atolltest.Count(50_000, 500_000))) + "}x*"},
		{name: "flood from many", language: atolltest.Bash, code: "for i in $(seq 20); do (head -c 2M /dev/zero | tr '\\0' x) & (head -c 2M /dev/zero | tr '\\0' x >&2) & done; wait", timeout: 60},
		{name: "flood of bytes that are no text", language: atolltest.Bash, code: "head -c 12M /dev/urandom", timeout: 60},
		{name: "flood after the end", language: atolltest.Bash, code: "(trap '' HUP PIPE; while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done) & sleep 0.3; kill -9 $$", status: -1},
	})
}
