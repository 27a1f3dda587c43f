package sandboxes

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// CheckProgram checks a program to start, with its variables. fields are the client's names of
// command and folder, for the error.
func CheckProgram(spec *process.Spec, env map[string]string, fields string) error {
	for _, text := range append([]string{spec.Shell, spec.Dir}, spec.Argv...) {
		if strings.ContainsRune(text, 0) {
			return fault.New(fault.Invalid, "%s must not contain a NUL character", fields)
		}
	}
	return execution.CheckSandboxEnv(env)
}

// SetCommand sets the program that a client of E2B's API starts. These clients start a login shell, in which
// /etc/profile replaces the PATH of the image, and which some images have elsewhere. Atoll starts
// another shell instead.
func SetCommand(spec *process.Spec, program string, args []string, terminal bool) {
	switch bash := program == "/bin/bash"; {
	case bash && len(args) == 3 && args[0] == "-l" && args[1] == "-c" && args[2] != "":
		spec.Shell = args[2]
	case bash && terminal && slices.Equal(args, []string{"-i", "-l"}):
		spec.Shell = "exec $(command -v bash || echo sh) -i"
	default:
		spec.Argv = append([]string{program}, args...)
	}
}

// Home returns a client's path with the home directory in place of a leading ~.
func Home(path string) string {
	if path == "~" {
		return runtime.Home
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return runtime.Home + "/" + rest
	}
	return path
}

// NotStarted returns the exit code with which a shell reports that it cannot start a program. ok is
// false if err has another reason.
func NotStarted(err error) (code int, ok bool) {
	f, ok := errors.AsType[*fault.Error](err)
	switch {
	case ok && f.Code == process.NoProgram:
		return 127, true
	case ok && f.Code == process.NoExecutable:
		return 126, true
	}
	return 0, false
}

// Input writes input to a process. A client gives input of a terminal as typed, and input of any
// other process as stdin; it omits the other one.
func (u *Use) Input(ctx context.Context, p *process.Info, stdin, typed []byte) error {
	switch {
	case stdin == nil && typed == nil:
		return fault.New(fault.Invalid, "input is required: stdin or pty")
	case stdin != nil && p.Terminal, typed != nil && !p.Terminal:
		return fault.New(fault.Conflict, "input of a terminal is pty, that of any other process stdin")
	}
	_, err := u.Guest().Write(ctx, p.ID, append(stdin, typed...))
	return err
}

// ParseSignal reads a signal by name or number.
func ParseSignal(text string) (syscall.Signal, error) {
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= 64 {
		return syscall.Signal(n), nil
	}
	name := strings.ToUpper(text)
	if !strings.HasPrefix(name, "SIG") {
		name = "SIG" + name
	}
	if sig := unix.SignalNum(name); sig != 0 {
		return sig, nil
	}
	return 0, fault.New(fault.Invalid, "there is no signal %s; want a name such as TERM, or a number from 1 to 64", wire.Quote(text))
}
