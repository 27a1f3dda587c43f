package service

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// TestOneOutcome has programs end by themselves, by their time and by their
// caller at the same moment, and checks that each has one outcome, the same
// wherever it is asked for, one audit row, and is paid for once.
func TestOneOutcome(t *testing.T) {
	s := shared(t)
	key, admin := s.Tenant(t, "racers", "enterprise"), s.AdminKey(t)
	races := atolltest.Count(64, 1000)
	at := marks{end: time.Second, cancel: time.Second}
	statuses := map[string]string{} // of each execution
	var mu sync.Mutex
	room := make(chan struct{}, 8)
	var all sync.WaitGroup
	for range races {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			id, status, err := race(t.Context(), s, key, &at)
			if err != nil {
				t.Error(err)
				return
			}
			at.move(status)
			mu.Lock()
			defer mu.Unlock()
			statuses[id] = status
		})
	}
	all.Wait()
	outcomes := map[string]int{}
	for _, status := range statuses {
		outcomes[status]++
	}
	t.Logf("outcomes: %v", outcomes)
	if len(statuses) != races || len(outcomes) != 3 {
		t.Errorf("%d executions of %d ended, as %v; each way must come first at some time", len(statuses), races, outcomes)
	}
	trail := auditTrail(t, s, "racers")
	if len(trail) != races {
		t.Errorf("%d executions have audit rows", len(trail))
	}
	rowOf := map[string]string{"success": "ok", "timeout": "timeout", "cancelled": "cancelled"}
	for id, status := range statuses {
		if rows := trail[id]; len(rows) != 1 || rows[0].ExitStatus != rowOf[status] {
			t.Errorf("%s ended as %s; its audit rows: %+v", id, status, rows)
		}
	}
	var used struct{ Totals struct{ Calls int } }
	s.Must(t, admin, http.MethodGet, "/v1/admin/tenants/racers/usage", nil).Into(t, http.StatusOK, &used)
	if used.Totals.Calls != races {
		t.Errorf("%d executions are %d calls in the ledger", races, used.Totals.Calls)
	}
}

// marks are when a program ends and is cancelled, from its first output on. By then some of
// the time before its time-out has gone, how much depends on the machine.
type marks struct {
	mu          sync.Mutex
	end, cancel time.Duration // guarded by mu
}

// around returns moments close to the marks.
func (m *marks) around() (end, cancel time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	near := func(d time.Duration) time.Duration {
		return max(d+time.Duration(rand.IntN(100)-50)*time.Millisecond, 0)
	}
	return near(m.end), near(m.cancel)
}

// move puts off what came first. Where that was the time-out, the others come sooner.
func (m *marks) move(status string) {
	const step = 20 * time.Millisecond
	m.mu.Lock()
	defer m.mu.Unlock()
	switch status {
	case "success":
		m.end += step
	case "cancelled":
		m.cancel += step
	case "timeout":
		m.end, m.cancel = max(m.end-step, 0), max(m.cancel-step, 0)
	}
}

// race runs a program whose own end, time-out and cancellation come within a
// moment, and returns how it ended by its stream, its record and the answer to
// the cancellation, which must agree. One whose time is up before it says anything is not
// cancelled.
func race(ctx context.Context, s *atolltest.Server, key string, at *marks) (id, status string, err error) {
	end, cancel := at.around()
	body, err := json.Marshal(map[string]any{
		"code": fmt.Sprintf("import time\nprint('begun', flush=True)\ntime.sleep(%f)", end.Seconds()), "timeout": 1,
	})
	if err != nil {
		return "", "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/sandbox/execute", bytes.NewReader(body))
	if err != nil {
		return "", "", err
	}
	req.Header = http.Header{"Authorization": {"Bearer " + key}, "Content-Type": {"application/json"}, "Accept": {"application/x-ndjson"}}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = res.Body.Close() }()
	var last struct{ Type, Data, Status string }
	var cancelled chan error // nil until the program has begun
	cancellation := 0
	id = res.Header.Get("X-Trace-Id")
	results := 0
	for in := bufio.NewScanner(res.Body); in.Scan(); {
		if err := json.Unmarshal(in.Bytes(), &last); err != nil {
			return id, "", fmt.Errorf("%w: %s", err, in.Text())
		}
		switch last.Type {
		case "output":
			cancelled = make(chan error, 1)
			time.AfterFunc(cancel, func() {
				a, err := s.Call(ctx, key, http.MethodPost, "/v1/executions/"+id+"/cancel", nil, nil)
				if err == nil {
					cancellation = a.Status
				}
				cancelled <- err
			})
		case "result":
			results++
		}
	}
	if cancelled == nil && last.Status != "timeout" || results != 1 || last.Type != "result" {
		return id, "", fmt.Errorf("%s: %d results in the stream, which ends with %+v", id, results, last)
	}
	want := 0
	if cancelled != nil {
		want = http.StatusConflict
		if err := <-cancelled; err != nil {
			return id, "", err
		}
	}
	a, err := s.Call(ctx, key, http.MethodGet, "/v1/executions/"+id, nil, nil)
	if err != nil {
		return id, "", err
	}
	var r record
	if err := json.Unmarshal(a.Body, &r); err != nil {
		return id, "", err
	}
	if r.Status == "cancelled" {
		want = http.StatusOK
	}
	if r.Status != last.Status || cancellation != want {
		return id, "", fmt.Errorf("%s: %s by its stream, %s by its record, and its cancellation was answered with %d", id, last.Status, r.Status, cancellation)
	}
	return id, r.Status, nil
}

// auditTrail is all that a tenant's trail has, by execution.
func auditTrail(t *testing.T, s *atolltest.Server, tenant string) map[string][]trailRow {
	t.Helper()
	rows := map[string][]trailRow{}
	for next := ""; ; {
		var page struct {
			Data []trailRow
			Next *string `json:"next_page"`
		}
		s.Must(t, s.AdminKey(t), http.MethodGet, strings.TrimSuffix("/v1/admin/tenants/"+tenant+"/audit?limit=100&page="+next, "&page="), nil).Into(t, http.StatusOK, &page)
		for _, row := range page.Data {
			rows[row.TraceID] = append(rows[row.TraceID], row)
		}
		if page.Next == nil {
			return rows
		}
		next = *page.Next
	}
}
