// Package daemonclient is the host's side of the conversation with the guest daemon of a
// sandbox: the process, beside process 1, that starts and feeds programs, keeps
// their output, reads and writes files, and connects to ports, for as long as the
// sandbox lives.
//
// What comes from a guest daemon is written by the party that controls the sandbox. A
// Client checks every length, number and order, allocates nothing by a length it
// was told, and ends the conversation with ErrProtocol at the first thing that no
// guest daemon says. docs/contribute/guest-protocol.md describes the protocol.
//
// Paths, arguments and variables are bytes without a NUL, not necessarily UTF-8.
package daemonclient

import (
	"fmt"

	"github.com/atoll-run/atoll/internal/core/process"
)

var (
	// ErrProtocol says that the guest daemon said what none says. Its sandbox is to
	// be destroyed.
	ErrProtocol = fmt.Errorf("%w: its daemon broke the protocol", process.ErrGone)
)

// Bounds of what the guest daemon keeps.
const (
	MaxRing      = 1 << 20 // bytes of output of one process
	MaxProcesses = 256     // processes that run, and as many that have ended
)
