package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// killPoints are every boundary of a plodder's steps, and the inside of its model calls and
// tool calls.
func killPoints() (points []string) {
	call := 0
	for step := range len(plodCalls) + 1 {
		for _, what := range []string{"asked", "answering", "speaking", "answered"} {
			points = append(points, fmt.Sprint(what, " ", step+1))
		}
		if step == len(plodCalls) {
			break
		}
		for range plodCalls[step] {
			call++
			for _, what := range []string{"called", "running", "returned"} {
				points = append(points, fmt.Sprint(what, " ", call))
			}
		}
	}
	return append(points, "ended")
}

// follower is a client that reads the stream of a response from its first event to its
// last, from server to server.
type follower struct {
	name, id string
	seen     []responseEvent
	err      error
}

// plod creates a response and follows it to its end. done is called at the end.
func plod(line *succession, m *moments, name string) *follower {
	f := &follower{name: name}
	ctx, cancel := context.WithTimeout(line.Context(), 5*time.Minute)
	defer cancel()
	for try := 1; f.id == ""; try++ {
		s := line.now()
		f.name = fmt.Sprint(name, "-", try) // one whose answer was cut is another response
		a, err := s.Call(ctx, atolltest.Key, http.MethodPost, "/v1/responses", map[string]any{
			"model": "plodder", "input": f.name, "background": true, "tools": []any{map[string]string{"type": "sandbox"}},
		}, nil)
		switch {
		case err != nil || a.Status == http.StatusServiceUnavailable:
			if f.err = line.again(ctx, s); f.err != nil {
				return f
			}
		case a.Status != http.StatusOK:
			f.err = fmt.Errorf("HTTP %d: %s", a.Status, a.Body)
			return f
		default:
			var r responseRecord
			if f.err = json.Unmarshal(a.Body, &r); f.err != nil {
				return f
			}
			f.id = r.ID
		}
	}
	called, returned := 0, 0
	for {
		s := line.now()
		f.err = readResponse(ctx, s, f.id, int64(len(f.seen))-1, func(e responseEvent) {
			f.seen = append(f.seen, e)
			sandbox := strings.Contains(e.raw, `"sandbox_results"`)
			switch {
			case e.Type == "response.output_item.added" && sandbox:
				called++
				m.reached(fmt.Sprint("called ", called))
			case e.Type == "response.output_item.done" && sandbox:
				returned++
				m.reached(fmt.Sprint("returned ", returned))
			case e.Type == "response.completed":
				m.reached("ended")
			}
		})
		if f.err == nil || !errors.Is(f.err, errCut) {
			return f
		}
		if err := line.again(ctx, s); err != nil {
			f.err = errors.Join(f.err, err)
			return f
		}
	}
}

// beginsToRun returns once the program of any execution has written something.
func beginsToRun(t *testing.T, s *atolltest.Server) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		var page struct{ Data []record }
		a, err := s.Call(ctx, atolltest.Key, http.MethodGet, "/v1/executions?status=running", nil, nil)
		if err != nil || json.Unmarshal(a.Body, &page) != nil {
			continue
		}
		for _, r := range page.Data {
			begun := make(chan struct{})
			one, done := context.WithTimeout(ctx, 2*time.Second)
			go func() { last(t, s, r.TraceID, begun) }()
			select {
			case <-begun:
				done()
				return
			case <-one.Done():
			}
			done()
		}
	}
}

// TestKilledResponses kills the server at every boundary of a response's steps and inside
// its model and tool calls, while several responses are under way. Afterwards each has its
// one true end: the right answer, each program run once, exact usage, and one sequence of
// events for all its readers.
func TestKilledResponses(t *testing.T) {
	line := newSuccession(t, "ATOLL_MODEL_ALLOW=127.0.0.1", "ATOLL_POOL_SIZE=2")
	m := &moments{}
	p := &plodder{moments: m, pace: 10 * time.Millisecond}
	addModel(t, line.now(), "plodder", p.serve(t).URL)

	const atOnce = 3
	points := killPoints()
	kills := atolltest.Count(10, 100)
	followers := make(chan *follower, (kills+1)*atOnce)
	var wg sync.WaitGroup
	for i := range kills {
		// In a short run the points that are furthest apart.
		point := points[i*max(1, len(points)/kills)%len(points)]
		watched, running := point, strings.HasPrefix(point, "running ")
		if running {
			watched = strings.Replace(point, "running", "called", 1)
		}
		reached := m.next(watched)
		for j := range atOnce {
			wg.Go(func() { followers <- plod(line, m, fmt.Sprint(i, ".", j)) })
		}
		select {
		case <-reached:
		case <-time.After(time.Minute):
			t.Errorf("no response reaches %q\n%s", point, line.now().Log())
			continue
		}
		if running {
			beginsToRun(t, line.now())
		}
		line.next(syscall.SIGKILL)
	}
	wg.Wait()
	close(followers)

	s := line.now()
	if err := s.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	began := map[string]int{} // executions by turn
	for _, rows := range responseTrail(t, s) {
		for _, row := range rows {
			if row.Source == "response" && row.ExitStatus != "provisioning" {
				began[row.Session]++
			}
		}
	}
	for f := range followers {
		if f.err != nil {
			t.Errorf("%s (%s) was not read to its end: %v after %d events\n%s", f.name, f.id, f.err, len(f.seen), s.Log())
			continue
		}
		sandbox, _ := checkPlodded(t, s, f.name, f.id, f.seen, false)
		if n := began[sandbox]; n != 3 {
			t.Errorf("%s has %d executions", f.name, n)
		}
	}
	t.Logf("%d responses, the server killed %d times", kills*atOnce, kills)
}

// TestResponsesSandboxOutlivesServers: what a response left in its sandbox is there for the
// next one of its conversation, however the server between them ended.
func TestResponsesSandboxOutlivesServers(t *testing.T) {
	line := newSuccession(t, "ATOLL_MODEL_ALLOW=127.0.0.1")
	addModel(t, line.now(), "planner", planner(t).URL)
	want, previous := "", ""
	for i, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL} {
		body := plan(t, bash(fmt.Sprintf("echo %d >>log; cat log", i)))
		if previous != "" {
			body["previous_response_id"] = previous
		}
		s := line.now()
		var r toolResponse
		s.Must(t, atolltest.Key, http.MethodPost, "/v1/responses", body).Into(t, http.StatusOK, &r)
		want += fmt.Sprintln(i)
		runs := r.kind("sandbox_results")
		if len(runs) != 1 || runs[0].Results[0].Stdout != want {
			t.Fatalf("response %d: %+v\n%s", i, r, s.Log())
		}
		previous = r.ID
		line.next(sig)
		if err := line.now().WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

type responseRow struct {
	trailRow
	Session string `json:"session_id"`
}

// responseTrail is the audit trail of the tenant "dev".
func responseTrail(t *testing.T, s *atolltest.Server) map[string][]responseRow {
	t.Helper()
	rows := map[string][]responseRow{}
	path := "/v1/admin/tenants/dev/audit?limit=100"
	for next := ""; ; {
		var page struct {
			Data []responseRow
			Next *string `json:"next_page"`
		}
		s.Must(t, s.AdminKey(t), http.MethodGet, path+next, nil).Into(t, http.StatusOK, &page)
		for _, row := range page.Data {
			rows[row.TraceID] = append(rows[row.TraceID], row)
		}
		if page.Next == nil {
			return rows
		}
		next = "&page=" + *page.Next
	}
}
