package webhook

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/session"
)

// notice is what a receiver gets of a session.
type notice struct {
	Event      string      `json:"event"` // session. and what it tells
	SessionID  string      `json:"session_id"`
	AgentID    string      `json:"agent_id"`
	EventID    string      `json:"event_id"` // the session's last event then
	Timestamp  string      `json:"timestamp"`
	StopReason *stopReason `json:"stop_reason"` // null for session.terminated
	Error      *failure    `json:"error"`
}

type stopReason struct {
	Type           string    `json:"type"`
	RequiresAction []waiting `json:"requires_action"`
}

type waiting struct {
	ToolUseID string `json:"tool_use_id"`
	Name      string `json:"name"`
	Needs     string `json:"needs"`
}

type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Tell makes one attempt to tell a session's webhook of its state, as Deliver does.
func (c *Client) Tell(ctx context.Context, n *session.Notice) (tried bool, err error) {
	ctx = outbound.For(ctx, n.Tenant)
	body, err := noticeBody(n)
	if err != nil {
		return false, err
	}
	room, err := c.memory.acquire(ctx, n.Tenant, 64<<10+int64(len(body)))
	if err != nil {
		return false, err
	}
	defer room.release()
	return c.post(ctx, n.Webhook.URL, n.Webhook.Secret, n.ID(), body)
}

func noticeBody(n *session.Notice) ([]byte, error) {
	m := notice{
		Event: "session." + string(n.Kind), SessionID: string(n.Session), AgentID: string(n.Agent), EventID: session.EventID(n.Session, n.Seq),
		Timestamp: n.At.UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano),
	}
	if n.Kind != session.TellsEnd {
		m.StopReason = &stopReason{Type: session.Stops[n.End], RequiresAction: []waiting{}}
		for _, w := range n.Waits {
			needs := "tool_result"
			if w.Approve {
				needs = "tool_confirmation"
			}
			m.StopReason.RequiresAction = append(m.StopReason.RequiresAction, waiting{session.EventID(n.Session, w.Of), w.Tool, needs})
		}
	}
	if f := n.Failure; f != nil {
		m.Error = &failure{string(f.Reason), f.Message}
	}
	return json.Marshal(m)
}
