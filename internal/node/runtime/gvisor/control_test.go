package gvisor

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/runtime/state"
)

// impostor answers in the place of a sandbox's kernel, as one might that was taken
// over.
type impostor struct {
	*Runtime
	id runtime.ID

	mu    sync.Mutex
	asked []string // guarded by mu
}

// newImpostor starts one. says is given what is asked, the file that came with it, and
// what answers, which returns when the answer was heard.
func newImpostor(t *testing.T, says func(method string, file *os.File, answer func())) *impostor {
	t.Helper()
	dir, err := state.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	k := &impostor{Runtime: &Runtime{dir: dir}, id: runtime.NewID()}
	folder := dir.Path(k.id, runscDir)
	if err := errors.Join(dir.Create(runtime.Spec{ID: k.id}), os.MkdirAll(folder, 0o700)); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(folder, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: "/proc/self/fd/" + strconv.Itoa(fd) + "/runsc-" + string(k.id) + ".sock", Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			conn, err := l.AcceptUnix()
			if err != nil {
				return
			}
			wait.Go(func() { k.serve(conn, says) })
		}
	})
	t.Cleanup(func() { l.Close(); wait.Wait() })
	return k
}

func (k *impostor) serve(conn *net.UnixConn, says func(string, *os.File, func())) {
	defer conn.Close()
	question, rights := make([]byte, 4096), make([]byte, 64)
	n, oob, _, _, err := conn.ReadMsgUnix(question, rights)
	var q struct{ Method string }
	if err != nil || json.Unmarshal(question[:n], &q) != nil {
		return
	}
	k.mu.Lock()
	k.asked = append(k.asked, q.Method)
	k.mu.Unlock()
	var file *os.File
	messages, _ := unix.ParseSocketControlMessage(rights[:oob])
	for i := range messages {
		if fds, err := unix.ParseUnixRights(&messages[i]); err == nil && len(fds) == 1 {
			file = os.NewFile(uintptr(fds[0]), "given")
			defer file.Close()
		}
	}
	gone := func() { _, _ = conn.Read(question) } // waits until who asked is
	says(q.Method, file, func() {
		_, _ = io.WriteString(conn, `{"Success":true}`)
		gone()
	})
	gone()
}

// A caller that is told that a file was written, of which nothing is, does not wait for
// good.
func TestAKernelThatLiesKeepsNoCaller(t *testing.T) {
	kept := make(chan *os.File, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	k := newImpostor(t, func(_ string, file *os.File, answer func()) {
		fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Error(err)
		}
		kept <- os.NewFile(uintptr(fd), "kept")
		answer()
		cancel()
	})
	if data, err := k.read(ctx, k.id, "/proc/1/stat"); !errors.Is(err, context.Canceled) {
		t.Errorf("it has read %q, %v", data, err)
	}
	(<-kept).Close()
}

// A pause whose answer was lost is undone: the sandbox would stand still while it
// is taken to run.
func TestAPauseThatFailsIsUndone(t *testing.T) {
	for _, stands := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		k := newImpostor(t, func(method string, file *os.File, answer func()) {
			switch method {
			case controlPause:
				cancel()
				return
			case controlRead:
				status := "1 (guest) S 0"
				if stands {
					status = "1 (guest) D 0"
				}
				_, _ = file.WriteString(status)
			}
			answer()
		})
		i := &Instance{runtime: k.Runtime, id: k.id}
		if err := i.Freeze(ctx); !errors.Is(err, context.Canceled) {
			t.Fatalf("a kernel that does not answer: %v", err)
		}
		k.mu.Lock()
		if last := k.asked[len(k.asked)-1]; slices.Contains(k.asked, controlResume) != stands || stands && last != controlResume {
			t.Errorf("standing still: %v, it was asked %q", stands, k.asked)
		}
		k.mu.Unlock()
		if _, err := os.Stat(k.dir.Path(k.id, pauseFile)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a pause is noted: %v", err)
		}
	}
}
