package atoll

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
)

const sessionsPath = "/v1/sessions"

// Sessions returns sessions, newest first, at most limit; 0 is for all of them. agent is the
// id of an agent, "" for all; archived adds those that are archived.
func (c *Client) Sessions(ctx context.Context, agent string, archived bool, limit int) ([]Session, error) {
	query := url.Values{"include_archived": {strconv.FormatBool(archived)}, "limit": {"100"}}
	if agent != "" {
		query.Set("agent_id", agent)
	}
	return list[Session](ctx, c, sessionsPath, query, limit)
}

// Session returns a session.
func (c *Client) Session(ctx context.Context, id string) (Session, error) {
	return call[Session](ctx, c, http.MethodGet, under(sessionsPath, id), nil, nil)
}

// SessionContext returns what the model is told before the conversation.
func (c *Client) SessionContext(ctx context.Context, id string) (SessionContext, error) {
	return call[SessionContext](ctx, c, http.MethodGet, under(sessionsPath, id, "context"), nil, nil)
}

// CreateSession begins a session.
func (c *Client) CreateSession(ctx context.Context, in NewSession) (Session, error) {
	return call[Session](ctx, c, http.MethodPost, sessionsPath, nil, in)
}

// ChangeSession changes what is said of a session.
func (c *Client) ChangeSession(ctx context.Context, id string, in SessionChange) (Session, error) {
	return call[Session](ctx, c, http.MethodPatch, under(sessionsPath, id), nil, in)
}

// InterruptSession ends the turn that is under way, or the wait for answers.
func (c *Client) InterruptSession(ctx context.Context, id string) (Session, error) {
	return call[Session](ctx, c, http.MethodPost, under(sessionsPath, id, "interrupt"), nil, nil)
}

// ArchiveSession archives a session; again is no error.
func (c *Client) ArchiveSession(ctx context.Context, id string) (Session, error) {
	return call[Session](ctx, c, http.MethodPost, under(sessionsPath, id, "archive"), nil, nil)
}

// DeleteSession deletes a session with its events.
func (c *Client) DeleteSession(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, under(sessionsPath, id), nil)
}

// SessionEvents returns events of a session, at most limit; 0 is for all of them. query has
// order and types.
func (c *Client) SessionEvents(ctx context.Context, id string, query url.Values, limit int) ([]SessionEvent, error) {
	return list[SessionEvent](ctx, c, under(sessionsPath, id, "events"), query, limit)
}

// SessionFiles lists the files that the agent of a session has shared, oldest first.
func (c *Client) SessionFiles(ctx context.Context, id string) ([]SessionFile, error) {
	return list[SessionFile](ctx, c, under(sessionsPath, id, "files"), url.Values{"limit": {"100"}}, 0)
}

// SessionFile streams the contents of a file of a session to w.
func (c *Client) SessionFile(ctx context.Context, id, file string, w io.Writer) error {
	return c.download(ctx, w, under(sessionsPath, id, "files", file, "content"), nil, mediaAny)
}

// SessionThreads returns threads of a session, newest first, at most limit; 0 is for all of
// them.
func (c *Client) SessionThreads(ctx context.Context, id string, limit int) ([]SessionThread, error) {
	return list[SessionThread](ctx, c, under(sessionsPath, id, "threads"), nil, limit)
}

// SessionThread returns a thread of a session.
func (c *Client) SessionThread(ctx context.Context, id, thread string) (SessionThread, error) {
	return call[SessionThread](ctx, c, http.MethodGet, under(sessionsPath, id, "threads", thread), nil, nil)
}

// ThreadEvents returns events of a thread of a session, as SessionEvents does.
func (c *Client) ThreadEvents(ctx context.Context, id, thread string, query url.Values, limit int) ([]SessionEvent, error) {
	return list[SessionEvent](ctx, c, under(sessionsPath, id, "threads", thread, "events"), query, limit)
}

// SendSession sends a message or an answer, and returns when its turn has ended.
func (c *Client) SendSession(ctx context.Context, id string, in NewSessionEvent) (SessionTurn, error) {
	return call[SessionTurn](ctx, c, http.MethodPost, under(sessionsPath, id, "events"), nil, in)
}

// StreamSession sends a message or an answer, and returns the events of its turn as they
// happen, with pieces of messages. The caller closes them; the turn goes on without. Where no
// turn begins, since other calls wait for answers, too, it returns what says so instead.
func (c *Client) StreamSession(ctx context.Context, id string, in NewSessionEvent) (*SessionStream, *SessionTurn, error) {
	res, err := c.send(ctx, http.MethodPost, under(sessionsPath, id, "events"), url.Values{"deltas": {"true"}}, in, "text/event-stream")
	if err != nil {
		return nil, nil, err
	}
	if media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); media == "application/json" {
		defer res.Body.Close()
		turn := &SessionTurn{}
		return nil, turn, json.NewDecoder(res.Body).Decode(turn)
	}
	return &SessionStream{ResponseEvents{body: res.Body, in: bufio.NewReader(res.Body)}}, nil, nil
}

// FollowSession returns the events of a session after the one with an id, "" for all of them,
// and those to come. The caller closes them.
func (c *Client) FollowSession(ctx context.Context, id, after string) (*SessionStream, error) {
	query := url.Values{}
	if after != "" {
		query.Set("after", after)
	}
	res, err := c.send(ctx, http.MethodGet, under(sessionsPath, id, "events", "stream"), query, nil, "text/event-stream") //nolint:bodyclose // SessionStream.Close closes it
	if err != nil {
		return nil, err
	}
	return &SessionStream{ResponseEvents{body: res.Body, in: bufio.NewReader(res.Body)}}, nil
}

// SessionStream are events of a session as they come.
type SessionStream struct{ events ResponseEvents }

// SessionStreamed is an event, or with the type delta a piece of one that is to come.
type SessionStreamed struct {
	SessionEvent
	Of   string // of a piece: the type of the event
	Text string // of a piece
}

// Next waits for the next event. After the last one it returns io.EOF.
func (s *SessionStream) Next() (SessionStreamed, error) {
	var ev SessionStreamed
	data, err := s.events.data()
	if err == nil {
		err = json.Unmarshal(data, &ev)
	}
	return ev, err
}

// Close ends the stream.
func (s *SessionStream) Close() error { return s.events.Close() }
