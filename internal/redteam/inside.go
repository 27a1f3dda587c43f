package redteam

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// runner runs a Python program in the place from which a case attacks.
type runner func(ctx context.Context, code string) (output, error)

type runnerKey struct{}

// from makes cases run their programs with r instead of in the shared sandbox.
func from(ctx context.Context, r runner) context.Context {
	return context.WithValue(ctx, runnerKey{}, r)
}

// again runs cases of another group with r, except those named in but, and reports the first failure.
func again(ctx context.Context, a *arena, r runner, cases []Case, but ...string) error {
	ctx = from(ctx, r)
	tried := 0
	for _, c := range cases {
		if _, name, _ := strings.Cut(c.ID, "/"); slices.Contains(but, name) {
			continue
		}
		tried++
		err := c.run(ctx, a)
		if f, ok := errors.AsType[*finding](err); ok {
			return found("%s: %s", c.ID, f.evidence)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.ID, err)
		}
	}
	if tried == 0 {
		return errors.New("no case was tried")
	}
	return nil
}

// isolationCases attack one execution from another that shares its kernel.
func isolationCases() []Case {
	return []Case{
		{"isolation/leftovers", Critical, "leaves files, start-up files, processes, shared memory, sockets and variables in a kernel that executions of one key share", "a later program in that kernel finds none of them", isolationLeft},
		{"isolation/escape", Critical, "tries each way out of a sandbox from a program that shares its kernel", "each attempt fails", isolationEscape},
		{"isolation/other-keys", Critical, "compares the kernels of two keys of one environment", "two keys never share a kernel, and executions of one key do", isolationKeys},
		{"isolation/refused", High, "requests shared kernels without the tenant's permission, and together with a network, root and file rules", "the server rejects each request", isolationRefused},
	}
}

// theKeyed returns a caller in an environment where executions of one key share kernels.
func (a *arena) theKeyed(ctx context.Context) (caller, error) {
	return a.keyed.get(ctx, func(ctx context.Context) (caller, error) {
		return a.room(ctx, attackerTenant, envKeyed, map[string]any{"isolation": "key"})
	})
}

// shares skips a case unless the execution shared its kernel, because other executions have nothing to
// attack.
func (a *arena) shares(ctx context.Context, by caller, e execution) error {
	var of struct{ Isolation string }
	if err := by.must(ctx, http.MethodGet, "/v1/executions/"+e.Trace, nil, &of); err != nil {
		return err
	}
	if of.Isolation != "key" {
		return skip("not run: needs runtime gvisor, where executions of a key share kernels; this one had isolation %q", of.Isolation)
	}
	return nil
}

// keyedRun runs a program in a kernel that executions of one key share.
func (a *arena) keyedRun(ctx context.Context, c caller, code string) (execution, error) {
	e, err := a.execute(ctx, c, "python", code, 30, nil)
	if err != nil {
		return e, err
	}
	if e.Status != http.StatusOK {
		return e, fmt.Errorf("a program of a key: %s", e)
	}
	return e, a.shares(ctx, c, e)
}

// kernelOf returns the mark of the kernel that ran a program, which kernelMark prints last.
func kernelOf(e execution) string { return e.Stdout[strings.LastIndex(e.Stdout, "began")+1:] }

func isolationLeft(ctx context.Context, a *arena) error {
	if _, err := a.theKeyed(ctx); err != nil {
		return err
	}
	c, err := a.key(ctx, attackerTenant, envKeyed, "execute", "read")
	if err != nil {
		return err
	}
	more := map[string]any{"env_vars": map[string]string{"REDTEAM_PLANTED": "1"}, "stdin": mark}
	planted, looked := map[string]bool{}, 0
	for range mostKernels { // until three programs have run in a kernel with planted leftovers
		e, err := a.execute(ctx, c, "python", planting+kernelMark, 20, more)
		if err != nil {
			return err
		}
		if !strings.Contains(e.Stdout, "planted\n") {
			return fmt.Errorf("the planting program: %s", e)
		}
		planted[kernelOf(e)] = true
		if e, err = a.keyedRun(ctx, c, looking+kernelMark); err != nil {
			return err
		}
		if err := judge(output{Stdout: strings.ReplaceAll(e.Stdout, "looked\n", "tried\n")}, 1); err != nil {
			return err
		}
		if strings.Contains(e.Stdout, "\n"+mark) {
			return found("a later program ran a planted file: %s", e.Stdout)
		}
		if planted[kernelOf(e)] {
			looked++
		}
		if looked == 3 {
			return nil
		}
	}
	return fmt.Errorf("only %d of %d programs ran in a kernel with planted leftovers", looked, mostKernels)
}

func isolationEscape(ctx context.Context, a *arena) error {
	c, err := a.theKeyed(ctx)
	if err != nil {
		return err
	}
	return again(ctx, a, func(ctx context.Context, code string) (output, error) {
		e, err := a.keyedRun(ctx, c, code)
		return output{Stdout: e.Stdout, Stderr: e.Stderr, Exit: e.Exit}, err
	}, escapeCases(), "kill-all")
}

// kernelMark prints a value that differs between kernels: each kernel creates /dev when it starts.
const kernelMark = "import os\nprint('began', os.stat('/dev').st_ctime_ns)"

// mostKernels is the number of executions within which a case must see a shared kernel.
const mostKernels = 24

func isolationKeys(ctx context.Context, a *arena) error {
	if _, err := a.theKeyed(ctx); err != nil {
		return err
	}
	var keys [2]caller
	for i := range keys {
		var err error
		if keys[i], err = a.key(ctx, attackerTenant, envKeyed, "execute", "read"); err != nil {
			return err
		}
	}
	seen, shared := map[string]int{}, 0
	for i := 0; i < mostKernels && (i < 6 || shared == 0); i++ {
		e, err := a.keyedRun(ctx, keys[i%2], kernelMark)
		if err != nil {
			return err
		}
		kernel := strings.TrimSpace(e.Stdout)
		if !strings.HasPrefix(kernel, "began ") {
			return fmt.Errorf("the program: %s", e)
		}
		by, ok := seen[kernel]
		if ok && by != i%2 {
			return found("two keys shared the kernel that %s", kernel)
		}
		if ok {
			shared++
		}
		seen[kernel] = i % 2
	}
	if shared == 0 {
		return fmt.Errorf("%d executions of two keys used %d kernels, so no two shared one", mostKernels, len(seen))
	}
	return nil
}

func isolationRefused(ctx context.Context, a *arena) error {
	network := map[string]any{"network": map[string]any{"enabled": true, "unrestricted": true}}
	root := map[string]any{"process": map[string]any{"root": true}}
	paths := map[string]any{"filesystem": map[string]any{"blocked_paths": []string{"/etc"}}}
	for what, try := range map[string]struct {
		tenant string
		more   map[string]any
	}{
		"no permission from the tenant": {victimTenant, nil}, "a network": {attackerTenant, network}, "root": {attackerTenant, root}, "rules about files": {attackerTenant, paths},
	} {
		body := map[string]any{"name": "redteam-refused-" + token(4), "isolation": "key"}
		if try.more != nil {
			body["permissions"] = try.more
		}
		got, err := a.admin.do(ctx, http.MethodPost, "/v1/admin/tenants/"+try.tenant+"/environments", body)
		if err := unwanted("shared kernels with "+what, got, err); err != nil {
			return err
		}
	}
	return nil
}

// rootCases attack as root of a sandbox.
func rootCases() []Case {
	return []Case{
		{"root/escape", Critical, "tries each way out of a sandbox as root", "root in a sandbox has no rights outside of it", rootEscape},
		{"root/guest", Critical, "writes, reads and replaces the guest's own files and memory, and the host's settings, as root", "root can change none of them", rootGuest},
		{"root/end", High, "kills process 1, and with it its own sandbox", "its own run fails, and other sandboxes keep running", rootEnd},
		{"root/capabilities", Critical, "reads the capabilities of root, and tries to gain others", "root has only the capabilities that a package manager needs", rootCapabilities},
		{"root/network", Critical, "connects to blocked addresses as root, also with raw sockets, other addresses, routes and rules", "each attempt fails", rootNetwork},
		{"root/refused", Critical, "requests root without its tenant's permission", "the server rejects each request", rootRefused},
	}
}

// theRooted returns a sandbox whose programs run as root.
func (a *arena) theRooted(ctx context.Context) (sandbox, error) {
	return a.rooted.get(ctx, func(ctx context.Context) (sandbox, error) {
		c, err := a.room(ctx, attackerTenant, envRoot, map[string]any{"permissions": map[string]any{"process": map[string]any{"root": true}, "network": map[string]any{"enabled": true, "unrestricted": true}}})
		if err != nil {
			return sandbox{}, err
		}
		return a.create(ctx, c)
	})
}

// asRoot returns a runner for programs in s. It skips the case if they do not run as root.
func (a *arena) asRoot(s sandbox) runner {
	return func(ctx context.Context, code string) (output, error) {
		out, err := s.start(ctx, "python3", "-c", "import os\nif os.getuid() != 0: raise SystemExit('not root')\n"+code)
		if err == nil && strings.Contains(out.Stderr, "not root") {
			err = skip("not run: needs runtime gvisor, where environments may run programs as root")
		}
		return out, err
	}
}

func rootEscape(ctx context.Context, a *arena) error {
	s, err := a.theRooted(ctx)
	if err != nil {
		return err
	}
	// Skip the cases that root may win: those against the sandbox's own kernel and user, and against its network.
	return again(ctx, a, a.asRoot(s), escapeCases(), "kill-all", "signal-init", "limits", "set-user-id", "capabilities", "image-files", "network-devices", "proc-sys")
}

// rooting returns a run function that executes a program of attempts as root.
func rooting(attempts int, code string) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		s, err := a.theRooted(ctx)
		if err != nil {
			return err
		}
		return program(attempts, code)(from(ctx, a.asRoot(s)), a)
	}
}

func rootGuest(ctx context.Context, a *arena) error {
	return rooting(7, `
def write(path):
    with open(path, 'w') as f: f.write('x')
    got('wrote', path)
for at, dirs, files in os.walk('/.atoll'):
    for f in files[:20]:
        if not at.startswith('/.atoll/meet'): attempt(write, os.path.join(at, f))
attempt(write, '/.atoll/redteam')
def remove(): os.rename('/.atoll', '/tmp/atoll'); got('moved the guest away')
attempt(remove)
def over():
    call(libc.mount, b'/tmp', b'/.atoll', None, 4096, None); got('mounted over the guest')
attempt(over)
for path, text in ('/proc/sys/kernel/core_pattern', '|/tmp/x'), ('/proc/sys/kernel/modprobe', '/tmp/x'), ('/proc/sysrq-trigger', 'b'):
    def set():
        with open(path, 'w') as f: f.write(text)
        got('wrote', path)
    attempt(set)
def memory():
    with open('/proc/1/mem', 'r+b') as f: f.read(1)
    got('the memory of process 1')
attempt(memory)
`)(ctx, a)
}

func rootEnd(ctx context.Context, a *arena) error {
	root, err := a.theRooted(ctx)
	if err != nil {
		return err
	}
	e, err := a.execute(ctx, root.by, "bash", "test $(id -u) = 0 && kill -9 1; sleep 5; echo on", 20, nil)
	if err != nil {
		return err
	}
	if e.Status != http.StatusOK || e.Success {
		return found("a program that killed its own sandbox ended with %s", e)
	}
	box, err := a.theBox(ctx)
	if err != nil {
		return err
	}
	if out, err := box.start(ctx, "echo", "on"); err != nil || out.Stdout != "on\n" {
		return found("another sandbox stopped working: %s, %v", out, err)
	}
	return nil
}

func rootCapabilities(ctx context.Context, a *arena) error {
	// CHOWN, DAC_OVERRIDE, FOWNER, KILL, SETGID and SETUID.
	return rooting(4, `
allowed = sum(1 << n for n in (0, 1, 3, 5, 6, 7))
status = dict(l.split(':', 1) for l in open('/proc/self/status') if ':' in l)
for name in 'CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb':
    more = int(status.get(name, '0'), 16) & ~allowed
    if more: got(name, 'has', hex(more))
if libc.prctl(39, 0, 0, 0, 0) != 1: got('no_new_privs is not set')
print('tried')
def take(n):
    bits = allowed | 1 << n
    call(libc.capset, struct.pack('<Ii', 0x20080522, 0), struct.pack('<6I', bits & 0xffffffff, bits & 0xffffffff, 0, bits >> 32, bits >> 32, 0))
    for l in open('/proc/self/status'): # a kernel may say yes and give nothing
        if l.startswith('CapPrm') and int(l.split()[1], 16) >> n & 1: got('capability', n)
for n in 21, 12, 13: attempt(take, n)
`)(ctx, a)
}

func rootNetwork(ctx context.Context, a *arena) error {
	return rooting(7, `
def tcp(at): socket.create_connection(at, 5).close(); got('connected to', at)
for at in ('169.254.169.254', 80), ('10.0.0.1', 80), ('192.168.0.1', 80): attempt(tcp, at)
def raw(*args): socket.socket(*args).close(); got('a raw socket', args)
attempt(raw, socket.AF_INET, socket.SOCK_RAW, 1); attempt(raw, 17, socket.SOCK_RAW, 3)
def address():
    import fcntl
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    fcntl.ioctl(s, 0x8916, struct.pack('16sH2s4s8x', b'eth0', 2, b'', socket.inet_aton('169.254.169.253'))); got('another address')
attempt(address)
def route():
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); s.settimeout(2)
    s.send(struct.pack('<IHHII', 36, 24, 0x605, 1, 0) + struct.pack('<BBBBBBBBI', 2, 0, 0, 0, 254, 4, 0, 1, 0) + struct.pack('<HHI', 8, 5, 0x0100007f))
    kind, code = struct.unpack('<4xH10xi', s.recv(4096)[:20])
    if kind == 2 and code == 0: got('a route')
attempt(route)
`)(ctx, a)
}

func rootRefused(ctx context.Context, a *arena) error {
	body := map[string]any{"name": "redteam-refused-" + token(4), "permissions": map[string]any{"process": map[string]any{"root": true}}}
	got, err := a.admin.do(ctx, http.MethodPost, "/v1/admin/tenants/"+victimTenant+"/environments", body)
	if err := unwanted("root without the tenant's permission", got, err); err != nil {
		return err
	}
	own, err := a.key(ctx, victimTenant, envPlain, "environments")
	if err != nil {
		return err
	}
	got, err = own.do(ctx, http.MethodPatch, "/v1/environments/"+envPlain, map[string]any{"config": map[string]any{"permissions": map[string]any{"process": map[string]any{"root": true}}}})
	return unwanted("root by the tenant, without the operator's permission", got, err)
}
