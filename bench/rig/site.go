package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Site is a server of a page that runs on this machine, outside of any sandbox.
type Site struct {
	*Page
	cmd    *exec.Cmd
	output bytes.Buffer // of the process; read when it has ended
	ended  chan struct{}
}

// ServeSite starts a command that is to serve a page at a port of the loopback, and
// waits until it does. The caller must Stop it.
func ServeSite(ctx context.Context, cmd *exec.Cmd, port, clients int) (*Site, error) {
	address := fmt.Sprintf("127.0.0.1:%d", port)
	s := &Site{Page: newPage(address, address, clients), cmd: cmd, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &s.output, &s.output
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pdeathsig = true, syscall.SIGKILL
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = cmd.Wait() // read from its state
		close(s.ended)
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, answerWait, fmt.Errorf("%s did not serve within %s", cmd.Path, answerWait))
	defer cancel()
	for {
		err := s.Get(ctx)
		if err == nil {
			return s, nil
		}
		select {
		case <-s.ended:
			return nil, errors.Join(fmt.Errorf("%s ended: %s: %s", cmd.Path, cmd.ProcessState, tail(strings.TrimSpace(s.output.String()))), s.Close())
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), s.Stop())
		case <-time.After(20 * time.Millisecond):
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, errors.Join(err, s.Stop())
		}
	}
}

// Stop ends the server.
func (s *Site) Stop() error {
	err := s.Close()
	_ = s.cmd.Process.Kill() // one that has ended is what is wanted
	<-s.ended
	return err
}

// FreePort finds a port of the loopback for a program that cannot be asked for a free
// one and then tell which it took.
func FreePort(ctx context.Context) (int, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return ln.Addr().(*net.TCPAddr).Port, ln.Close()
}
