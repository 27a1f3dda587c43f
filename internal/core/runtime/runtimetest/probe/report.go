package main

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Report is what a program can find out about the world around it.
type Report struct {
	UID, GID   int
	Groups     []int
	Status     map[string]string // of /proc/self/status
	Env        []string
	Hostname   string
	Interfaces []string
	Processes  []string          // command lines of all that /proc shows
	Files      []int             // open descriptors beyond the standard three
	Root       []string          // names in /
	Mounts     string            // /proc/self/mounts
	Tries      map[string]string // what was tried, and the name of the error; "" when it worked
}

func report() Report {
	r := Report{UID: os.Getuid(), GID: os.Getgid(), Env: os.Environ(), Status: status(), Tries: map[string]string{}}
	r.Groups, _ = os.Getgroups()
	r.Hostname, _ = os.Hostname()
	if list, err := net.Interfaces(); err == nil {
		for _, i := range list {
			r.Interfaces = append(r.Interfaces, i.Name)
		}
	}
	procs, _ := os.ReadDir("/proc")
	for _, p := range procs {
		if line, err := os.ReadFile("/proc/" + p.Name() + "/cmdline"); err == nil && p.Name()[0] >= '0' && p.Name()[0] <= '9' {
			r.Processes = append(r.Processes, strings.Trim(strings.ReplaceAll(string(line), "\x00", " "), " "))
		}
	}
	r.Files = descriptors()
	root, _ := os.ReadDir("/")
	for _, e := range root {
		r.Root = append(r.Root, e.Name())
	}
	mounts, _ := os.ReadFile("/proc/self/mounts")
	r.Mounts = string(mounts)
	for name, try := range tries {
		r.Tries[name] = errorName(try())
	}
	return r
}

func status() map[string]string {
	data, _ := os.ReadFile("/proc/self/status")
	m := map[string]string{}
	for line := range strings.Lines(string(data)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		m[key] = strings.TrimSpace(value)
	}
	return m
}

// descriptors returns those that are open and not Go's own.
func descriptors() []int {
	var open []int
	for fd := 3; fd < 64; fd++ {
		target, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		if err == nil && !strings.Contains(target, "anon_inode") && !strings.HasPrefix(target, "/proc/") {
			open = append(open, fd)
		}
	}
	return open
}

const tryTime = 3 * time.Second

// tries are what a sandboxed program must not be able to do.
var tries = map[string]func() error{
	"resolve a name": func() error {
		ctx, cancel := context.WithTimeout(context.Background(), tryTime)
		defer cancel()
		_, err := net.DefaultResolver.LookupHost(ctx, "example.com")
		return err
	},
	"connect": func() error {
		c, err := net.DialTimeout("tcp", "192.0.2.1:80", tryTime)
		if err == nil {
			c.Close()
		}
		return err
	},
	"send a datagram": func() error {
		c, err := net.Dial("udp", "192.0.2.1:53")
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.Write([]byte("x"))
		return err
	},
	"raw socket":    socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP),
	"packet socket": socket(unix.AF_PACKET, unix.SOCK_RAW, 0),
	"AF_ALG socket": socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0),
	"vsock":         socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0),
	"become root":   func() error { return unix.Setresuid(0, 0, 0) },
	"mount":         func() error { return unix.Mount("none", "/tmp", "tmpfs", 0, "") },
	"make a device": func() error { return unix.Mknod("/tmp/kmem", unix.S_IFCHR|0o666, 1<<8|2) },
	"change root":   func() error { return unix.Chroot("/tmp") },
	"trace process 1": func() error {
		return unix.PtraceAttach(1)
	},
	"signal process 1":        func() error { return unix.Kill(1, unix.SIGKILL) },
	"see process 1's files":   readable("/proc/1/fd/0"),
	"see process 1's memory":  readable("/proc/1/mem"),
	"see process 1's environ": readable("/proc/1/environ"),
	"see kernel memory":       readable("/proc/kcore"),
	"see memory":              readable("/dev/mem"),
	"write a sysctl":          writable("/proc/sys/kernel/core_pattern"),
	"write to sysfs":          writable("/sys/kernel/uevent_helper"),
	"write to the image":      writable("/bin/probe"),
	"write to the guest":      writable("/.atoll/guest"),
	"load a module":           func() error { return unix.InitModule([]byte("x"), "") },
	"set the clock": func() error {
		return unix.Settimeofday(&unix.Timeval{Sec: 1})
	},
	"set the host name": func() error { return unix.Sethostname([]byte("x")) },
	"reboot":            func() error { return unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART) },
	"swap off":          func() error { return call(unix.SYS_SWAPOFF, 0) },
	"bpf":               func() error { return call(unix.SYS_BPF, 0) },
	"open by handle":    func() error { return call(unix.SYS_OPEN_BY_HANDLE_AT, ^uintptr(0)) },
}

func call(number, argument uintptr) error {
	if _, _, errno := unix.Syscall(number, argument, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

func socket(family, kind, protocol int) func() error {
	return func() error {
		fd, err := unix.Socket(family, kind, protocol)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}
}

func readable(path string) func() error {
	return func() error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.Read(make([]byte, 1))
		return err
	}
}

func writable(path string) func() error {
	return func() error {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err == nil {
			f.Close()
		}
		return err
	}
}

// errorName is the kernel's name of an error, such as "ENOSPC".
func errorName(err error) string {
	if err == nil {
		return ""
	}
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		return unix.ErrnoName(errno)
	}
	return err.Error()
}
