package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	_ "github.com/atoll-run/atoll/internal/infra/store" // has the driver of the server's database

	"github.com/atoll-run/atoll/bench/report"
)

const (
	idleSessions  = 5000
	manyEvents    = 1_000_000
	longEvents    = 10_000
	turnEvents    = 5 // of a turn that says something
	sessionReader = 50
)

// sessionParts is what the group sessions measures, in the order of the table.
var sessionParts = []part{
	{"sessions/turn", oneTurn}, {"sessions/idle", sessionsIdle}, {"sessions/events", sessionEvents}, {"sessions/long", longSession},
	{"sessions/streams", sessionStreams}, {"sessions/handoffs", sessionHandoffs}, {"sessions/neighbor", sessionNeighbor},
}

// sessions measures what a conversation with an agent takes.
func sessions(ctx context.Context, b *bench) ([]report.Row, error) {
	return modelled(ctx, b, sessionParts)
}

// agent makes an agent of a model, and returns its id.
func (r *responding) agent(ctx context.Context, model string) (id string, err error) {
	return r.made(ctx, "/v1/agents", map[string]any{"name": "Bench", "model": map[string]string{"name": model}})
}

// session begins a session, and returns its path.
func (r *responding) session(ctx context.Context, agent string) (path string, err error) {
	id, err := r.made(ctx, "/v1/sessions", map[string]any{"agent_id": agent})
	return "/v1/sessions/" + id, err
}

func (r *responding) made(ctx context.Context, path string, body map[string]any) (id string, err error) {
	answer, err := r.Call(ctx, http.MethodPost, path, body)
	var out struct{ ID string }
	if err == nil {
		err = json.Unmarshal(answer, &out)
	}
	return out.ID, err
}

func says(text string) map[string]any { return map[string]any{"type": "message", "content": text} }

// turn has a turn of a session whose model says something.
func (r *responding) turn(ctx context.Context, session string) (time.Duration, error) {
	return r.say(ctx, session, "say")
}

// say has a turn of a session that a text begins.
func (r *responding) say(ctx context.Context, session, text string) (time.Duration, error) {
	begun := time.Now()
	answer, err := r.Call(ctx, http.MethodPost, session+"/events", says(text))
	took := time.Since(begun)
	var out struct{ Status, Content string }
	if err == nil {
		err = json.Unmarshal(answer, &out)
	}
	if err == nil && (out.Status != "completed" || out.Content != spoken) {
		err = fmt.Errorf("the turn is %.600s", answer)
	}
	return took, err
}

// oneTurn measures turns of a session beside the same as responses.
func oneTurn(ctx context.Context, b *bench, r *responding) error {
	agent, err := r.agent(ctx, "scripted")
	if err != nil {
		return err
	}
	n := b.count(300)
	c, err := compare(n, func() (time.Duration, error) {
		session, err := r.session(ctx, agent) // the first turn: a response has no conversation before it
		if err != nil {
			return 0, err
		}
		return r.turn(ctx, session)
	}, baseline{"the same as a response", n, func() (time.Duration, error) { return r.respond(ctx, question("say", nil)) }})
	if err != nil {
		return err
	}
	r.add(more("a turn of a session beyond the same as a response, p50", c, 1, 0.5))
	return nil
}

// sessionsIdle measures the memory of sessions in which nothing happens.
func sessionsIdle(ctx context.Context, b *bench, r *responding) error {
	agent, err := r.agent(ctx, "scripted")
	if err != nil {
		return err
	}
	begin := func(n int) error {
		err := each(batchers, n, func(int) error {
			session, err := r.session(ctx, agent)
			if err == nil {
				_, err = r.turn(ctx, session)
			}
			return err
		})
		if err != nil {
			return err
		}
		r.CloseConnections()
		return wait(ctx, settleTime)
	}
	n := b.count(idleSessions)
	// What a server has for the first ones counts for none.
	if err := begin(n / 5); err != nil {
		return err
	}
	before, err := r.RSS()
	if err != nil {
		return err
	}
	if err := begin(n); err != nil {
		return err
	}
	after, err := r.RSS()
	if err != nil {
		return err
	}
	r.add(report.Row{
		Case: fmt.Sprintf("memory of each of %d idle sessions", n), Unit: "KB", Must: report.AtMost(20),
		Measured: float64(after-before) / 1000 / float64(n), Note: "resident memory of the server; each has had a turn",
	})
	return nil
}

// sessionEvents measures how the end of a long session is read.
func sessionEvents(ctx context.Context, b *bench, r *responding) error {
	agent, err := r.agent(ctx, "scripted")
	if err != nil {
		return err
	}
	session, err := r.session(ctx, agent)
	if err != nil {
		return err
	}
	for range 25 {
		if _, err := r.turn(ctx, session); err != nil {
			return err
		}
	}
	list := func() (time.Duration, error) {
		begun := time.Now()
		answer, err := r.Call(ctx, http.MethodGet, session+"/events?order=desc&limit=100", nil)
		took := time.Since(begun)
		var page struct{ Data []struct{ ID string } }
		if err == nil {
			err = json.Unmarshal(answer, &page)
		}
		if err == nil && len(page.Data) != 100 {
			err = fmt.Errorf("%d events are listed", len(page.Data))
		}
		return took, err
	}
	var short report.Sample
	for range b.count(100) {
		took, err := list()
		if err != nil {
			return err
		}
		short = append(short, took)
	}
	n := b.count(manyEvents)
	if err := lengthen(ctx, filepath.Join(r.Data, "atoll.db"), filepath.Base(session), n); err != nil {
		return fmt.Errorf("make %d events: %w", n, err)
	}
	var each report.Sample
	for range b.count(100) {
		took, err := list()
		if err != nil {
			return err
		}
		each = append(each, took)
	}
	r.add(report.Row{
		Case: fmt.Sprintf("the last 100 of %d events of a session, p50", n), Unit: "ms", Must: report.AtMost(5),
		Measured: report.Milliseconds(each.Percentile(50)), Sample: each.Summary(), Absolute: true,
		Baseline: report.Milliseconds(short.Percentile(50)), BaselineSample: short.Summary(), BaselineName: "of 125 events", Note: "over HTTP",
	})
	return nil
}

// lengthen puts copies of a session's events before them, until there are n: through the front
// door it would take an hour. They cannot be read, as each is sealed for its place.
func lengthen(ctx context.Context, path, session string, n int) error {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(30000)")
	if err != nil {
		return err
	}
	defer db.Close()
	return inTx(ctx, db, func(tx *sql.Tx) error {
		var last int
		if err := tx.QueryRowContext(ctx, `SELECT events FROM sessions WHERE id = ?`, session).Scan(&last); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < ?1)
			INSERT INTO session_events (session, seq, run, type, talk, at, event)
			SELECT session, seq - ?2 * i, run, type, talk, at, event FROM session_events, k WHERE session = ?3`, n/last, last, session)
		return err
	})
}

// longSession measures turns of a session that has had many.
func longSession(ctx context.Context, b *bench, r *responding) error {
	agent, err := r.agent(ctx, "scripted")
	if err != nil {
		return err
	}
	session, err := r.session(ctx, agent)
	if err != nil {
		return err
	}
	n := b.count(longEvents)
	for range n / turnEvents {
		if _, err := r.turn(ctx, session); err != nil {
			return err
		}
	}
	turns := b.count(500)
	before, _, err := r.spent()
	if err != nil {
		return err
	}
	for range turns {
		if _, err := r.turn(ctx, session); err != nil {
			return err
		}
	}
	after, _, err := r.spent()
	if err != nil {
		return err
	}
	c, err := compare(turns, func() (time.Duration, error) { return r.turn(ctx, session) }, baseline{"of a new session", turns, func() (time.Duration, error) {
		session, err := r.session(ctx, agent)
		if err != nil {
			return 0, err
		}
		return r.turn(ctx, session)
	}})
	if err != nil {
		return err
	}
	row := more(fmt.Sprintf("a turn of a session of %d events beyond that of a new one, p50", n), c, 0, 0)
	row.Must, row.Aim = nil, nil
	row.Note += fmt.Sprintf("; the model is sent the last 2,000 items, and reads them; a turn takes the server %d µs of a core", ((after - before) / time.Duration(turns)).Microseconds())
	r.add(row)
	return nil
}

var sessionTokens = tokenForm{[]byte(`data: {"type":"delta"`), []byte(`"text":"`)}

// sessionStreams measures a token's way from the provider to those who follow sessions.
func sessionStreams(ctx context.Context, b *bench, r *responding) error {
	agent, err := r.agent(ctx, "stamped")
	if err != nil {
		return err
	}
	count := int(b.window(15*time.Second).Seconds()) * tokens
	word := strconv.Itoa(count)
	straight, err := allStamped(sessionReader, count, responseTokens, func(int) (io.ReadCloser, error) { return r.provider.open(ctx, "/stamps/v1", word) })
	if err != nil {
		return fmt.Errorf("straight: %w", err)
	}
	paths := make([]string, sessionReader)
	for i := range paths {
		if paths[i], err = r.session(ctx, agent); err != nil {
			return err
		}
	}
	failures := make([]error, sessionReader)
	var turns sync.WaitGroup
	all, err := allStamped(sessionReader, count, sessionTokens, func(i int) (io.ReadCloser, error) {
		in, err := r.Open(ctx, http.MethodGet, paths[i]+"/events/stream?deltas=true", nil)
		if err == nil {
			turns.Go(func() { _, failures[i] = r.Call(ctx, http.MethodPost, paths[i]+"/events", says(word)) })
		}
		return in, err
	})
	turns.Wait()
	if err = errors.Join(err, firstError(failures)); err != nil {
		return err
	}
	r.add(report.Row{
		Case: fmt.Sprintf("%d sessions of %d tokens/s each followed, a token's way, p99", sessionReader, tokens), Unit: "ms",
		Measured: report.Milliseconds(all.Percentile(99)), Sample: all.Summary(), Must: report.AtMost(20), Absolute: true,
		Baseline: report.Milliseconds(straight.Percentile(99)), BaselineSample: straight.Summary(), BaselineName: "read from the provider",
		Note: fmt.Sprintf("%d tokens, none lost; provider and clients are on the same machine", len(all)),
	})
	return nil
}
