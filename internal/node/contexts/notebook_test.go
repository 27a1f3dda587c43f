package contexts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/codecontext"
)

// pythonWith returns a rig whose Python finds these modules.
func pythonWith(t *testing.T, modules map[string]string) *rig {
	t.Helper()
	dir := t.TempDir()
	for name, text := range modules {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PYTHONPATH", dir)
	return newRig(t)
}

// realIPython is the part of IPython that shows values: outside its own shell it prints.
var realIPython = map[string]string{
	"IPython/__init__.py":               "def get_ipython(): return None\n",
	"IPython/core/__init__.py":          "",
	"IPython/core/display_functions.py": "def display(*values, **named): print('printed', *values)\ndef clear_output(wait=False): print('cleared')\n",
	"IPython/display.py":                "from IPython.core.display_functions import *\nclass HTML:\n    def __init__(self, data): self.data = data\n    def _repr_html_(self): return self.data\n",
}

func TestIPythonDisplay(t *testing.T) {
	for name, modules := range map[string]map[string]string{"installed": realIPython, "missing": nil} {
		t.Run(name, func(t *testing.T) {
			r := pythonWith(t, modules)
			if name == "missing" { // whatever this machine has installed
				r.run("python", "import sys; sys.path[:] = [p for p in sys.path if 'packages' not in p]")
			}
			o := r.run("python", "from IPython.display import display, HTML, clear_output\nclear_output()\ndisplay(HTML('<b>1</b>'))")
			if len(o.displays) != 1 || string(o.displays[0].Data["text/html"]) != `"<b>1</b>"` || o.stdout != "" {
				t.Errorf("%+v %+v %q", o.displays, o.Error, o.stdout)
			}
		})
	}
	r := newRig(t)
	o := r.run("python", `import sys; sys.path[:] = [p for p in sys.path if 'packages' not in p]
import IPython
from IPython.core.display import HTML
assert IPython.display.HTML is HTML and IPython.get_ipython() is None
from IPython.display import *
import base64
display(Markdown('# a'), JSON({'a': 1}), Image(b'\x89PNG-', width=3), Math('x'), Javascript('1'), SVG('<svg/>'))
h = display(1, display_id=True)
h.update(2)`)
	var shown []string
	for _, d := range o.displays {
		for _, mime := range []string{"text/markdown", "application/json", "image/png", "text/latex", "application/javascript", "image/svg+xml", "text/plain"} {
			if d.Data[mime] != nil {
				shown = append(shown, string(d.Data[mime]))
				break
			}
		}
	}
	want := "\"# a\" {\"a\":1} \"iVBORy0=\" \"$\\\\displaystyle x$\" \"1\" \"<svg/>\" \"1\" \"2\""
	if got := strings.Join(shown, " "); got != want {
		t.Errorf("got %s, want %s: %+v", got, want, o.Error)
	}
}

func TestValuesShowThemselves(t *testing.T) {
	r := pythonWith(t, map[string]string{
		"plotly/__init__.py":    "",
		"plotly/io/__init__.py": "from plotly.io._renderers import *\nimport json\ndef to_html(figure, **named): return '<div/>'\ndef to_json(figure, **named): return json.dumps(figure)\n",
		"plotly/io/_renderers.py": "class R(dict): default = 'browser'\nrenderers = R()\n" +
			"def show(figure): renderers[renderers.default].render(figure)\n",
		"plotly/io/_base_renderers.py": "class ExternalRenderer: pass\n",
	})
	for _, test := range []struct{ code, mime, want string }{
		{"class F:\n def _repr_pdf_(self): return b'%PDF'\nF()", "application/pdf", `"JVBERg=="`},
		{"class F:\n def _repr_javascript_(self): return '1'\nF()", "application/javascript", `"1"`},
		{"class F:\n def _ipython_display_(self): display({'text/html': 'x'}, raw=True)\nF()", "text/html", `"x"`},
		{"display(F())", "text/html", `"x"`},
		{"class F:\n def _ipython_display_(self): raise NotImplementedError\n def _repr_html_(self): return 'y'\nF()", "text/html", `"y"`},
		{"from unittest.mock import Mock\nMock(name='claims all')", "text/html", ""},
		{"import plotly.io as p\np.show({'data': []})", "application/vnd.plotly.v1+json", `{"data":[]}`},
		{"p.show({'data': []})", "text/html", `"<div/>"`},
	} {
		o := r.run("python", test.code)
		if len(o.displays) != 1 || string(o.displays[0].Data[test.mime]) != test.want {
			t.Errorf("%s: %+v %+v", test.code, o.displays, o.Error)
		}
	}
}

func TestTasks(t *testing.T) {
	r := newRig(t)
	for _, test := range []struct{ code, want string }{
		{"import asyncio\nasync def f(i):\n    await asyncio.sleep(0)\n    return i\ntasks = [asyncio.create_task(f(i)) for i in range(3)]\nawait asyncio.gather(*tasks)", "[0, 1, 2]"},
		{"tasks = [asyncio.create_task(f(7))]\n'started'", "'started'"},
		{"await tasks[0]", "7"},
		{"asyncio.run(f(8))", "8"},
		{"async def fails(): raise SystemExit(3)\nlast = asyncio.create_task(fails())\n1", "1"},
		{"asyncio.get_event_loop().run_until_complete(f(9))", "9"},
		// A thread sees what a task does between two runs.
		{"import threading\nseen = threading.Event()\nasync def later():\n    await asyncio.sleep(0.05)\n    seen.set()\nlast = asyncio.create_task(later())\nseen.is_set()", "False"},
	} {
		if o := r.run("python", test.code); strings.Trim(o.shown("text/plain"), `"`) != test.want {
			t.Errorf("%s: %+v %+v %s", test.code, o.displays, o.Error, o.stderr)
		}
	}
	// What a run waits for without the loop, the loop has done before it.
	for range 200 {
		if o := r.run("python", "__import__('time').sleep(0.001)\nseen.is_set()"); o.shown("text/plain") == `"True"` {
			return
		}
	}
	t.Error("a task does not continue between runs")
}

// TestALoopOfAThread checks that a program may run the context's event loop in another thread.
func TestALoopOfAThread(t *testing.T) {
	r := newRig(t)
	o := r.run("python", `import asyncio, threading
loop = asyncio.get_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()
while not loop.is_running(): pass
async def f(): return 5`)
	if o.Status != codecontext.OK {
		t.Fatal(o.Error)
	}
	for _, code := range []string{"asyncio.run_coroutine_threadsafe(f(), loop).result(1)", "await f()"} {
		if o := r.run("python", code); o.shown("text/plain") != `"5"` || o.stderr != "" {
			t.Errorf("%s: %+v %+v %.300s", code, o.displays, o.Error, o.stderr)
		}
	}
}

// TestATaskInTheWay checks that an interrupt ends a task that blocks the next piece of code, and
// that the context survives.
func TestATaskInTheWay(t *testing.T) {
	r := newRig(t)
	r.run("python", "import asyncio, time\nasync def hangs():\n    while True: time.sleep(0.01)\nlast = asyncio.create_task(hangs())\nkept = 6")
	o, err := r.try(t.Context(), "python", "kept", 200*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if o.shown("text/plain") != `"6"` || !strings.Contains(o.stderr, "in hangs") {
		t.Errorf("%s %+v %+v %s", o.Status, o.displays, o.Error, o.stderr)
	}
}

// TestWorkers: workers know the functions of the context, also where Python starts them
// as copies of a server by default, as 3.14 does.
func TestWorkers(t *testing.T) {
	r := newRig(t)
	o := r.run("python", `import multiprocessing as mp
from concurrent.futures import ProcessPoolExecutor
def square(x): return x * x
with mp.Pool(2) as p: a = p.map(square, [1, 2])
with ProcessPoolExecutor(1) as p: b = list(p.map(square, [3]))
a, b, mp.get_start_method()`)
	if got := strings.Trim(o.shown("text/plain"), `"`); got != "([1, 4], [9], 'fork')" {
		t.Errorf("%s %+v %+v %s", got, o.Result, o.Error, o.stderr)
	}
	r = newRig(t)
	if o := r.run("python", "import multiprocessing as mp\nmp.set_start_method('spawn')\nmp.get_start_method()"); o.shown("text/plain") != `"'spawn'"` {
		t.Errorf("the program's choice: %+v %+v", o.displays, o.Error)
	}
}

func TestCommandLines(t *testing.T) {
	r := newRig(t)
	for _, test := range []struct{ code, stdout, value string }{
		{"!echo hello", "hello\n", ""},
		{"who = 'you'\n!echo {who} $who '{print $1}' ${HOME:+home} {print}", "you you {print $1} home {print}\n", ""},
		{"for i in range(2):\n    !echo {i}", "0\n1\n", ""},
		{"x = !echo a; echo b\nx", "", "['a', 'b']"},
		{"!(exit 3)\n_exit_code", "", "3"},
		{"!echo a \\\n  b\n1", "a b\n", "1"},
		{"text = '''\n!kept\n'''\n!echo \"it's\"\ntext", "it's\n", `'\\n!kept\\n'`},
		{"%%bash\necho $((1+1))", "2\n", ""},
		{"%%time\n!echo 1\n2", "1\n", "2"},
		{"%matplotlib inline\n3", "", "3"},
		{"%pip --no-such-option >/dev/null 2>&1\n_exit_code != 0", "", "True"},
		{"!true\nimport asyncio\nawait asyncio.sleep(0, 4)", "", "4"},
	} {
		o := r.run("python", test.code)
		if o.Status != codecontext.OK || o.stdout != test.stdout || strings.Trim(o.shown("text/plain"), `"`) != test.value {
			t.Errorf("%q: %q %q %+v %s", test.code, o.stdout, o.shown("text/plain"), o.Error, o.stderr)
		}
	}
	for code, want := range map[string]string{
		"%prun x":           "NameError: %prun is not available",
		"x = (1\n% 2 3)":    "x = (1",
		"!echo 1\nfoo bar":  "foo bar",
		"x = 1\n  !echo 1":  "!echo 1",
		"%%html\n<b>1</b>":  "%%html is not available",
		"%%bash\nexit 3\n":  "status 3",
		"!echo 1\n1 / 0":    "1 / 0",
		"print('!')\nx = (": "x = (",
	} {
		o := r.run("python", code)
		if o.Error == nil || !strings.Contains(strings.Join(o.Error.Traceback, "\n"), want) || strings.Contains(strings.Join(o.Error.Traceback, "\n"), "atoll_shell") {
			t.Errorf("%q: %+v", code, o.Error)
		}
	}
}

// TestPackagesOfTheUser: Python finds the folder of the user's packages that was made after it began.
func TestPackagesOfTheUser(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("PYTHONUSERBASE", "")
	r := newRig(t)
	r.run("python", "import sys\ntry: import atoll_late\nexcept ImportError: pass")
	o := r.run("python", "import os, site; os.makedirs(site.getusersitepackages()); open(site.getusersitepackages() + '/atoll_late.py', 'w').close()")
	if o.Status != codecontext.OK {
		t.Fatal(o.Error)
	}
	o = r.run("python", "import atoll_late\n[p for p in sys.path if p.endswith('-packages')][0] == site.getusersitepackages()")
	if o.shown("text/plain") != `"True"` {
		t.Errorf("%+v %+v", o.displays, o.Error)
	}
}

// TestNodeWarnings: programs are not told which parts of Node.js are experimental; they are of the rest.
func TestNodeWarnings(t *testing.T) {
	r := newRig(t)
	o := r.run("node", `process.emitWarning('new', 'ExperimentalWarning'); process.emitWarning('new', { type: 'ExperimentalWarning' });
process.emitWarning('old', 'DeprecationWarning'); await new Promise((r) => setTimeout(r, 20))`)
	if strings.Contains(o.stderr, "Experimental") || !strings.Contains(o.stderr, "DeprecationWarning: old") {
		t.Errorf("%q", o.stderr)
	}
}
