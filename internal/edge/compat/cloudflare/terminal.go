package cloudflare

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/coder/websocket"

	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	sandboxapi "github.com/atoll-run/atoll/internal/edge/httpapi/sandbox"
)

// Message is a text message of a terminal's WebSocket; binary ones are what is typed and
// what is shown.
type Message struct {
	Type    string `json:"type"` // resize of the client; ready, exit and error of the server
	Columns uint16 `json:"cols,omitzero"`
	Rows    uint16 `json:"rows,omitzero"`
	Code    *int   `json:"code,omitzero"`
	Message string `json:"message,omitzero"`
}

// maxTyped bounds a message of the client, in bytes.
const maxTyped = 1 << 20

// login is the shell of a terminal for which none was given.
const login = "export TERM=xterm-256color; exec $(command -v bash || echo sh) -i"

// terminal connects a WebSocket to a new terminal, which ends with it.
func (d *Handlers) terminal(c *httpapi.Call) error {
	switch {
	case c.Has("session"):
		return httpapi.Invalid("session: sessions are not served here")
	case c.R.Header.Get("Upgrade") == "":
		return httpapi.Invalid("a terminal is a WebSocket: connect with a client for WebSockets")
	}
	spec := process.Spec{
		Shell: login, Dir: runtime.Home, Lossless: true,
		Terminal: &process.Size{Rows: uint16(c.Int("rows")), Columns: uint16(c.Int("cols"))},
	}
	if shell := c.Text("shell"); shell != "" {
		spec.Shell, spec.Argv = "", []string{shell}
	}
	end, err := c.OpenStream()
	if err != nil {
		return err
	}
	defer end()
	ctx, stop := c.Living(context.WithoutCancel(c.Context()))
	defer stop()
	ctx, unwatch := c.Authorized(ctx)
	defer unwatch()
	return d.within(ctx, c, func(u sandbox.Handle) error {
		covers, err := u.Redactor(ctx)
		if err != nil {
			return err
		}
		out, err := u.Guest().Run(ctx, spec)
		if err != nil {
			return &failed{err, codeExec}
		}
		defer out.Close()
		defer discard(ctx, u, out.Info().ID)
		if err := c.Trail.Leave(ctx, nil); err != nil {
			return err // while it can be said
		}
		conn, err := websocket.Accept(c.W, c.R, nil)
		if err != nil {
			return nil //nolint:nilerr // Accept has answered
		}
		defer func() { _ = conn.CloseNow() }()
		conn.SetReadLimit(maxTyped)
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		t := &pty{sandboxapi.Socket{Conn: conn}, u.Guest(), out.Info().ID}
		if t.conn.Tell(ctx, Message{Type: "ready"}) != nil {
			return nil
		}
		go func() { cancel(t.typed(ctx)) }() // ends with conn
		err = sandboxapi.Follow(ctx, out, sandboxapi.NewView(covers, 0, false), func(_ process.Stream, data []byte) error {
			return t.conn.Send(ctx, websocket.MessageBinary, data)
		}, nil)
		if !errors.Is(err, io.EOF) {
			if errors.Is(err, httpapi.ErrShutdown) {
				_ = conn.Close(websocket.StatusGoingAway, "the server is shutting down")
			}
			return nil
		}
		exit := out.Exit()
		if t.conn.Tell(ctx, Message{Type: "exit", Code: &exit.Code}) == nil {
			_ = conn.Close(websocket.StatusNormalClosure, "")
		}
		return nil
	})
}

// pty is one client of one terminal.
type pty struct {
	conn  sandboxapi.Socket
	guest sandbox.Guest
	id    process.ID
}

// typed passes on what the client sends, until it goes. Input of a shell that has ended is
// dropped: the client has yet to be shown the end.
func (t *pty) typed(ctx context.Context) error {
	for {
		kind, data, err := t.conn.Read(ctx)
		if err != nil {
			return err
		}
		if kind == websocket.MessageBinary {
			_, err = t.guest.Write(ctx, t.id, data)
		} else {
			var m Message
			if json.Unmarshal(data, &m) != nil || m.Type != "resize" || m.Rows == 0 || m.Columns == 0 {
				_ = t.conn.Tell(ctx, Message{Type: "error", Message: `want {"type":"resize","cols":80,"rows":24}`})
				continue
			}
			err = t.guest.Resize(ctx, t.id, process.Size{Rows: m.Rows, Columns: m.Columns})
		}
		if errors.Is(err, process.ErrGone) {
			return err
		}
	}
}
