package anthropic

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
)

// Thread is a conversation within a session: its own one, which is the primary thread, or that of an
// agent that was handed work.
type Thread struct {
	ID             string        `json:"id"`
	Type           string        `json:"type"`
	SessionID      string        `json:"session_id"`
	ParentThreadID *string       `json:"parent_thread_id"` // nil for the primary thread
	Agent          ThreadAgent   `json:"agent"`
	Status         string        `json:"status"`
	Stats          *ThreadStats  `json:"stats"`
	Usage          *SessionUsage `json:"usage"` // nil until it has ended
	WorkflowRunID  *string       `json:"workflow_run_id"`
	CreatedAt      time.Time     `json:"created_at"`
	UpdatedAt      time.Time     `json:"updated_at"`
	ArchivedAt     *time.Time    `json:"archived_at"`
	// Ours: the name that the work was handed on by, which events have as agent_name.
	Name string `json:"name,omitzero"`
}

// ThreadStats is how long a thread was at work, and how long it is there.
type ThreadStats struct {
	ActiveSeconds   float64 `json:"active_seconds"`
	DurationSeconds float64 `json:"duration_seconds"`
	StartupSeconds  float64 `json:"startup_seconds"`
}

// primary is the session's own conversation as a thread.
func (r *renderer) primary(s *session.Session) (out Thread, err error) {
	v, err := r.session(s)
	if err != nil {
		return out, err
	}
	return Thread{
		ID: primaryOf(s.ID), Type: "session_thread", SessionID: v.ID, Agent: v.Agent.ThreadAgent, Status: v.Status, Stats: &ThreadStats{v.Stats.ActiveSeconds, v.Stats.DurationSeconds, 0},
		Usage: &v.Usage, CreatedAt: v.CreatedAt, UpdatedAt: v.UpdatedAt, ArchivedAt: v.ArchivedAt,
	}, nil
}

func (r *renderer) thread(t *session.Thread) (out Thread, err error) {
	a, err := r.version(t.Tenant, t.Agent, t.Version)
	if err != nil {
		return out, err
	}
	parent := t.Parent
	if parent == "" {
		parent = primaryOf(t.Session)
	}
	out = Thread{
		ID: t.ID, Type: "session_thread", SessionID: string(t.Session), ParentThreadID: &parent, Agent: threadAgentOf(a), Status: string(t.Status),
		CreatedAt: t.CreatedAt, UpdatedAt: t.Changed(), Name: t.Name,
	}
	if t.Status == session.ThreadWaits {
		out.Status = "idle"
	}
	end := t.EndedAt
	if end.IsZero() {
		end = time.Now()
	}
	active := max(end.Sub(t.CreatedAt), 0)
	out.Stats = &ThreadStats{active.Seconds(), active.Seconds(), 0}
	if !t.EndedAt.IsZero() {
		usage := usageOf(&run.Total{Spent: t.Used, Active: active})
		out.Usage = &usage
	}
	if !t.ArchivedAt.IsZero() {
		out.ArchivedAt = &t.ArchivedAt
	}
	return out, nil
}
