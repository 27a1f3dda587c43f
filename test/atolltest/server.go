package atolltest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Key is the API key of every server that a test starts.
const Key = "sk-atoll-dev-0123456789abcdef0123456789abcdef"

// Options of a Server. The zero value is a server with one warm sandbox of each
// kind.
type Options struct {
	Data string   // an earlier server's Data; a new folder when empty
	Env  []string // settings as "ATOLL_NAME=value", over those that Launch sets
	// Hosts is a file that the server has in the place of /etc/hosts, if any.
	Hosts    string
	NoImages bool                // a new Data has no images, as a gateway needs none
	User     *syscall.Credential // runs the server; the test's own user if nil
	// NotReady returns the server once it listens, its pool still empty.
	NotReady bool
}

// Server is a running atoll serve.
type Server struct {
	URL  string
	Data string // its data folder
	Pid  int

	cmd    *exec.Cmd
	client *http.Client
	remove bool // Data goes with the server

	// These belong to an executor in place of one server; URL is then the gateway's.
	gateway *Server // nil for one server
	machine string  // the executor's URL

	mu  sync.Mutex
	log strings.Builder // guarded by mu

	exited chan struct{}
	err    error // how the process ended; read after exited
}

// startTime bounds a server's start on a busy machine, its first pool included.
const startTime = 2 * time.Minute

// Start starts a server that the end of the test stops. Every sandbox of it
// must be gone then.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := Launch(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("stop the server: %v\n%s", err, s.Log())
		}
	})
	return s
}

// launchSplit starts a gateway and an executor in place of one server; nil without the build tag roles.
// done is false if the options are for one server.
var launchSplit func(ctx context.Context, o Options) (s *Server, done bool, err error)

// endSplit stops the services of these servers; nil without the build tag roles.
var endSplit func() error

// Launch starts a server, which Close stops.
func Launch(ctx context.Context, o Options) (*Server, error) {
	if launchSplit != nil {
		if s, done, err := launchSplit(ctx, o); done {
			return s, err
		}
	}
	return launchOne(ctx, o)
}

func launchOne(ctx context.Context, o Options) (_ *Server, err error) {
	binary, err := Binary()
	if err != nil {
		return nil, err
	}
	s := &Server{Data: o.Data, exited: make(chan struct{}), client: &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 16},
	}}
	if s.Data == "" {
		if s.Data, err = o.newData(); err != nil {
			return nil, err
		}
		s.remove = true
	}
	s.cmd = exec.Command(binary, "serve")
	if o.Hosts != "" { // a mount namespace of its own, in which the same process becomes the server
		s.cmd = exec.Command("unshare", "--mount", "sh", "-c", `mount --bind "$1" /etc/hosts && exec "$2" serve`, "sh", o.Hosts, binary)
	}
	s.cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOST_SECRET=of-the-server-alone",
		"ATOLL_LISTEN=127.0.0.1:0", "ATOLL_DATA_DIR=" + s.Data, "ATOLL_DEV_KEY=" + Key,
		"ATOLL_IMAGE=" + Image, "ATOLL_POOL_SIZE=1", "ATOLL_LOG_FORMAT=text", "ATOLL_ON_EXIT=destroy",
		"ATOLL_IMAGE_VARIANTS=off", // a build would take minutes from the tests beside it
	}, o.Env...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: o.User}
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	s.Pid = s.cmd.Process.Pid
	address := make(chan string, 1)
	go s.read(stderr, address)
	defer func() {
		if err != nil {
			err = fmt.Errorf("start a server: %w\n%s", err, s.Log())
			err = errors.Join(err, s.Close())
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	select {
	case a := <-address:
		s.URL = "http://" + a
	case <-s.exited:
		return nil, fmt.Errorf("it ended at once: %w", s.err)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if o.NotReady {
		return s, nil
	}
	return s, s.WaitReady(ctx)
}

// newData makes the data folder of a server.
func (o *Options) newData() (dir string, err error) {
	if !o.NoImages {
		return NewData()
	}
	if dir, err = os.MkdirTemp("", "atoll-test-"); err == nil && o.User != nil {
		err = os.Chown(dir, int(o.User.Uid), int(o.User.Gid))
	}
	return dir, err
}

// NewData makes a data folder that holds the tests' image by a link.
func NewData() (string, error) {
	img, err := ImageDir()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "atoll-test-")
	if err != nil {
		return "", err
	}
	if err := os.Mkdir(filepath.Join(dir, "images"), 0o755); err != nil {
		return "", err
	}
	return dir, os.Symlink(img, filepath.Join(dir, "images", Image))
}

// read follows the server's log to its end, and then its process.
func (s *Server) read(stderr io.Reader, address chan<- string) {
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		line := lines.Text()
		s.mu.Lock()
		s.log.WriteString(line + "\n")
		s.mu.Unlock()
		if _, after, ok := strings.Cut(line, "msg=listening address="); ok {
			a, _, _ := strings.Cut(after, " ")
			address <- a
		}
	}
	s.err = s.cmd.Wait()
	close(s.exited)
}

// Log returns what the server has logged so far.
func (s *Server) Log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gateway != nil {
		return s.log.String() + "the gateway:\n" + s.gateway.Log()
	}
	return s.log.String()
}

// WaitReady returns when the server has a warm sandbox of each kind.
func (s *Server) WaitReady(ctx context.Context) error {
	for {
		status, err := s.Get(ctx, "/readyz")
		if status == http.StatusOK {
			return nil
		}
		select {
		case <-s.exited:
			return fmt.Errorf("the server ended: %w", errors.Join(err, s.err))
		case <-ctx.Done():
			return fmt.Errorf("the server is not ready (%d): %w", status, errors.Join(err, ctx.Err()))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Get asks for a path and returns the status.
func (s *Server) Get(ctx context.Context, path string) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
	if err != nil {
		return 0, err
	}
	res, err := s.client.Do(r)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, errors.Join(err, res.Body.Close())
}

// Signal sends a signal to the server and to nothing else.
func (s *Server) Signal(sig syscall.Signal) error {
	if s.gateway != nil {
		_ = s.gateway.Signal(sig) // it may have ended
	}
	return s.cmd.Process.Signal(sig)
}

// Wait waits for the server's end and returns how it ended.
func (s *Server) Wait(ctx context.Context) error {
	if s.gateway != nil {
		if err := s.gateway.Wait(ctx); err != nil && ctx.Err() != nil {
			return err
		}
	}
	select {
	case <-s.exited:
		return s.err
	case <-ctx.Done():
		return fmt.Errorf("the server has not ended: %w", ctx.Err())
	}
}

// stopTime bounds a shutdown, its grace period included.
const stopTime = 90 * time.Second

// Close stops the server if it still runs, and fails if it ended otherwise than
// in good order or left anything on the machine. It may be repeated.
func (s *Server) Close() (err error) {
	s.client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	var errs []error
	if s.gateway != nil { // last, because the executor reports ends to it
		defer func() { err = errors.Join(err, s.gateway.Close()) }()
	}
	if err := s.Signal(syscall.SIGTERM); err == nil {
		if err := s.Wait(ctx); err != nil {
			errs = append(errs, err)
		}
	} else {
		<-s.exited
	}
	if !s.remove {
		return errors.Join(errs...)
	}
	if ctx.Err() != nil {
		errs = append(errs, s.Signal(syscall.SIGKILL))
		<-s.exited
	}
	s.remove = false
	errs = append(errs, Trace(s.Data).Gone(ctx))
	return errors.Join(append(errs, os.RemoveAll(s.Data))...)
}

// Keep leaves the data folder to the caller, who starts another server in it.
func (s *Server) Keep(t testing.TB) string {
	s.remove = false
	t.Cleanup(func() {
		// A killed server that had no successor leaves this one mount to the next start,
		// and what Sweep removes where nothing of it lives.
		_ = unix.Unmount(filepath.Join(s.Data, "state", "server"), unix.MNT_DETACH)
		_ = Trace(s.Data).Sweep()
		if err := os.RemoveAll(s.Data); err != nil {
			t.Error(err)
		}
	})
	return s.Data
}

// CloseIdle closes the client's connections that no request uses.
func (s *Server) CloseIdle() { s.client.CloseIdleConnections() }
