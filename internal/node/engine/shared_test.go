package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/node/executor"
)

// ofKey is a job whose key's executions share kernels.
func ofKey(language execution.Language, code string) *execution.Job {
	return job(func(j *execution.Job) {
		j.Language, j.Code = language, code
		j.Tenant, j.Key, j.Isolation = "ten_1", "key_1", execution.IsolationKey
	})
}

// shared runs a job that may share a kernel, and returns that kernel's folder.
func shared(t *testing.T, e *Engine, j *execution.Job, timeout time.Duration) (folder, out string, end execution.Outcome) {
	t.Helper()
	c, _, err := e.Claim(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := c.(executor.Shared); !ok {
		t.Fatalf("%T is not shared", c)
	}
	defer func() {
		if err := c.Destroy(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	end, err = c.Run(t.Context(), execution.Program{ID: uint64(time.Now().UnixNano()), Language: j.Language, Code: j.Code, Timeout: timeout, MaxBytes: 100_000},
		func(_ execution.Stream, p []byte) { b.Write(p) })
	if err != nil {
		t.Fatal(err)
	}
	return c.Folder(), b.String(), end
}

// litter leaves behind whatever a program can, and says what of it failed.
const litter = `
import ctypes, os, signal, socket, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
for folder in "/tmp", "/dev/shm", "/home/user", "/var/tmp":
    os.makedirs(folder + "/left/deep", exist_ok=True)
    open(folder + "/left/file", "w").write("x" * 100000)
    os.symlink("/etc/passwd", folder + "/main.link")
    os.mkfifo(folder + "/fifo")
os.environ["LEFT"] = "yes"
assert libc.shmget(0x1234, 4096, 0o1666) >= 0
assert libc.msgget(0x1234, 0o1666) >= 0
assert libc.semget(0x1234, 1, 0o1666) >= 0
libc.mq_open(b"/left", os.O_CREAT | os.O_RDWR, 0o666, None)
memory = os.memfd_create("left")
os.write(memory, b"\xa5\x5a" * (1 << 19))
import mmap
filled = mmap.mmap(-1, 4 << 20)
filled[:] = b"\xa5\x5a" * (2 << 20)
names = []
for address in "\0left", "/tmp/socket":
    s = socket.socket(socket.AF_UNIX)
    s.bind(address)
    s.listen()
    names.append(s)
# Sockets that hold each other in messages are in nobody's table.
a, b = socket.socketpair(socket.AF_UNIX)
socket.send_fds(a, [b"x"], [names[0].fileno(), a.fileno(), b.fileno()])
server = socket.socket()
server.bind(("0.0.0.0", 8080))
server.listen()
client = socket.create_connection(("127.0.0.1", 8080))
server.accept()[0].close()
os.nice(5)
os.umask(0o077)
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (50, 50))
resource.setrlimit(resource.RLIMIT_CPU, (3, 3))
signal.setitimer(signal.ITIMER_REAL, 100)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for flag in False, True:
    if os.fork() == 0:
        os.setsid()
        if flag and os.fork():
            os._exit(0)
        for n in range(3):
            os.close(n)
        for n in range(1, 65):
            if n not in (9, 19):
                try:
                    signal.signal(n, signal.SIG_IGN)
                except (OSError, ValueError):
                    pass
        while True:
            open("/tmp/alive", "a").write("x")
            time.sleep(0.001)
end = time.process_time() + 0.2
while time.process_time() < end:
    pass
print("left", flush=True)
os._exit(0)
`

// look prints what it finds of another program.
const look = `
import ctypes, os, resource, signal, socket, sys, time
used = time.process_time()
libc = ctypes.CDLL(None, use_errno=True)
found = []
def must(what, fine):
    if not fine:
        found.append(what)
for folder in "/tmp", "/dev/shm", "/var/tmp":
    must(folder + " has " + repr(os.listdir(folder)), not os.listdir(folder))
must("home has " + repr(os.listdir(".")), os.listdir(".") == ["main.py"])
must("LEFT", "LEFT" not in os.environ and b"LEFT" not in open("/proc/self/environ", "rb").read())
must("shm", libc.shmget(0x1234, 0, 0) < 0)
must("msg", libc.msgget(0x1234, 0) < 0)
must("sem", libc.semget(0x1234, 0, 0) < 0)
must("mq", libc.mq_open(b"/left", os.O_RDWR) < 0)
must("processes " + repr(os.listdir("/proc")), sorted(int(n) for n in os.listdir("/proc") if n.isdigit()) == [1, os.getpid()])
must("descriptors", sorted(os.listdir("/proc/self/fd"))[:3] == ["0", "1", "2"] and len(os.listdir("/proc/self/fd")) == 4)
s = socket.socket(socket.AF_UNIX)
try:
    s.connect("\0left")
    must("an abstract socket answers", False)
except ConnectionRefusedError:
    pass
s.bind("\0left")
t = socket.socket()
must("a port answers", t.connect_ex(("127.0.0.1", 8080)) != 0)
t.close()
t = socket.socket()
t.bind(("0.0.0.0", 8080))  # fails where an earlier connection still waits for its end
must("nice", os.nice(0) == 0)
must("umask", os.umask(0o022) == 0o022)
must("files %r" % (resource.getrlimit(resource.RLIMIT_NOFILE),), resource.getrlimit(resource.RLIMIT_NOFILE) == (1024, 1024))
must("cpu limit", resource.getrlimit(resource.RLIMIT_CPU)[0] == resource.RLIM_INFINITY)
must("timer", signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0))
must("handler", signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)
must("time used %r" % used, used < 0.15)
must("children's time", resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime == 0)
must("uid", os.getresuid() == (1000,) * 3 and os.getresgid() == (1000,) * 3 and os.getgroups() == [1000])
status = dict(line.rstrip().split(":\t", 1) for line in open("/proc/self/status") if ":\t" in line)
must("capabilities", all(int(status[name], 16) == 0 for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")) and status["NoNewPrivs"] == "1")
for pid in 1, -1:
    try:
        os.kill(pid, 0)
        must("%d can be signalled" % pid, pid < 0)
    except (PermissionError, ProcessLookupError):
        pass
for path in "/proc/1/environ", "/proc/1/mem", "/proc/1/fd", "/proc/1/root/tmp", "/proc/1/cwd":
    try:
        os.listdir(path) if path.endswith(("fd", "tmp", "cwd")) else open(path, "rb").read(1)
        must(path, False)
    except OSError:
        pass
for ns in "mnt", "pid", "net", "ipc", "uts":
    try:
        libc.setns(os.open("/proc/1/ns/" + ns, os.O_RDONLY), 0) == 0 and must("setns " + ns, False)
    except OSError:
        pass
must("old root", not any("/tmp/root" in line or line.split()[1].startswith("/tmp/") for line in open("/proc/self/mounts")))
import mmap, re
taken, memory = mmap.mmap(-1, 4 << 20), os.memfd_create("taken")
taken[::4096] = b"\0" * len(taken[::4096])
os.write(memory, b"x")
os.ftruncate(memory, 4096)
left = re.compile(b"\xa5(?:\x5a\xa5){100}")
must("a file has memory", not left.search(os.pread(memory, 4096, 0)))
with open("/proc/self/mem", "rb", 0) as mem:
    for line in open("/proc/self/maps"):
        begin, end = [int(n, 16) for n in line.split()[0].split("-")]
        if line.split()[1].startswith("rw"):
            mem.seek(begin)
            for at in range(begin, end, 1 << 16):
                must("memory " + line, not left.search(mem.read(min(1 << 16, end - at))))
print("found", found)
`

func TestProgramsOfAKeyFindNothingOfEachOther(t *testing.T) {
	e := start(t, folder(t), nil)
	first := ""
	for i := range 3 {
		dir, out, end := shared(t, e, ofKey(execution.Python, litter), time.Minute)
		if out != "left\n" || end.ExitCode != 0 {
			t.Fatalf("run %d printed %q, %+v", i, out, end)
		}
		next, out, end := shared(t, e, ofKey(execution.Python, look), time.Minute)
		if out != "found []\n" || end.ExitCode != 0 {
			t.Errorf("after run %d: %s %+v", i, out, end)
		}
		if first == "" {
			first = dir
		}
		if dir != first || next != first {
			t.Errorf("the kernel is not the one of the first run")
		}
	}
}

func TestOtherLanguagesOfAKeyFindNothingOfEachOther(t *testing.T) {
	e := start(t, folder(t), nil)
	for language, code := range map[execution.Language]string{
		execution.Bash: `ls -A /tmp /dev/shm /home/user | tr '\n' ' '; set -- /proc/[0-9]*; echo $#; id -u
			echo x > /tmp/left; echo x > /dev/shm/left; echo x > left; (setsid sleep 1000 >/dev/null 2>&1 &)`,
		execution.Node: `const fs = require('fs');
			console.log(fs.readdirSync('/tmp'), fs.readdirSync('/dev/shm'), fs.readdirSync('.'), fs.readdirSync('/proc').filter(n => /^\d+$/.test(n)), process.getuid());
			for (const f of ['/tmp/left', '/dev/shm/left', 'left']) fs.writeFileSync(f, 'x');
			require('child_process').spawn('sleep', ['1000'], {detached: true, stdio: 'ignore'}).unref();`,
	} {
		t.Run(string(language), func(t *testing.T) {
			dir, before, _ := shared(t, e, ofKey(language, code), time.Minute)
			for range 2 {
				next, out, end := shared(t, e, ofKey(language, code), time.Minute)
				if out != before || strings.Contains(out, "left") || end.ExitCode != 0 {
					t.Errorf("it printed %q %+v, and before %q", out, end, before)
				}
				if next != dir {
					t.Error("the kernel is another")
				}
			}
		})
	}
}

// TestShortProgramsOfAKeyShareAKernel runs programs whose interpreters tell that they end before
// they do.
func TestShortProgramsOfAKeyShareAKernel(t *testing.T) {
	e := start(t, folder(t), nil)
	for language, code := range map[execution.Language]string{
		execution.Python: "print(1)", execution.Node: "console.log(1)", execution.Bash: "echo 1",
	} {
		dir, _, _ := shared(t, e, ofKey(language, code), time.Minute)
		for range 3 {
			next, out, end := shared(t, e, ofKey(language, code), time.Minute)
			if next != dir || out != "1\n" || end.ExitCode != 0 {
				t.Errorf("%s: it printed %q %+v, in the same kernel: %t", language, out, end, next == dir)
			}
		}
	}
}

func TestKeysAndEnvironmentsDoNotShareKernels(t *testing.T) {
	e := start(t, folder(t), nil)
	dir, _, _ := shared(t, e, ofKey(execution.Python, "print(1)"), time.Minute)
	for name, change := range map[string]func(*execution.Job){
		"tenant":    func(j *execution.Job) { j.Tenant = "ten_2" },
		"key":       func(j *execution.Job) { j.Key = "key_2" },
		"variables": func(j *execution.Job) { j.BaseEnv = map[string]string{"A": "b"} },
		"limits":    func(j *execution.Job) { j.Limits.Processes = 77 },
		"language":  func(j *execution.Job) { j.Language, j.Code = execution.Bash, "echo 1" },
	} {
		j := ofKey(execution.Python, "print(1)")
		change(j)
		other, out, _ := shared(t, e, j, time.Minute)
		if other == dir || out != "1\n" {
			t.Errorf("another %s: the kernel is the same, or it printed %q", name, out)
		}
	}
	if again, _, _ := shared(t, e, ofKey(execution.Python, "print(1)"), time.Minute); again != dir {
		t.Error("the same key has another kernel")
	}
}

func TestAProgramThatDoesNotEndByItselfTakesItsKernelAlong(t *testing.T) {
	e := start(t, folder(t), nil)
	for name, c := range map[string]struct {
		code    string
		timeout time.Duration
		ended   func(execution.Outcome) bool
	}{
		"time-out": {"import time; time.sleep(100)", 3 * time.Second, func(o execution.Outcome) bool { return o.TimedOut }},
		"memory":   {"b = []\nwhile True: b.append(bytearray(1 << 24))", time.Minute, func(o execution.Outcome) bool { return o.OOM }},
	} {
		t.Run(name, func(t *testing.T) {
			before, _, _ := shared(t, e, ofKey(execution.Python, "print(1)"), time.Minute)
			dir, _, end := shared(t, e, ofKey(execution.Python, c.code), c.timeout)
			if dir != before || !c.ended(end) {
				t.Fatalf("it ended so: %+v", end)
			}
			next, out, _ := shared(t, e, ofKey(execution.Python, "print(1)"), time.Minute)
			if next == dir || out != "1\n" {
				t.Errorf("the next program printed %q, in the same kernel: %t", out, next == dir)
			}
		})
	}
}

func TestAKernelThatBreaksWhileItWaitsIsReplaced(t *testing.T) {
	e := start(t, folder(t), nil)
	dir, _, _ := shared(t, e, ofKey(execution.Bash, "echo 1"), time.Minute)
	var waits *sharedKernel
	e.shared.mu.Lock()
	for _, list := range e.shared.idle {
		waits = list[0]
	}
	e.shared.mu.Unlock()
	if waits == nil || e.folder(waits.ID()) != dir {
		t.Fatalf("%v waits", waits)
	}
	if err := e.Remove(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	<-waits.Done()
	next, out, end := shared(t, e, ofKey(execution.Bash, "echo 1"), time.Minute)
	if next == dir || out != "1\n" || end.ExitCode != 0 {
		t.Errorf("the next program printed %q %+v, in the same kernel: %t", out, end, next == dir)
	}
	if again, _, _ := shared(t, e, ofKey(execution.Bash, "echo 1"), time.Minute); again != next {
		t.Error("the kernel that came instead is not kept")
	}
}

// TestATenantWithManyKernelsMakesRoom has the kernel go that was idle for longest of the
// tenant that has the most, though one of another's was idle for longer.
func TestATenantWithManyKernelsMakesRoom(t *testing.T) {
	s := newShared(nil)
	if k := s.dispensable(); k != nil {
		t.Errorf("%v goes of none", k)
	}
	now := time.Now()
	add := func(tenant, key string, ages ...time.Duration) {
		k := sharedKey{tenant: tenant, key: key}
		for _, age := range ages {
			s.idle[k] = append(s.idle[k], &sharedKernel{key: k, since: now.Add(-age)})
		}
	}
	add("few", "key_1", 50*time.Second, 40*time.Second)
	add("many", "key_2", 20*time.Second, 10*time.Second)
	add("many", "key_3", 30*time.Second)
	if k := s.dispensable(); k == nil || k.key.key != "key_3" {
		t.Errorf("%+v goes", k)
	}
}

// TestAClaimThatWaitedInVainLeavesNothing waits for a kernel that is not made ready in time.
func TestAClaimThatWaitedInVainLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShared(nil)
		key := sharedKey{tenant: "ten_1", key: "key_1"}
		s.pending[key], s.kernels[key] = 1, fewKernels()
		if k, err := s.take(t.Context(), key); k != nil || err != nil {
			t.Errorf("%v, %v", k, err)
		}
		if len(s.waiters) > 0 || s.kernels[key] != fewKernels()+1 {
			t.Errorf("%v are left, and %d kernels", s.waiters, s.kernels[key])
		}
	})
}

// TestClaimsWaitForKernelsThatAreMadeReady has two claims make a kernel where there are few,
// wait where there are enough, and make one where the kernel that was to come is lost.
func TestClaimsWaitForKernelsThatAreMadeReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShared(nil)
		key := sharedKey{tenant: "ten_1", key: "key_1"}
		s.pending[key], s.kernels[key] = 2, fewKernels()-1
		if k, err := s.take(t.Context(), key); k != nil || err != nil || s.kernels[key] != fewKernels() {
			t.Errorf("%v, %v; %d kernels", k, err, s.kernels[key])
		}
		taken := make(chan *sharedKernel)
		for range 2 {
			go func() {
				k, err := s.take(t.Context(), key)
				if err != nil {
					t.Error(err)
				}
				taken <- k
			}()
		}
		synctest.Wait()
		ready := &sharedKernel{key: key}
		s.add(s.pending, key, -1)
		s.put(ready)
		if k := <-taken; k != ready {
			t.Errorf("%v was taken, not the one that is ready", k)
		}
		s.lose(key)
		if k := <-taken; k != nil || s.kernels[key] != fewKernels() || len(s.pending) > 0 || len(s.waiters) > 0 {
			t.Errorf("%v; %d kernels, %v pending, %v wait", k, s.kernels[key], s.pending, s.waiters)
		}
	})
}

func TestLimitsHoldForEachProgramOfAKey(t *testing.T) {
	e := start(t, folder(t), nil)
	for range 2 {
		j := ofKey(execution.Python, `
import os, errno, functools; print = functools.partial(print, flush=True)
try:
    open("/tmp/a", "wb").write(b"x" * (200 << 20))
except OSError as e:
    print(errno.errorcode[e.errno])
n = 0
try:
    while True:
        if os.fork() == 0:
            import time; time.sleep(100)
        n += 1
except OSError as e:
    print(errno.errorcode[e.errno], n)
os._exit(7)
`)
		j.Limits.Processes = 20
		_, out, end := shared(t, e, j, time.Minute)
		var n int
		if _, err := fmt.Sscanf(out, "ENOSPC\nEAGAIN %d\n", &n); err != nil || n < 10 || n > j.Limits.Processes || end.ExitCode != 7 || !end.DiskFull || !end.ProcessesFull {
			t.Errorf("it printed %q, %+v", out, end)
		}
	}
}

func TestWhatReachesFurtherHasAKernelOfItsOwn(t *testing.T) {
	e := start(t, folder(t), nil)
	j := ofKey(execution.Bash, "echo 1")
	j.Permissions.Process.NoExec = true
	c, _, err := e.Claim(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := c.(executor.Shared); ok {
		t.Error("a program with rules shares a kernel")
	}
	if got := finish(t, c, j); got != "1\n" {
		t.Errorf("it printed %q", got)
	}
}
