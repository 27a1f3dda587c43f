package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

type object = map[string]any

var confinements atomic.Int64

// confined makes an environment with rules and returns a key for it.
func confined(t *testing.T, s *atolltest.Server, rules object) (key string) {
	t.Helper()
	admin, name := s.AdminKey(t), fmt.Sprint("confined-", confinements.Add(1))
	base := "/v1/admin/tenants/dev"
	s.Must(t, admin, http.MethodPost, base+"/environments", object{"name": name, "image": atolltest.Image, "permissions": rules}).Into(t, http.StatusCreated, nil)
	var made struct{ Key string }
	s.Must(t, admin, http.MethodPost, base+"/keys", object{"name": name, "environment": name}).Into(t, http.StatusCreated, &made)
	return made.Key
}

// runAs runs a program with a key; the answer may be of any kind.
func runAs(t *testing.T, s *atolltest.Server, key string, p atolltest.Program) *atolltest.Result {
	t.Helper()
	a := s.Must(t, key, http.MethodPost, "/v1/sandbox/execute", p)
	r := &atolltest.Result{Status: a.Status, Body: a.Body, Header: a.Header}
	if err := json.Unmarshal(a.Body, r); err != nil {
		t.Fatalf("%v: %s", err, a.Body)
	}
	return r
}

// compiled returns a program in Bash that puts a compiled one to /tmp/probe.
var compiled = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "permprobe")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "probe")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "./permprobe")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the probe: %w\n%s", err, out)
	}
	binary, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return "", err // the level is known
	}
	if _, err := z.Write(binary); err != nil {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	return "base64 -d <<'.' | gzip -d > /tmp/probe && chmod +x /tmp/probe\n" + base64.StdEncoding.EncodeToString(packed.Bytes()) + "\n.\n", nil
})

// tried is something that a rule allows or not.
type tried struct {
	name, language, code string
	stdout               string // a pattern for all of it
	exit                 int
	reason               string // part of the error
}

func attempts(t *testing.T, s *atolltest.Server, rules object, all []tried) {
	key := confined(t, s, rules)
	for _, a := range all {
		t.Run(strings.ReplaceAll(a.name, " ", "_"), func(t *testing.T) {
			code := a.code
			if a.language == "binary" {
				install, err := compiled()
				if err != nil {
					t.Fatal(err)
				}
				a.language, code = atolltest.Bash, install+code
			}
			r := runAs(t, s, key, atolltest.Program{Language: a.language, Code: code, Timeout: 30})
			if r.Status != http.StatusOK || !matches("~"+a.stdout, r.Stdout) || r.ExitCode != a.exit || !strings.Contains(r.Reason(), a.reason) || (a.reason == "") != (r.Reason() == "") {
				t.Errorf("want %q, exit code %d and %q, got %v", a.stdout, a.exit, a.reason, r)
			}
		})
	}
}

const script = "cat > /tmp/script <<'.'\n#!/bin/sh\n%s\n.\nchmod +x /tmp/script; /tmp/script\n"

// TestFilesystemPermissions tries each rule about paths in every way there is to
// run code. The program goes on, and finds the error that files give.
func TestFilesystemPermissions(t *testing.T) {
	attempts(t, atolltest.Start(t, atolltest.Options{}), object{"filesystem": object{
		"writable_paths":  []string{"/home/user", "/tmp", "/opt/made"},
		"read_only_paths": []string{"/home/user/ref", "/data"},
		"blocked_paths":   []string{"/etc/passwd", "/root", "/home/user/none"},
	}}, []tried{
		{"Python", atolltest.Python, `
for path in "/home/user/a", "/tmp/a", "/opt/made/a", "/opt/a", "/var/tmp/a", "/home/user/ref/a", "/data/a":
  try: open(path, "w").write("x"); print(path)
  except OSError as e: print(e.strerror)
import os
for f in (lambda: open("/etc/passwd").read()), (lambda: os.listdir("/root")), (lambda: os.listdir("/home/user/none")):
  try: print(f())
  except OSError as e: print(e.strerror)
import multiprocessing; multiprocessing.Lock()`, "/home/user/a\n/tmp/a\n/opt/made/a\nPermission denied\nRead-only file system\nPermission denied\nPermission denied\n(Permission denied\n){3}", 0, ""},
		{"Node", atolltest.Node, `const fs = require("fs"); for (const f of [() => fs.writeFileSync("/home/user/a", "x"), () => fs.writeFileSync("/var/tmp/a", "x"), () => fs.readFileSync("/etc/passwd"), () => fs.readdirSync("/root")])
  try { f(); console.log("done") } catch (e) { console.log(e.code) }`, "done\nEROFS\nEACCES\nEACCES\n", 0, ""},
		{"Bash", atolltest.Bash, "echo x > a && cat a; echo x > /var/tmp/a; cat < /etc/passwd; cd /root || echo no", "x\nno\n", 0, ""},
		{"binary", "binary", "for p in /tmp/a /var/tmp/a; do /tmp/probe write $p; done; /tmp/probe read /etc/passwd; /tmp/probe list /root", "done\nopen /var/tmp/a: read-only file system\nopen /etc/passwd: permission denied\nopen /root: permission denied\n", 0, ""},
		{"script", atolltest.Bash, fmt.Sprintf(script, "echo x > /tmp/a; echo x > /var/tmp/a || echo no; cat /etc/passwd || echo no"), "no\nno\n", 0, ""},
		{"mounted once", atolltest.Bash, "grep -c ' /home/user ' /proc/mounts; grep -c ' /home/user/ref ' /proc/mounts; grep -c ' /home/user/none ' /proc/mounts", "1\n1\n1\n", 0, ""},
		{"unmount", atolltest.Bash, "umount /root; umount -l /etc/passwd; mount -o remount,rw,bind /; mount --bind /tmp /root; echo $?", "[1-9][0-9]*\n", 0, ""},
		{"user namespace", atolltest.Bash, `unshare -Urm sh -c 'umount /root; umount -l /etc/passwd; mount -o remount,rw,bind /; mount -o remount,rw,bind /home/user/ref
cat /etc/passwd; ls /root; echo x > /var/tmp/a; echo x > /home/user/ref/a; id -u'`, "0\n", 0, ""},
		{"other ways to a path", atolltest.Bash, `cat /proc/1/root/etc/passwd /proc/self/root/etc/passwd /dev/../etc/passwd /etc/./passwd; ln -s /root /tmp/r; ls /tmp/r; ln /etc/passwd /tmp/p
mv /home/user/ref /home/user/other; rmdir /home/user/none; mv /tmp/a /etc/passwd; ls -d /home/user/ref /home/user/none`, "/home/user/none\n/home/user/ref\n", 0, ""},
		{"calls that mount", atolltest.Python, `
import ctypes, os
l = ctypes.CDLL(None, use_errno=True)
for call in (428, -100, b"/", 1), (442, -100, b"/", 0, 0, 0), (165, b"/tmp", b"/root", 0, 4096, 0), (166, b"/root", 2), (155, b"/tmp", b"/tmp"), (161, b"/tmp"): print(l.syscall(*call))`, "(-1\n){6}", 0, ""},
	})
}

// TestHomeThatCannotBeWritten checks that a program is put where it may not
// write itself.
func TestHomeThatCannotBeWritten(t *testing.T) {
	attempts(t, atolltest.Start(t, atolltest.Options{}), object{"filesystem": object{"writable_paths": []string{"/tmp"}}}, []tried{
		{"Python", atolltest.Python, "print(__file__, open('/tmp/a', 'w').write('x'))\ntry: open('a', 'w')\nexcept OSError as e: print(e.strerror)", "/home/user/main.py 1\nRead-only file system\n", 0, ""},
		{"Node", atolltest.Node, "try { require('fs').writeFileSync('a', '') } catch (e) { console.log(e.code) }", "EROFS\n", 0, ""},
		{"Bash", atolltest.Bash, "echo x > a || echo no; echo x > /tmp/a; cat /tmp/a", "no\nx\n", 0, ""},
	})
	attempts(t, atolltest.Start(t, atolltest.Options{}), object{"filesystem": object{"writable_paths": []string{}}}, []tried{
		{"nowhere", atolltest.Bash, "for d in . /tmp /var/tmp; do echo x > $d/a || echo no; done", "no\nno\nno\n", 0, ""},
	})
}

// TestNoExec checks that the interpreter runs, with threads, and starts nothing.
func TestNoExec(t *testing.T) {
	attempts(t, atolltest.Start(t, atolltest.Options{}), object{"process": object{"allow_exec": false}}, []tried{
		{"Python", atolltest.Python, `
import ctypes, os, subprocess, threading
t = threading.Thread(target=lambda: print("thread")); t.start(); t.join()
l = ctypes.CDLL(None)
def fd(): os.execve(os.open("/bin/true", 0), ["x"], {})
for f in os.fork, os.forkpty, (lambda: os.execv("/bin/true", ["x"])), (lambda: subprocess.run(["true"])), (lambda: os.posix_spawn("/bin/true", ["x"], {})), fd:
  try: f(); print("ran")
  except OSError as e: print(e.errno)
print(l.vfork(), l.syscall(435, 0, 0), l.syscall(56, 0x11, 0, 0, 0, 0), l.syscall(59, b"/bin/true", 0, 0), l.syscall(322, -100, b"/bin/true", 0, 0, 0))`, "thread\n(1\n){6}-1 -1 -1 -1 -1\n", 0, ""},
		{"Python with preloads", atolltest.Python, "import pandas, os\nprint(pandas.DataFrame({'a': [1, 2]}).a.sum())\nos.fork()", "3\n", 1, ""},
		{"Node", atolltest.Node, `try { require("child_process").execSync("true") } catch (e) { console.log(e.code) }
new (require("worker_threads").Worker)("console.log('worker')", { eval: true })`, "EPERM\nworker\n", 0, ""},
		{"Bash", atolltest.Bash, "echo builtin; (exec /bin/true); echo after", "builtin\n", 254, ""},
		{"binary and script", atolltest.Bash, "printf '#!/bin/sh\\necho ran\\n' > /tmp/script; exec /tmp/script", "", 126, ""},
		{"loader", atolltest.Bash, "exec /lib64/ld-linux-x86-64.so.2 /bin/true", "", 126, ""},
	})
}

// TestBlockedCommands checks that what is executed is what counts, and that it
// ends the run.
func TestBlockedCommands(t *testing.T) {
	const dd, rm, tool = `permissions: blocked_commands: "dd"`, `"rm -rf /"`, `"tool"`
	s := atolltest.Start(t, atolltest.Options{})
	attempts(t, s, object{"process": object{"blocked_commands": []string{"dd", "rm -rf /", "tool"}}}, []tried{
		{"allowed", atolltest.Bash, "rm -rf /tmp/nothing; echo dd; ls / > /dev/null | cat; for i in 1 2 3; do true & done; wait; echo done", "dd\ndone\n", 0, ""},
		{"expanded", atolltest.Bash, "echo before; d=d; $d$d --version; echo after", "before\n", 137, dd},
		{"with arguments", atolltest.Bash, "r=/; rm -rf $r; echo after", "", 137, rm},
		{"another name", atolltest.Bash, "(exec -a x dd --version); echo after", "", 137, dd},
		{"link", atolltest.Bash, "ln -s /bin/dd /tmp/x; /tmp/x --version; echo after", "", 137, dd},
		{"env", atolltest.Bash, "env dd --version; echo after", "", 137, dd},
		{"find", atolltest.Bash, "find /tmp -maxdepth 0 -exec dd --version ';'; echo after", "", 137, dd},
		{"loader", atolltest.Bash, "/lib64/ld-linux-x86-64.so.2 /bin/dd --version; echo after", "", 137, dd},
		{"preloaded library", atolltest.Bash, "LD_PRELOAD=/nothing.so dd --version; echo after", "", 137, dd},
		{"script", atolltest.Bash, fmt.Sprintf(script, "dd --version; echo after"), "", 137, dd},
		{"script of that name", atolltest.Bash, "printf '#!/bin/sh\\necho ran\\n' > /tmp/tool; chmod +x /tmp/tool; /tmp/tool; echo after", "", 137, tool},
		{"Python", atolltest.Python, "import subprocess; subprocess.run(['dd', '--version']); print('after')", "", 137, dd},
		{"Python with preloads", atolltest.Python, "import pandas, os; os.execv('/bin/dd', ['x'])", "", 137, dd},
		{"by a thread", atolltest.Python, "import os, threading\nt = threading.Thread(target=lambda: os.execv('/bin/dd', ['x'])); t.start(); t.join(); print('after')", "", 137, dd},
		{"by a descriptor", atolltest.Python, "import os; os.execve(os.open('/bin/dd', 0), ['x'], {})", "", 137, dd},
		{"from memory", atolltest.Python, "import os\nfd = os.memfd_create('x'); os.write(fd, open('/bin/dd', 'rb').read()); os.execve(fd, ['dd'], {})", "", 137, dd},
		{"by a grandchild that is left", atolltest.Python, "import os, time\nif os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0: os.execv('/bin/dd', ['x'])\n  os._exit(0)\ntime.sleep(20); print('after')", "", 137, dd},
		{"out of sight", atolltest.Python, "import ctypes, os, signal\nl = ctypes.CDLL(None)\nprint(l.syscall(56, 0x00800000 | signal.SIGCHLD, 0, 0, 0, 0), l.syscall(435, 0, 0))\nos.execv('/bin/dd', ['x'])", "(-1 -1\n)?", 137, dd},
		{"against the tracer", atolltest.Python, `
import ctypes, os
l = ctypes.CDLL(None)
tracer = int([x for x in open("/proc/self/status") if "TracerPid" in x][0].split()[1])
for pid in tracer, 1:
  try: os.kill(pid, 9); print("killed")
  except OSError as e: print(e.errno)
  try: open("/proc/%d/mem" % pid, "rb"); print("opened")
  except OSError as e: print(e.errno)
  print(l.ptrace(16, pid, 0, 0))
print(l.ptrace(0, 0, 0, 0), l.ptrace(17, os.getpid(), 0, 0), flush=True)
os.execv("/bin/dd", ["x"])`, "(1\n13\n-1\n){2}-1 -1\n", 137, dd},
		{"Node", atolltest.Node, "require('child_process').spawnSync('dd'); console.log('after')", "", 137, dd},
		{"binary", "binary", "/tmp/probe start /bin/echo hi; /tmp/probe start /bin/dd --version; echo after", "hi\ndone\n", 137, dd},
		{"binary that becomes it", "binary", "/tmp/probe exec /bin/dd x", "", 137, dd},
		{"a copy is another program", atolltest.Bash, "cp /bin/dd /tmp/copy; /tmp/copy --version > /dev/null; echo ran", "ran\n", 0, ""},
	})
	// What the record says.
	key := confined(t, s, object{"process": object{"blocked_commands": []string{"dd"}}})
	r := runAs(t, s, key, atolltest.Program{Language: atolltest.Bash, Code: "dd --version"})
	var record struct{ Status string }
	s.Must(t, key, http.MethodGet, "/v1/executions/"+r.Header.Get("X-Trace-Id"), nil).Into(t, http.StatusOK, &record)
	if record.Status != "blocked" {
		t.Errorf("the record says %q", record.Status)
	}
	var trail struct {
		Data []struct {
			ExitStatus    string `json:"exit_status"`
			FailureReason string `json:"failure_reason"`
		}
	}
	s.Must(t, s.AdminKey(t), http.MethodGet, "/v1/admin/tenants/dev/audit?trace_id="+r.Header.Get("X-Trace-Id"), nil).Into(t, http.StatusOK, &trail)
	if len(trail.Data) != 1 || trail.Data[0].ExitStatus != "error" || !strings.Contains(trail.Data[0].FailureReason, dd) {
		t.Errorf("the trail says %+v", trail.Data)
	}
}

// TestMaxProcesses checks that processes are counted and threads are not.
func TestMaxProcesses(t *testing.T) {
	attempts(t, atolltest.Start(t, atolltest.Options{}), object{"process": object{"max_processes": 4}}, []tried{
		{"Python", atolltest.Python, `
import os, threading, time
threads = [threading.Thread(target=time.sleep, args=(0.2,)) for _ in range(20)]
for t in threads: t.start()
for t in threads: t.join()
n = 0
try:
  while n < 20:
    if os.fork() == 0: time.sleep(20); os._exit(0)
    n += 1
except OSError as e: print(n, e.errno)`, "3 11\n", 0, ""},
		{"one after another", atolltest.Python, "import os\nfor _ in range(50):\n  if os.fork() == 0: os._exit(0)\n  os.wait()\nprint('done')", "done\n", 0, ""},
		{"Node", atolltest.Node, `const c = require("child_process"); const all = []; for (let i = 0; i < 6; i++) { const p = c.spawn("sleep", ["20"]); all.push(p); p.on("error", e => console.log(e.code)) }
setTimeout(() => all.forEach(p => p.kill()), 500)`, "(EAGAIN\n){3}", 0, ""},
		{"Bash", atolltest.Bash, "for i in 1 2 3 4 5 6; do sleep 0.1 & done; wait; echo done", "done\n", 0, ""},
		{"binary", "binary", "exec /tmp/probe many", "3 .*resource temporarily unavailable\n", 0, ""},
		{"script", atolltest.Bash, fmt.Sprintf(script, "sleep 20 & sleep 20 & sleep 20 & echo never"), "(never\n)?", 2, ""},
	})
}

// TestPermissionsOfTheTenant makes environments the way the contract has it, and
// checks that tenants do not see each other's.
func TestPermissionsOfTheTenant(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{})
	admin := s.AdminKey(t)
	s.Tenant(t, "rules-a", "pro")
	s.Tenant(t, "rules-b", "pro")
	keys := map[string]string{}
	for _, name := range []string{"rules-a", "rules-b"} {
		var made struct{ Key string }
		s.Must(t, admin, http.MethodPost, "/v1/admin/tenants/"+name+"/keys", object{"name": "maker", "environment": "main", "scopes": []string{"environments"}}).Into(t, http.StatusCreated, &made)
		keys[name] = made.Key
	}
	body := object{"name": "Restricted Research Env", "config": object{
		"type": "cloud", "base_template": "tpl_code_interpreter", "resources": object{"cpu": 2, "memory_mb": 2048, "timeout": 5},
		"permissions": object{
			"network":    object{"enabled": true, "allowed_hosts": []string{"api.example.com", "*.wikipedia.org"}, "blocked_ports": []int{22, 25}},
			"filesystem": object{"writable_paths": []string{"/home/user", "/tmp"}, "read_only_paths": []string{"/data"}, "blocked_paths": []string{"/etc/shadow", "/root"}},
			"process":    object{"allow_exec": true, "blocked_commands": []string{"rm -rf /", "shutdown"}, "max_processes": 10},
		},
	}}
	refused := s.Must(t, keys["rules-a"], http.MethodPost, "/v1/environments", body)
	if refused.Status != http.StatusForbidden || !strings.Contains(string(refused.Body), "atoll tenant set rules-a --network") {
		t.Fatalf("a tenant without a network: %d %s", refused.Status, refused.Body)
	}
	s.Must(t, admin, http.MethodPatch, "/v1/admin/tenants/rules-a", object{"network_enabled": true}).Into(t, http.StatusOK, nil)
	var made struct {
		ID, Name string
		Config   struct {
			Resources   struct{ Timeout int }
			Permissions struct {
				Network struct {
					Enabled      bool
					AllowedHosts []string `json:"allowed_hosts"`
				}
			}
		}
	}
	s.Must(t, keys["rules-a"], http.MethodPost, "/default/v1/environments", body).Into(t, http.StatusCreated, &made)
	if made.Name != "Restricted-Research-Env" || made.Config.Resources.Timeout != 5 || len(made.Config.Permissions.Network.AllowedHosts) != 2 {
		t.Errorf("got %+v", made)
	}
	for _, method := range []string{http.MethodGet, http.MethodPatch, http.MethodDelete} {
		var change any
		if method == http.MethodPatch {
			change = object{"config": object{"permission_profile": "isolated"}}
		}
		s.Must(t, keys["rules-b"], method, "/v1/environments/"+made.ID, change).Into(t, http.StatusNotFound, nil)
	}
	var run struct{ Key string }
	s.Must(t, admin, http.MethodPost, "/v1/admin/tenants/rules-a/keys", object{"name": "runner", "environment": made.ID}).Into(t, http.StatusCreated, &run)
	s.Must(t, run.Key, http.MethodPatch, "/v1/environments/"+made.ID, object{}).Into(t, http.StatusForbidden, nil)
	s.Must(t, keys["rules-a"], http.MethodDelete, "/v1/environments/"+made.ID, nil).Into(t, http.StatusConflict, nil)

	s.Must(t, keys["rules-a"], http.MethodPatch, "/v1/environments/"+made.ID, object{"config": object{"permission_profile": "isolated"}}).Into(t, http.StatusOK, nil)
	r := runAs(t, s, run.Key, atolltest.Program{Language: atolltest.Python, Code: "import os\nopen('/tmp/a', 'w')\nfor f in os.fork, (lambda: open('a', 'w')):\n  try: f(); print('ran')\n  except OSError as e: print(e.strerror)"})
	if r.Stdout != "Operation not permitted\nRead-only file system\n" {
		t.Errorf("isolated: %v", r)
	}
	r = runAs(t, s, run.Key, atolltest.Program{Language: atolltest.Python, Code: "import time; time.sleep(30)"})
	if r.Status != http.StatusGatewayTimeout || !strings.Contains(r.Reason(), "5s") {
		t.Errorf("resources.timeout is not the default: %v", r)
	}
	r = runAs(t, s, run.Key, atolltest.Program{Language: atolltest.Python, Code: "1", Timeout: 6})
	if r.Status != http.StatusTooManyRequests || !strings.Contains(r.Message, "resources.timeout") {
		t.Errorf("resources.timeout is no bound: %v", r)
	}
}
