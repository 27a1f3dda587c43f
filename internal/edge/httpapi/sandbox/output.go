package sandbox

import (
	"encoding/base64"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

func (h *Handlers) followProcess(c *httpapi.Call) error {
	r, id, err := h.process(c)
	if err != nil {
		return err
	}
	after, follow, text := c.Int("after"), !c.Has("follow") || c.Bool("follow"), c.Text("encoding") != "base64"
	end, err := c.OpenStream()
	if err != nil {
		return err
	}
	defer end()
	ctx, stop := c.Living(c.Context())
	defer stop()
	return h.Service.Within(ctx, r, func(u *sandboxes.Use) error {
		out, err := u.Follow(ctx, id, process.Seq(after), text)
		if err != nil {
			return err
		}
		defer out.Close()
		f := &follower{c.Events(ProcessEvent{Type: "keepalive", Cursor: after}), text, after}
		defer f.events.End()
		return out.Read(ctx, follow, f)
	})
}

// follower sends the output of a process to one client.
type follower struct {
	events *httpapi.Events
	text   bool
	cursor int64 // up to which the client has everything
}

// Data implements sandboxes.Reader.
func (f *follower) Data(s process.Stream, data []byte, dropped int64, cursor process.Seq) error {
	e := ProcessEvent{Type: "output", Stream: s.String(), Data: string(data), Dropped: dropped, Cursor: int64(cursor)}
	if !f.text {
		e.Data = base64.StdEncoding.EncodeToString(data)
	}
	return f.events.Send(e)
}

// Reached implements sandboxes.Reader.
func (f *follower) Reached(cursor process.Seq) {
	f.cursor = int64(cursor)
	f.events.SetKeepalive(ProcessEvent{Type: "keepalive", Cursor: f.cursor})
}

// Exited implements sandboxes.Reader.
func (f *follower) Exited(e *sandboxes.Exit) error {
	return f.events.Send(ProcessEvent{
		Type: "exit", Hint: e.Hint, ExitCode: &e.Code, Signal: signalName(e.Signal), TimedOut: e.TimedOut, Blocked: e.Blocked, Reason: httpapi.Reason(e.Killed), Cursor: f.cursor,
	})
}

// Stopped implements sandboxes.Reader.
func (f *follower) Stopped(why error) error {
	return f.events.Send(ProcessEvent{Type: "stopped", Reason: httpapi.Reason(why), Cursor: f.cursor})
}
