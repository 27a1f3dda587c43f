package atoll

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// StartProcess starts a process in a sandbox.
func (c *Client) StartProcess(ctx context.Context, ref SandboxRef, in NewProcess) (SandboxProcess, error) {
	return call[SandboxProcess](ctx, c, http.MethodPost, ref.path("processes"), ref.query(), in)
}

// Processes lists the processes of a sandbox.
func (c *Client) Processes(ctx context.Context, ref SandboxRef) ([]SandboxProcess, error) {
	all, err := call[SandboxProcesses](ctx, c, http.MethodGet, ref.path("processes"), ref.query(), nil)
	return all.Data, err
}

// SignalProcess sends a signal to a process and its process group.
func (c *Client) SignalProcess(ctx context.Context, ref SandboxRef, id, signal string) (SandboxProcess, error) {
	return call[SandboxProcess](ctx, c, http.MethodPost, ref.path("processes", id, "signal"), ref.query(), ProcessSignal{Signal: signal})
}

// EndProcess ends a process and all that it started, and drops its output.
func (c *Client) EndProcess(ctx context.Context, ref SandboxRef, id string) error {
	return c.do(ctx, http.MethodDelete, ref.path("processes", id), ref.query())
}

// FollowProcess calls each for every event of a process's output until the process ends;
// the last event says how. Data is in base64. With follow false it stops after the output
// that there is now.
func (c *Client) FollowProcess(ctx context.Context, ref SandboxRef, id string, follow bool, each func(ProcessEvent) error) error {
	res, err := c.send(ctx, http.MethodGet, ref.path("processes", id, "output"), ref.query("encoding", "base64", "follow", strconv.FormatBool(follow)), nil, mediaNDJSON)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	in := bufio.NewReader(res.Body)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the server's stream broke off: %w", err)
		}
		var e ProcessEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("read the server's stream: %w", err)
		}
		if err := each(e); err != nil {
			return err
		}
	}
}

// FeedProcess writes all of r to a process, and ends its input.
func (c *Client) FeedProcess(ctx context.Context, ref SandboxRef, id string, r io.Reader) error {
	return c.upload(ctx, http.MethodPost, ref.path("processes", id, "stdin"), ref.query("close", "true"), r)
}
