package httpapi

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json"
	"golang.org/x/net/http/httpguts"

	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// TerminalMessage is a text message of a terminal's WebSocket; binary ones are
// what is typed and what is shown.
type TerminalMessage struct {
	Type      string `json:"type" enum:"resize,started,cursor,exit" doc:"resize comes from the client, the others from the server."`
	Rows      uint16 `json:"rows,omitzero" doc:"On resize."`
	Columns   uint16 `json:"columns,omitzero" doc:"On resize."`
	ProcessID string `json:"process_id,omitzero" doc:"On started: give it as process to come back to the terminal."`
	Cursor    int64  `json:"cursor,omitzero" doc:"On cursor: the client has everything up to here. Give it as after to go on behind it."`
	ExitCode  *int   `json:"exit_code,omitzero" doc:"On exit."`
	Reason    string `json:"reason,omitzero" doc:"On exit: why it was ended, where that was for a bound of the sandbox."`
}

// maxTyped bounds a message of the client.
const maxTyped = 1 << 20

// openTerminal connects a WebSocket to a terminal: a new one, or one that lives.
func (s *Server) openTerminal(w http.ResponseWriter, r *http.Request) error {
	p, err := s.onSandbox(r, nil, "process", "after", "rows", "columns", "command", "working_dir")
	if err != nil {
		return err
	}
	rows, err := queryInt(p.query, "rows", 24, 1, maxRows)
	if err != nil {
		return err
	}
	columns, err := queryInt(p.query, "columns", 80, 1, maxRows)
	if err != nil {
		return err
	}
	after, err := queryInt(p.query, "after", 0, 0, maxCursor)
	if err != nil {
		return err
	}
	id := process.ID(p.query.Get("process"))
	switch {
	case p.query.Has("process") && !processID.MatchString(string(id)):
		return invalid("process must be the process_id of a terminal")
	case id != "" && (p.query.Has("command") || p.query.Has("working_dir")):
		return invalid("command and working_dir are for a new terminal, process for one that there is")
	case id == "" && after != 0:
		return invalid("after is for a terminal that there is: give process, too")
	}
	if err := upgrades(w, r); err != nil { // or a shell would be started for nobody
		return err
	}
	if id != "" {
		p.trail.asks(string(id))
	}
	ctx, stop := s.living(context.WithoutCancel(r.Context()))
	defer stop()
	ctx, free := whileAuthorized(ctx)
	defer free()
	return s.inSandbox(ctx, p, func(h sandbox.Handle) error {
		size := process.Size{Rows: uint16(rows), Columns: uint16(columns)}
		if id == "" {
			spec := process.Spec{Shell: p.query.Get("command"), Dir: p.query.Get("working_dir"), Terminal: &size, Lossless: true}
			if spec.Shell == "" {
				spec.Shell = login
			}
			started, err := begin(ctx, p, h, spec, nil)
			if err != nil {
				return err
			}
			err = s.attach(ctx, w, r, h, started.ID, 0)
			if err != nil { // nobody was told of it
				err = errors.Join(err, h.Guest().Discard(ctx, started.ID))
			}
			return answered(err)
		} else if err := h.Guest().Resize(ctx, id, size); err != nil {
			return err
		}
		return answered(s.attach(ctx, w, r, h, id, process.Seq(after)))
	})
}

// upgrades refuses requests that are none for a WebSocket.
func upgrades(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet {
		return &protocolError{http.StatusMethodNotAllowed, "method_not_allowed", "a terminal answers to GET"}
	}
	key, err := base64.StdEncoding.DecodeString(r.Header.Get("Sec-WebSocket-Key"))
	if httpguts.HeaderValuesContainsToken(r.Header["Connection"], "upgrade") && httpguts.HeaderValuesContainsToken(r.Header["Upgrade"], "websocket") &&
		r.Header.Get("Sec-WebSocket-Version") == "13" && err == nil && len(key) == 16 {
		return nil
	}
	w.Header().Set("Connection", "Upgrade")
	w.Header().Set("Upgrade", "websocket")
	return &protocolError{http.StatusUpgradeRequired, "upgrade_required", "a terminal is a WebSocket (version 13): connect to it with a client for those"}
}

// errNotUpgraded says that a WebSocket was refused, which has been answered.
var errNotUpgraded = errors.New("the connection did not become a WebSocket")

// answered is err, unless the client has been told already.
func answered(err error) error {
	if errors.Is(err, errNotUpgraded) {
		return nil
	}
	return err
}

const maxRows = 1<<16 - 1

// login is what runs in a terminal that was not told what to.
const login = "export TERM=xterm-256color; exec $(command -v bash || echo sh) -i"

// attach moves bytes between a WebSocket and a terminal until one of them ends. An
// error says that it did not begin.
func (s *Server) attach(ctx context.Context, w http.ResponseWriter, r *http.Request, h sandbox.Handle, id process.ID, after process.Seq) error {
	covers, err := h.Redactor(ctx)
	if err != nil {
		return err
	}
	v := newView(covers, after, false)
	out, err := h.Guest().Follow(ctx, id, v.at)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := trailOf(r.Context()).leave(ctx, nil); err != nil {
		return err // while it can be said
	}
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return errNotUpgraded
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(maxTyped)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t := &terminal{conn: conn, guest: h.Guest(), id: id}
	if err := t.tell(ctx, TerminalMessage{Type: "started", ProcessID: string(id)}); err != nil {
		return nil
	}
	go func() { cancel(t.typed(ctx)) }()
	err = t.show(ctx, v, out)
	if err != nil {
		if errors.Is(context.Cause(ctx), errShutdown) {
			_ = conn.Close(websocket.StatusGoingAway, "the server is shutting down; the terminal lives on")
		}
		if errors.Is(context.Cause(ctx), tenant.ErrKeyInvalid) {
			_ = conn.Close(websocket.StatusPolicyViolation, "the API key is no longer valid; the terminal lives on")
		}
		s.log.DebugContext(ctx, "terminal left", "sandbox_id", string(h.Sandbox().ID), "error", err)
		return nil
	}
	exit := out.Exit()
	if t.tell(ctx, TerminalMessage{Type: "exit", ExitCode: &exit.Code, Reason: reason(h.Killed(ctx, exit))}) == nil {
		_ = conn.Close(websocket.StatusNormalClosure, "")
	}
	return nil
}

// terminal is one client of one terminal.
type terminal struct {
	conn  *websocket.Conn
	guest sandbox.Guest
	id    process.ID
}

func (t *terminal) tell(ctx context.Context, m TerminalMessage) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return t.write(ctx, websocket.MessageText, text)
}

// write does not wait forever for a client that does not read.
func (t *terminal) write(ctx context.Context, kind websocket.MessageType, p []byte) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return t.conn.Write(ctx, kind, p)
}

// typed passes on what the client sends, until it goes.
func (t *terminal) typed(ctx context.Context) error {
	for {
		kind, data, err := t.conn.Read(ctx)
		if err != nil {
			return err
		}
		if kind == websocket.MessageBinary {
			if _, err := t.guest.Write(ctx, t.id, data); err != nil {
				return err
			}
			continue
		}
		var m TerminalMessage
		if err := json.Unmarshal(data, &m, json.RejectUnknownMembers(true)); err != nil || m.Type != "resize" || m.Rows == 0 || m.Columns == 0 {
			_ = t.conn.Close(websocket.StatusPolicyViolation, `want {"type":"resize","rows":24,"columns":80}; what is typed goes in binary messages`)
			return errors.New("the client sent no message that a terminal knows")
		}
		if err := t.guest.Resize(ctx, t.id, process.Size{Rows: m.Rows, Columns: m.Columns}); err != nil {
			return err
		}
	}
}

// show sends what the terminal shows, until its process ends.
func (t *terminal) show(ctx context.Context, v *view, out process.Output) error {
	chunks := make(chan process.Chunk)
	failed := make(chan error, 1)
	taken := make(chan struct{})
	go func() {
		for {
			c, err := out.Next()
			if err != nil {
				failed <- err
				return
			}
			select {
			case chunks <- c:
				<-taken // its bytes are valid until the next is asked for
			case <-ctx.Done():
				failed <- context.Cause(ctx)
				return
			}
		}
	}()
	idle := time.NewTimer(terminalIdle)
	defer idle.Stop()
	for {
		select {
		case c := <-chunks:
			v.take(c)
			taken <- struct{}{}
			idle.Reset(terminalIdle)
		case <-idle.C:
			v.flush()
		case err := <-failed:
			if !errors.Is(err, io.EOF) {
				return err
			}
			v.flush()
			return t.sent(ctx, v)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := t.sent(ctx, v); err != nil {
			return err
		}
	}
}

// sent sends what there is to show.
func (t *terminal) sent(ctx context.Context, v *view) error {
	data := v.shown(process.Terminal, true)
	if len(data) == 0 {
		return nil
	}
	if err := t.write(ctx, websocket.MessageBinary, data); err != nil {
		return err
	}
	return t.tell(ctx, TerminalMessage{Type: "cursor", Cursor: int64(v.at)})
}
