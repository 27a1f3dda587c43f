// Command probe is the program that the conformance suite runs in sandboxes: it
// tries what a sandbox must hold or hide and prints what came of it. It is
// static, so that an image for it needs nothing else.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Result is what a filling command prints: how much there was room for, and the
// name of the error that ended it.
type Result struct {
	Count int64
	Error string
}

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("usage: probe COMMAND [ARGUMENT]"))
	}
	command, ok := commands[os.Args[1]]
	if !ok {
		fail(fmt.Errorf("no command %q", os.Args[1]))
	}
	if err := command(os.Args[2:]); err != nil {
		fail(err)
	}
}

var commands = map[string]func([]string) error{
	"echo":    func(args []string) error { _, err := fmt.Println(args); return err },
	"report":  func([]string) error { return print(report()) },
	"read":    read,
	"write":   write,
	"ask":     ask,
	"fill":    func(args []string) error { return print(fill(args[0])) },
	"inodes":  func(args []string) error { return print(inodes(args[0])) },
	"tasks":   countTasks,
	"files":   func([]string) error { return print(files()) },
	"hog":     hog,
	"spin":    spin,
	"recall":  recall,
	"forever": forever,
	"hold":    hold,
	"entry":   entry,
	"names":   names,
	"make":    makeEntries,
	"repeat":  repeat,
	"append":  appendForever,
	"live":    live,
	"query":   query,
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "probe:", err)
	os.Exit(1)
}

func print(v any) error { return json.NewEncoder(os.Stdout).Encode(v) }

func read(args []string) error {
	data, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(data)
	return err
}

func write(args []string) error { return os.WriteFile(args[0], []byte(args[1]), 0o644) }

// Entry is what a program can tell of a file: not where a link leads to.
type Entry struct {
	UID, GID, Mode uint32
	Size           int64
	Link           string
}

func entry(args []string) error {
	var st unix.Stat_t
	if err := unix.Lstat(args[0], &st); err != nil {
		return err
	}
	link, _ := os.Readlink(args[0])
	return print(Entry{UID: st.Uid, GID: st.Gid, Mode: st.Mode, Size: st.Size, Link: link})
}

// names prints what a folder holds.
func names(args []string) error {
	entries, err := os.ReadDir(args[0])
	if err != nil {
		return err
	}
	found := []string{}
	for _, e := range entries {
		found = append(found, e.Name())
	}
	return print(found)
}

// appendForever writes to a file, through a descriptor and through memory, and
// says so after the first bytes.
func appendForever(args []string) error {
	f, err := os.Create(args[0])
	if err != nil {
		return err
	}
	if err := f.Truncate(1 << 20); err != nil {
		return err
	}
	m, err := unix.Mmap(int(f.Fd()), 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	copy(m, "by way of memory")
	if _, err := f.WriteAt([]byte("by descriptor"), 4096); err != nil {
		return err
	}
	past := unix.NsecToTimeval(1e18 + 123456000)
	if err := os.WriteFile(args[0]+".touched", nil, 0o600); err != nil {
		return err
	}
	if err := unix.Utimes(args[0]+".touched", []unix.Timeval{past, past}); err != nil {
		return err
	}
	fmt.Println("written")
	for i := int64(0); ; i++ {
		m[100]++
		if _, err := f.WriteAt([]byte{byte(i)}, 8192+i%(1<<20-8192)); err != nil {
			return err
		}
	}
}

// makeEntries makes in a folder one of each kind of file that a program may, and
// prints the errors of those that it may not.
func makeEntries(args []string) error {
	in := func(name string) string { return filepath.Join(args[0], name) }
	refused := map[string]string{}
	try := func(what string, err error) {
		if err != nil {
			refused[what] = errorName(err)
		}
	}
	try("file", os.WriteFile(in("file"), []byte("of a program"), 0o640))
	try("setuid", unix.Chmod(in("file"), 0o4711))
	try("folder", os.Mkdir(in("folder"), 0o750))
	try("symlink", os.Symlink("/etc/passwd", in("symlink")))
	try("link", os.Link(in("file"), in("link")))
	try("fifo", unix.Mkfifo(in("fifo"), 0o600))
	try("device", unix.Mknod(in("device"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	try("chown", os.Chown(in("file"), 0, 0))
	try("rename", os.Rename(in("folder"), in("renamed")))
	return print(refused)
}

// ask sends a datagram to an address and prints the answer.
func ask(args []string) error {
	conn, err := new(net.Dialer).DialContext(context.Background(), "udp", args[0])
	if err != nil {
		return err
	}
	defer conn.Close()
	// A device that has just got its other end drops what is sent for a moment.
	buf := make([]byte, 1500)
	for deadline := time.Now().Add(askTime); ; {
		if _, err := conn.Write([]byte(args[1])); err != nil {
			return err
		}
		if err := conn.SetReadDeadline(time.Now().Add(tryTime)); err != nil {
			return err
		}
		n, err := conn.Read(buf)
		if err != nil && time.Now().Before(deadline) {
			continue
		}
		fmt.Printf("%s", buf[:n])
		return err
	}
}

// askTime bounds the tries of ask.
const askTime = 20 * time.Second

// fill writes to one file of a folder until that fails, and counts bytes.
func fill(dir string) Result {
	f, err := os.Create(filepath.Join(dir, "fill"))
	if err != nil {
		return Result{Error: errorName(err)}
	}
	defer os.Remove(f.Name())
	defer f.Close()
	buf := make([]byte, 64<<10)
	for i := range buf {
		buf[i] = byte(i) | 1
	}
	var r Result
	for {
		n, err := f.Write(buf)
		r.Count += int64(n)
		if err != nil {
			r.Error = errorName(err)
			return r
		}
	}
}

// inodes makes empty files in a folder until that fails.
func inodes(dir string) Result {
	var r Result
	for {
		fd, err := unix.Open(filepath.Join(dir, strconv.FormatInt(r.Count, 10)), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0o644)
		if err != nil {
			r.Error = errorName(err)
			return r
		}
		unix.Close(fd)
		r.Count++
	}
}

// tasks starts processes that do nothing until that fails, and returns how to
// end them. They are copies of this one that never return to Go.
func tasks() (r Result, end func()) {
	var pids []int
	end = func() {
		for _, pid := range pids {
			unix.Kill(pid, unix.SIGKILL)
			_, _ = unix.Wait4(pid, nil, 0, nil)
		}
	}
	for {
		pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if errno != 0 {
			r.Error = errorName(errno)
			return r, end
		}
		if pid == 0 {
			for {
				_, _, _ = unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
			}
		}
		pids = append(pids, int(pid))
		r.Count++
	}
}

func files() Result {
	var r Result
	for {
		if _, err := unix.Open("/dev/null", unix.O_RDONLY, 0); err != nil {
			r.Error = errorName(err)
			return r
		}
		r.Count++
	}
}

// hog takes memory, a MiB at a time, up to so many bytes.
func hog(args []string) error {
	most, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil {
		return err
	}
	const step = 1 << 20
	for taken := int64(0); taken < most; taken += step {
		b, err := unix.Mmap(-1, 0, step, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			return err
		}
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
	}
	return print(Result{Count: most})
}

// spin keeps so many threads busy for a time.
func spin(args []string) error {
	threads, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	d, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	end := time.Now().Add(d)
	var wait sync.WaitGroup
	for range threads {
		wait.Go(func() {
			for x := uint32(1); time.Now().Before(end); {
				for range 10_000 {
					x = x*1664525 + 1013904223
				}
			}
		})
	}
	wait.Wait()
	return nil
}

// recall prints a random number that only it has, waits for the file named
// by its argument, and says it again.
func recall(args []string) error {
	var b [8]byte
	if _, err := unix.Getrandom(b[:], 0); err != nil {
		return err
	}
	fmt.Printf("%x\n", b)
	for {
		if _, err := os.Stat(args[0]); err == nil {
			break
		}
		time.Sleep(5 * time.Millisecond) // a program that waits in the simplest way: a checkpoint comes upon it asleep
	}
	fmt.Printf("%x\n", b)
	return nil
}

// forever says that it runs, and runs.
func forever([]string) error {
	fmt.Println("running")
	for {
		if err := unix.Pause(); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func countTasks([]string) error {
	r, end := tasks()
	end()
	return print(r)
}

// hold takes every process there is, and keeps them.
func hold(args []string) error {
	r, _ := tasks()
	if err := print(r); err != nil {
		return err
	}
	return forever(args)
}
