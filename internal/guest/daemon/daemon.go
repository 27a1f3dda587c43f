// Package daemon is the guest daemon, which serves a sandbox that lives for long: it starts programs for the host and keeps their output, reads and writes
// files, and connects to ports.
//
// It goes to the host when process 1 tells it to, by a socket that only uid 0 of
// the sandbox can reach. When the connection is lost, programs go on, and it
// sleeps until it is told again. Files are touched with the rights of the
// unprivileged user alone, and programs started under the sandbox's rules.
// docs/contribute/guest-protocol.md has the protocol.
package daemon

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/proctree"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// Descriptors that process 1 starts the guest daemon with.
const (
	rulesFD  = 3 // a ConfineMessage
	cueFD    = 4 // a byte whenever the host is to be gone to
	skillsFD = 5 // the folder of skills, through which it can be written to; no folder where there is none
)

// guest daemon is what there is once.
type daemon struct {
	instance string
	rules    wire.ConfineMessage
	procs    table
	marks    *proctree.Marks
	files    atomic.Int32 // requests about files that are under way, also of hosts that have gone
	told     atomic.Int64 // when something was started, or told what to do, in ns since 1970
	relay    func() (*relay, error)
	joined   atomic.Int32 // connections that the kernel carries
	awaiting atomic.Int32 // requests for ports that nothing listens on yet
	doors    doors
}

// Run serves the hosts that come, one after the other, until the sandbox ends. It
// returns only when it cannot.
func Run() error {
	if os.Getuid() != 0 || os.Getpid() == 1 {
		return errors.New("this is the guest daemon of a sandbox: only its process 1 starts it")
	}
	a := &daemon{}
	if err := a.prepare(); err != nil {
		return err
	}
	cues := os.NewFile(cueFD, "cues")
	runtime.GOMAXPROCS(1)
	var at *session
	for b := make([]byte, 64); ; {
		if _, err := cues.Read(b); err != nil {
			return fmt.Errorf("process 1: %w", err)
		}
		if at != nil {
			at.end()
		}
		at = a.meet()
	}
}

// prepare makes the process one that programs cannot reach.
func (a *daemon) prepare() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("dumpable: %w", err)
	}
	unix.Umask(0o777 &^ umasked)
	if err := unix.CloseRange(rulesFD, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil && err != unix.ENOSYS {
		return fmt.Errorf("close_range: %w", err)
	}
	// A child's end is known by its pidfd; by default the signal is dropped. Process
	// 1 ignores it, which would be inherited and lose how children end.
	var dfl [4]uint64
	if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGCHLD), uintptr(unsafe.Pointer(&dfl)), 0, 8, 0, 0); e != 0 {
		return fmt.Errorf("sigaction: %w", e)
	}
	if err := syscall.SetNonblock(cueFD, true); err != nil {
		return err
	}
	rules := os.NewFile(rulesFD, "rules")
	text, err := io.ReadAll(rules)
	rules.Close()
	if err != nil || !a.rules.Decode(text) {
		return fmt.Errorf("the sandbox's rules cannot be read: %w", err)
	}
	rootPrograms = a.rules.Root
	id := make([]byte, 8)
	rand.Read(id)
	a.instance = hex.EncodeToString(id)
	a.relay = sync.OnceValues(newRelay)
	a.procs.all = make(map[string]*process)
	a.marks = proctree.OpenMarks()
	return nil
}
