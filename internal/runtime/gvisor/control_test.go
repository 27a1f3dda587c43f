package gvisor

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/runtime/state"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// A kernel that was taken over may say that it has written a file, keep what it was
// to write to, and write nothing. Whoever wants to know does not wait for good.
func TestAKernelThatLiesKeepsNobody(t *testing.T) {
	dir, err := state.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	id := sandbox.NewID()
	if err := dir.Create(sandbox.Spec{ID: id}); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir.Path(id, runscDir), 0o700); err != nil {
		t.Fatal(err)
	}
	folder, err := unix.Open(dir.Path(id, runscDir), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(folder) })
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: procPath(os.Getpid(), "fd/"+strconv.Itoa(folder)+"/runsc-"+string(id)+".sock"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	held := make(chan []int, 1)
	go func() {
		conn, err := l.AcceptUnix()
		if err != nil {
			held <- nil
			return
		}
		defer conn.Close()
		question, rights := make([]byte, 4096), make([]byte, 64)
		_, n, _, _, err := conn.ReadMsgUnix(question, rights)
		messages, _ := unix.ParseSocketControlMessage(rights[:n])
		var fds []int
		for i := range messages {
			got, _ := unix.ParseUnixRights(&messages[i])
			fds = append(fds, got...)
		}
		if err == nil {
			_, _ = io.WriteString(conn, `{"Success":true}`)
		}
		held <- fds
	}()
	r := &Runtime{dir: dir}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if data, err := r.read(ctx, id, "/proc/1/stat"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it has read %q, %v", data, err)
	}
	fds := <-held
	if len(fds) != 1 {
		t.Errorf("the kernel was given %d files", len(fds))
	}
	for _, fd := range fds {
		unix.Close(fd)
	}
}
