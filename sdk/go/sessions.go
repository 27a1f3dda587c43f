package atoll

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
)

const sessionsPath = "/v1/sessions"

// Sessions returns sessions, newest first. agent is the
// id of an agent, "" for all; archived adds those that are archived.
func (c *Client) Sessions(agent string, archived bool) *Pager[Session] {
	query := url.Values{"include_archived": {strconv.FormatBool(archived)}, "limit": {"100"}}
	if agent != "" {
		query.Set("agent_id", agent)
	}
	return &Pager[Session]{c: c, path: sessionsPath, query: query}
}

// Session returns a session.
func (c *Client) Session(ctx context.Context, id string) (Session, error) {
	return call[Session](ctx, c, http.MethodGet, under(sessionsPath, id), nil, nil)
}

// SessionContext returns what the model is told before the conversation.
func (c *Client) SessionContext(ctx context.Context, id string) (SessionContext, error) {
	return call[SessionContext](ctx, c, http.MethodGet, under(sessionsPath, id, "context"), nil, nil)
}

// CreateSession creates a session.
func (c *Client) CreateSession(ctx context.Context, in NewSession) (Session, error) {
	return create[Session](ctx, c, sessionsPath, nil, in)
}

// ChangeSession changes what is said of a session.
func (c *Client) ChangeSession(ctx context.Context, id string, in SessionChange) (Session, error) {
	return call[Session](ctx, c, http.MethodPatch, under(sessionsPath, id), nil, in)
}

// InterruptSession interrupts the running turn, or the wait for answers.
func (c *Client) InterruptSession(ctx context.Context, id string) (Session, error) {
	return call[Session](ctx, c, http.MethodPost, under(sessionsPath, id, "interrupt"), nil, nil)
}

// ArchiveSession archives a session. Repeating the call is not an error.
func (c *Client) ArchiveSession(ctx context.Context, id string) (Session, error) {
	return call[Session](ctx, c, http.MethodPost, under(sessionsPath, id, "archive"), nil, nil)
}

// DeleteSession deletes a session with its events.
func (c *Client) DeleteSession(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, under(sessionsPath, id), nil)
}

// SessionEvents returns events of a session. query has
// order and types.
func (c *Client) SessionEvents(id string, query url.Values) *Pager[SessionEvent] {
	return &Pager[SessionEvent]{c: c, path: under(sessionsPath, id, "events"), query: query}
}

// SessionFiles lists the files that the agent of a session has shared, oldest first.
func (c *Client) SessionFiles(id string) *Pager[SessionFile] {
	return &Pager[SessionFile]{c: c, path: under(sessionsPath, id, "files"), query: url.Values{"limit": {"100"}}}
}

// SessionFile streams the contents of a file of a session to w.
func (c *Client) SessionFile(ctx context.Context, id, file string, w io.Writer) error {
	return c.download(ctx, w, under(sessionsPath, id, "files", file, "content"), nil)
}

// SessionThreads returns threads of a session, newest first.
func (c *Client) SessionThreads(id string) *Pager[SessionThread] {
	return &Pager[SessionThread]{c: c, path: under(sessionsPath, id, "threads")}
}

// SessionThread returns a thread of a session.
func (c *Client) SessionThread(ctx context.Context, id, thread string) (SessionThread, error) {
	return call[SessionThread](ctx, c, http.MethodGet, under(sessionsPath, id, "threads", thread), nil, nil)
}

// ThreadEvents returns events of a thread of a session, as SessionEvents does.
func (c *Client) ThreadEvents(id, thread string, query url.Values) *Pager[SessionEvent] {
	return &Pager[SessionEvent]{c: c, path: under(sessionsPath, id, "threads", thread, "events"), query: query}
}

// StartSession sends a message or an answer and returns immediately.
func (c *Client) StartSession(ctx context.Context, id string, in NewSessionEvent) (SessionTurn, error) {
	return answer[SessionTurn](ctx, c, &request{method: http.MethodPost, path: under(sessionsPath, id, "events"), in: in, accept: mediaJSON, header: http.Header{"Prefer": {"respond-async"}, idempotencyKey: {c.newKey()}}})
}

// SendSession sends a message or an answer and returns when its turn has ended. If ctx ends first,
// SendSession interrupts the turn.
func (c *Client) SendSession(ctx context.Context, id string, in NewSessionEvent) (SessionTurn, error) {
	out, err := create[SessionTurn](ctx, c, under(sessionsPath, id, "events"), nil, in)
	if errors.Is(err, ErrTimeout) || errors.Is(err, ErrCanceled) {
		work, c, cancel := c.abandoning(ctx)
		defer cancel()
		_, _ = c.InterruptSession(work, id) // it may have ended by now
	}
	return out, err
}

// SessionStreamed is an event, or with the type delta a piece of one that is to come.
type SessionStreamed struct {
	SessionEvent
	Of   string `json:"of,omitempty"`   // of a piece: the type of the event
	Text string `json:"text,omitempty"` // of a piece
	// Turn replaces the event if no turn starts because other calls still wait for answers.
	Turn *SessionTurn `json:"-"`
}

// StreamSession sends a message or an answer and yields the events of its turn as they happen,
// including message deltas. If ctx ends first, StreamSession interrupts the turn. Leaving the
// loop does not stop the turn.
func (c *Client) StreamSession(ctx context.Context, id string, in NewSessionEvent) iter.Seq2[SessionStreamed, error] {
	s := source[SessionStreamed]{first: &request{method: http.MethodPost, path: under(sessionsPath, id, "events"), query: url.Values{"deltas": {"true"}}, in: in, accept: mediaEvents}}
	turn, after := "", ""
	s.hidden = func(ev *SessionStreamed) bool {
		of := ""
		if ev.TurnID != nil {
			of = *ev.TurnID
		}
		switch {
		case ev.Type == keepalive, turn != "" && of != turn: // what goes on beside it
			return true
		case ev.ID != "":
			turn, after = of, ev.ID
		}
		return false
	}
	s.again = func(*SessionStreamed) *request {
		if after == "" {
			return nil // the message may have come or not
		}
		return followedSession(under(sessionsPath, id), after, true)
	}
	s.ends = func(ev *SessionStreamed) bool { return ev.Type == "status" && ev.StopReason != nil }
	s.single = func(ev *SessionStreamed, data []byte) error {
		ev.Turn = &SessionTurn{}
		return json.Unmarshal(data, ev.Turn)
	}
	s.abandon = func(ctx context.Context, c *Client, _ string, _ *SessionStreamed) {
		_, _ = c.InterruptSession(ctx, id) // it may have ended by now
	}
	return events(ctx, c, s)
}

// FollowSession yields the events of a session after an event id, and new events as they happen,
// until the session is archived or deleted. "" yields all events. deltas adds message deltas.
func (c *Client) FollowSession(ctx context.Context, id, after string, deltas bool) iter.Seq2[SessionStreamed, error] {
	return c.followSession(ctx, under(sessionsPath, id), after, deltas, func(ctx context.Context) bool {
		s, err := c.Session(ctx, id)
		return errors.Is(err, ErrNotFound) || err == nil && s.ArchivedAt != nil
	})
}

// FollowSessionThread yields the events of a thread of a session until the thread ends. See
// FollowSession for the parameters.
func (c *Client) FollowSessionThread(ctx context.Context, id, thread, after string, deltas bool) iter.Seq2[SessionStreamed, error] {
	return c.followSession(ctx, under(sessionsPath, id, "threads", thread), after, deltas, func(ctx context.Context) bool {
		t, err := c.SessionThread(ctx, id, thread)
		return errors.Is(err, ErrNotFound) || err == nil && (t.EndedAt != nil || t.ArchivedAt != nil)
	})
}

func (c *Client) followSession(ctx context.Context, path, after string, deltas bool, over func(context.Context) bool) iter.Seq2[SessionStreamed, error] {
	return events(ctx, c, source[SessionStreamed]{
		first: followedSession(path, after, deltas),
		again: func(*SessionStreamed) *request { return followedSession(path, after, deltas) },
		hidden: func(ev *SessionStreamed) bool {
			if ev.ID != "" {
				after = ev.ID
			}
			return ev.Type == keepalive
		},
		over: over,
	})
}

func followedSession(path, after string, deltas bool) *request {
	query := url.Values{"deltas": {strconv.FormatBool(deltas)}}
	if after != "" {
		query.Set("after", after)
	}
	return &request{method: http.MethodGet, path: path + "/events/stream", query: query, accept: mediaEvents}
}
