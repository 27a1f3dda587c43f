package sandbox

import (
	"context"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/redact"
)

// Guest is what callers can do inside a sandbox. The sandbox may be on another machine, so only
// values and streams cross this interface.
type Guest interface {
	process.Manager
	file.System
	Ports
	// PutSkills extracts a tar stream into the skills directory, which programs can only read. It
	// returns an Invalid fault for a sandbox created by an earlier version, which has no such
	// directory.
	PutSkills(ctx context.Context, archive io.Reader) error
}

// Ports are the TCP ports of a sandbox's loopback interface.
type Ports interface {
	// Listening returns the addresses with a TCP listener, by port.
	Listening(ctx context.Context) ([]netip.AddrPort, error)
	// Connect connects to a port over IPv4, or else IPv6. If the sandbox was active in the last 30
	// seconds, Connect waits that long for a listener. It returns a NotFound fault if nothing
	// listens. The connection supports CloseWrite. ctx applies only to connecting.
	Connect(ctx context.Context, port uint16, wait time.Duration) (net.Conn, error)
	// Accept waits for a program to connect to a port at 127.0.0.1. The sandbox listens during the
	// call and for some seconds after it. Accept returns a NotFound fault if no connection arrives,
	// and an Invalid fault for a sandbox created by an earlier version. ctx applies only to the
	// wait.
	Accept(ctx context.Context, port uint16, wait time.Duration) (net.Conn, error)
}

// Handle is one caller's use of a sandbox. The sandbox does not fall asleep while a Handle is open.
// Close it once.
type Handle interface {
	// Sandbox returns the record from the start of the use. Callers must not modify it.
	Sandbox() *Sandbox
	// Guest accesses the sandbox. Processes that it starts get the variables of the image,
	// environment, key and sandbox beneath their own, and the sandbox's limits.
	Guest() Guest
	// Contexts returns the sandbox's code contexts.
	Contexts() (codecontext.Contexts, error)
	// CopyFolder copies a directory to a new name in another sandbox without streaming its content
	// through this process. done is false, with nothing left behind, if these two sandboxes do not
	// support that. Use Pack and Unpack then; they also return the reason if the copy is
	// impossible. path must not contain links. bytes is the size of the files.
	CopyFolder(ctx context.Context, path string, to Handle, name string) (bytes int64, done bool, err error)

	// Redactor redacts program output: the secrets of every caller that has used the sandbox, and
	// the server's rules. Pass each stream through its own redact.Stream before it leaves the
	// server. A Handle from Reach has no Redactor.
	Redactor(ctx context.Context) (*redact.Set, error)
	// CountBytes charges for bytes that left the sandbox through the server, such as preview
	// traffic.
	CountBytes(bytes int64)

	// Stopped returns why the server ended the sandbox's programs since this use began, or nil if
	// it did not or the reason is unknown. Call it first if a program was killed or a connection
	// ended.
	Stopped(ctx context.Context) error
	// Killed returns why the server ended the program that ended with exit, even before this use
	// began; nil if it did not.
	Killed(ctx context.Context, exit process.Exit) error
	// NetworkHint tells the caller how to fix a program that may have failed because of the network
	// policy; "" if nothing suggests that. since is when the program started. tails are the last
	// bytes of its streams, redacted.
	NetworkHint(since time.Time, tails [][]byte) string
	// Done is closed when the sandbox has ended or fallen asleep.
	Done() <-chan struct{}
	Close()
}
