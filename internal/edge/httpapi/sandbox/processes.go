package sandbox

import (
	"context"
	"net/http"
	"regexp"
	"time"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

const (
	maxCursor   = 1 << 53
	maxTerminal = 1<<16 - 1        // rows or columns
	longestWait = 10 * time.Minute // of one request for a process
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

// onProcess runs f with the sandbox and the process that a request is about.
func onProcess[T any](ctx context.Context, c *httpapi.Call, h *Handlers, f func(*sandboxes.Use, process.ID) (T, error)) (out T, err error) {
	r, id, err := h.process(c)
	if err != nil {
		return out, err
	}
	return sandboxes.With(ctx, h.Service, r, func(u *sandboxes.Use) (T, error) { return f(u, id) })
}

// process finds the sandbox and the process that a request is about.
func (h *Handlers) process(c *httpapi.Call) (sandboxes.Ref, process.ID, error) {
	r, err := h.ref(c)
	if err != nil {
		return r, "", err
	}
	id := c.Path("process")
	if !processID.MatchString(id) {
		return r, "", fault.New(fault.NotFound, "there is no process %s", wire.Quote(id))
	}
	c.Trail.Asks(id)
	return r, process.ID(id), nil
}

func (h *Handlers) start(c *httpapi.Call, in *NewProcess) (out SandboxProcess, err error) {
	r, err := h.ref(c)
	if err != nil {
		return out, err
	}
	spec, err := in.domain()
	if err != nil {
		return out, err
	}
	return sandboxes.With(c.Context(), h.Service, r, func(u *sandboxes.Use) (SandboxProcess, error) {
		started, err := u.Start(c.Context(), spec, wire.StringMap(in.EnvVars))
		if err == nil {
			c.W.Header().Set("Location", sandboxesPath+"/"+string(u.Sandbox().ID)+"/processes/"+string(started.ID))
		}
		return shown(started, err)
	})
}

// shown renders a process.
func shown(p sandboxes.Process, err error) (out SandboxProcess, _ error) {
	if err != nil {
		return out, err
	}
	return processOf(&p), nil
}

func (in *NewProcess) domain() (process.Spec, error) {
	p := sandboxes.NewProcess{Command: in.Command, Dir: in.WorkingDir, Argv: wire.Strings(in.Argv), Env: wire.StringMap(in.EnvVars), Timeout: in.TimeoutMS, Patient: in.Wait, Input: in.Stdin}
	if t := in.Terminal; t != nil {
		p.Terminal = &process.Size{Rows: t.Rows, Columns: t.Columns}
	}
	return p.Spec()
}

func (h *Handlers) listProcesses(c *httpapi.Call) (SandboxProcesses, error) {
	return use(c, h, func(u *sandboxes.Use) (out SandboxProcesses, err error) {
		all, err := u.Processes(c.Context())
		if err != nil {
			return out, err
		}
		return SandboxProcesses{httpapi.Each(all, func(p sandboxes.Process) SandboxProcess { return processOf(&p) })}, nil
	})
}

func (h *Handlers) getProcess(c *httpapi.Call) (SandboxProcess, error) {
	return onProcess(c.Context(), c, h, func(u *sandboxes.Use, id process.ID) (SandboxProcess, error) {
		return shown(u.Process(c.Context(), id))
	})
}

// deleteProcess ends a process and all that it started, and drops its output.
func (h *Handlers) deleteProcess(c *httpapi.Call) error {
	_, err := onProcess(c.Context(), c, h, func(u *sandboxes.Use, id process.ID) (nothing, error) {
		return nothing{}, u.Guest().Discard(c.Context(), id)
	})
	return err
}

// killAllProcesses ends every program of a sandbox.
func (h *Handlers) killAllProcesses(c *httpapi.Call) error {
	_, err := use(c, h, func(u *sandboxes.Use) (nothing, error) { return nothing{}, u.Guest().KillAll(c.Context()) })
	return err
}

func (h *Handlers) waitProcess(c *httpapi.Call) (SandboxProcess, error) {
	ctx, stop := c.Living(c.Context())
	defer stop()
	return onProcess(ctx, c, h, func(u *sandboxes.Use, id process.ID) (SandboxProcess, error) {
		return shown(u.Wait(ctx, id, time.Duration(c.Int("timeout_ms"))*time.Millisecond))
	})
}

func (h *Handlers) writeProcess(c *httpapi.Call) (ProcessWritten, error) {
	ctx, stop := c.Living(c.Context())
	defer stop()
	return onProcess(ctx, c, h, func(u *sandboxes.Use, id process.ID) (ProcessWritten, error) {
		taken, err := u.Feed(ctx, id, c.Upload(), c.Bool("close"))
		return ProcessWritten{taken}, err
	})
}

func (h *Handlers) signalProcess(c *httpapi.Call, in *ProcessSignal) (out SandboxProcess, err error) {
	r, id, err := h.process(c)
	if err != nil {
		return out, err
	}
	sig, err := sandboxes.ParseSignal(*in.Signal)
	if err != nil {
		return out, err
	}
	return sandboxes.With(c.Context(), h.Service, r, func(u *sandboxes.Use) (SandboxProcess, error) {
		return shown(u.Signal(c.Context(), id, sig, in.Group == nil || *in.Group))
	})
}
