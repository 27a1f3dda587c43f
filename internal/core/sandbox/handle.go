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

// Guest is what can be done inside a sandbox. The sandbox may be on another machine:
// everything that crosses is a value or a stream.
type Guest interface {
	process.Manager
	file.System
	Ports
	// PutSkills writes a tar stream below the folder of skills, which programs can read and not
	// change. A sandbox that an earlier version made has no such folder: an Invalid fault.
	PutSkills(ctx context.Context, archive io.Reader) error
}

// Ports are the TCP ports of a sandbox's loopback interface.
type Ports interface {
	// Listening returns where something listens for TCP connections, by port.
	Listening(ctx context.Context) ([]netip.AddrPort, error)
	// Connect connects to a port, by IPv4 or else IPv6. If something was started in the
	// sandbox, or told what to do, in the last half minute, it waits so long for the port
	// to be listened on; a port on which nothing listens is a NotFound fault. CloseWrite of
	// the connection ends one direction alone. ctx is for connecting only.
	Connect(ctx context.Context, port uint16, wait time.Duration) (net.Conn, error)
	// Accept waits for a connection that a program makes to a port at 127.0.0.1, where the
	// sandbox listens while it is asked, and some seconds more. A NotFound fault says that none
	// came. ctx is for the wait only. A sandbox that an earlier version made cannot do it: an
	// Invalid fault.
	Accept(ctx context.Context, port uint16, wait time.Duration) (net.Conn, error)
}

// Handle is the use of a sandbox by one caller. While one is open the sandbox does not
// fall asleep. It is closed once.
type Handle interface {
	// Sandbox is the record as it was when the use began. It is not to be changed.
	Sandbox() *Sandbox
	// Guest is what is inside the sandbox. Processes that it starts have the variables of
	// image, environment, key and sandbox under their own, and the sandbox's limits.
	Guest() Guest
	// Contexts are the code contexts of the sandbox.
	Contexts() (codecontext.Contexts, error)
	// CopyFolder copies a folder to a new name in another sandbox without moving its
	// content through both. done is false if that is not possible for these two, and
	// nothing is left of it then: Pack and Unpack do it, and know why it cannot be done,
	// if so. path is free of links; bytes are those of the files.
	CopyFolder(ctx context.Context, path string, to Handle, name string) (bytes int64, done bool, err error)

	// Redactor covers what must not be seen of a program's output: the secrets of every
	// caller that has used the sandbox, and the server's rules. Each stream needs a
	// redact.Stream of its own before anything of it leaves the server. A use by Reach
	// has no Redactor.
	Redactor(ctx context.Context) (*redact.Set, error)
	// CountBytes charges for bytes that left the sandbox through the server, as those of
	// a preview do.
	CountBytes(bytes int64)

	// Stopped returns why the server has ended the sandbox's programs since this use
	// began; nil if it has not, or if that cannot be found out. A caller whose program was
	// killed, or whose connection ended, asks here first.
	Stopped(ctx context.Context) error
	// Killed returns why the server has ended the program that ended with exit, also when
	// that was before this use began; nil if it has not.
	Killed(ctx context.Context, exit process.Exit) error
	// NetworkHint tells the caller how to fix a failed program that the network policy may have
	// made fail; "" if nothing suggests that. since is when the program started. tails are the
	// last bytes of its streams, without secrets.
	NetworkHint(since time.Time, tails [][]byte) string
	// Done is closed when the sandbox has ended or fallen asleep.
	Done() <-chan struct{}
	Close()
}
