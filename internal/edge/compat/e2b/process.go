package e2b

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"time"

	"connectrpc.com/connect"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

func (d *Handlers) processes() []httpapi.Operation {
	const service = "/process.Process/"
	return []httpapi.Operation{
		unary(service+"List", "", d.listProcesses),
		stream(service+"Start", "process", d.start),
		stream(service+"Connect", "process_output", d.connectProcess),
		unary(service+"Update", "process_resize", d.resize),
		unary(service+"SendInput", "process_stdin", d.sendInput),
		calls(service+"StreamInput", "process_stdin", true, connect.NewClientStreamHandler(service+"StreamInput", d.streamInput, options...)),
		unary(service+"SendSignal", "process_signal", d.sendSignal),
		unary(service+"CloseStdin", "process_stdin", d.closeStdin),
	}
}

// Empty is a message without fields.
type Empty struct{}

// ProcessConfig is a program and how it is started.
type ProcessConfig struct {
	Cmd  string            `json:"cmd,omitzero"`
	Args []string          `json:"args,omitzero"`
	Envs map[string]string `json:"envs,omitzero"`
	Cwd  *string           `json:"cwd,omitzero"`
}

// PTY is the size of a terminal.
type PTY struct {
	Size *struct {
		Cols uint16 `json:"cols,omitzero"`
		Rows uint16 `json:"rows,omitzero"`
	} `json:"size,omitzero"`
}

// StartRequest starts a process.
type StartRequest struct {
	Process *ProcessConfig `json:"process,omitzero"`
	PTY     *PTY           `json:"pty,omitzero"`
	Tag     *string        `json:"tag,omitzero"`
	Stdin   *bool          `json:"stdin,omitzero"`
}

// Selector names a process.
type Selector struct {
	PID *uint32 `json:"pid,omitzero"`
	Tag *string `json:"tag,omitzero"`
}

// ProcessRequest is about a process.
type ProcessRequest struct {
	Process *Selector `json:"process,omitzero"`
	PTY     *PTY      `json:"pty,omitzero"`    // of Update
	Input   *Input    `json:"input,omitzero"`  // of SendInput
	Signal  any       `json:"signal,omitzero"` // of SendSignal, a name or a number
}

// Input is what a process reads.
type Input struct {
	Stdin []byte `json:"stdin,omitzero"`
	PTY   []byte `json:"pty,omitzero"`
}

// StreamInputRequest is a message of a stream of input.
type StreamInputRequest struct {
	Start *struct {
		Process *Selector `json:"process,omitzero"`
	} `json:"start,omitzero"`
	Data *struct {
		Input *Input `json:"input,omitzero"`
	} `json:"data,omitzero"`
}

// ProcessResponse is a message of the output of a process.
type ProcessResponse struct {
	Event ProcessEvent `json:"event"`
}

// ProcessEvent is one of its fields.
type ProcessEvent struct {
	Start     *StartEvent `json:"start,omitzero"`
	Data      *DataEvent  `json:"data,omitzero"`
	End       *EndEvent   `json:"end,omitzero"`
	Keepalive *Empty      `json:"keepalive,omitzero"`
}

// StartEvent is the first message.
type StartEvent struct {
	PID int `json:"pid"`
}

// DataEvent is a piece of output, of one stream.
type DataEvent struct {
	Stdout []byte `json:"stdout,omitzero"`
	Stderr []byte `json:"stderr,omitzero"`
	PTY    []byte `json:"pty,omitzero"`
}

// EndEvent says how a process ended, in Go's words.
type EndEvent struct {
	ExitCode int     `json:"exitCode"`
	Exited   bool    `json:"exited"`
	Status   string  `json:"status"`
	Error    *string `json:"error,omitzero"`
}

// ProcessInfo is a running process.
type ProcessInfo struct {
	Config ProcessConfig `json:"config"`
	PID    int           `json:"pid"`
	Tag    *string       `json:"tag,omitzero"`
}

// ProcessList is the running processes.
type ProcessList struct {
	Processes []ProcessInfo `json:"processes"`
}

// find finds a running process.
func find(ctx context.Context, u *sandboxes.Use, s *Selector) (process.Info, error) {
	if s == nil || s.PID == nil {
		return process.Info{}, unsupported("process must have a pid: tags are not supported by this server")
	}
	return u.ByPID(ctx, int64(*s.PID))
}

// onProcess runs f with the process that a call is about.
func (d *Handlers) onProcess(ctx context.Context, c *httpapi.Call, s *Selector, f func(*sandboxes.Use, process.Info) error) (*Empty, error) {
	err := d.within(ctx, c, func(u *sandboxes.Use) error {
		p, err := find(ctx, u, s)
		if err != nil {
			return err
		}
		c.Trail.Asks(string(p.ID))
		return f(u, p)
	})
	return &Empty{}, err
}

func (d *Handlers) listProcesses(ctx context.Context, c *httpapi.Call, _ *Empty) (*ProcessList, error) {
	out := &ProcessList{Processes: []ProcessInfo{}}
	return out, d.within(ctx, c, func(u *sandboxes.Use) error {
		all, err := u.Running(ctx)
		for _, p := range all {
			config := ProcessConfig{Cwd: &p.Dir}
			if len(p.Argv) > 0 {
				config.Cmd, config.Args = p.Argv[0], p.Argv[1:]
			}
			out.Processes = append(out.Processes, ProcessInfo{Config: config, PID: p.PID})
		}
		return err
	})
}

// spec reads what is to be started.
func (in *StartRequest) spec(ctx context.Context) (spec process.Spec, err error) {
	switch {
	case in.Process == nil || in.Process.Cmd == "":
		return spec, httpapi.Invalid("process.cmd is required")
	case in.Tag != nil && *in.Tag != "":
		return spec, unsupported("tag is not supported by this server: a process is known by its pid")
	}
	config := in.Process
	if config.Cwd != nil {
		spec.Dir = sandboxes.Home(*config.Cwd)
	}
	sandboxes.SetCommand(&spec, config.Cmd, config.Args, in.PTY != nil)
	if err := sandboxes.CheckProgram(&spec, config.Envs, "cmd, args and cwd"); err != nil {
		return spec, err
	}
	if in.PTY != nil {
		size, err := in.PTY.size()
		if err != nil {
			return spec, err
		}
		spec.Terminal = &size
	}
	spec.Input = in.PTY == nil && (in.Stdin == nil || *in.Stdin)
	spec.Lossless = true
	if deadline, ok := ctx.Deadline(); ok {
		spec.Timeout = max(time.Until(deadline), time.Millisecond)
	}
	return spec, nil
}

func (p *PTY) size() (process.Size, error) {
	if p == nil || p.Size == nil || p.Size.Rows == 0 || p.Size.Cols == 0 {
		return process.Size{}, httpapi.Invalid("pty.size needs rows and cols, both at least 1")
	}
	return process.Size{Rows: p.Size.Rows, Columns: p.Size.Cols}, nil
}

func (d *Handlers) start(ctx context.Context, c *httpapi.Call, in *StartRequest, to *sender[ProcessResponse]) error {
	spec, err := in.spec(ctx)
	if err != nil {
		return err
	}
	if err := c.Draining(); err != nil {
		return err
	}
	return d.within(ctx, c, func(u *sandboxes.Use) error {
		out, err := u.Run(ctx, spec, in.Process.Envs)
		if err != nil {
			return err
		}
		defer out.Close()
		return follow(ctx, u, out, to)
	})
}

// connectProcess follows the output of a process from now on.
func (d *Handlers) connectProcess(ctx context.Context, c *httpapi.Call, in *ProcessRequest, to *sender[ProcessResponse]) error {
	end, err := c.OpenStream()
	if err != nil {
		return err
	}
	defer end()
	_, err = d.onProcess(ctx, c, in.Process, func(u *sandboxes.Use, p process.Info) error {
		out, err := u.Follow(ctx, p.ID, p.Last, false)
		if err != nil {
			return err
		}
		defer out.Close()
		return follow(ctx, u, out, to)
	})
	return err
}

// follow sends the output of a process until its end.
func follow(ctx context.Context, u *sandboxes.Use, out *sandboxes.Output, to *sender[ProcessResponse]) error {
	if err := to.begin(&ProcessResponse{ProcessEvent{Start: &StartEvent{PID: out.Info().PID}}}, &ProcessResponse{ProcessEvent{Keepalive: &Empty{}}}); err != nil {
		return err
	}
	err := out.Show(ctx, func(s process.Stream, data []byte) error {
		var e DataEvent
		*[]*[]byte{&e.Stdout, &e.Stderr, &e.PTY}[s] = data
		return to.send(&ProcessResponse{ProcessEvent{Data: &e}})
	}, nil, nil)
	if errors.Is(err, io.EOF) {
		return finish(ctx, u, out.Exit(), to)
	}
	return errors.Join(err, context.Cause(ctx), ctx.Err())
}

// finish sends how a process ended.
func finish(ctx context.Context, u *sandboxes.Use, e process.Exit, to *sender[ProcessResponse]) error {
	if e.TimedOut {
		return connect.NewError(connect.CodeDeadlineExceeded, errors.New("the process was stopped because it timed out"))
	}
	end := EndEvent{ExitCode: e.Code, Exited: e.Signal == 0, Status: fmt.Sprintf("exit status %d", e.Code)}
	if e.Signal != 0 {
		end.ExitCode, end.Status = -1, "signal: "+e.Signal.String()
	}
	why := end.Status
	switch stopped := u.Killed(ctx, e); {
	case stopped != nil:
		why = httpapi.Reason(stopped)
	case e.Blocked != "":
		why = "not allowed in this environment: " + e.Blocked
	case e.OutOfMemory:
		why = "the memory of the sandbox was used up"
	}
	if e.Code != 0 {
		end.Error = &why
	}
	return to.send(&ProcessResponse{ProcessEvent{End: &end}})
}

func (d *Handlers) resize(ctx context.Context, c *httpapi.Call, in *ProcessRequest) (*Empty, error) {
	return d.onProcess(ctx, c, in.Process, func(u *sandboxes.Use, p process.Info) error {
		if in.PTY == nil {
			return nil
		}
		size, err := in.PTY.size()
		if err != nil {
			return err
		}
		return u.Guest().Resize(ctx, p.ID, size)
	})
}

// write gives input to a process.
func (in *Input) write(ctx context.Context, u *sandboxes.Use, p process.Info) error {
	if in == nil {
		in = &Input{}
	}
	return u.Input(ctx, &p, in.Stdin, in.PTY)
}

func (d *Handlers) sendInput(ctx context.Context, c *httpapi.Call, in *ProcessRequest) (*Empty, error) {
	return d.onProcess(ctx, c, in.Process, func(u *sandboxes.Use, p process.Info) error { return in.Input.write(ctx, u, p) })
}

// streamInput gives a stream of input to the process that its first message names.
func (d *Handlers) streamInput(ctx context.Context, in *connect.ClientStream[StreamInputRequest]) (*connect.Response[Empty], error) {
	c := callOf(ctx)
	ctx, stop := c.Living(ctx)
	defer stop()
	defer context.AfterFunc(ctx, func() { // a body is waited for without it
		_ = http.NewResponseController(c.W).SetReadDeadline(time.Now())
	})()
	if !in.Receive() || in.Msg().Start == nil {
		err := cmp.Or(context.Cause(ctx), in.Err())
		if err == nil {
			err = httpapi.Invalid("the first message must have start, with the process")
		}
		return nil, ended(c, err)
	}
	_, err := d.onProcess(ctx, c, in.Msg().Start.Process, func(u *sandboxes.Use, p process.Info) error {
		for in.Receive() {
			if m := in.Msg(); m.Data != nil {
				if err := m.Data.Input.write(ctx, u, p); err != nil {
					return err
				}
			}
		}
		return cmp.Or(context.Cause(ctx), in.Err())
	})
	if err := ended(c, err); err != nil {
		return nil, err
	}
	return connect.NewResponse(&Empty{}), nil
}

func (d *Handlers) sendSignal(ctx context.Context, c *httpapi.Call, in *ProcessRequest) (*Empty, error) {
	return d.onProcess(ctx, c, in.Process, func(u *sandboxes.Use, p process.Info) error {
		switch in.Signal {
		case "SIGNAL_SIGKILL", float64(syscall.SIGKILL):
			return u.Guest().Kill(ctx, p.ID)
		case "SIGNAL_SIGTERM", float64(syscall.SIGTERM):
			return u.Guest().Signal(ctx, p.ID, syscall.SIGTERM, true)
		}
		return httpapi.Invalid("signal must be SIGNAL_SIGTERM or SIGNAL_SIGKILL")
	})
}

func (d *Handlers) closeStdin(ctx context.Context, c *httpapi.Call, in *ProcessRequest) (*Empty, error) {
	return d.onProcess(ctx, c, in.Process, func(u *sandboxes.Use, p process.Info) error { return u.Guest().CloseInput(ctx, p.ID) })
}
