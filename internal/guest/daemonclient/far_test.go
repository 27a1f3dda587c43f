package daemonclient_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/daemonclient"
	"github.com/atoll-run/atoll/internal/guest/daemonclient/clienttest"
)

// silent is a folder that does not say what is in it before the test is over.
type silent struct {
	fs.Inode
	asked chan string
	over  chan struct{}
}

func (s *silent) Lookup(_ context.Context, name string, _ *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	s.asked <- name
	<-s.over
	return nil, syscall.EIO
}

// TestAFolderThatDoesNotAnswer: more requests hang in one than there are processors,
// and all others are served as ever, also by the next conversation.
func TestAFolderThatDoesNotAnswer(t *testing.T) {
	dir, err := os.MkdirTemp("", "clienttest-far-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	far := filepath.Join(dir, "far")
	if err := os.Mkdir(far, 0o755); err != nil {
		t.Fatal(err)
	}
	root := &silent{asked: make(chan string, 1000), over: make(chan struct{})}
	server, err := fs.Mount(far, root, &fs.Options{MountOptions: fuse.MountOptions{AllowOther: true, DirectMountStrict: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Unmount(); err != nil {
			t.Error(err)
		}
	})
	s := clienttest.New(t, func(spec *runtime.Spec) {
		spec.Mounts = append(spec.Mounts, runtime.Mount{Source: far, Target: "/data/far"})
	})
	t.Cleanup(sync.OnceFunc(func() { close(root.over) })) // ahead of the sandbox's end
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	c := s.Dial(t)
	var wait sync.WaitGroup
	defer wait.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i := range 2*goruntime.NumCPU() + 2 {
		wait.Go(func() {
			if _, content, err := c.Read(ctx, "/data/far/"+strconv.Itoa(i), 0, -1); err == nil {
				t.Error("there is something to read")
				content.Close()
			}
		})
	}
	select {
	case <-root.asked:
	case <-time.After(30 * time.Second):
		t.Fatal("the file is not asked for")
	}
	serves := func(c *daemonclient.Client) {
		t.Helper()
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			o, err := c.Run(ctx, shell("head -c 100000 /dev/zero | tr '\\0' x"))
			if err != nil {
				t.Fatal(err)
			}
			if got := all(t, o); len(strings.TrimSpace(got.out[process.Stdout])) != 100_000 {
				t.Fatalf("it is answered with %d bytes", len(got.out[process.Stdout]))
			}
			cancel()
		}
	}
	serves(c)
	c.Cut()
	<-c.Done()
	c = s.Dial(t)
	serves(c)

	// Who asks is not kept waiting, and takes no more threads than there may be.
	hasty, err := daemonclient.Timeouts{Silence: 5 * time.Second, Work: 5 * time.Second, Pulse: time.Minute}.Dial(t.Context(), s.Meeting, s.Cue)
	if err != nil {
		t.Fatal(err)
	}
	defer hasty.Close()
	var given, refused atomic.Int32
	var reads sync.WaitGroup
	for i := range 300 {
		reads.Go(func() {
			switch _, err := hasty.Stat(t.Context(), "/data/far/more"+strconv.Itoa(i)); {
			case errors.Is(err, daemonclient.ErrSilent) && fault.KindOf(err) == fault.Conflict:
				given.Add(1)
			case fault.KindOf(err) == fault.Exhausted && strings.Contains(err.Error(), "may not answer"):
				refused.Add(1)
			default:
				t.Errorf("got %v", err)
			}
		})
	}
	reads.Wait()
	if given.Load() == 0 || refused.Load() == 0 {
		t.Errorf("%d were given up, %d refused", given.Load(), refused.Load())
	}
	serves(hasty)
}
