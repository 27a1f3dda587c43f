package sandbox

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json"
	"golang.org/x/net/http/httpguts"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// TerminalMessage is a text message of a terminal's WebSocket; binary ones are
// what is typed and what is shown.
type TerminalMessage struct {
	Type      string `json:"type" enum:"resize,started,cursor,exit" doc:"resize comes from the client, the others from the server."`
	Rows      uint16 `json:"rows,omitzero" doc:"On resize."`
	Columns   uint16 `json:"columns,omitzero" doc:"On resize."`
	ProcessID string `json:"process_id,omitzero" doc:"On started: give it as process to come back to the terminal."`
	Cursor    int64  `json:"cursor,omitzero" doc:"On cursor: the client has everything up to here. Give it as after to continue behind it."`
	ExitCode  *int   `json:"exit_code,omitzero" doc:"On exit."`
	Reason    string `json:"reason,omitzero" doc:"On exit: why it was ended, where that was for a bound of the sandbox."`
}

// maxTyped bounds a message of the client.
const maxTyped = 1 << 20

// openTerminal connects a WebSocket to a terminal: a new one, or one that runs.
func (h *Handlers) openTerminal(c *httpapi.Call) error {
	r, err := h.authorizeTerminal(c)
	if err != nil {
		return err
	}
	size, after := process.Size{Rows: uint16(c.Int("rows")), Columns: uint16(c.Int("columns"))}, c.Int("after")
	id := process.ID(c.Text("process"))
	switch {
	case c.Has("process") && !processID.MatchString(string(id)):
		return httpapi.Invalid("process must be the process_id of a terminal")
	case id != "" && (c.Has("command") || c.Has("working_dir")):
		return httpapi.Invalid("command and working_dir are for a new terminal, process for one that there is")
	case id == "" && after != 0:
		return httpapi.Invalid("after is for a terminal that there is: give process, too")
	}
	if err := upgrades(c); err != nil { // before a shell is started
		return err
	}
	end, err := c.OpenStream()
	if err != nil {
		return err
	}
	defer end()
	if id != "" {
		c.Trail.Asks(string(id))
	}
	ctx, stop := c.Living(context.WithoutCancel(c.Context()))
	defer stop()
	ctx, unwatch := c.Authorized(ctx)
	defer unwatch()
	return h.Service.Within(ctx, r, func(u *sandboxes.Use) error {
		out, err := u.OpenTerminal(ctx, &sandboxes.Terminal{Size: size, Process: id, After: process.Seq(after), Shell: c.Text("command"), Dir: c.Text("working_dir")})
		if err != nil {
			return err
		}
		defer out.Close()
		if err = attach(ctx, c, u, out); err != nil { // the client does not know the terminal
			err = errors.Join(err, out.Abandon(ctx))
		}
		if errors.Is(err, errNotUpgraded) {
			return nil
		}
		return err
	})
}

// authorizeTerminal finds the caller by a key or by a ticket, and the sandbox.
func (h *Handlers) authorizeTerminal(c *httpapi.Call) (r sandboxes.Ref, err error) {
	if !c.Has(ticketParam) {
		if err := c.Authorize(tenant.ScopeSandboxes); err != nil {
			return r, err
		}
		return h.ref(c)
	}
	t, err := h.Service.RedeemTicket(c.Context(), c.Text(ticketParam))
	if err != nil {
		return r, err
	}
	if err := c.AuthorizeBy(tenant.ScopeSandboxes, func(ctx context.Context) (tenant.Principal, error) { return h.Service.Holder(ctx, t) }); err != nil {
		return r, err
	}
	if r, err = h.ref(c); err != nil {
		return r, err
	}
	return r, h.Service.Admit(c.Context(), r, t)
}

// ticketParam is the parameter with a ticket.
const ticketParam = "ticket"

// TerminalTicket opens one WebSocket to a terminal.
type TerminalTicket struct {
	Ticket    string    `json:"ticket" doc:"Give it as ticket in the query of the WebSocket's URL. It works once."`
	ExpiresAt time.Time `json:"expires_at" doc:"In 30 seconds. A connection that is open then stays."`
}

func (h *Handlers) ticketOperation() httpapi.Operation {
	return httpapi.Operation{
		Method: http.MethodPost, Path: sandboxPath + "/terminal/ticket", ID: "createTerminalTicket", Summary: "Make a ticket for a browser's terminal", Audit: "terminal_ticket",
		Description: "Browsers cannot send a key with a WebSocket. Ask for a ticket where the key is, and have the page connect to the terminal with it.",
		Params:      onOne(), Answers: []httpapi.Answer{httpapi.Created(TerminalTicket{}, "It opens one connection to this sandbox.")}, Serve: httpapi.Returns(h.createTicket),
	}
}

func (h *Handlers) createTicket(c *httpapi.Call) (out TerminalTicket, err error) {
	r, err := h.ref(c)
	if err != nil {
		return out, err
	}
	t, err := h.Service.IssueTicket(c.Context(), r)
	return TerminalTicket{t.Text, t.Expires}, err
}

// upgrades refuses requests that do not ask for a WebSocket.
func upgrades(c *httpapi.Call) error {
	r := c.R
	if r.Method != http.MethodGet {
		return &httpapi.ProtocolError{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Message: "a terminal answers to GET"}
	}
	key, err := base64.StdEncoding.DecodeString(r.Header.Get("Sec-WebSocket-Key"))
	if httpguts.HeaderValuesContainsToken(r.Header["Connection"], "upgrade") && httpguts.HeaderValuesContainsToken(r.Header["Upgrade"], "websocket") &&
		r.Header.Get("Sec-WebSocket-Version") == "13" && err == nil && len(key) == 16 {
		if !c.Has(ticketParam) && elsewhere(r) { // a ticket was given to the page; what else a browser sends was not
			return fault.New(fault.Forbidden, "a page of another origin needs a ticket to open a terminal")
		}
		return nil
	}
	c.W.Header().Set("Connection", "Upgrade")
	c.W.Header().Set("Upgrade", "websocket")
	return &httpapi.ProtocolError{Status: http.StatusUpgradeRequired, Code: "upgrade_required", Message: "a terminal is a WebSocket (version 13): connect with a client for WebSockets"}
}

// elsewhere reports whether a page of another origin asks.
func elsewhere(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	u, err := url.Parse(origin)
	return origin != "" && (err != nil || !strings.EqualFold(u.Host, r.Host))
}

// errNotUpgraded says that a WebSocket was refused, and the client answered.
var errNotUpgraded = errors.New("the connection did not become a WebSocket")

// attach moves bytes between a WebSocket and a terminal until one of them ends. An error
// says that it did not begin.
func attach(ctx context.Context, c *httpapi.Call, u *sandboxes.Use, out *sandboxes.Output) error {
	if err := c.Leave(ctx, nil); err != nil {
		return err // while it can be said
	}
	conn, err := websocket.Accept(c.W, c.R, &websocket.AcceptOptions{InsecureSkipVerify: true}) // upgrades has looked at the origin
	if err != nil {
		return errNotUpgraded
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(maxTyped)
	t := terminal{httpapi.Socket{Conn: conn}}
	if err := t.conn.Tell(ctx, TerminalMessage{Type: "started", ProcessID: string(out.Info().ID)}); err != nil {
		return nil
	}
	if err := out.Converse(ctx, t, false); !errors.Is(err, io.EOF) {
		if errors.Is(context.Cause(ctx), httpapi.ErrShutdown) {
			_ = conn.Close(websocket.StatusGoingAway, "the server is shutting down; the terminal lives on")
		}
		if errors.Is(context.Cause(ctx), tenant.ErrKeyInvalid) {
			_ = conn.Close(websocket.StatusPolicyViolation, "the API key is no longer valid; the terminal lives on")
		}
		c.Log().DebugContext(ctx, "terminal left", "sandbox_id", string(u.Sandbox().ID), "error", err)
		return nil
	}
	exit := out.Exit()
	if t.conn.Tell(ctx, TerminalMessage{Type: "exit", ExitCode: &exit.Code, Reason: httpapi.Reason(u.Killed(ctx, exit))}) == nil {
		_ = conn.Close(websocket.StatusNormalClosure, "")
	}
	return nil
}

// terminal is one client of one terminal.
type terminal struct{ conn httpapi.Socket }

// Receive implements sandboxes.TerminalClient.
func (t terminal) Receive(ctx context.Context) ([]byte, *process.Size, error) {
	kind, data, err := t.conn.Read(ctx)
	if err != nil || kind == websocket.MessageBinary {
		return data, nil, err
	}
	var m TerminalMessage
	if err := json.Unmarshal(data, &m, json.RejectUnknownMembers(true)); err != nil || m.Type != "resize" || m.Rows == 0 || m.Columns == 0 {
		_ = t.conn.Close(websocket.StatusPolicyViolation, `want {"type":"resize","rows":24,"columns":80}; what is typed goes in binary messages`)
		return nil, nil, errors.New("the client sent no message that a terminal knows")
	}
	return nil, &process.Size{Rows: m.Rows, Columns: m.Columns}, nil
}

// Show implements sandboxes.TerminalClient.
func (t terminal) Show(ctx context.Context, data []byte, cursor process.Seq) error {
	if err := t.conn.Send(ctx, websocket.MessageBinary, data); err != nil {
		return err
	}
	return t.conn.Tell(ctx, TerminalMessage{Type: "cursor", Cursor: int64(cursor)})
}
