package gvisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

// What a kernel can be asked by its control socket, which runsc's commands use as
// well. A command takes 20 ms to start, most of the time that waking up may take.
const (
	controlPause      = "containerManager.Pause"
	controlResume     = "containerManager.Resume"
	controlCheckpoint = "containerManager.Checkpoint"
	controlNetwork    = "containerManager.SetNetworkArgs"
	controlRestore    = "containerManager.Restore"
	controlRead       = "Fs.Read"
	controlUpper      = "Fs.TarRootfsUpperLayer"
)

// mostAnswer bounds what a kernel says, which a program may have taken over.
const mostAnswer = 1 << 20

// controlError is what a kernel answered that could not do what it was asked.
type controlError struct{ method, message string }

func (e *controlError) Error() string { return e.method + ": " + e.message }

// socketName is what runsc calls the control socket of a sandbox's kernel.
func socketName(id runtime.ID) string { return "runsc-" + string(id) + ".sock" }

// control has a sandbox's kernel do something. Files go to the kernel with the
// question. An error that is no controlError leaves open whether it was done.
func (r *Runtime) control(ctx context.Context, id runtime.ID, method string, arg any, files ...*os.File) error {
	question, err := json.Marshal(struct {
		Method string `json:"method"`
		Arg    any    `json:"arg"`
	}{method, arg})
	if err != nil {
		return err
	}
	conn, err := dialUnix(ctx, r.dir.Path(id, runscDir, socketName(id)))
	if err != nil {
		return fmt.Errorf("reach the kernel of %s: %w", id, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	if err := ask(conn, question, files); err != nil {
		return fmt.Errorf("ask the kernel of %s: %s: %w", id, method, errors.Join(err, context.Cause(ctx)))
	}
	var answer struct {
		Success bool
		Err     string
	}
	if err := json.NewDecoder(io.LimitReader(conn, mostAnswer)).Decode(&answer); err != nil {
		return fmt.Errorf("hear from the kernel of %s: %s: %w", id, method, errors.Join(err, context.Cause(ctx)))
	}
	if !answer.Success {
		return &controlError{method, answer.Err}
	}
	return nil
}

// ask sends a question, the files with its first byte.
func ask(conn *net.UnixConn, question []byte, files []*os.File) error {
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		rights = unix.UnixRights(fds...)
	}
	n, _, err := conn.WriteMsgUnix(question, rights, nil)
	if err == nil && n < len(question) {
		_, err = conn.Write(question[n:])
	}
	return err
}

// dialUnix connects to a socket by its path, of any length.
func dialUnix(ctx context.Context, path string) (*net.UnixConn, error) {
	if len(path) >= len(unix.RawSockaddrUnix{}.Path) {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
		defer unix.Close(fd)
		path = "/proc/self/fd/" + strconv.Itoa(fd)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	return conn.(*net.UnixConn), nil
}
