package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

// attempt is Python that tries things and prints what came of each on a line.
const attempt = `
import ctypes, os, socket, sys, errno
libc = ctypes.CDLL(None, use_errno=True)
def attempt(name, f):
    try: print(name, 'worked:', f())
    except (OSError, ValueError, OverflowError) as e: print(name, 'refused', errno.errorcode.get(e.errno, e.errno) if isinstance(e, OSError) else e)
def syscall(n, *args):
    r = libc.syscall(n, *args)
    if r < 0: raise OSError(ctypes.get_errno(), '')
    return r
`

// refused checks that no line of a program's output says that something worked
// but those allowed.
func refused(t *testing.T, code string, allowed ...string) {
	t.Helper()
	s := shared(t)
	r := s.Run(t, atolltest.Program{Language: atolltest.Python, Code: attempt + code, Timeout: 20})
	if r.Status != http.StatusOK || r.ExitCode != 0 || strings.Count(r.Stdout, "\n") < 3 {
		t.Fatalf("the attempts did not end: %v", r)
	}
next:
	for line := range strings.Lines(r.Stdout) {
		if !strings.Contains(line, "worked:") {
			continue
		}
		for _, a := range allowed {
			if strings.HasPrefix(line, a+" worked:") {
				continue next
			}
		}
		t.Errorf("%s", line)
	}
	s.CheckHealthy(t)
	s.Settle(t)
}

// harmless are the attempts that the sandbox's own kernel lets any user make,
// without effect beyond the sandbox: a user namespace makes its owner root over
// what it could reach before and no more, a tun device has no other end, priorities
// and scores are numbers that are not read, and the kernel's log is made up.
var harmless = []string{
	"unshare user", "mount in a user namespace", "keep capabilities", "tun", "port below 1024", "syslog", "nice",
	"read 1/fdinfo/0", "negative oom score", "device /dev/fuse", "open fuse", "device /dev/net/tun",
}

// TestPrivileges checks what a program may not do at all.
func TestPrivileges(t *testing.T) {
	for name, code := range map[string]string{
		"kernel": `
attempt('mount', lambda: syscall(165, b'tmpfs', b'/mnt', b'tmpfs', 0, 0))
attempt('umount', lambda: syscall(166, b'/proc', 2))
attempt('pivot_root', lambda: syscall(155, b'/', b'/mnt'))
attempt('chroot', lambda: os.chroot('/tmp'))
attempt('swapon', lambda: syscall(167, b'/tmp/x', 0))
attempt('reboot', lambda: syscall(169, 0xfee1dead, 672274793, 0x1234567, 0))
attempt('sethostname', lambda: syscall(170, b'x', 1))
attempt('iopl', lambda: syscall(172, 3))
attempt('ioperm', lambda: syscall(173, 0x70, 2, 1))
attempt('init_module', lambda: syscall(175, b'', 0, b''))
attempt('kexec_load', lambda: syscall(246, 0, 0, 0, 0))
attempt('settimeofday', lambda: syscall(164, (ctypes.c_long * 2)(0, 0), 0))
attempt('clock_settime', lambda: syscall(227, 0, (ctypes.c_long * 2)(0, 0)))
attempt('acct', lambda: syscall(163, b'/tmp/a'))
attempt('perf_event_open', lambda: syscall(298, (ctypes.c_int * 32)(1, 128), 0, -1, -1, 0))
attempt('bpf', lambda: syscall(321, 5, (ctypes.c_int * 32)(), 120))
attempt('bpf map', lambda: syscall(321, 0, (ctypes.c_int * 32)(1, 4, 4, 1), 120))
attempt('userfaultfd', lambda: syscall(323, 0))
attempt('open_by_handle_at', lambda: syscall(304, -100, (ctypes.c_int * 8)(8, 1), 0))
attempt('fanotify', lambda: syscall(300, 0, 0))
attempt('quotactl', lambda: syscall(179, 0x800007, 0, 0, 0))
attempt('syslog', lambda: syscall(103, 3, ctypes.create_string_buffer(4096), 4096))
attempt('io_uring', lambda: syscall(425, 8, (ctypes.c_int * 64)()))
attempt('add_key', lambda: syscall(248, b'user', b'x', b'y', 1, -3))
attempt('request_key', lambda: syscall(249, b'user', b'x', 0, -3))
attempt('keyctl', lambda: syscall(250, 11, -3, ctypes.create_string_buffer(99), 99))
attempt('nfsservctl', lambda: syscall(180, 0, 0, 0))
attempt('modify_ldt', lambda: syscall(154, 1, (ctypes.c_int * 4)(0, 0, 1, 0), 16))
attempt('fsopen', lambda: syscall(430, b'tmpfs', 0))
attempt('open_tree', lambda: syscall(428, -100, b'/', 1))
attempt('pidfd_getfd of 1', lambda: syscall(438, syscall(434, 1, 0), 0, 0))
attempt('process_vm_readv of 1', lambda: syscall(310, 1, (ctypes.c_long * 2)(0, 0), 1, (ctypes.c_long * 2)(0x400000, 8), 1, 0))
attempt('setrlimit of 1', lambda: syscall(302, 1, 7, (ctypes.c_long * 2)(9, 9), 0))
attempt('ptrace of 1', lambda: syscall(101, 16, 1, 0, 0))
attempt('seize of 1', lambda: syscall(101, 0x4206, 1, 0, 0))
attempt('kill of 1', lambda: os.kill(1, 9))
attempt('nice', lambda: os.nice(-5))
attempt('realtime', lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10)))
`,
		"identity": `
attempt('setuid', lambda: os.setuid(0))
attempt('setgid', lambda: os.setgid(0))
attempt('setgroups', lambda: os.setgroups([0]))
attempt('setresuid', lambda: os.setresuid(0, 0, 0))
attempt('capset', lambda: syscall(126, (ctypes.c_int * 2)(0x20080522, 0), (ctypes.c_int * 6)(-1, -1, 0, -1, -1, 0)))
attempt('ambient', lambda: syscall(157, 47, 2, 21, 0, 0))
attempt('keep capabilities', lambda: syscall(157, 8, 1, 0, 0, 0))
attempt('new privileges', lambda: syscall(157, 38, 0, 0, 0, 0))
attempt('chown', lambda: (open('f', 'w').close(), os.chown('f', 0, 0)))
attempt('setuid of a file', lambda: os.system('cp /usr/bin/id ./id && chmod 4755 id && chown 0 id 2>/dev/null; ./id -u | grep -q ^0') == 0 or os.open('/none', 0))
attempt('su', lambda: os.system('su -c id </dev/null >/dev/null 2>&1') == 0 or os.open('/none', 0))
attempt('sudo', lambda: os.system('sudo -n id >/dev/null 2>&1') == 0 or os.open('/none', 0))
attempt('mknod', lambda: os.mknod('/tmp/k', 0o20666, os.makedev(1, 1)))
attempt('block device', lambda: os.mknod('/tmp/b', 0o60666, os.makedev(8, 0)))
attempt('link to shadow', lambda: os.link('/etc/shadow', '/tmp/s'))
attempt('shadow', lambda: open('/etc/shadow').read())
attempt('write passwd', lambda: open('/etc/passwd', 'a'))
attempt('write /usr', lambda: open('/usr/bin/x', 'w'))
attempt('replace python', lambda: os.rename('/usr/bin/python3', '/usr/bin/python4'))
attempt('write ld.so.preload', lambda: open('/etc/ld.so.preload', 'w'))
attempt('write /', lambda: open('/x', 'w'))
`,
		"namespaces": `
for name, flag in dict(user=0x10000000, mnt=0x20000, pid=0x20000000, net=0x40000000, ipc=0x8000000, uts=0x4000000, cgroup=0x2000000).items():
    if os.fork() == 0:
        attempt('unshare ' + name, lambda: syscall(272, flag)); sys.stdout.flush(); os._exit(0)
    os.wait()
def userns_root():
    syscall(272, 0x10000000 | 0x20000)
    open('/proc/self/setgroups', 'w').write('deny'); open('/proc/self/uid_map', 'w').write('0 1000 1')
    os.chroot('/tmp'); return 'root of a namespace'
attempt('setns', lambda: syscall(308, os.open('/proc/1/ns/mnt', 0), 0))
attempt('mount in a user namespace', lambda: (userns_root(), syscall(165, b'proc', b'/', b'proc', 0, 0)))
attempt('setns of init', lambda: syscall(308, os.open('/proc/1/ns/pid', 0), 0))
`,
		"sockets": `
attempt('raw', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
attempt('raw 6', lambda: socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58))
attempt('packet', lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
attempt('AF_ALG', lambda: socket.socket(38, socket.SOCK_SEQPACKET, 0))
attempt('vsock', lambda: socket.socket(40, socket.SOCK_STREAM).connect((2, 1024)))
attempt('bluetooth', lambda: socket.socket(31, socket.SOCK_RAW, 1))
attempt('can', lambda: socket.socket(29, socket.SOCK_RAW, 1))
attempt('xdp', lambda: socket.socket(44, socket.SOCK_RAW, 0))
attempt('netlink route', lambda: (lambda s: (s.bind((0, 0)), s.send(b'\x20\0\0\0\x10\0\5\0\1\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0'), s.recv(9999)[16:20] != b'\0\0\0\0' and os.open('/none', 0)))(socket.socket(16, socket.SOCK_RAW, 0)))
attempt('netlink audit', lambda: socket.socket(16, socket.SOCK_RAW, 9))
import fcntl
attempt('tun', lambda: os.open('/dev/net/tun', os.O_RDWR))
attempt('tun device', lambda: fcntl.ioctl(os.open('/dev/net/tun', os.O_RDWR), 0x400454ca, b'tap0' + b'\0' * 12 + b'\x02\x10' + b'\0' * 22))
attempt('address', lambda: fcntl.ioctl(socket.socket(), 0x8916, b'lo' + b'\0' * 38))
attempt('port below 1024', lambda: socket.create_server(('127.0.0.1', 80)))
attempt('abstract socket of the host', lambda: socket.socket(socket.AF_UNIX).connect('\0/tmp/.X11-unix/X0'))
attempt('docker', lambda: socket.socket(socket.AF_UNIX).connect('/var/run/docker.sock'))
`,
		"network": `
import urllib.request
attempt('interfaces', lambda: [n for _, n in socket.if_nameindex() if n != 'lo'] or os.open('/none', 0))
attempt('DNS', lambda: socket.getaddrinfo('example.com', 80))
attempt('UDP', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('8.8.8.8', 53)))
attempt('broadcast', lambda: (lambda s: (s.setsockopt(1, 6, 1), s.sendto(b'x', ('255.255.255.255', 67))))(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)))
for host in '1.1.1.1', '169.254.169.254', '10.0.0.1', '172.17.0.1', '192.168.0.1', '100.100.100.200':
    attempt(host, lambda: socket.create_connection((host, 80), 2))
attempt('IPv6', lambda: socket.create_connection(('2606:4700:4700::1111', 80), 2))
attempt('host port', lambda: socket.create_connection(('127.0.0.1', PORT), 2))
attempt('urlopen', lambda: urllib.request.urlopen('http://example.com', timeout=2))
`,
	} {
		t.Run(name, func(t *testing.T) {
			port := shared(t).URL[strings.LastIndexByte(shared(t).URL, ':')+1:]
			refused(t, strings.ReplaceAll(code, "PORT", port), harmless...)
		})
	}
}

// TestFileSystems checks what a program finds of its surroundings in /proc, /sys,
// /dev and the guest's own folder.
func TestFileSystems(t *testing.T) {
	for name, code := range map[string]string{
		"proc": `
for p in 'kcore', 'kmem', 'kallsyms', 'sysrq-trigger', 'timer_list', 'sched_debug', 'keys', 'key-users', 'kmsg', 'iomem', 'ioports', 'slabinfo', 'vmallocinfo', 'config.gz', 'sys/kernel/core_pattern', 'sys/vm/panic_on_oom', 'sys/kernel/modprobe', 'acpi/wakeup', 'bus/pci/devices', 'scsi/scsi':
    attempt('read ' + p, lambda: open('/proc/' + p, 'rb').read(100))
    attempt('write ' + p, lambda: os.write(os.open('/proc/' + p, os.O_WRONLY), b'h'))
for p in 'mem', 'environ', 'maps', 'fd', 'fd/0', 'fd/1', 'fd/2', 'root', 'root/etc', 'cwd', 'exe', 'ns/net', 'auxv', 'stack', 'syscall', 'task/1/mem', 'map_files', 'fdinfo/0':
    def f():
        if os.path.isdir('/proc/1/' + p): return os.listdir('/proc/1/' + p)
        return open('/proc/1/' + p, 'rb').read(10)
    attempt('read 1/' + p, f)
for p in 'fd/0', 'fd/1', 'mem', 'oom_score_adj', 'comm', 'clear_refs', 'uid_map', 'attr/current', 'coredump_filter':
    attempt('write 1/' + p, lambda: os.write(os.open('/proc/1/' + p, os.O_WRONLY | os.O_NONBLOCK), b'x'))
attempt('readlink 1/fd/1', lambda: os.readlink('/proc/1/fd/1'))
attempt('link 1/fd/1', lambda: os.link('/proc/1/fd/1', '/tmp/f', follow_symlinks=True))
attempt('negative oom score', lambda: open('/proc/self/oom_score_adj', 'w').write('-1000'))
`,
		"sys": `
for root, folders, files in os.walk('/sys'):
    for f in files: attempt('write ' + root + '/' + f, lambda: os.open(os.path.join(root, f), os.O_WRONLY))
for p in '/sys/kernel/debug', '/sys/kernel/security', '/sys/fs/cgroup/cgroup.procs', '/sys/firmware/efi', '/sys/class/net/eth0', '/sys/fs/bpf', '/sys/module':
    attempt('look at ' + p, lambda: os.listdir(p) if os.path.isdir(p) and os.listdir(p) else open(p).read())
attempt('uevent', lambda: open('/sys/kernel/uevent_helper', 'w'))
`,
		"dev": `
import stat
for root, folders, files in os.walk('/dev'):
    for f in files:
        p = os.path.join(root, f); st = os.lstat(p)
        if stat.S_ISBLK(st.st_mode) or stat.S_ISCHR(st.st_mode) and f not in ('null', 'zero', 'full', 'random', 'urandom', 'tty', 'ptmx'):
            attempt('device ' + p, lambda: os.open(p, os.O_RDONLY | os.O_NONBLOCK))
for p in 'mem', 'kmem', 'port', 'kvm', 'fuse', 'sda', 'vda', 'loop-control', 'loop0', 'kmsg', 'console', 'vsock', 'vhost-net', 'tty0', 'input/event0', 'dri/card0', 'nvidia0':
    attempt('open ' + p, lambda: os.open('/dev/' + p, os.O_RDONLY | os.O_NONBLOCK))
attempt('new device', lambda: open('/dev/x', 'w'))
attempt('replace null', lambda: os.unlink('/dev/null'))
`,
		"the guest's folder": `
attempt('write', lambda: open('/.atoll/x', 'w'))
attempt('write the guest', lambda: open('/.atoll/guest', 'r+b'))
attempt('remove', lambda: os.unlink('/.atoll/guest'))
attempt('rename', lambda: os.rename('/.atoll', '/tmp/a'))
attempt('run', lambda: os.system('/.atoll/guest >/dev/null 2>&1') == 0 or os.open('/none', 0))
attempt('cover', lambda: os.mkdir('/.atoll/d'))
attempt('chmod', lambda: os.chmod('/.atoll/guest', 0o777))
`,
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, code, harmless...)
		})
	}
}

// TestHostIsNotVisible checks that nothing a program can read names the host.
func TestHostIsNotVisible(t *testing.T) {
	binary, err := atolltest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	bootID, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	s := shared(t)
	r := s.Run(t, atolltest.Program{Language: atolltest.Bash, Timeout: 60, Code: `
hostname; uname -a; cat /etc/hostname /etc/hosts /etc/machine-id /etc/resolv.conf
cd /proc; for f in $(ls); do [ -f $f ] && timeout 2 cat $f; done
for p in 1 self $$; do for f in status stat cmdline cgroup mounts mountinfo maps limits environ sched loginuid net/dev net/route net/unix net/tcp; do timeout 2 cat $p/$f; done; ls -l $p/fd $p/ns $p/cwd $p/root $p/exe; done
find /proc/sys /sys -type f 2>/dev/null | while read f; do timeout 2 head -c 2000 $f; done
dmesg; df -a; ls -laR /dev / --hide=usr --hide=proc --hide=sys --hide=lib 2>/dev/null | head -c 100000; who; last
ps aux; ls /proc | grep '^[0-9]' | tr '\n' ' '`})
	for _, secret := range []string{strings.TrimSpace(string(bootID)), s.Data, filepath.Dir(binary), "runsc", "gofer", "HOST_SECRET", atolltest.Key} {
		if at := strings.Index(r.Stdout+r.Stderr, secret); at >= 0 {
			t.Errorf("a program sees %q: …%.200s…", secret, (r.Stdout + r.Stderr)[max(0, at-100):])
		}
	}
	if len(r.Stdout) < 10_000 {
		t.Errorf("the program did not look everywhere: %v", r)
	}
	r = s.Run(t, atolltest.Program{Language: atolltest.Bash, Code: "hostname; uname -n; cat /proc/sys/kernel/hostname"})
	if r.Stdout != "atoll\natoll\natoll\n" {
		t.Errorf("the sandbox has another name than its own: %v", r)
	}
}
