package e2e

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

const mib = 1 << 20

// TestOutput checks what becomes of the bytes that a program writes.
func TestOutput(t *testing.T) {
	for _, c := range []struct {
		name, language, code string
		check                func(t *testing.T, r *atolltest.Result)
	}{
		{"invalid UTF-8", atolltest.Bash, `printf 'a\xffb\xc3'; printf '\x00\x01' >&2`, func(t *testing.T, r *atolltest.Result) {
			if r.Stdout != "a\ufffdb\ufffd" || r.Stderr != "\x00\x01" || r.ExitCode != 0 {
				t.Error(r)
			}
		}},
		{"UTF-8 across reads", atolltest.Python, "import os, time\nb = '漢'.encode()\nfor i in range(3): os.write(1, b[i:i+1]); time.sleep(0.02)", func(t *testing.T, r *atolltest.Result) {
			if r.Stdout != "漢" {
				t.Error(r)
			}
		}},
		{"exactly the cut", atolltest.Python, "import sys; sys.stdout.write('x' * (10 << 20)); sys.stderr.write('y' * (10 << 20))", func(t *testing.T, r *atolltest.Result) {
			if len(r.Stdout) != 10*mib || len(r.Stderr) != 10*mib || r.StdoutTruncated || r.StderrTruncated || r.ExitCode != 0 {
				t.Error(r)
			}
		}},
		{"one byte over the cut", atolltest.Python, "import sys; sys.stdout.write('x' * ((10 << 20) + 1))", func(t *testing.T, r *atolltest.Result) {
			if len(r.Stdout) != 10*mib || !r.StdoutTruncated || r.StderrTruncated || r.ExitCode != 0 {
				t.Error(r)
			}
		}},
		{"30 MB", atolltest.Python, "import sys\nfor i in range(300): sys.stdout.write('x' * 100_000); sys.stderr.write('y' * 100_000)\nprint('end', file=sys.stderr); sys.exit(3)", func(t *testing.T, r *atolltest.Result) {
			if len(r.Stdout) != 10*mib || len(r.Stderr) != 10*mib || !r.StdoutTruncated || !r.StderrTruncated || r.ExitCode != 3 || r.Error != nil {
				t.Error(r)
			}
		}},
		{"exit with much unread", atolltest.Bash, "head -c 2000000 /dev/zero | tr '\\0' a; exit 4", func(t *testing.T, r *atolltest.Result) {
			if r.Stdout != repeat("a", 2e6) || r.ExitCode != 4 {
				t.Error(r)
			}
		}},
		{"killed with much written", atolltest.Python, "import os, signal, sys\nsys.stdout.write('a' * 500_000); sys.stdout.flush(); os.kill(os.getpid(), signal.SIGKILL)", func(t *testing.T, r *atolltest.Result) {
			if r.Stdout != repeat("a", 5e5) || r.ExitCode != 137 || r.Error != nil {
				t.Error(r)
			}
		}},
		{"tiny writes", atolltest.Python, "import os\nfor i in range(20000): os.write(1 + i % 2, b'%d\\n' % i)", func(t *testing.T, r *atolltest.Result) {
			if strings.Count(r.Stdout, "\n") != 10000 || strings.Count(r.Stderr, "\n") != 10000 || !strings.HasPrefix(r.Stdout, "0\n2\n") || !strings.HasSuffix(r.Stderr, "19997\n19999\n") {
				t.Error(r)
			}
		}},
		{"both streams from many", atolltest.Bash, "for i in $(seq 20); do (echo o$i; echo e$i >&2) & done; wait", func(t *testing.T, r *atolltest.Result) {
			if strings.Count(r.Stdout, "\n") != 20 || strings.Count(r.Stderr, "\n") != 20 {
				t.Error(r)
			}
		}},
		{"stderr in stdout", atolltest.Bash, "exec 2>&1; echo a; echo b >&2; echo c", func(t *testing.T, r *atolltest.Result) {
			if r.Stdout != "a\nb\nc\n" || r.Stderr != "" {
				t.Error(r)
			}
		}},
		{"background process holds the pipe", atolltest.Bash, "sleep 30 &\necho done", func(t *testing.T, r *atolltest.Result) {
			if r.Stdout != "done\n" || r.Elapsed > 10*time.Second {
				t.Error(r)
			}
		}},
		{"background process keeps writing", atolltest.Bash, "yes &\necho done >&2", func(t *testing.T, r *atolltest.Result) {
			if r.Stderr != "done\n" || r.ExitCode != 0 || r.Elapsed > 10*time.Second {
				t.Error(r)
			}
		}},
		{"daemon keeps writing", atolltest.Python, `
import os
goes, writes = os.pipe(), os.pipe()
if os.fork() == 0:
  os.setsid()
  if os.fork() == 0:
    os.read(goes[0], 1)
    os.write(1, b'x'); os.write(writes[1], b'x')
    while True: os.write(1, b'x' * 1000)
  os._exit(0)
os.wait(); print('main done', flush=True)
os.write(goes[1], b'x'); os.read(writes[0], 1)`, func(t *testing.T, r *atolltest.Result) {
			if !strings.Contains(r.Stdout, "main done\n") || r.ExitCode != 0 || r.Elapsed > 10*time.Second {
				t.Error(r)
			}
		}},
		{"closed outputs", atolltest.Bash, "exec >&- 2>&-; sleep 0.1; exit 5", func(t *testing.T, r *atolltest.Result) {
			if r.ExitCode != 5 || r.Stdout+r.Stderr != "" {
				t.Error(r)
			}
		}},
		{"output after the fork's end", atolltest.Bash, "(echo child); echo parent", func(t *testing.T, r *atolltest.Result) {
			if r.Stdout != "child\nparent\n" {
				t.Error(r)
			}
		}},
		{"reading its own output", atolltest.Python, "import os\ntry: print(os.read(1, 10))\nexcept OSError as e: print(e.strerror)", func(t *testing.T, r *atolltest.Result) {
			if r.Stdout != "Bad file descriptor\n" {
				t.Error(r)
			}
		}},
		{"its pipe made non-blocking", atolltest.Python, "import os, time\nos.set_blocking(1, False)\nn = 0\nwhile n < 3_000_000:\n  try: n += os.write(1, b'x' * 10000)\n  except BlockingIOError: time.sleep(0.001)\nprint(n, file=__import__('sys').stderr)", func(t *testing.T, r *atolltest.Result) {
			if len(r.Stdout) < 3e6 || strconv.Itoa(len(r.Stdout))+"\n" != r.Stderr || r.ExitCode != 0 {
				t.Error(r)
			}
		}},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			r := shared(t).Run(t, atolltest.Program{Language: c.language, Code: c.code})
			if r.Status != http.StatusOK {
				t.Fatal(r)
			}
			c.check(t, r)
		})
	}
}

// TestAllBytes checks that the answer is valid JSON all the same, of
// which Execute has made sure, and that every byte counts.
func TestAllBytes(t *testing.T) {
	r := shared(t).Run(t, atolltest.Program{Language: atolltest.Python, Code: "import os; os.write(1, bytes(range(256)))"})
	want := ""
	for i := range 256 {
		if i < 128 {
			want += string(rune(i))
		} else {
			want += "\ufffd"
		}
	}
	if r.Stdout != want {
		t.Errorf("got %q", r.Stdout)
	}
}
