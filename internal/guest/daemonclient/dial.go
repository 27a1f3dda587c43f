package daemonclient

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/wire"
)

// Mountpoint is where a sandbox with a guest daemon has the folder of MakeFolder
// mounted, which only uid 0 of the sandbox may pass. Its Spec has Sockets.
const Mountpoint = wire.DaemonMount

// MakeFolder makes the folder of the host that is to be mounted at Mountpoint, if
// it is not there. It belongs to the sandbox's uid and gid 0, which are these on the host.
func MakeFolder(path string, uid, gid int) error {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.Chown(path, uid, gid)
}

// Dial listens in a folder of MakeFolder, has the guest daemon come with cue, which
// is the init client's StartDaemon, and returns when it has. It may be called again
// once the Client is closed, by this or a later process.
func Dial(ctx context.Context, folder string, cue func(context.Context) error) (*Client, error) {
	return DefaultTimeouts.Dial(ctx, folder, cue)
}

// Dial is the Dial of a Client with these timeouts.
func (p Timeouts) Dial(ctx context.Context, folder string, cue func(context.Context) error) (_ *Client, err error) {
	l, err := listen(folder)
	if err != nil {
		return nil, fmt.Errorf("dial guest daemon: %w", err)
	}
	defer func() {
		if err != nil {
			l.Close()
			err = fmt.Errorf("dial guest daemon: %w", err)
		}
	}()
	stop := context.AfterFunc(ctx, func() { l.SetDeadline(time.Unix(1, 0)) }) //nolint:errcheck // it is closed then
	defer stop()
	if err := cue(ctx); err != nil {
		return nil, err
	}
	for {
		u, err := l.AcceptUnix()
		if err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, err
		}
		conn, g, err := greet(u, nil)
		if err != nil {
			return nil, asGone(err)
		}
		if !g.First { // one that an earlier host asked for
			conn.Close()
			continue
		}
		if !stop() {
			conn.Close()
			return nil, context.Cause(ctx)
		}
		return newClient(l, conn, g, p), nil
	}
}

// listen makes the socket, in the place of one that an earlier process left.
func listen(folder string) (*net.UnixListener, error) {
	// By way of a descriptor the name is short enough for any folder.
	fd, err := unix.Open(folder, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: folder, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	name := "/proc/self/fd/" + strconv.Itoa(fd) + "/" + wire.HostSocket
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return nil, err
	}
	// What closes it later is another descriptor: the name stays, and is
	// replaced by the next.
	l.SetUnlinkOnClose(false)
	if err := unix.Fchownat(fd, wire.HostSocket, int(st.Uid), int(st.Gid), unix.AT_SYMLINK_NOFOLLOW); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}
