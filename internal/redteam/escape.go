package redteam

import (
	"context"
	"fmt"
	"strings"
)

// escapeCases are ways out of a sandbox's user, or of the sandbox.
func escapeCases() []Case {
	return []Case{
		{"escape/proc-sys", Critical, "writes to /proc/sys and to the trigger of SysRq", "every write is refused", program(8, `
def write(path, text):
    with open(path, 'w') as f: f.write(text)
    got('wrote', path)
for path, text in (('kernel/core_pattern', '|/tmp/x'), ('kernel/modprobe', '/tmp/x'), ('kernel/hostname', 'x'), ('vm/overcommit_memory', '1'),
                   ('fs/suid_dumpable', '1'), ('net/ipv4/ip_forward', '1'), ('kernel/randomize_va_space', '0')):
    attempt(write, '/proc/sys/' + path, text)
attempt(write, '/proc/sysrq-trigger', 'b')
`)},
		{"escape/cgroup-release-agent", Critical, "sets a release agent of a control group, and mounts the hierarchy to do so", "no hierarchy can be mounted or written to", program(6, `
def write(path, text):
    with open(path, 'w') as f: f.write(text)
    got('wrote', path)
def mount(kind):
    os.makedirs('/tmp/cg-' + kind, exist_ok=True)
    call(libc.mount, b'none', b'/tmp/cg-' + kind.encode(), kind.encode(), 0, b'rdma' if kind == 'cgroup' else None)
    got('mounted', kind)
attempt(write, '/sys/fs/cgroup/release_agent', '/tmp/x')
attempt(write, '/sys/fs/cgroup/cgroup.procs', str(os.getpid()))
attempt(write, '/sys/fs/cgroup/memory/memory.limit_in_bytes', '-1')
attempt(os.mkdir, '/sys/fs/cgroup/redteam')
attempt(mount, 'cgroup')
attempt(mount, 'cgroup2')
if os.path.exists('/sys/fs/cgroup/redteam'): got('made a control group')
`)},
		{"escape/mount", Critical, "mounts, binds, unmounts and changes the root", "every call is refused", program(8, `
os.makedirs('/tmp/mnt', exist_ok=True)
def do(what, f, *args):
    call(f, *args); got(what)
attempt(do, 'mounted tmpfs', libc.mount, b'none', b'/tmp/mnt', b'tmpfs', 0, None)
attempt(do, 'mounted proc', libc.mount, b'none', b'/tmp/mnt', b'proc', 0, None)
attempt(do, 'mounted sysfs', libc.mount, b'none', b'/tmp/mnt', b'sysfs', 0, None)
attempt(do, 'bound /', libc.mount, b'/', b'/tmp/mnt', None, 4096, None)
attempt(do, 'made / writable', libc.mount, None, b'/', None, 32, None)
attempt(do, 'unmounted /proc', libc.umount2, b'/proc', 2)
attempt(do, 'changed its root', libc.chroot, b'/tmp/mnt')
attempt(do, 'pivoted its root', libc.syscall, 155, b'/tmp/mnt', b'/tmp/mnt')
`)},
		{"escape/user-namespace", Critical, "becomes root of a user namespace, and there makes devices, mounts disks, and writes what only root may", "such a root has nothing of the sandbox or the host", program(5, `
code = '''
import os, ctypes
libc = ctypes.CDLL(None, use_errno=True)
def attempt(f):
    try: f()
    except OSError: pass
    print('tried', flush=True)
def device():
    os.mknod('/tmp/ns-disk', 0o60666, os.makedev(8, 0)); open('/tmp/ns-disk', 'rb').read(1); print('GOT a disk')
def memory():
    os.mknod('/tmp/ns-mem', 0o20666, os.makedev(1, 1)); open('/tmp/ns-mem', 'rb').read(1); print('GOT the memory')
def disk():
    os.makedirs('/tmp/ns-mnt', exist_ok=True)
    for kind in (b'ext4', b'xfs', b'erofs'):
        if libc.mount(b'/dev/vda', b'/tmp/ns-mnt', kind, 0, None) == 0: print('GOT a mounted disk')
def sysctl():
    open('/proc/sys/kernel/core_pattern', 'w').write('|/tmp/x'); print('GOT core_pattern')
def shadow():
    open('/etc/passwd', 'a').write(''); print('GOT /etc/passwd to write')
for f in device, memory, disk, sysctl, shadow: attempt(f)
'''
r = subprocess.run(['unshare', '-Urm', 'python3', '-c', code], capture_output=True, text=True)
print(r.stdout)
if r.stdout.count('tried') < 5:   # no such namespace: nothing to get there
    for i in range(5): print('tried')
`)},
		{"escape/ptrace-init", Critical, "traces process 1 and reads its memory", "process 1 can be neither traced nor read", program(4, `
def do(what, f, *args):
    call(f, *args); got(what)
buf = ctypes.create_string_buffer(64)
class iov(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('len', ctypes.c_size_t)]
attempt(do, 'attached to process 1', libc.ptrace, 16, 1, None, None)
attempt(do, 'seized process 1', libc.ptrace, 0x4206, 1, None, None)
def mem():
    with open('/proc/1/mem', 'rb') as f: f.read(1)
    got('the memory of process 1')
attempt(mem)
l = iov(ctypes.addressof(buf), 64); r = iov(0x400000, 64)
attempt(do, 'read process 1', libc.process_vm_readv, 1, ctypes.byref(l), 1, ctypes.byref(r), 1, 0)
`)},
		{"escape/proc-1", Critical, "goes through /proc/1 to the root, the descriptors, and the environment of process 1", "nothing of process 1 can be opened", program(7, `
def lists(path): got(path, os.listdir(path))
def reads(path):
    with open(path, 'rb') as f: data = f.read(100)
    if data: got(path, data)
for path in '/proc/1/root/', '/proc/1/cwd/': attempt(lists, path)
for path in '/proc/1/environ', '/proc/1/maps', '/proc/1/auxv': attempt(reads, path)
def fds():
    for fd in os.listdir('/proc/1/fd'):
        os.close(os.open('/proc/1/fd/' + fd, os.O_RDWR | os.O_NONBLOCK)); got('descriptor', fd, 'of process 1')
attempt(fds)
def fifo(): # a forged frame to the host would begin here
    for fd in range(16):
        try: f = os.open('/proc/1/fd/%d' % fd, os.O_WRONLY | os.O_NONBLOCK)
        except OSError: continue
        os.write(f, b'\0' * 64); got('wrote to descriptor', fd, 'of process 1')
attempt(fifo)
`)},
		{"escape/signal-init", High, "signals process 1", "process 1 cannot be signalled", program(4, `
def sig(n): os.kill(1, n); got('sent signal', n, 'to process 1')
for n in 9, 19, 15, 1: attempt(sig, n)
`)},
		{"escape/kill-all", High, "kills every process it can, then continues", "the run ends as its own program says", killAll},
		{"escape/raw-sockets", High, "opens raw, packet and kernel sockets", "every such socket is refused", program(7, `
def sock(what, *args):
    socket.socket(*args).close(); got(what)
attempt(sock, 'a packet socket', 17, socket.SOCK_RAW, 3)
attempt(sock, 'a packet socket for datagrams', 17, socket.SOCK_DGRAM, 3)
attempt(sock, 'a raw socket of ICMP', socket.AF_INET, socket.SOCK_RAW, 1)
attempt(sock, 'a raw socket of TCP', socket.AF_INET, socket.SOCK_RAW, 6)
attempt(sock, 'a raw socket', socket.AF_INET, socket.SOCK_RAW, 255)
attempt(sock, 'a raw socket of IPv6', socket.AF_INET6, socket.SOCK_RAW, 58)
attempt(sock, 'a socket of the kernel for ciphers', 38, socket.SOCK_SEQPACKET, 0)
`)},
		{"escape/host-sockets", Critical, "connects to a virtual machine's host, and to every Unix socket that it can see", "none of them answers", program(2, `
def vsock():
    s = socket.socket(40, socket.SOCK_STREAM); s.settimeout(2); s.connect((2, 1024)); got('the host by AF_VSOCK')
attempt(vsock)
def unix():
    names = {l.split()[7] for l in open('/proc/net/unix').readlines()[1:] if len(l.split()) > 7}
    for base in '/run', '/tmp', '/var/run', '/.atoll', '/dev':
        for at, _, files in os.walk(base):
            names |= {os.path.join(at, f) for f in files}
    for n in names | {'/run/docker.sock', '/run/containerd/containerd.sock', '@/containerd-shim'}:
        s = socket.socket(socket.AF_UNIX); s.settimeout(1)
        try: s.connect('\0' + n[1:] if n[0] == '@' else n)
        except OSError: continue
        got('connected to', n)
attempt(unix)
`)},
		{"escape/kernel-modules", Critical, "loads modules and another kernel, restarts and swaps", "every call is refused", program(8, `
def do(what, *args):
    call(libc.syscall, *args); got(what)
attempt(do, 'init_module', 175, b'\0' * 64, 64, b'')
attempt(do, 'finit_module', 313, 0, b'', 0)
attempt(do, 'delete_module', 176, b'x', 0)
attempt(do, 'kexec_load', 246, 0, 0, 0, 0)
attempt(do, 'reboot', 169, 0xfee1dead, 672274793, 0, 0)
attempt(do, 'swapon', 167, b'/tmp/x', 0)
attempt(do, 'iopl', 172, 3)
attempt(do, 'ioperm', 173, 0, 1024, 1)
`)},
		{"escape/kernel-interfaces", High, "uses bpf, perf, handles of files, userfaultfd, fanotify, and the clock", "each is refused or not there", program(8, `
def do(what, *args):
    call(libc.syscall, *args); got(what)
attr = ctypes.create_string_buffer(128)
attempt(do, 'bpf', 321, 0, attr, 128)
attempt(do, 'perf_event_open', 298, attr, -1, 0, -1, 0)
attempt(do, 'open_by_handle_at', 304, -100, b'\x08\0\0\0\x01\0\0\0' + b'\0' * 16, 0)
attempt(do, 'userfaultfd', 323, 0)
attempt(do, 'fanotify_init', 300, 0, 0)
attempt(do, 'acct', 163, b'/tmp/x')
attempt(do, 'settimeofday', 164, b'\0' * 16, 0)
attempt(do, 'sethostname', 170, b'x', 1)
`)},
		{"escape/set-user-id", Critical, "becomes another user, and looks for programs that would make it one", "it stays an ordinary user, and no file raises its rights", program(6, `
def do(what, f, *args): f(*args); got(what)
attempt(do, 'uid 0', os.setuid, 0)
attempt(do, 'gid 0', os.setgid, 0)
attempt(do, 'uids 0', os.setresuid, 0, 0, 0)
attempt(do, 'groups', os.setgroups, [0])
attempt(do, 'the owner of a file', lambda: (open('/tmp/own', 'w').close(), os.chown('/tmp/own', 0, 0)))
if os.getuid() == 0 or os.geteuid() == 0: got('it is root')
def bits():
    for base in '/bin', '/usr/bin', '/sbin', '/usr/sbin', '/usr/lib', '/usr/libexec', '/usr/local/bin':
        for at, _, files in os.walk(base):
            for f in files:
                path = os.path.join(at, f)
                try: mode = os.lstat(path).st_mode
                except OSError: continue
                if mode & 0o6000 and mode & 0o170000 == 0o100000: got('a file that raises rights:', path)
attempt(bits)
`)},
		{"escape/capabilities", Critical, "looks at its capabilities, and takes some", "it has none, can get none, and no_new_privs is set", program(2, `
status = dict(l.split(':', 1) for l in open('/proc/self/status') if ':' in l)
for name in 'CapInh', 'CapPrm', 'CapEff', 'CapAmb':
    if int(status.get(name, '0'), 16) != 0: got(name, status[name].strip())
if libc.prctl(39, 0, 0, 0, 0) != 1: got('no_new_privs is not set')
print('tried')
def take():
    call(libc.capset, struct.pack('<Ii', 0x20080522, 0), struct.pack('<6I', 1 << 21, 1 << 21, 0, 0, 0, 0)); got('CAP_SYS_ADMIN')
attempt(take)
`)},
		{"escape/devices", Critical, "makes devices and opens those of a host", "no device of the host can be made or opened", program(12, `
def node(kind, major, minor):
    path = '/tmp/dev-%d-%d' % (major, minor)
    os.mknod(path, kind | 0o666, os.makedev(major, minor)); os.close(os.open(path, os.O_RDWR)); got('the device', major, minor)
attempt(node, 0o20000, 1, 1); attempt(node, 0o60000, 8, 0); attempt(node, 0o60000, 253, 0)
def opens(path): os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK)); got(path)
for d in 'mem', 'kmem', 'port', 'kmsg', 'sda', 'vda', 'nvme0n1', 'kvm', 'loop-control': attempt(opens, '/dev/' + d)
`)},
		{"escape/image-files", High, "changes programs, users, the loader and the guest's own files", "what belongs to the image and to the guest cannot be written", program(9, `
def write(path):
    with open(path, 'a') as f: f.write('')
    got('can write', path)
for path in '/etc/passwd', '/etc/ld.so.preload', '/etc/hosts', '/bin/sh', '/usr/bin/python3', '/usr/lib/os-release', '/.atoll/redteam': attempt(write, path)
def guest():
    for at, dirs, files in os.walk('/.atoll'):
        for f in files:
            if os.access(os.path.join(at, f), os.W_OK) and not at.startswith('/.atoll/meet'): got('can write', os.path.join(at, f))
attempt(guest)
def shadow(): got('/etc/shadow', open('/etc/shadow').read(10))
attempt(shadow)
`)},
		{"escape/inherited-descriptors", Critical, "uses descriptors that it was started with", "it has its three streams and nothing else", program(1, `
def fds():
    for fd in range(3, 512):
        try: target = os.readlink('/proc/self/fd/%d' % fd); os.fstat(fd)
        except OSError: continue
        if not target.startswith(('/usr/', '/lib')): got('descriptor', fd, target) # those are libraries of this program
attempt(fds)
`)},
		{"escape/limits", High, "raises its own limits and those of process 1", "hard limits hold, and core dumps are off", program(4, `
import resource as r
def up(what, which):
    hard = r.getrlimit(which)[1]
    if hard == r.RLIM_INFINITY: got(what, 'has no limit'); return
    r.setrlimit(which, (hard + 1, hard + 1)); got('raised', what)
for what, which in ('open files', r.RLIMIT_NOFILE), ('processes', r.RLIMIT_NPROC), ('core', r.RLIMIT_CORE): attempt(up, what, which)
if r.getrlimit(r.RLIMIT_CORE)[1] != 0: got('core dumps')
def init(): r.prlimit(1, r.RLIMIT_NOFILE, (3, 3)); got('limits of process 1')
attempt(init)
`)},
		{"escape/network-devices", High, "makes and changes network devices and routes", "no device can be made, and lo is all there is", program(3, `
import fcntl
names = [n for _, n in socket.if_nameindex()]
if names != ['lo']: got('devices', names)
def tun():
    fd = os.open('/dev/net/tun', os.O_RDWR)
    fcntl.ioctl(fd, 0x400454ca, struct.pack('16sH22x', b'redteam', 2)); got('a TAP device')
attempt(tun)
def up():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); fcntl.ioctl(s, 0x8914, struct.pack('16sH14x', b'lo', 0)); got('lo down')
attempt(up)
def route():
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    s.send(struct.pack('<IHHII', 36, 24, 0x605, 1, 0) + struct.pack('<BBBBBBBBI', 2, 0, 0, 0, 254, 4, 0, 1, 0) + struct.pack('<HHI', 8, 5, 0x0100007f))
    kind, code = struct.unpack('<4xH10xi', s.recv(4096)[:20])
    if kind == 2 and code == 0: got('a route')
attempt(route)
`)},
		{"escape/host-traces", Medium, "looks in mounts, command lines and the environment for traces of the host", "nothing there names a folder, a process or a variable of the server", program(3, `
def mounts():
    for l in open('/proc/self/mountinfo'):
        if 'sb-' in l or '/state/' in l: got('a path of the host:', l.strip())
attempt(mounts)
def processes():
    for p in os.listdir('/proc'):
        if p.isdigit():
            try: line = open('/proc/%s/cmdline' % p, 'rb').read()
            except OSError: continue
            if any(name in line.split(b'\0')[0] for name in (b'runsc', b'gvisor', b'nats', b'systemd')) or line.startswith(b'atoll\0'): got('a process of the host:', line)
attempt(processes)
def variables():
    for n in os.environ:
        if n.startswith('ATOLL_') and n != 'ATOLL_SANDBOX' or 'HOST_SECRET' in n: got('a variable of the server:', n)
attempt(variables)
`)},
	}
}

// killAll takes a sandbox of its own, because it ends what others would run in it.
func killAll(ctx context.Context, a *arena) error {
	e, err := a.execute(ctx, a.plain, "bash", "kill -9 -1; echo on; kill -9 1; kill -STOP 1; kill -TERM 1; echo still", 20, nil)
	if err != nil {
		return err
	}
	if e.Status != 200 {
		return fmt.Errorf("the run was refused: %s", e)
	}
	if !e.Success || !strings.HasSuffix(e.Stdout, "on\nstill\n") {
		return found("a program that killed all it could was answered for with %s", e)
	}
	return nil
}
