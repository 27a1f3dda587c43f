package sandbox

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

const (
	maxCursor   = 1 << 53
	maxTerminal = 1<<16 - 1        // rows or columns
	longestWait = 10 * time.Minute // of one request for a process
	stdinPiece  = 32 << 10         // bytes written to a process at a time
)

var processID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func (h *Handlers) processes() []httpapi.Operation {
	const (
		get, post, del = http.MethodGet, http.MethodPost, http.MethodDelete
		processes      = sandboxPath + "/processes"
		one            = processes + "/{process}"
	)
	id := httpapi.Param{Name: "process", In: httpapi.InPath, Pattern: processID.String(), Doc: "Its process_id."}
	after := func(doc string) httpapi.Param {
		return httpapi.Param{Name: "after", Type: httpapi.Int, Max: maxCursor, Doc: doc}
	}
	size := func(name string, def int64, doc string) httpapi.Param {
		return httpapi.Param{Name: name, Type: httpapi.Int, Min: 1, Max: maxTerminal, Default: def, Doc: doc}
	}
	process := []httpapi.Answer{httpapi.OK(SandboxProcess{}, "The process.")}
	return []httpapi.Operation{
		{
			Method: post, Path: processes, ID: "startProcess", Summary: "Start a process in the background", Description: "The answer comes when it has started. It continues when the client leaves and, where the server's `on_exit` is `detach`, through its restarts. Atoll keeps the last 1 MiB of unread output, unless `wait_for_reader` makes the process wait. A program that cannot be started returns 400.", Audit: "process", Params: onOne(),
			Body:    httpapi.JSON(NewProcess{Command: new("python3 -m http.server 8000"), WorkingDir: new("/home/user")}),
			Answers: []httpapi.Answer{httpapi.Located(SandboxProcess{}, "It runs.")}, Serve: httpapi.Takes(h.start),
		},
		{
			Method: get, Path: processes, ID: "listProcesses", Summary: "List processes", Description: "Also processes that have ended and were not removed. Interpreters of code contexts are not among them.", Params: onOne(),
			Answers: []httpapi.Answer{httpapi.OK(SandboxProcesses{}, "Processes that were not removed, oldest first.")}, Serve: httpapi.Returns(h.listProcesses),
		},
		{Method: get, Path: one, ID: "getProcess", Summary: "Get a process", Description: "Whether it runs, its exit code, and how much it has written.", Params: onOne(id), Answers: process, Serve: httpapi.Returns(h.getProcess)},
		{
			Method: del, Path: one, ID: "deleteProcess", Summary: "End a process and remove it", Description: "It is killed if it still runs, with all processes that it has started, those in other sessions too. Its output is gone.", Audit: "process_delete", Params: onOne(id),
			Answers: []httpapi.Answer{gone}, Serve: httpapi.Does(h.deleteProcess),
		},
		{
			Method: post, Path: sandboxPath + "/processes:killall", ID: "killAllProcesses", Summary: "Kill every process in a sandbox", Description: "SIGKILL ends all programs: processes that were started here, whatever they have started, terminals and code contexts. It frees a sandbox from a fork bomb. Files, the sandbox and its name stay, and processes stay listed with their output.", Audit: "process_killall", Params: onOne(),
			Answers: []httpapi.Answer{gone}, Serve: httpapi.Does(h.killAllProcesses),
		},
		{
			Method: get, Path: one + "/output", ID: "followProcess", Summary: "Follow the output of a process", Description: "It begins with the stored output, or after the cursor `after`, and continues until the process ends. A line has the `cursor` to continue behind it after a broken connection. `dropped` says how many bytes before a line were not kept.", Audit: "process_output",
			Params: onOne(id, after("The cursor of an earlier event; everything that is kept if not given."),
				httpapi.Param{Name: "follow", Type: httpapi.Bool, Doc: "false: only the current output. Otherwise until the process ends."},
				httpapi.Param{Name: "encoding", Enum: []string{"utf-8", "base64"}, Doc: "Of data."}),
			Answers: []httpapi.Answer{httpapi.Stream(ProcessEvent{}, "One line for each piece of output; exit comes last.")}, Serve: httpapi.Writes(h.followProcess),
		},
		{
			Method: get, Path: one + "/wait", ID: "waitProcess", Summary: "Wait for the end of a process", Description: "It answers when the process ends or `timeout_ms` is over, whichever comes first; `state` says which. The process continues.",
			Params:  onOne(id, httpapi.Param{Name: "timeout_ms", Type: httpapi.Int, Max: longestWait.Milliseconds(), Default: 30_000, Doc: "How long; 30000 if not given."}),
			Answers: []httpapi.Answer{httpapi.OK(SandboxProcess{}, "The process, which may still run.")}, Serve: httpapi.Returns(h.waitProcess),
		},
		{
			Method: post, Path: one + "/stdin", ID: "writeProcess", Summary: "Write to a process", Description: "The body goes to its standard input; the answer comes when the pipe has taken all of it. `close=true` closes it afterwards. The process must have been started with `stdin`.", Audit: "process_stdin",
			Params:  onOne(id, httpapi.Param{Name: "close", Type: httpapi.Bool, Doc: "Ends its input after that."}),
			Body:    &httpapi.Body{Media: httpapi.OctetStream, Optional: true},
			Answers: []httpapi.Answer{httpapi.OK(ProcessWritten{}, "All of it is in the pipe.")}, Serve: httpapi.Returns(h.writeProcess),
		},
		{
			Method: post, Path: one + "/signal", ID: "signalProcess", Summary: "Send a signal to a process", Description: "By name or number. `group` says whether the processes that it has started get it, too.", Audit: "process_signal", Params: onOne(id),
			Body: httpapi.JSON(ProcessSignal{Signal: new("TERM")}), Answers: process, Serve: httpapi.Takes(h.signalProcess),
		},
		{
			Method: get, Path: sandboxPath + "/terminal", ID: "openTerminal", Summary: "Open a terminal, as a WebSocket", Description: "A shell with a terminal, or the one of an earlier connection (`process`), which continues where `after` says. Browsers, which can send no header, give a `ticket` in place of the key. The connection counts as a use.", Audit: "terminal", Access: httpapi.Delegated,
			Params: onOne(
				httpapi.Param{Name: ticketParam, Doc: "A ticket, instead of the Authorization header: for browsers."},
				httpapi.Param{Name: "process", Doc: "A terminal that there is, by its process_id; a new one if not given."},
				after("The cursor of an earlier message; everything that is kept if not given."),
				size("rows", 24, "Rows of the terminal; 24 if not given."), size("columns", 80, "Columns of the terminal; 80 if not given."),
				httpapi.Param{Name: "command", Doc: "Instead of an interactive shell."}, httpapi.Param{Name: "working_dir", Doc: "Where a new terminal starts."}),
			Answers: []httpapi.Answer{
				{Status: http.StatusSwitchingProtocols, Doc: "Binary messages carry input and output; each text message is a TerminalMessage.", Body: TerminalMessage{}},
				httpapi.Refusal(http.StatusForbidden, "forbidden: the key's scopes do not allow this, or a page of another origin asks."),
				httpapi.Refusal(http.StatusUpgradeRequired, "upgrade_required: the request is not one for a WebSocket, version 13."),
			},
			Serve: httpapi.Writes(h.openTerminal),
		},
		h.ticketOperation(),
	}
}

// onProcess finds the sandbox and the process that a request is about.
func (h *Handlers) onProcess(c *httpapi.Call) (place, process.ID, error) {
	p, err := h.place(c)
	if err != nil {
		return p, "", err
	}
	id := c.Path("process")
	if !processID.MatchString(id) {
		return p, "", fault.New(fault.NotFound, "there is no process %s", wire.Quote(id))
	}
	c.Trail.Asks(id)
	return p, process.ID(id), nil
}

func (h *Handlers) start(c *httpapi.Call, in *NewProcess) (out SandboxProcess, err error) {
	p, err := h.place(c)
	if err != nil {
		return out, err
	}
	spec, err := in.domain()
	if err != nil {
		return out, err
	}
	return use(c.Context(), h, p, func(u sandbox.Handle) (out SandboxProcess, err error) {
		started, err := begin(c.Context(), p, u, spec, wire.StringMap(in.EnvVars))
		if err != nil {
			return out, err
		}
		c.W.Header().Set("Location", sandboxesPath+"/"+string(u.Sandbox().ID)+"/processes/"+string(started.ID))
		return processOf(c.Context(), u, started), nil
	})
}

// begin starts a process.
func begin(ctx context.Context, p place, u sandbox.Handle, spec process.Spec, env map[string]string) (process.Info, error) {
	p.Trail.Asks(spec.Shell)
	if spec.Shell == "" {
		p.Trail.Asks(strings.Join(spec.Argv, "\x00"))
	}
	for name, value := range env {
		spec.Env = append(spec.Env, name+"="+value)
	}
	return u.Guest().Start(ctx, spec)
}

func (in *NewProcess) domain() (spec process.Spec, err error) {
	switch {
	case (in.Command == nil) == (len(in.Argv) == 0):
		return spec, httpapi.Invalid("give command or argv, one of them")
	case in.Command != nil && *in.Command == "":
		return spec, httpapi.Invalid("command must not be empty")
	case in.Command != nil:
		spec.Shell = *in.Command
	default:
		spec.Argv = wire.Strings(in.Argv)
	}
	if in.WorkingDir != nil {
		spec.Dir = *in.WorkingDir
	}
	for _, text := range append([]string{spec.Shell, spec.Dir}, spec.Argv...) {
		if strings.ContainsRune(text, 0) {
			return spec, httpapi.Invalid("command, argv and working_dir must not contain a NUL character")
		}
	}
	if err := execution.CheckSandboxEnv(wire.StringMap(in.EnvVars)); err != nil {
		return spec, err
	}
	if spec.Timeout, err = millis("timeout_ms", in.TimeoutMS, 1); err != nil {
		return spec, err
	}
	spec.Patient = in.Wait != nil && *in.Wait
	if spec.Input = in.Stdin != nil && *in.Stdin; in.Terminal != nil {
		if in.Terminal.Rows == 0 || in.Terminal.Columns == 0 {
			return spec, httpapi.Invalid("terminal needs rows and columns, both at least 1")
		}
		spec.Input, spec.Terminal = false, &process.Size{Rows: in.Terminal.Rows, Columns: in.Terminal.Columns}
	}
	return spec, nil
}

func (h *Handlers) listProcesses(c *httpapi.Call) (out SandboxProcesses, err error) {
	p, err := h.place(c)
	if err != nil {
		return out, err
	}
	return use(c.Context(), h, p, func(u sandbox.Handle) (out SandboxProcesses, err error) {
		all, err := u.Guest().Processes(c.Context())
		if err != nil {
			return out, err
		}
		return SandboxProcesses{httpapi.Each(all, func(i process.Info) SandboxProcess { return processOf(c.Context(), u, i) })}, nil
	})
}

func (h *Handlers) getProcess(c *httpapi.Call) (out SandboxProcess, err error) {
	p, id, err := h.onProcess(c)
	if err != nil {
		return out, err
	}
	return use(c.Context(), h, p, func(u sandbox.Handle) (SandboxProcess, error) { return show(c.Context(), u, id) })
}

// show describes a process.
func show(ctx context.Context, u sandbox.Handle, id process.ID) (out SandboxProcess, err error) {
	found, err := u.Guest().Process(ctx, id)
	if err != nil {
		return out, err
	}
	return processOf(ctx, u, found), nil
}

// deleteProcess ends a process and all that it started, and drops its output.
func (h *Handlers) deleteProcess(c *httpapi.Call) error {
	p, id, err := h.onProcess(c)
	if err != nil {
		return err
	}
	return h.within(c.Context(), p, func(u sandbox.Handle) error { return u.Guest().Discard(c.Context(), id) })
}

// killAllProcesses ends every program of a sandbox.
func (h *Handlers) killAllProcesses(c *httpapi.Call) error {
	p, err := h.place(c)
	if err != nil {
		return err
	}
	return h.within(c.Context(), p, func(u sandbox.Handle) error { return u.Guest().KillAll(c.Context()) })
}

func (h *Handlers) waitProcess(c *httpapi.Call) (out SandboxProcess, err error) {
	p, id, err := h.onProcess(c)
	if err != nil {
		return out, err
	}
	ctx, stop := c.Living(c.Context())
	defer stop()
	return use(ctx, h, p, func(u sandbox.Handle) (out SandboxProcess, err error) {
		wait, cancel := context.WithTimeout(ctx, time.Duration(c.Int("timeout_ms"))*time.Millisecond)
		defer cancel()
		if _, err := u.Guest().Wait(wait, id); err != nil && wait.Err() == nil {
			return out, err
		}
		return show(ctx, u, id)
	})
}

func (h *Handlers) writeProcess(c *httpapi.Call) (out ProcessWritten, err error) {
	p, id, err := h.onProcess(c)
	if err != nil {
		return out, err
	}
	ctx, stop := c.Living(c.Context())
	defer stop()
	return use(ctx, h, p, func(u sandbox.Handle) (out ProcessWritten, err error) {
		in, piece := c.Upload(), make([]byte, stdinPiece)
		for {
			n, err := in.Read(piece)
			if n > 0 {
				taken, err := u.Guest().Write(ctx, id, piece[:n])
				if out.Bytes += int64(taken); err != nil {
					return out, err
				}
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				return out, err
			}
		}
		if c.Bool("close") {
			err = u.Guest().CloseInput(ctx, id)
		}
		return out, err
	})
}

func (h *Handlers) signalProcess(c *httpapi.Call, in *ProcessSignal) (out SandboxProcess, err error) {
	p, id, err := h.onProcess(c)
	if err != nil {
		return out, err
	}
	sig, err := signalOf(*in.Signal)
	if err != nil {
		return out, err
	}
	return use(c.Context(), h, p, func(u sandbox.Handle) (out SandboxProcess, err error) {
		if err := u.Guest().Signal(c.Context(), id, sig, in.Group == nil || *in.Group); err != nil {
			return out, err
		}
		return show(c.Context(), u, id)
	})
}

// signalOf reads a signal by name or number.
func signalOf(text string) (syscall.Signal, error) {
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= 64 {
		return syscall.Signal(n), nil
	}
	name := strings.ToUpper(text)
	if !strings.HasPrefix(name, "SIG") {
		name = "SIG" + name
	}
	if sig := unix.SignalNum(name); sig != 0 {
		return sig, nil
	}
	return 0, httpapi.Invalid("there is no signal %s; want a name such as TERM, or a number from 1 to 64", wire.Quote(text))
}
