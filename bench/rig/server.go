package rig

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Server is a running 'atoll serve' with a data folder of its own.
type Server struct {
	URL  string
	Pid  int
	Data string

	key    string
	cmd    *exec.Cmd
	log    string
	ended  chan struct{}
	client *http.Client
}

// Options of a Server.
type Options struct {
	PoolSize int     // -1 leaves the default
	Image    Variant // of what the image offers
	Args     []string
}

const (
	readyWait = 5 * time.Minute
	stopWait  = time.Minute
)

// Serve starts a server and waits until its pool is full. The caller must Stop
// it.
func (r *Rig) Serve(ctx context.Context, o Options) (_ *Server, err error) {
	data, err := r.Temp("data")
	if err != nil {
		return nil, err
	}
	if err := r.Image.copyTo(filepath.Join(data, "images"), o.Image); err != nil {
		return nil, err
	}
	s := &Server{
		Data: data, key: tenant.NewKey(), log: filepath.Join(data, "log"), ended: make(chan struct{}),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}},
	}
	args := []string{"serve", "--listen=127.0.0.1:0", "--data-dir=" + data, "--image=" + r.Image.Name, "--on-exit=destroy", "--log-format=json"}
	if o.PoolSize >= 0 {
		args = append(args, "--pool-size="+strconv.Itoa(o.PoolSize))
	}
	args = append(args, o.Args...)
	log, err := os.Create(s.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	s.cmd = exec.Command(filepath.Join(r.Bin, "atoll"), args...) // ended by Stop, not by ctx
	s.cmd.Stderr = log
	s.cmd.Env = append(withoutSettings(os.Environ()), "ATOLL_DEV_KEY="+s.key)
	// Ctrl-C is for the benchmarks, which stop the server in their own time.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	s.Pid = s.cmd.Process.Pid
	go func() {
		_ = s.cmd.Wait() // how it ended is read from its state
		close(s.ended)
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, readyWait, fmt.Errorf("the server was not ready within %s", readyWait))
	defer cancel()
	if err := s.listening(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	if err := s.Settle(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// withoutSettings drops the caller's own settings of Atoll: the benchmarks are
// of the defaults.
func withoutSettings(env []string) []string {
	var kept []string
	for _, e := range env {
		if !strings.HasPrefix(e, "ATOLL_") {
			kept = append(kept, e)
		}
	}
	return kept
}

// listening waits for the address in the log.
func (s *Server) listening(ctx context.Context) error {
	for s.URL == "" {
		if err := s.pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
		f, err := os.Open(s.log)
		if err != nil {
			return err
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			var line struct{ Msg, Address string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "listening" {
				s.URL = "http://" + line.Address
			}
		}
		f.Close()
	}
	return nil
}

// pause waits, and ends early with an error when the server or ctx does.
func (s *Server) pause(ctx context.Context, d time.Duration) error {
	select {
	case <-s.ended:
		return fmt.Errorf("the server ended: %s: %s", s.cmd.ProcessState, s.Log())
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// Log returns the end of the server's log.
func (s *Server) Log() string {
	data, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return tail(strings.TrimSpace(string(data)))
}

// Stop ends the server, and waits until it has ended its sandboxes.
func (s *Server) Stop() error {
	s.CloseConnections()
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // one that has ended is what is wanted
	select {
	case <-s.ended:
	case <-time.After(stopWait):
		_ = s.cmd.Process.Kill() // likewise
		<-s.ended
		return fmt.Errorf("the server did not stop within %s: %s", stopWait, s.Log())
	}
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("the server ended: %s: %s", s.cmd.ProcessState, s.Log())
	}
	return nil
}

// CloseConnections closes the client's idle connections, which are the server's
// descriptors and goroutines too.
func (s *Server) CloseConnections() { s.client.CloseIdleConnections() }

// quiet is how long after the pool is full the machine is left alone, for what
// the making of the last sandbox left to be done.
const quiet = 60 * time.Millisecond

// Settle waits until the pool is full and the machine quiet.
func (s *Server) Settle(ctx context.Context) error {
	for {
		m, err := s.Metrics(ctx)
		if err == nil && m.Sum("atoll_pool_idle") >= m.Sum("atoll_pool_target") && s.ready(ctx) {
			return s.pause(ctx, quiet)
		}
		if pause := s.pause(ctx, 15*time.Millisecond); pause != nil {
			return errors.Join(pause, err)
		}
	}
}

func (s *Server) ready(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/readyz", nil)
	if err != nil {
		return false
	}
	res, err := s.client.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body) // for the connection to be used again
	return res.StatusCode == http.StatusOK
}
