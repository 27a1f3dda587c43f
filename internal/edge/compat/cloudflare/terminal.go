package cloudflare

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/coder/websocket"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
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

// terminal connects a WebSocket to a new terminal, which ends with it.
func (d *Handlers) terminal(c *httpapi.Call) error {
	switch {
	case c.Has("session"):
		return httpapi.Invalid("session: sessions are not served here")
	case c.R.Header.Get("Upgrade") == "":
		return httpapi.Invalid("a terminal is a WebSocket: connect with a client for WebSockets")
	}
	asked := &sandboxes.Terminal{Size: process.Size{Rows: uint16(c.Int("rows")), Columns: uint16(c.Int("cols"))}, Dir: runtime.Home}
	if shell := c.Text("shell"); shell != "" {
		asked.Argv = []string{shell}
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
	return d.within(ctx, c, func(u *sandboxes.Use) error {
		out, err := u.RunTerminal(ctx, asked)
		if err != nil {
			return &failed{err, codeExec}
		}
		defer out.Close()
		defer func() { _ = out.Abandon(ctx) }() // a sandbox that has gone has ended it
		if err := c.Leave(ctx, nil); err != nil {
			return err // while it can be said
		}
		conn, err := websocket.Accept(c.W, c.R, nil)
		if err != nil {
			return nil //nolint:nilerr // Accept has answered
		}
		defer func() { _ = conn.CloseNow() }()
		conn.SetReadLimit(maxTyped)
		t := pty{httpapi.Socket{Conn: conn}}
		if t.conn.Tell(ctx, Message{Type: "ready"}) != nil {
			return nil
		}
		if err := out.Converse(ctx, t, true); !errors.Is(err, io.EOF) {
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
type pty struct{ conn httpapi.Socket }

// Show implements sandboxes.TerminalClient.
func (t pty) Show(ctx context.Context, data []byte, _ process.Seq) error {
	return t.conn.Send(ctx, websocket.MessageBinary, data)
}

// Receive implements sandboxes.TerminalClient.
func (t pty) Receive(ctx context.Context) ([]byte, *process.Size, error) {
	for {
		kind, data, err := t.conn.Read(ctx)
		if err != nil || kind == websocket.MessageBinary {
			return data, nil, err
		}
		var m Message
		if json.Unmarshal(data, &m) == nil && m.Type == "resize" && m.Rows > 0 && m.Columns > 0 {
			return nil, &process.Size{Rows: m.Rows, Columns: m.Columns}, nil
		}
		_ = t.conn.Tell(ctx, Message{Type: "error", Message: `want {"type":"resize","cols":80,"rows":24}`})
	}
}
