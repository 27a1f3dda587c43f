package redteam

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// streamCases attack the event streams of sessions.
func streamCases() []Case {
	return []Case{
		{"streams/limit", High, "opens ever more streams with one token", "the server rejects streams above streams_per_token, and accepts new ones after others close", streamLimit},
		{"streams/foreign", Critical, "follows its own and the victim's session from the victim's event ids and from invalid ids", "it reads no event of the victim", streamForeign},
		{"streams/slow-readers", High, "opens many streams of a session and never reads from them", "another reader gets every event, and the server's memory stays bounded", streamSlow},
	}
}

// manyStreams is the number of streams that one token tries to open.
const manyStreams = 80

// streaming opens a stream, and returns its status and response. It may block until the stream has its
// first event.
func (c caller) streaming(ctx context.Context, path string, headers ...string) (int, *http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+c.key)
	r.Header.Set("Accept", "text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := c.http.Do(r)
	if err != nil {
		return 0, nil, err
	}
	return res.StatusCode, res, nil
}

// aSession starts a session with an agent that has no tools.
func (a *arena) aSession(ctx context.Context, by caller) (talk, error) {
	return a.converse(ctx, by, nil, map[string]any{"title": "redteam"})
}

func streamLimit(ctx context.Context, a *arena) error {
	t, err := a.aSession(ctx, a.plain)
	if err != nil {
		return err
	}
	defer func() { _ = t.end(ctx) }()
	one, err := newToken(ctx, a, a.plain, map[string]any{"scopes": []string{"read"}})
	if err != nil {
		return err
	}
	open, stop := context.WithCancel(ctx)
	defer stop()
	path := t.path + "/events/stream"
	opened, refused := 0, ""
	for range manyStreams {
		status, res, err := one.streaming(open, path)
		if err != nil {
			return err
		}
		if status != http.StatusOK {
			text, _ := io.ReadAll(io.LimitReader(res.Body, 1000)) // the beginning is enough
			_ = res.Body.Close()
			refused = fmt.Sprintf("%d %s", status, text)
			break
		}
		opened++
	}
	switch {
	case refused == "":
		return found("one token opened %d streams at once", opened)
	case !strings.HasPrefix(refused, "429") || !strings.Contains(refused, "streams"):
		return found("the server answered the stream above the limit with %s", refused)
	}
	stop()
	for { // until the server notices that the streams closed
		status, res, err := one.streaming(ctx, path)
		if err != nil {
			return err
		}
		_ = res.Body.Close()
		if status == http.StatusOK {
			return nil
		}
		select {
		case <-ctx.Done():
			return found("after all streams closed, the server answered a new one with %d", status)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func streamForeign(ctx context.Context, a *arena) error {
	theirs, err := a.aSession(ctx, a.victim)
	if err != nil {
		return err
	}
	defer func() { _ = theirs.end(ctx) }()
	play := theirs.lure.play(func(int) reply { return reply{Text: preyText} })
	if _, err := theirs.send(ctx, message(play)); err != nil {
		return err
	}
	all, _, err := theirs.events(ctx)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return errors.New("the victim's session has no events")
	}
	own, err := a.aSession(ctx, a.plain)
	if err != nil {
		return err
	}
	defer func() { _ = own.end(ctx) }()
	ids := []string{all[0].ID, strings.Replace(all[0].ID, strings.TrimPrefix(theirs.id, "sess_"), strings.TrimPrefix(own.id, "sess_"), 1), "0", "-1", "99999999999999999999", "sevt_", "sevt_" + strings.Repeat("0", 32) + "_-1", "x\ty", strings.Repeat("9", 5000), "' OR 1=1"}
	var wg sync.WaitGroup
	errs := make([]error, 2*len(ids))
	for i, id := range ids {
		for j, path := range []string{own.path, theirs.path} {
			wg.Go(func() { errs[2*i+j] = a.peeks(ctx, path+"/events/stream?deltas=true", id) })
		}
	}
	wg.Wait()
	for _, err := range errs {
		if f, ok := errors.AsType[*finding](err); ok {
			return f
		}
	}
	return errors.Join(errs...)
}

// peekTime is how long a case reads a stream that should show nothing.
const peekTime = time.Second

// peeks follows a stream from an event id for peekTime, and reports the victim's words.
func (a *arena) peeks(ctx context.Context, path, id string) error {
	short, cancel := context.WithTimeout(ctx, peekTime)
	defer cancel()
	status, res, err := a.plain.streaming(short, path, "Last-Event-ID", id)
	if err != nil {
		if short.Err() != nil && ctx.Err() == nil {
			return nil // the server sent nothing
		}
		return err
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(res.Body, mib)) // until peekTime ends
	if status >= 500 || bytes.Contains(text, []byte(preyText)) {
		return found("a stream from the event %.60q: %d %.300s", id, status, text)
	}
	return nil
}

// sluggish is the number of clients that never read their stream, which carries slowAnswers answers of
// slowAnswerKB KiB each.
const (
	sluggish     = 16
	slowAnswers  = 12
	slowAnswerKB = 256
)

func streamSlow(ctx context.Context, a *arena) error {
	t, err := a.converse(ctx, a.plain, map[string]any{"tools": []any{map[string]any{"type": "sandbox"}}, "tool_policy": map[string]any{"allow_list": []string{}}}, nil)
	if err != nil {
		return err
	}
	defer func() { _ = t.end(ctx) }()
	before, err := a.resident(ctx)
	if err != nil {
		return err
	}
	for range sluggish {
		conn, err := dial(ctx, a.base)
		if err != nil {
			return err
		}
		defer conn.Close()
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetReadBuffer(4096) // a hint
		}
		if _, err := fmt.Fprintf(conn, "GET %s/events/stream?deltas=true HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n", t.path, a.base.Host, a.plain.key); err != nil {
			return err
		}
	}
	status, res, err := a.plain.streaming(ctx, t.path+"/events/stream")
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if status != http.StatusOK {
		return fmt.Errorf("the stream of the client that reads: %d", status)
	}
	whole := strings.Repeat("slow words ", slowAnswerKB<<10/11)
	play := t.lure.play(func(turn int) reply {
		if turn < slowAnswers {
			return reply{Text: whole, Calls: []toolCall{{"read_file", map[string]any{"file_path": fmt.Sprint(turn)}}}}
		}
		return reply{Text: "done"}
	})
	if _, err := t.send(ctx, message(play)); err != nil {
		return err
	}
	messages := 0
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() && messages < slowAnswers {
		if bytes.HasPrefix(lines.Bytes(), []byte("data:")) && bytes.Contains(lines.Bytes(), []byte("slow words")) {
			messages++
		}
	}
	if messages < slowAnswers {
		return found("a reader beside %d clients that do not read got %d of %d answers: %v", sluggish, messages, slowAnswers, lines.Err())
	}
	after, err := a.resident(ctx)
	if err != nil {
		return err
	}
	if after-before > jsonRoom {
		return found("the server grew by %d MiB", (after-before)/mib)
	}
	return nil
}
