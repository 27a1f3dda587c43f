package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

// limited is a program that runs into a limit.
type limited struct {
	name, language, code string
	exit                 int    // -2 for any but 0
	reason               string // the whole of the answer's error, "" for none; a pattern if it begins with "~"
	stdout               string // all of it; a pattern if it begins with "~"
	stderr               string // part of it
}

const (
	memoryReason  = "memory limit of 512 MiB exceeded"
	processReason = "process limit of 256 reached"
	diskReason    = "~disk limit reached: .*"
)

// TestLimits checks that each limit holds and is named when it ended a program.
func TestLimits(t *testing.T) {
	for _, c := range []limited{
		// Memory.
		{"touched memory", atolltest.Python, "print('so far', flush=True)\nl = []\nwhile True: l.append(b'x' * (1 << 20))", 137, memoryReason, "so far\n", ""},
		{"one large piece", atolltest.Python, "b = bytearray(700 << 20)\nfor i in range(0, len(b), 4096): b[i] = 1", 137, memoryReason, "", ""},
		{"mmap", atolltest.Python, "import mmap\nm = mmap.mmap(-1, 2 << 30)\nfor i in range(0, len(m), 4096): m[i] = 1", 137, memoryReason, "", ""},
		{"shared mmap of children", atolltest.Python, "import mmap, os\nm = mmap.mmap(-1, 2 << 30)\nfor c in range(4):\n  if os.fork() == 0:\n    for i in range(c << 29, c + 1 << 29, 4096): m[i] = 1\n    os._exit(0)\nfor c in range(4): os.wait()\nprint('no')", 137, memoryReason, "", ""},
		{"many processes", atolltest.Python, "import os, time\nfor i in range(20):\n  if os.fork() == 0:\n    b = bytearray(60 << 20)\n    for i in range(0, len(b), 4096): b[i] = 1\n    time.sleep(30); os._exit(0)\nfor i in range(20): os.wait()", 137, memoryReason, "", ""},
		{"memfd", atolltest.Python, "import os\nfd = os.memfd_create('x')\nfor i in range(2000): os.write(fd, b'x' * (1 << 20))", 137, memoryReason, "", ""},
		{"a child of the program", atolltest.Bash, "python3 -c 'x = b\"x\" * (1 << 30)'; echo after $?", 137, memoryReason, "", ""},
		{"Node's buffers", atolltest.Node, "const l = []; while (true) l.push(Buffer.alloc(1 << 20, 1))", 137, memoryReason, "", ""},
		{"Bash's strings", atolltest.Bash, "x=xxxxxxxxxxxxxxxx; while :; do x=$x$x; done", 137, memoryReason, "", ""},
		{"swap of pages through files", atolltest.Python, "import os\nfor d in '/tmp', '/dev/shm', '.':\n  try:\n    f = open(d + '/f', 'wb')\n    while True: f.write(b'x' * (1 << 20))\n  except OSError as e: print(e.strerror)\nb = b'x' * (1 << 30)", 137, memoryReason, "~(No space left on device\n){3}|", ""},
		{"memory within the limit", atolltest.Python, "b = bytearray(380 << 20)\nfor i in range(0, len(b), 4096): b[i] = 1\nprint('fits')", 0, "", "fits\n", ""},
		{"memory again and again", atolltest.Python, "for i in range(12):\n  b = bytearray(150 << 20)\n  for i in range(0, len(b), 4096): b[i] = 1\n  del b\nprint('fits')", 0, "", "fits\n", ""},
		{"address space alone", atolltest.Python, "import mmap\nm = mmap.mmap(-1, 8 << 30)\nprint(len(m) >> 30)", 0, "", "8\n", ""},

		// Disk and inodes, in every place that can be written.
		{"home", atolltest.Python, "f = open('big', 'wb')\nwhile True: f.write(b'x' * (1 << 20)); f.flush()", 1, diskReason, "", "OSError: [Errno 28] No space left on device"},
		{"tmp", atolltest.Python, "f = open('/tmp/big', 'wb')\nwhile True: f.write(b'x' * (1 << 20)); f.flush()", 1, diskReason, "", "OSError: [Errno 28] No space left on device"},
		{"shm", atolltest.Bash, "dd if=/dev/zero of=/dev/shm/big bs=1M", 1, diskReason, "", "No space left on device"},
		{"home in Bash", atolltest.Bash, "cat /dev/zero > big", 1, diskReason, "", "No space left on device"},
		{"home in Node", atolltest.Node, "const fs = require('fs'); const fd = fs.openSync('big', 'w'); const b = Buffer.alloc(1 << 20, 1); while (true) fs.writeSync(fd, b)", 1, diskReason, "", "ENOSPC"},
		{"disk error that is dealt with", atolltest.Python, "import os\ntry:\n  f = open('big', 'wb', 0)\n  while True: f.write(b'x' * (1 << 20))\nexcept OSError as e: print(e.errno); f.close(); os.remove('big')\nopen('small', 'w').write('x'); print(os.listdir('.'))", 0, "", "~28\n.*small.*\n", ""},
		{"files in home", atolltest.Python, "import os\nos.mkdir('d')\nfor i in range(300000): open(f'd/{i}', 'w').close()", 1, diskReason, "", "OSError: [Errno 28] No space left on device"},
		{"files in tmp", atolltest.Python, "for i in range(300000): open(f'/tmp/{i}', 'w').close()", 1, diskReason, "", "OSError: [Errno 28] No space left on device"},
		{"links", atolltest.Python, "import os\nfor i in range(300000): os.symlink('x' * 100, f'/dev/shm/{i}')", 1, diskReason, "", "OSError: [Errno 28] No space left on device"},
		{"sparse file", atolltest.Python, "import os\nf = open('sparse', 'wb'); f.truncate(1 << 40); f.seek(1 << 39); f.write(b'x'); f.flush(); print(os.stat('sparse').st_size >> 30)", 0, "", "1024\n", ""},
		{"within the disk limit", atolltest.Bash, "dd if=/dev/zero of=f bs=1M count=100 2>/dev/null; dd if=/dev/zero of=/tmp/f bs=1M count=100 2>/dev/null; dd if=/dev/zero of=/dev/shm/f bs=1M count=50 2>/dev/null; ls -s f /tmp/f | wc -l", 0, "", "2\n", ""},

		// Processes and threads.
		{"processes", atolltest.Python, "import os\nwhile True: os.posix_spawn('/bin/sleep', ['sleep', '30'], {})", 1, processReason, "", "BlockingIOError: [Errno 11] Resource temporarily unavailable"},
		{"processes are counted", atolltest.Python, "import os\nn = 0\ntry:\n  while True: os.posix_spawn('/bin/sleep', ['sleep', '30'], {}); n += 1\nexcept OSError: print(n)", 0, "", "~25[0-6]\n", ""},
		// The threads are gone with their process before a program can count them.
		{"threads", atolltest.Python, "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(30,), daemon=True).start()", 1, "~|" + processReason, "", "RuntimeError: can't start new thread"},
		{"processes in Bash", atolltest.Bash, "for i in $(seq 400); do sleep 30 & done", -2, processReason, "", "fork"},
		{"a hundred processes", atolltest.Bash, "for i in $(seq 100); do sleep 0.2 & done; wait; echo ok", 0, "", "ok\n", ""},
		{"processes one after another", atolltest.Bash, "for i in $(seq 600); do (:); done; echo ok", 0, "", "ok\n", ""},

		// Open files.
		{"open files", atolltest.Python, "l = []\nwhile True: l.append(open('/dev/null'))", 1, "", "", "OSError: [Errno 24] Too many open files"},
		{"open files are counted", atolltest.Python, "import os\nn = 0\ntry:\n  while True: os.open('/dev/null', 0); n += 1\nexcept OSError: print(n)", 0, "", "1021\n", ""},
		{"limits cannot be raised", atolltest.Python, "import resource as r\nfor l in r.RLIMIT_NOFILE, r.RLIMIT_NPROC, r.RLIMIT_CORE:\n  hard = r.getrlimit(l)[1]\n  try: r.setrlimit(l, (hard + 1, hard + 1)); print('raised')\n  except (ValueError, OSError): print('no')", 0, "", "no\nno\nno\n", ""},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			r := shared(t).Run(t, atolltest.Program{Language: c.language, Code: c.code, Timeout: 60})
			exitOK := r.ExitCode == c.exit || c.exit == -2 && r.ExitCode > 0
			if r.Status != http.StatusOK || !exitOK || r.Success != (r.ExitCode == 0) {
				t.Errorf("want exit code %d, got %v", c.exit, r)
			}
			if !matches(c.reason, r.Reason()) {
				t.Errorf("want the error %q, got %v", c.reason, r)
			}
			if !matches(c.stdout, r.Stdout) || !strings.Contains(r.Stderr, c.stderr) {
				t.Errorf("want %q and %q, got %v", c.stdout, c.stderr, r)
			}
		})
	}
}

// TestSmallLimits checks that the configured limits are the ones that hold.
func TestSmallLimits(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{Env: []string{
		"ATOLL_MEMORY=192MiB", "ATOLL_ROOT_SIZE=16MiB", "ATOLL_TMP_SIZE=8MiB", "ATOLL_SHM_SIZE=4MiB", "ATOLL_INODES=500",
		"ATOLL_PROCESSES=40", "ATOLL_OPEN_FILES=100", "ATOLL_CPU=0.5", "ATOLL_MAX_TIMEOUT=7s", "ATOLL_MAX_OUTPUT=1KiB",
	}})
	for _, c := range []struct{ name, code, stdout, reason string }{
		{"memory", "b = b'x' * (400 << 20)", "", "memory limit of 192 MiB exceeded"},
		{"disk", "import os\nfor d in '.', '/tmp', '/dev/shm':\n  n = 0\n  try:\n    f = open(d + '/f', 'wb', 0)\n    while True: n += f.write(b'x' * 65536)\n  except OSError as e: print(e.errno, n >> 20); f.close(); os.remove(d + '/f')", "~28 1[45]\n28 [78]\n28 [34]\n", ""},
		{"inodes", "import os\nfor d in '.', '/tmp', '/dev/shm':\n  n = 0\n  try:\n    while n < 1000: open(f'{d}/{n}', 'w').close(); n += 1\n  except OSError as e: print(e.errno, 400 < n <= 500)", "28 True\n28 True\n28 True\n", ""},
		{"processes", "import os\nn = 0\ntry:\n  while True: os.posix_spawn('/bin/sleep', ['sleep', '9'], {}); n += 1\nexcept OSError: print(30 < n <= 40)", "True\n", ""},
		{"open files", "import os\nn = 0\ntry:\n  while True: os.open('/dev/null', 0); n += 1\nexcept OSError: print(n)", "97\n", ""},
		{"CPU", "import time\nt, c = time.monotonic(), time.process_time()\nwhile time.monotonic() - t < 1.5: pass\nprint((time.process_time() - c) / 1.5 < 5)", "True\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := s.Run(t, atolltest.Program{Code: c.code, Timeout: 7})
			if r.Status != http.StatusOK || !matches(c.stdout, r.Stdout) || r.Reason() != c.reason {
				t.Errorf("want %q and %q, got %v", c.stdout, c.reason, r)
			}
		})
	}
	t.Run("timeout", func(t *testing.T) {
		if r := s.Run(t, atolltest.Program{Code: "1", Timeout: 8}); r.Status != http.StatusTooManyRequests || !strings.Contains(r.Message, "7 seconds") {
			t.Error(r)
		}
	})
	t.Run("default timeout", func(t *testing.T) {
		if r := s.Run(t, atolltest.Program{Code: "1"}); r.Status != http.StatusOK {
			t.Error(r)
		}
	})
	t.Run("output", func(t *testing.T) {
		r := s.Run(t, atolltest.Program{Code: "print('x' * 1024)"})
		if len(r.Stdout) != 1024 || !r.StdoutTruncated {
			t.Error(r)
		}
	})
}
