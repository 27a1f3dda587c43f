package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/wire"
)

const (
	contextsPath = sandboxPath + "/contexts"
	contextPath  = contextsPath + "/{context}"
)

func (s *Server) contextRoutes() []route {
	const get, post, del = http.MethodGet, http.MethodPost, http.MethodDelete
	return s.acts([]act{
		{get, contextsPath, "", s.listContexts},
		{post, contextsPath, "context_create", s.createContext},
		{get, contextPath, "", s.getContext},
		{del, contextPath, "context_delete", s.deleteContext},
		{post, contextPath + "/run", "context", s.runContext},
		{post, contextPath + "/interrupt", "context_interrupt", s.interruptContext},
		{post, contextPath + "/restart", "context_restart", s.restartContext},
	})
}

// inContexts runs f with a sandbox that it wakes, as its contexts see it.
func (s *Server) inContexts(r *http.Request, f func(p *place, of codecontext.Contexts, h sandbox.Handle) error) error {
	p, err := s.onSandbox(r, nil)
	if err != nil {
		return err
	}
	p.trail.asks(r.PathValue("context"))
	return s.inSandbox(r.Context(), p, func(h sandbox.Handle) error {
		all, err := h.Contexts()
		if err != nil {
			return err
		}
		return f(p, all, h)
	})
}

// onContext is inContexts for the context that a request is about.
func (s *Server) onContext(r *http.Request, f func(p *place, of codecontext.Contexts, id codecontext.ID) error) error {
	return s.inContexts(r, func(p *place, of codecontext.Contexts, _ sandbox.Handle) error {
		id, err := codecontext.ParseID(r.PathValue("context"))
		if err != nil {
			return err
		}
		return f(p, of, id)
	})
}

func (s *Server) listContexts(w http.ResponseWriter, r *http.Request) error {
	return s.inContexts(r, func(_ *place, of codecontext.Contexts, _ sandbox.Handle) error {
		all, err := of.List(r.Context())
		if err != nil {
			return err
		}
		body := CodeContexts{Data: make([]CodeContext, len(all))}
		for i, c := range all {
			body.Data[i] = contextWire(c)
		}
		return writeJSON(w, http.StatusOK, body)
	})
}

func (s *Server) createContext(w http.ResponseWriter, r *http.Request) error {
	return s.inContexts(r, func(_ *place, of codecontext.Contexts, h sandbox.Handle) error {
		var in NewContext
		if err := decodeJSON(w, r, &in); err != nil {
			return err
		}
		if in.Language == nil {
			return invalid("language is required: python, node or bash")
		}
		trailOf(r.Context()).asks(string(*in.Language))
		dir := ""
		if in.Dir != nil {
			dir = *in.Dir
		}
		c, err := of.Create(r.Context(), *in.Language, dir)
		if err != nil {
			return err
		}
		w.Header().Set("Location", sandboxesPath+"/"+string(h.Sandbox().ID)+"/contexts/"+string(c.ID))
		return writeJSON(w, http.StatusCreated, contextWire(c))
	})
}

func (s *Server) getContext(w http.ResponseWriter, r *http.Request) error {
	return s.onContext(r, func(_ *place, of codecontext.Contexts, id codecontext.ID) error {
		c, err := of.Get(r.Context(), id)
		if err != nil {
			return err
		}
		return writeJSON(w, http.StatusOK, contextWire(c))
	})
}

func (s *Server) deleteContext(w http.ResponseWriter, r *http.Request) error {
	return s.onContext(r, func(_ *place, of codecontext.Contexts, id codecontext.ID) error {
		if err := of.Delete(r.Context(), id); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
}

func (s *Server) interruptContext(w http.ResponseWriter, r *http.Request) error {
	return s.onContext(r, func(_ *place, of codecontext.Contexts, id codecontext.ID) error {
		if err := of.Interrupt(r.Context(), id); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
}

func (s *Server) restartContext(w http.ResponseWriter, r *http.Request) error {
	return s.onContext(r, func(_ *place, of codecontext.Contexts, id codecontext.ID) error {
		c, err := of.Restart(r.Context(), id)
		if err != nil {
			return err
		}
		return writeJSON(w, http.StatusOK, contextWire(c))
	})
}

// Bounds of a run of code.
const (
	runTimeout = 30 * time.Second
	runOutput  = 10 << 20 // of each stream
)

func (s *Server) runContext(w http.ResponseWriter, r *http.Request) error {
	return s.inContexts(r, func(p *place, of codecontext.Contexts, h sandbox.Handle) error {
		id, err := codecontext.ParseID(r.PathValue("context"))
		if err != nil {
			return err
		}
		var in RunCode
		if err := decodeJSON(w, r, &in); err != nil {
			return err
		}
		if in.Code == nil {
			return invalid("code is required")
		}
		timeout, err := millis("timeout_ms", in.TimeoutMS, 1)
		if err != nil {
			return err
		}
		if timeout == 0 {
			timeout = runTimeout
		}
		if most := s.gateway.Policy(p.caller).MaxTimeout; timeout > most {
			return fault.Limit("timeout", time.Time{}, "timeout_ms exceeds your plan's maximum of %d", most.Milliseconds())
		}
		if s.isDraining() {
			return fault.New(fault.Unavailable, "%s", errShutdown)
		}
		ctx, stop := s.living(r.Context())
		defer stop()
		out := &codeAnswer{w: w, r: r, streamed: accepts(r.Header, ndjson) || accepts(r.Header, eventStream)}
		defer out.end()
		p.trail.asks(*in.Code)
		p.trail.late = true // how it ended
		res, err := of.Run(ctx, id, codecontext.Request{Code: *in.Code, Timeout: timeout, MaxOutput: min(runOutput, p.caller.Plan.MaxOutput)}, out.take)
		if err := p.trail.ran(ctx, id, res, err); err != nil {
			return out.fail(err)
		}
		if err != nil {
			if why := h.Stopped(ctx); why != nil {
				err = why
			}
		} else if res.Status == codecontext.Ended {
			err = h.Killed(ctx, *res.Exit)
		}
		if err != nil {
			return out.fail(err)
		}
		return out.finish(res)
	})
}

// ran leaves the row of a run.
func (t *trail) ran(ctx context.Context, id codecontext.ID, res *codecontext.Result, failed error) error {
	t.row.Annotate("context_id", string(id))
	row := &t.row
	row.Status = audit.Error
	switch {
	case failed != nil:
		row.ExitCode, row.Reason = -1, "the code was not seen to end"
	case res.Status == codecontext.OK:
		row.Status = audit.OK
	case res.Status == codecontext.TimedOut:
		row.Status, row.ExitCode, row.Reason = audit.Timeout, 1, "timeout_ms was over"
	case res.Status == codecontext.Interrupted:
		row.Status, row.ExitCode, row.Reason = audit.Cancelled, 1, "the code was interrupted"
	case res.Status == codecontext.Ended:
		row.ExitCode, row.Reason = res.Exit.Code, "the code ended its interpreter"
	default:
		row.ExitCode, row.Reason = 1, "the code ended with an error"
	}
	if res != nil {
		row.StdoutBytes, row.StderrBytes, row.StdoutTruncated, row.StderrTruncated = res.StdoutBytes, res.StderrBytes, res.StdoutTruncated, res.StderrTruncated
		if res.ExitCode != nil {
			row.ExitCode = *res.ExitCode
		}
	}
	return t.leave(ctx, nil)
}

// codeAnswer is the answer to a run of code: all at once, or as it comes.
type codeAnswer struct {
	w        http.ResponseWriter
	r        *http.Request
	streamed bool
	lines    *lines // once a streamed answer has begun
	out      [process.Terminal][]byte
	values   []CodeValue
}

func (a *codeAnswer) take(e codecontext.Event) error {
	if a.streamed && a.lines == nil {
		a.lines = newLines(a.w, a.r, CodeEvent{Type: "keepalive"})
	}
	switch {
	case e.Display != nil && a.streamed:
		v := valueWire(e.Display)
		return a.lines.send(CodeEvent{Type: "value", Value: &v})
	case e.Display != nil:
		a.values = append(a.values, valueWire(e.Display))
	case len(e.Text) > 0:
		a.out[e.Stream] = append(a.out[e.Stream], e.Text...)
		if a.streamed {
			return a.flush(e.Stream, false)
		}
	}
	return nil
}

// flush sends the output of a stream; the beginning of a character waits for its
// end unless it is all.
func (a *codeAnswer) flush(stream process.Stream, all bool) error {
	whole := len(a.out[stream])
	if !all {
		whole = wire.WholeRunes(a.out[stream])
	}
	if whole == 0 {
		return nil
	}
	err := a.lines.send(CodeEvent{Type: "output", Stream: stream.String(), Data: string(a.out[stream][:whole])})
	a.out[stream] = append(a.out[stream][:0], a.out[stream][whole:]...)
	return err
}

// fail is for a run that is not known to have ended.
func (a *codeAnswer) fail(err error) error {
	if a.lines == nil {
		return err
	}
	_, body := render(err)
	return a.lines.send(CodeEvent{Type: "result", Code: body.Error, Text: body.Message})
}

func (a *codeAnswer) finish(res *codecontext.Result) error {
	body := resultWire(res)
	if a.lines == nil {
		body.Stdout, body.Stderr = string(a.out[process.Stdout]), string(a.out[process.Stderr])
		body.Values = append(body.Values, a.values...)
		return writeJSON(a.w, http.StatusOK, body)
	}
	for _, stream := range []process.Stream{process.Stdout, process.Stderr} {
		if err := a.flush(stream, true); err != nil {
			return err
		}
	}
	return a.lines.send(CodeEvent{Type: "result", Result: body})
}

func (a *codeAnswer) end() {
	if a.lines != nil {
		a.lines.end()
	}
}
