package confine

import (
	"encoding/binary"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// execName is AT_EXECFN, what execve was asked for.
const execName = 31

// maxNote bounds what a tracer says to process 1, in bytes.
const maxNote = 2 << 10

// tracer watches a program and what descends from it. Only its thread may speak
// to them.
type tracer struct {
	root     int
	note     int
	commands []Command
	most     int // processes; 0 for any number

	started bool         // the launcher has become the program
	procs   int          // the processes there are
	tasks   map[int]bool // those there are, by id; whether one is a process
	gone    map[int]bool // tasks that ended before their parent's stop told of them
	forking map[int]bool // tasks that were allowed another one, and have not made it yet
}

// Trace runs on one thread, which package initialization has locked. It attaches to the launcher pid, lets it go by a byte to gate, and watches
// until nothing is left of what it started. The rule that something broke goes to
// note; what broke it stands still until process 1 ends it. When the tracer ends,
// everything it traces does.
func Trace(pid, gate, note, most int, commands []Command) error {
	t := &tracer{root: pid, note: note, commands: commands, most: most, procs: 1, tasks: map[int]bool{pid: true}, gone: map[int]bool{}, forking: map[int]bool{}}
	options := unix.PTRACE_O_EXITKILL | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK | unix.PTRACE_O_TRACECLONE |
		unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_TRACESECCOMP
	if _, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid), 0, uintptr(options), 0, 0); e != 0 {
		return failure("seize: " + e.Error())
	}
	if _, err := unix.Write(gate, []byte{'g'}); err != nil {
		return failure("gate: " + err.Error())
	}
	unix.Close(gate)
	for {
		var status unix.WaitStatus
		task, err := unix.Wait4(-1, &status, unix.WALL, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return nil // nothing is left
		case status.Stopped():
			t.stopped(task, status)
		default:
			t.ended(task)
		}
	}
}

// eventStop is PTRACE_EVENT_STOP.
const eventStop = 128

// stopped deals with a task that stands still, and has it go on. Errors mean that
// it was killed meanwhile.
func (t *tracer) stopped(task int, status unix.WaitStatus) {
	signal := status.StopSignal()
	switch event := int(status>>16) & 0xff; event {
	case unix.PTRACE_EVENT_EXEC:
		delete(t.forking, task)
		if task == t.root && !t.started {
			t.started = true
		} else if rule := t.broken(task); rule != "" {
			unix.Write(t.note, []byte(rule)[:min(len(rule), maxNote)]) //nolint:errcheck // process 1 reads it, or is gone
			return
		}
	case unix.PTRACE_EVENT_SECCOMP:
		delete(t.forking, task) // the one before came to nothing
		if t.most > 0 && t.procs+len(t.forking) >= t.most {
			if refuseCall(task, unix.EAGAIN) != nil {
				return
			}
		} else {
			t.forking[task] = true
		}
	case unix.PTRACE_EVENT_FORK, unix.PTRACE_EVENT_VFORK, unix.PTRACE_EVENT_CLONE:
		if child, err := unix.PtraceGetEventMsg(task); err == nil {
			t.began(int(child), t.forking[task])
		}
		delete(t.forking, task)
	case eventStop:
		if signal != unix.SIGTRAP { // it is stopped, as others see it too
			unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_LISTEN, uintptr(task), 0, 0, 0, 0) //nolint:errcheck // see above
			return
		}
	default:
		unix.PtraceCont(task, int(signal)) //nolint:errcheck // see above
		return
	}
	unix.PtraceCont(task, 0) //nolint:errcheck // see above
}

// began notes a task that another one has started.
func (t *tracer) began(task int, process bool) {
	if t.gone[task] {
		delete(t.gone, task)
		return
	}
	t.tasks[task] = process
	if process {
		t.procs++
	}
}

// ended notes the end of a task.
func (t *tracer) ended(task int) {
	delete(t.forking, task)
	process, known := t.tasks[task]
	if !known {
		t.gone[task] = true
		return
	}
	delete(t.tasks, task)
	if process {
		t.procs--
	}
}

// broken returns the rule that what a process has just executed breaks.
func (t *tracer) broken(pid int) string {
	if len(t.commands) == 0 {
		return ""
	}
	e, err := executed(pid)
	if err != nil {
		return "a command that cannot be looked at: " + err.Error()
	}
	for _, c := range t.commands {
		if c.Matches(e) {
			return strconv.Quote(c.Text)
		}
	}
	return ""
}

// executed reads what a process runs. It has just been executed, so that no process
// but the kernel has written its memory.
func executed(pid int) (e Execution, err error) {
	dir := "/proc/" + strconv.Itoa(pid)
	b := make([]byte, 4096)
	n, err := unix.Readlink(dir+"/exe", b)
	if err != nil {
		return e, failure("exe: " + err.Error())
	}
	e.File = string(b[:n])
	argv, err := readFile(dir + "/cmdline")
	if err != nil {
		return e, failure("cmdline: " + err.Error())
	}
	if len(argv) > 0 {
		e.Argv = strings.Split(strings.TrimSuffix(string(argv), "\x00"), "\x00")
	}
	vector, err := readFile(dir + "/auxv")
	if err != nil {
		return e, failure("auxv: " + err.Error())
	}
	for ; len(vector) >= 16; vector = vector[16:] {
		if binary.LittleEndian.Uint64(vector) == execName {
			e.Name = textAt(pid, uintptr(binary.LittleEndian.Uint64(vector[8:])))
		}
	}
	comm, err := readFile(dir + "/comm")
	if err != nil {
		return e, failure("comm: " + err.Error())
	}
	e.script(strings.TrimSuffix(string(comm), "\n"))
	return e, nil
}

// textAt reads a text that ends with a zero out of a process that stands still.
func textAt(pid int, address uintptr) string {
	var text []byte
	word := make([]byte, 8)
	for len(text) < 4096 {
		n, err := unix.PtracePeekData(pid, address+uintptr(len(text)), word)
		if err != nil || n == 0 {
			break
		}
		if i := strings.IndexByte(string(word[:n]), 0); i >= 0 {
			return string(append(text, word[:i]...))
		}
		text = append(text, word[:n]...)
	}
	return string(text)
}

func readFile(name string) ([]byte, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return readAll(fd)
}
