package httpapi

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
)

const processPath = sandboxPath + "/processes/{process}"

var processID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// onProcess finds the caller, the sandbox and the process.
func (s *Server) onProcess(r *http.Request, known ...string) (*place, process.ID, error) {
	p, err := s.onSandbox(r, nil, known...)
	if err != nil {
		return nil, "", err
	}
	id := r.PathValue("process")
	if !processID.MatchString(id) {
		return nil, "", fault.New(fault.NotFound, "there is no process %s", wire.Quote(id))
	}
	p.trail.asks(id)
	return p, process.ID(id), nil
}

func (s *Server) startProcess(w http.ResponseWriter, r *http.Request) error {
	p, err := s.onSandbox(r, nil)
	if err != nil {
		return err
	}
	var in NewProcess
	if err := decodeJSON(w, r, &in); err != nil {
		return err
	}
	spec, err := in.domain()
	if err != nil {
		return err
	}
	return s.inSandbox(r.Context(), p, func(h sandbox.Handle) error {
		started, err := begin(r.Context(), p, h, spec, wire.StringMap(in.EnvVars))
		if err != nil {
			return err
		}
		w.Header().Set("Location", sandboxesPath+"/"+string(h.Sandbox().ID)+"/processes/"+string(started.ID))
		return writeJSON(w, http.StatusCreated, processWire(r.Context(), h, started))
	})
}

// begin starts a process.
func begin(ctx context.Context, p *place, h sandbox.Handle, spec process.Spec, env map[string]string) (process.Info, error) {
	p.trail.asks(spec.Shell)
	if spec.Shell == "" {
		p.trail.asks(strings.Join(spec.Argv, "\x00"))
	}
	for name, value := range env {
		spec.Env = append(spec.Env, name+"="+value)
	}
	return h.Guest().Start(ctx, spec)
}

func (in *NewProcess) domain() (spec process.Spec, err error) {
	switch {
	case (in.Command == nil) == (len(in.Argv) == 0):
		return spec, invalid("give command or argv, one of them")
	case in.Command != nil && *in.Command == "":
		return spec, invalid("command must not be empty")
	case in.Command != nil:
		spec.Shell = *in.Command
	}
	for _, arg := range in.Argv {
		spec.Argv = append(spec.Argv, string(arg))
	}
	if in.WorkingDir != nil {
		spec.Dir = *in.WorkingDir
	}
	for _, text := range append([]string{spec.Shell, spec.Dir}, spec.Argv...) {
		if strings.ContainsRune(text, 0) {
			return spec, invalid("command, argv and working_dir must not contain a NUL character")
		}
	}
	if err := execution.CheckEnv(wire.StringMap(in.EnvVars)); err != nil {
		return spec, err
	}
	if spec.Timeout, err = millis("timeout_ms", in.TimeoutMS, 1); err != nil {
		return spec, err
	}
	spec.Patient = in.Wait != nil && *in.Wait
	if spec.Input = in.Stdin != nil && *in.Stdin; in.Terminal != nil {
		if in.Terminal.Rows == 0 || in.Terminal.Columns == 0 {
			return spec, invalid("terminal needs rows and columns, both at least 1")
		}
		spec.Input, spec.Terminal = false, &process.Size{Rows: in.Terminal.Rows, Columns: in.Terminal.Columns}
	}
	return spec, nil
}

func (s *Server) listProcesses(w http.ResponseWriter, r *http.Request) error {
	p, err := s.onSandbox(r, nil)
	if err != nil {
		return err
	}
	return s.inSandbox(r.Context(), p, func(h sandbox.Handle) error {
		all, err := h.Guest().Processes(r.Context())
		if err != nil {
			return err
		}
		body := SandboxProcesses{Data: make([]SandboxProcess, len(all))}
		for i, each := range all {
			body.Data[i] = processWire(r.Context(), h, each)
		}
		return writeJSON(w, http.StatusOK, body)
	})
}

func (s *Server) getProcess(w http.ResponseWriter, r *http.Request) error {
	p, id, err := s.onProcess(r)
	if err != nil {
		return err
	}
	return s.inSandbox(r.Context(), p, func(h sandbox.Handle) error { return s.showProcess(r.Context(), w, h, id) })
}

func (s *Server) showProcess(ctx context.Context, w http.ResponseWriter, h sandbox.Handle, id process.ID) error {
	found, err := h.Guest().Process(ctx, id)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, processWire(ctx, h, found))
}

// deleteProcess ends a process and all it started, and drops what is kept of it.
func (s *Server) deleteProcess(w http.ResponseWriter, r *http.Request) error {
	p, id, err := s.onProcess(r)
	if err != nil {
		return err
	}
	return s.inSandbox(r.Context(), p, func(h sandbox.Handle) error {
		if err := h.Guest().Discard(r.Context(), id); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
}

// longestWait is the longest that one request waits for a process.
const longestWait = 10 * time.Minute

func (s *Server) waitProcess(w http.ResponseWriter, r *http.Request) error {
	p, id, err := s.onProcess(r, "timeout_ms")
	if err != nil {
		return err
	}
	ms, err := queryInt(p.query, "timeout_ms", 30_000, 0, longestWait.Milliseconds())
	if err != nil {
		return err
	}
	ctx, stop := s.living(r.Context())
	defer stop()
	return s.inSandbox(ctx, p, func(h sandbox.Handle) error {
		wait, cancel := context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
		defer cancel()
		if _, err := h.Guest().Wait(wait, id); err != nil && wait.Err() == nil {
			return err
		}
		return s.showProcess(ctx, w, h, id)
	})
}

func (s *Server) writeProcess(w http.ResponseWriter, r *http.Request) error {
	p, id, err := s.onProcess(r, "close")
	if err != nil {
		return err
	}
	last, err := queryBool(p.query, "close")
	if err != nil {
		return err
	}
	ctx, stop := s.living(r.Context())
	defer stop()
	return s.inSandbox(ctx, p, func(h sandbox.Handle) error {
		in := &upload{r: r.Body, conn: http.NewResponseController(w)}
		var sent int64
		piece := make([]byte, outputPiece)
		for {
			n, err := in.Read(piece)
			if n > 0 {
				taken, err := h.Guest().Write(ctx, id, piece[:n])
				if sent += int64(taken); err != nil {
					return err
				}
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				return err
			}
		}
		if last {
			if err := h.Guest().CloseInput(ctx, id); err != nil {
				return err
			}
		}
		return writeJSON(w, http.StatusOK, ProcessWritten{sent})
	})
}

func (s *Server) signalProcess(w http.ResponseWriter, r *http.Request) error {
	p, id, err := s.onProcess(r)
	if err != nil {
		return err
	}
	var in ProcessSignal
	if err := decodeJSON(w, r, &in); err != nil {
		return err
	}
	if in.Signal == nil {
		return invalid("signal is required, such as TERM")
	}
	sig, err := signalOf(*in.Signal)
	if err != nil {
		return err
	}
	return s.inSandbox(r.Context(), p, func(h sandbox.Handle) error {
		if err := h.Guest().Signal(r.Context(), id, sig, in.Group == nil || *in.Group); err != nil {
			return err
		}
		return s.showProcess(r.Context(), w, h, id)
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
	return 0, invalid("signal %s is none; want a name such as TERM, or a number from 1 to 64", wire.Quote(text))
}
