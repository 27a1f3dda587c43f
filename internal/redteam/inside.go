package redteam

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// runner runs a Python program where a case wants to attack from.
type runner func(ctx context.Context, code string) (output, error)

type runnerKey struct{}

// from has the programs of cases run elsewhere than in the shared sandbox.
func from(ctx context.Context, r runner) context.Context {
	return context.WithValue(ctx, runnerKey{}, r)
}

// again runs cases of another group from elsewhere, and reports the first that does not hold.
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

// isolationCases attack between the executions of a key that share a kernel.
func isolationCases() []Case {
	return []Case{
		{"isolation/leftovers", Critical, "leaves files, start-up files, processes, shared memory, sockets and variables in a kernel that executions of a key share", "a later program in that kernel finds none of it", isolationLeft},
		{"isolation/escape", Critical, "tries each way out of a sandbox from a program that shares its kernel", "each is refused", isolationEscape},
		{"isolation/other-keys", Critical, "compares the kernels of two keys of one environment", "no two keys share a kernel, and executions of one do", isolationKeys},
		{"isolation/refused", High, "asks for shared kernels without the tenant's leave, and with a network, root and rules beside them", "each is refused", isolationRefused},
	}
}

// theKeyed makes an environment whose executions share kernels.
func (a *arena) theKeyed(ctx context.Context) (caller, error) {
	return a.keyed.get(ctx, func(ctx context.Context) (caller, error) {
		return a.room(ctx, attackerTenant, envKeyed, map[string]any{"isolation": "key"})
	})
}

// shares reads which isolation an execution had; one with a kernel of its own would show nothing.
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

// keyedRun runs a program in a kernel that a key shares.
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

// kernelOf is the kernel that a program was in, as kernelMark says it at its end.
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
	for range mostKernels { // until programs have looked in kernels in which others had planted
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
	return fmt.Errorf("%d of %d programs looked in a kernel in which another had planted", looked, mostKernels)
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

// kernelMark tells kernels apart: each makes a file system of devices as it starts.
const kernelMark = "import os\nprint('began', os.stat('/dev').st_ctime_ns)"

// mostKernels is how many executions a case has until they show that they share kernels.
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
			return found("two keys had the kernel that %s", kernel)
		}
		if ok {
			shared++
		}
		seen[kernel] = i % 2
	}
	if shared == 0 {
		return fmt.Errorf("%d executions of two keys had %d kernels, so nothing was shared", mostKernels, len(seen))
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
		"without the tenant's leave": {victimTenant, nil}, "a network": {attackerTenant, network}, "root": {attackerTenant, root}, "rules about files": {attackerTenant, paths},
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
		{"root/escape", Critical, "tries each way out of a sandbox as its root", "root of a sandbox is nobody outside of it", rootEscape},
		{"root/guest", Critical, "writes, reads and replaces the guest's own files and memory, and the host's settings, as root", "none of them can be changed", rootGuest},
		{"root/end", High, "ends process 1, and with it its own sandbox", "its own run fails, and other sandboxes go on", rootEnd},
		{"root/capabilities", Critical, "looks at the capabilities of root, and takes those that it lacks", "it has those that a package manager needs, and no more", rootCapabilities},
		{"root/network", Critical, "reaches the floor as root, by raw sockets, other addresses, routes and rules", "each is refused", rootNetwork},
		{"root/refused", Critical, "asks for root without the leave of its tenant", "it is refused, and programs are the ordinary user", rootRefused},
	}
}

// theRooted is a sandbox whose programs run as root.
func (a *arena) theRooted(ctx context.Context) (sandbox, error) {
	return a.rooted.get(ctx, func(ctx context.Context) (sandbox, error) {
		c, err := a.room(ctx, attackerTenant, envRoot, map[string]any{"permissions": map[string]any{"process": map[string]any{"root": true}, "network": map[string]any{"enabled": true, "unrestricted": true}}})
		if err != nil {
			return sandbox{}, err
		}
		return a.create(ctx, c)
	})
}

// asRoot runs programs as root, and says if they are not.
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
	// Left out is what root of a sandbox may do to its own kernel and user, and what its network has.
	return again(ctx, a, a.asRoot(s), escapeCases(), "kill-all", "signal-init", "limits", "set-user-id", "capabilities", "image-files", "network-devices", "proc-sys")
}

// rooting returns the run of a case that is a program of root.
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
		return found("a program that ended its own sandbox is answered for with %s", e)
	}
	box, err := a.theBox(ctx)
	if err != nil {
		return err
	}
	if out, err := box.start(ctx, "echo", "on"); err != nil || out.Stdout != "on\n" {
		return found("another sandbox does not go on: %s, %v", out, err)
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
	if err := unwanted("root without the tenant's leave", got, err); err != nil {
		return err
	}
	own, err := a.key(ctx, victimTenant, envPlain, "environments")
	if err != nil {
		return err
	}
	got, err = own.do(ctx, http.MethodPatch, "/v1/environments/"+envPlain, map[string]any{"config": map[string]any{"permissions": map[string]any{"process": map[string]any{"root": true}}}})
	return unwanted("root by the tenant itself, without the operator's leave", got, err)
}
