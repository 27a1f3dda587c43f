package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"gvisor.dev/gvisor/runsc/config"
	"gvisor.dev/gvisor/runsc/container"
	"gvisor.dev/gvisor/runsc/flag"
	"gvisor.dev/gvisor/runsc/specutils"
)

// launchEnv has this process start one sandbox after the other, as it is told on the
// socket that is its descriptor launchFD, until that is closed. Starting runsc, and what
// all of gVisor's packages prepare then, takes as much processor time as a tenth of a
// sandbox's start. The server has a process for each sandbox that it starts at once.
const (
	launchEnv = "ATOLL_RUNSC_LAUNCH"
	launchFD  = 3
)

// launch is what the server asks for, with the sandbox's standard input, output and
// error as descriptors. It is answered by an error's text, empty for none. After an
// error nobody asks for more. The other side is internal/node/runtime/gvisor/launcher.go.
type launch struct {
	Args  []string // as of the command line of run --detach and of create
	Tasks []string // the files of the sandbox's control groups that a thread writes 0 to (version 1)
	Group string   // the folder of its control group (version 2)

	started []*os.Process
}

// mostAsked is more than the bytes of any launch.
const mostAsked = 64 << 10

func init() {
	if os.Getenv(launchEnv) != "" {
		// The threads that start sandboxes end with that. The first one cannot, so
		// that main keeps it.
		runtime.LockOSThread()
	}
}

// serveLaunches returns the process's exit status.
func serveLaunches() int {
	os.Unsetenv(launchEnv)
	unix.CloseOnExec(launchFD)
	common := os.Args[1:]
	var ended children
	ended.reap()
	buf, rights := make([]byte, mostAsked), make([]byte, unix.CmsgSpace(4*4))
	for {
		n, rn, _, _, err := unix.Recvmsg(launchFD, buf, rights, unix.MSG_CMSG_CLOEXEC)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil || n == 0:
			return 0 // the server has ended, or has no use for this process
		}
		pid, err := receive(common, buf[:n], rights[:rn])
		text := ""
		if err != nil {
			text = err.Error()
		}
		ended.add(pid)
		if err := unix.Sendto(launchFD, []byte("."+text), unix.MSG_NOSIGNAL, nil); err != nil {
			return 1
		}
	}
}

// receive starts a sandbox and returns its process, 0 for none.
func receive(common []string, asked, rights []byte) (pid int, err error) {
	var l launch
	var fds []int
	messages, err := unix.ParseSocketControlMessage(rights)
	if err == nil && len(messages) == 1 {
		fds, err = unix.ParseUnixRights(&messages[0])
	}
	if err != nil || len(fds) != 3 {
		return 0, fmt.Errorf("%d descriptors instead of 3: %v", len(fds), err)
	}
	for i, std := range []**os.File{&os.Stdin, &os.Stdout, &os.Stderr} {
		f := os.NewFile(uintptr(fds[i]), "stdio")
		defer f.Close()
		before := *std
		*std = f
		defer func() { *std = before }()
	}
	if err := json.Unmarshal(asked, &l); err != nil {
		return 0, err
	}
	specutils.StartCommand = l.start
	defer l.release()
	return l.run(common)
}

// run is gVisor's commands run --detach and create.
func (l *launch) run(common []string) (int, error) {
	global := flag.NewFlagSet("runsc", flag.ContinueOnError)
	config.RegisterFlags(global)
	if err := global.Parse(slices.Concat(common, l.Args)); err != nil {
		return 0, err
	}
	conf, err := config.NewFromFlags(global)
	if err != nil {
		return 0, err
	}
	var args container.Args
	command := global.Arg(0)
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	flags.StringVar(&args.BundleDir, "bundle", "", "")
	flags.StringVar(&args.PIDFile, "pid-file", "", "")
	detach := flags.Bool("detach", false, "")
	if err := flags.Parse(global.Args()[1:]); err != nil {
		return 0, err
	}
	if flags.NArg() != 1 || command != "create" && (command != "run" || !*detach) {
		return 0, fmt.Errorf("%q is not the start of a sandbox", l.Args)
	}
	args.ID = flags.Arg(0)
	if args.Spec, err = specutils.ReadSpec(args.BundleDir, conf); err != nil {
		return 0, fmt.Errorf("read the sandbox's specification: %w", err)
	}
	if err := specutils.FixConfig(conf, args.Spec); err != nil {
		return 0, err
	}
	c, err := container.New(conf, args)
	if err != nil {
		return 0, fmt.Errorf("create the sandbox: %w", err)
	}
	if command == "run" {
		if err := c.Start(conf); err != nil {
			return 0, errors.Join(fmt.Errorf("start the sandbox: %w", err), c.Destroy())
		}
	}
	return c.SandboxPid(), nil
}

// start starts a process in the sandbox's control group, as Group.Start in
// internal/node/cgroup does. Its thread ends afterwards.
func (l *launch) start(cmd *exec.Cmd) error {
	if err := keepDescriptors(); err != nil {
		return err
	}
	for _, file := range l.Tasks {
		if err := os.WriteFile(file, []byte("0"), 0); err != nil {
			return fmt.Errorf("join cgroup: %w", err)
		}
	}
	if l.Group != "" {
		dir, err := os.Open(l.Group)
		if err != nil {
			return fmt.Errorf("join cgroup: %w", err)
		}
		defer dir.Close()
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	l.started = append(l.started, cmd.Process)
	return nil
}

// release closes the descriptors of the processes that were started: children waits for
// these by their ids.
func (l *launch) release() {
	for _, p := range l.started {
		_ = p.Release()
	}
}

// keepDescriptors has no process that is started inherit a descriptor but those that it
// is given: gVisor's code does so once in a process's life, and leaves the rest to the end
// of that.
func keepDescriptors() error {
	const open = "/proc/self/fd"
	entries, err := os.ReadDir(open)
	if err != nil {
		return fmt.Errorf("keep descriptors from a sandbox: %w", err)
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd) // one that has been closed meanwhile needs it no more
		}
	}
	return nil
}

// children are the sandboxes that this process has started: it is their parent, and has
// to ask for their exit status so that they are gone.
type children struct {
	mu   sync.Mutex
	pids []int
}

func (c *children) add(pid int) {
	if pid > 0 {
		c.mu.Lock()
		c.pids = append(c.pids, pid)
		c.mu.Unlock()
		c.collect() // it may have ended before it was known
	}
}

// reap collects whatever ends from now on.
func (c *children) reap() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	go func() {
		for range ended {
			c.collect()
		}
	}()
}

func (c *children) collect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pids = slices.DeleteFunc(c.pids, func(pid int) bool {
		got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
		return got == pid || errors.Is(err, unix.ECHILD)
	})
}
