package redteam

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// persistenceCases are ways to leave something for the next execution, or to find what
// an earlier one left.
func persistenceCases() []Case {
	return []Case{
		{"persistence/files", Critical, "leaves files in every folder that can be written, and has later programs look for them", "a later program finds none", left("files")},
		{"persistence/start-files", Critical, "plants files that shells and interpreters read as they start", "no later program runs them", left("start")},
		{"persistence/processes", Critical, "leaves a daemon that has cut every tie to its program", "no later program sees it", left("processes")},
		{"persistence/shared-memory", High, "leaves System V and POSIX shared memory and message queues", "no later program finds them", left("ipc")},
		{"persistence/sockets", High, "leaves a listener on the loopback interface and on an abstract Unix socket", "no later program reaches it", left("sockets")},
		{"persistence/variables", Critical, "gives one execution variables, stdin and files", "no later program has them", left("variables")},
		{"persistence/randomness", High, "draws random numbers in fresh sandboxes, in each of Python's ways", "no two sandboxes draw the same", randomness},
	}
}

// mark names what this run plants.
const mark = "redteam-planted"

const planting = `import os, socket, ctypes, mmap
for d in '/tmp', '/dev/shm', '/home/user', '/var/tmp', '/run', '/run/lock', '/var/lock', '/dev/mqueue', '/':
    try:
        with open(d + '/redteam-planted', 'w') as f: f.write('x')
    except OSError: pass
for path in '.bashrc', '.profile', '.bash_profile', '.node_repl_history', '.npmrc':
    with open('/home/user/' + path, 'a') as f: f.write('\necho redteam-planted\n')
import site
at = site.getusersitepackages(); os.makedirs(at, exist_ok=True)
for name in 'sitecustomize.py', 'usercustomize.py', 'redteam.pth':
    with open(os.path.join(at, name), 'w') as f: f.write('import os; print("redteam-planted")\n')
libc = ctypes.CDLL(None)
libc.shmget(0x5ed7ea, 4096, 0o1666); libc.semget(0x5ed7ea, 1, 0o1666); libc.msgget(0x5ed7ea, 0o1666)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for i in range(3): os.close(i)
        t = socket.socket(); t.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); t.bind(('127.0.0.1', 47114)); t.listen()
        u = socket.socket(socket.AF_UNIX); u.bind('\0redteam-planted'); u.listen()
        os.execv('/bin/sh', ['redteam-planted', '-c', 'while :; do sleep 1; done'])
    os._exit(0)
os.wait()
print('planted')
`

const looking = `import os, socket, ctypes, sys
def got(kind, *what): print('GOT', kind, *what)
for at, dirs, files in os.walk('/', topdown=True):
    if at == '/': dirs[:] = [d for d in dirs if d not in ('proc', 'sys', 'usr', 'bin', 'lib', 'lib64')]
    for f in files:
        if f == 'redteam-planted': got('files', os.path.join(at, f))
        if f in ('.bashrc', '.profile', '.bash_profile', '.npmrc', 'sitecustomize.py', 'usercustomize.py', 'redteam.pth') and at.startswith('/home'):
            if 'redteam-planted' in open(os.path.join(at, f)).read(): got('start', os.path.join(at, f))
for p in os.listdir('/proc'):
    if p.isdigit():
        try: line = open('/proc/%s/cmdline' % p, 'rb').read()
        except OSError: continue
        if line.startswith(b'redteam-planted'): got('processes', p)
libc = ctypes.CDLL(None)
for name, r in ('shm', libc.shmget(0x5ed7ea, 0, 0)), ('sem', libc.semget(0x5ed7ea, 0, 0)), ('msg', libc.msgget(0x5ed7ea, 0)):
    if r >= 0: got('ipc', name)
for family, address in (socket.AF_INET, ('127.0.0.1', 47114)), (socket.AF_UNIX, '\0redteam-planted'):
    s = socket.socket(family); s.settimeout(2)
    try: s.connect(address)
    except OSError: continue
    got('sockets', address)
if 'REDTEAM_PLANTED' in os.environ: got('variables', 'REDTEAM_PLANTED')
if os.path.exists('redteam-sent'): got('variables', 'a file of the request')
if sys.stdin.read(): got('variables', 'stdin')
print('looked')
`

// left plants everything once, looks twice, and judges one kind of what was found.
func left(kind string) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		seen, err := a.planted.get(ctx, a.plant)
		if err != nil {
			return err
		}
		for line := range strings.Lines(seen) {
			if rest, ok := strings.CutPrefix(line, "GOT "+kind+" "); ok {
				return found("a later program found %s", strings.TrimSpace(rest))
			}
		}
		if kind == "start" && strings.Contains(seen, "\n"+mark) {
			return found("a later program ran a planted file: %s", seen)
		}
		return nil
	}
}

func (a *arena) plant(ctx context.Context) (string, error) {
	e, err := a.execute(ctx, a.plain, "python", planting, 20, map[string]any{
		"env_vars": map[string]string{"REDTEAM_PLANTED": "1"}, "stdin": mark, "files": map[string]string{"redteam-sent": "x"},
	})
	if err != nil {
		return "", err
	}
	if !strings.Contains(e.Stdout, "planted\n") {
		return "", fmt.Errorf("the planting program: %s", e)
	}
	var seen string
	for range 2 {
		e, err := a.execute(ctx, a.plain, "python", looking, 30, nil)
		if err != nil {
			return "", err
		}
		if !strings.HasSuffix(e.Stdout, "looked\n") {
			return "", fmt.Errorf("the looking program: %s", e)
		}
		seen += "\n" + e.Stdout
	}
	e, err = a.execute(ctx, a.plain, "bash", "bash -lic true 2>/dev/null; echo looked", 20, nil)
	if err != nil {
		return "", err
	}
	if e.Status != http.StatusOK {
		return "", fmt.Errorf("the looking shell: %s", e)
	}
	return seen + "\n" + e.Stdout, nil
}

func randomness(ctx context.Context, a *arena) error {
	const draw = "import os, random, secrets, uuid, tempfile\nprint(os.urandom(8).hex())\nprint(random.getrandbits(64))\nprint(secrets.token_hex(8))\nprint(uuid.uuid4())\nprint(open('/proc/sys/kernel/random/uuid').read().strip())"
	before := map[string]bool{}
	for range 3 {
		e, err := a.execute(ctx, a.plain, "python", draw, 20, nil)
		if err != nil {
			return err
		}
		drawn := strings.Fields(e.Stdout)
		if len(drawn) != 5 {
			return fmt.Errorf("the drawing program: %s", e)
		}
		for _, n := range drawn {
			if before[n] {
				return found("two sandboxes drew %s", n)
			}
			before[n] = true
		}
	}
	return nil
}
