package confine

import (
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The thread that a tracer attaches to and that becomes the program is the main
// one: any other would take its place at exec, without its tracer.
func init() {
	if unix.Getpid() != 1 {
		runtime.LockOSThread()
	}
}

// Main is what the guest's binary does when it is called by the name of a helper,
// and reports whether it was. It returns only with an error.
func Main() (called bool, err error) {
	if unix.Getpid() == 1 {
		return false, nil
	}
	text, err := readFile("/proc/self/cmdline")
	if err != nil {
		return false, nil
	}
	args := strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	switch args[0] {
	case Launcher:
		n, err := numbers(args[1:], 2)
		if err != nil {
			return true, err
		}
		return true, Launch(n[0], n[1])
	case Tracer:
		n, err := numbers(args[1:], 4)
		if err != nil {
			return true, err
		}
		var commands []Command
		for _, text := range args[5:] {
			if c, ok := ParseCommand(text); ok {
				commands = append(commands, c)
			}
		}
		return true, Trace(n[0], n[1], n[2], n[3], commands)
	}
	return false, nil
}

func numbers(args []string, n int) (list []int, err error) {
	if len(args) < n {
		return nil, failure("too few arguments")
	}
	for _, arg := range args[:n] {
		number, err := strconv.Atoi(arg)
		if err != nil {
			return nil, err
		}
		list = append(list, number)
	}
	return list, nil
}
