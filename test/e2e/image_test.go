package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// TestImage checks that what agents' programs take for granted works in the
// default image.
func TestImage(t *testing.T) {
	for _, c := range []struct{ name, language, code, stdout string }{
		{"user", atolltest.Bash, "id -u; id -g; id -G; id -un; whoami; echo ~user; ls -ld ~ | cut -c1-10; stat -c %U . ", "1000\n1000\n1000\nuser\nuser\n/home/user\ndrwx[r-][w-][x-][r-][w-][x-]\nuser\n"},
		{"user in Python", atolltest.Python, "import getpass, os, pwd, pathlib; print(getpass.getuser(), pwd.getpwuid(os.getuid()).pw_dir, pathlib.Path.home(), os.path.expanduser('~/x'), os.getlogin() if 0 else '')", "user /home/user /home/user /home/user/x \n"},
		{"user in Node", atolltest.Node, "const os = require('os'); console.log(os.userInfo().username, os.homedir(), os.tmpdir(), os.hostname())", "user /home/user /tmp atoll\n"},
		{"localhost", atolltest.Python, "import socket; print(socket.gethostbyname('localhost'), socket.gethostname())", "127.0.0.1 atoll\n"},
		{"own name", atolltest.Python, "import socket; socket.gethostbyname(socket.gethostname()); socket.getfqdn(); print('ok')", "ok\n"},
		{"processors and memory", atolltest.Python, "import os; print(os.cpu_count() in (1, 2), os.sysconf('SC_PHYS_PAGES') * 4096 >> 20)", "True (5\\d\\d|6\\d\\d)\n"},
		{"heap of Node", atolltest.Node, "const v8 = require('v8'); console.log(v8.getHeapStatistics().heap_size_limit < 600e6, require('os').totalmem() < 700e6)", "true true\n"},
		{"terminal pair", atolltest.Python, "import os, pty\nm, s = pty.openpty(); os.write(s, b'hi'); print(os.read(m, 9), os.isatty(s))\nprint(pty.spawn(['true']))", "b'hi' True\n0\n"},
		{"pip install", atolltest.Bash, `mkdir w && cd w && python3 - <<'P'
import zipfile
z = zipfile.ZipFile('hello_x-1.0-py3-none-any.whl', 'w')
z.writestr('hello_x.py', 'def main(): print("from the script")\nX = 5\n')
d = 'hello_x-1.0.dist-info/'
z.writestr(d + 'METADATA', 'Metadata-Version: 2.1\nName: hello-x\nVersion: 1.0\n')
z.writestr(d + 'WHEEL', 'Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
z.writestr(d + 'entry_points.txt', '[console_scripts]\nhello-x = hello_x:main\n')
z.writestr(d + 'RECORD', '')
z.close()
P
pip install -q --no-index --disable-pip-version-check *.whl && cd .. && python3 -c 'import hello_x; print(hello_x.X)' && hello-x`, "5\nfrom the script\n"},
		{"npm install", atolltest.Bash, "mkdir p && cd p && echo '{\"name\":\"p\",\"version\":\"1.0.0\",\"bin\":\"b.js\"}' > package.json && printf '#!/usr/bin/env node\\nconsole.log(\"from npm\")\\n' > b.js && chmod +x b.js && npm install -g --offline --silent . && p", "from npm\n"},
		{"matplotlib", atolltest.Python, "import matplotlib.pyplot as plt, os\nplt.plot([1, 2]); plt.savefig('x.png'); print(plt.get_backend(), os.path.getsize('x.png') > 1000)", "[aA]gg True\n"},
		{"tables with styles", atolltest.Python, "import pandas; print('<table' in pandas.DataFrame({'a': [1]}).style.to_html())", "True\n"},
		{"characters of all scripts", atolltest.Python, "import warnings; warnings.simplefilter('error')\nimport matplotlib.pyplot as plt\nplt.title('漢字 한글 かな é'); plt.savefig('x.png'); print('drawn')", "drawn\n"},
		{"fonts and settings of the user", atolltest.Bash, `mkdir -p ~/.local/share/fonts/own ~/.config/matplotlib && echo 'lines.linewidth: 7' > ~/.config/matplotlib/matplotlibrc
cp "$(find /usr/share -name DejaVuSans.ttf | head -1)" ~/.local/share/fonts/own/mine.ttf
python3 -c 'import matplotlib, matplotlib.font_manager as m; print(matplotlib.rcParams["lines.linewidth"], [f.fname for f in m.fontManager.ttflist if "mine" in f.fname])'`, "7.0 \\['/home/user/.local/share/fonts/own/mine.ttf'\\]\n"},
		{"client of searches", atolltest.Python, "import perplexity\ntry: perplexity.Perplexity()\nexcept perplexity.PerplexityError as e: print(str(e)[:10])", "no API key\n"},
		{"requests", atolltest.Python, "import requests\ntry: requests.get('http://example.com', timeout=3)\nexcept requests.exceptions.ConnectionError: print('no network')", "no network\n"},
		{"certificates", atolltest.Python, "import ssl; print(len(ssl.create_default_context().get_ca_certs()) > 50)", "True\n"},
		{"time zones", atolltest.Python, "import zoneinfo, datetime; print(datetime.datetime(2024, 7, 1, tzinfo=zoneinfo.ZoneInfo('Europe/Berlin')).isoformat())", "2024-07-01T00:00:00\\+02:00\n"},
		{"compiler of regular expressions and friends", atolltest.Bash, "grep -o 'b.' <<< abc; sed s/a/b/ <<< a; awk '{print $2}' <<< '1 2'; find . -name '*.sh'; tar c main.sh | tar t; gzip < main.sh | zcat | wc -l > /dev/null; date +%Y | grep -c 20", "bc\nb\n2\n./main.sh\nmain.sh\n1\n"},
		{"C", atolltest.Bash, `printf '#include <stdio.h>\nint main(void) { puts("compiled"); }\n' > c.c && printf 'c: c.c\n\tgcc -O2 -o c c.c\n' > Makefile && make -s && ./c`, "compiled\n"},
		{"C++", atolltest.Bash, `printf '#include <iostream>\nint main() { std::cout << "compiled\\n"; }\n' > c.cc && g++ -o c c.cc && ./c`, "compiled\n"},
		{"pagers and editors", atolltest.Bash, "echo text > t; file -b t; less -F t; vi -es -c 's/text/edited/' -c wq t; cat t", "ASCII text\ntext\nedited\n"},
		{"executable in home and tmp", atolltest.Bash, "cp /bin/echo ~/e && ~/e home; cp /bin/echo /tmp/e && /tmp/e tmp; printf '#!/bin/bash\\necho script' > s && chmod +x s && ./s", "home\ntmp\nscript\n"},
		{"locking and watching files", atolltest.Python, "import fcntl, os, mmap\nf = open('f', 'w+b'); f.write(b'x' * 4096); f.flush(); fcntl.flock(f, fcntl.LOCK_EX); fcntl.lockf(f, fcntl.LOCK_EX)\nm = mmap.mmap(f.fileno(), 4096); m[0] = 65; m.flush(); print(open('f', 'rb').read(1)); os.link('f', 'g'); os.symlink('f', 'h'); os.rename('g', 'i'); print(sorted(os.listdir('.')))", "b'A'\n\\['f', 'h', 'i', 'main.py'\\]\n"},
		{"changing the image's files", atolltest.Bash, "ls -d /usr/lib/python3* | wc -l; touch /usr/x 2>&1; touch /etc/x 2>&1; touch /x 2>&1; touch /opt/x 2>&1", "\\d+\n(touch: cannot touch '/[a-z/]+': Permission denied\n){4}"},
		{"nothing writable elsewhere", atolltest.Bash, "find / -xdev -writable ! -type l ! -path '/proc/*' ! -path '/home/user*' ! -path '/dev/*' ! -path /tmp 2>/dev/null | grep -v -e ^/var/tmp$ -e ^/run/lock$ -e ^/var/mail$", ""},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			r := shared(t).Run(t, atolltest.Program{Language: c.language, Code: c.code})
			if r.Status != http.StatusOK || !matches("~"+c.stdout, r.Stdout) {
				t.Errorf("want %s, got %v", c.stdout, r)
			}
		})
	}
}

// TestClock checks that time goes right in sandboxes, those that were restored
// from a checkpoint included, which was made at another time.
func TestClock(t *testing.T) {
	s := shared(t)
	for _, code := range []string{"", "import pandas\n"} {
		before := time.Now()
		r := s.Run(t, atolltest.Program{Code: code + `import datetime, time
a, m = time.time(), time.monotonic(); time.sleep(0.2); d = time.time() - a, time.monotonic() - m
print(a, *d)`})
		took := time.Since(before).Seconds()
		var seconds, wall, monotonic float64
		if _, err := fmt.Sscan(r.Stdout, &seconds, &wall, &monotonic); err != nil {
			t.Fatal(r, err)
		}
		if off := seconds - float64(before.UnixNano())/1e9; off < -0.05 || off > took+0.05 {
			t.Errorf("%q: the sandbox's clock was %v s off", code, off)
		}
		if min(wall, monotonic) <= 0.19 || max(wall, monotonic) > took+0.05 {
			t.Errorf("%q: 0.2 s were %v and %v s, of %v", code, wall, monotonic, took)
		}
	}
}

// TestLargestRequest checks that variables and code of the largest size reach the
// program in each language.
func TestLargestRequest(t *testing.T) {
	env := map[string]string{}
	size := 0
	for i := range 15 {
		name := "LONG_" + strconv.Itoa(i)
		env[name] = strings.Repeat("'", 4096)
		size += len(name) + 4096
	}
	env["LAST"] = strings.Repeat("\\", 64<<10-size-len("LAST"))
	for language, code := range map[string]string{
		atolltest.Python: "import os; print(sum(len(k) + len(v) for k, v in os.environ.items() if k[:2] in ('LO', 'LA') and k not in ('LOGNAME', 'LANG')))\n#",
		atolltest.Node:   "console.log(Object.entries(process.env).filter(([k]) => /^(LONG_|LAST)/.test(k)).reduce((n, [k, v]) => n + k.length + v.length, 0))\n//",
		atolltest.Bash:   "n=0; for v in ${!LONG_*} LAST; do n=$((n + ${#v} + $(printf %s \"${!v}\" | wc -c))); done; echo $n; exit\n#",
	} {
		code += strings.Repeat("x", 1<<20-len(code))
		r := shared(t).Run(t, atolltest.Program{Language: language, Code: code, Env: env})
		if r.Status != http.StatusOK || r.Stdout != "65536\n" || r.Stderr != "" {
			t.Errorf("%s: %v", language, r)
		}
	}
}
