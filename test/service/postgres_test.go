package service

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// TestDatabaseComesAndGoes stops and starts PostgreSQL under load: while it is
// away requests are refused as unavailable, what runs goes on, and afterwards
// every execution that was begun has its end and everything works.
func TestDatabaseComesAndGoes(t *testing.T) {
	pg := atolltest.Postgres(t)
	s := atolltest.Start(t, atolltest.Options{Env: []string{"ATOLL_DATABASE=" + pg.URL, "ATOLL_POOL_SIZE=2"}})

	type answer struct {
		traceID string
		status  int
	}
	var mu sync.Mutex
	var answers []answer
	news := make(chan struct{}) // closed and made anew with each answer
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for c := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				a, err := s.Call(t.Context(), atolltest.Key, http.MethodPost, "/v1/sandbox/execute",
					map[string]any{"code": fmt.Sprintf("import time; time.sleep(0.3); print('%d-%d')", c, i), "metadata": map[string]string{"load": "yes"}}, nil)
				if err != nil {
					t.Errorf("no answer: %v", err)
					return
				}
				mu.Lock()
				answers = append(answers, answer{a.Header.Get("X-Trace-Id"), a.Status})
				close(news)
				news = make(chan struct{})
				mu.Unlock()
				// 503: nothing was started. 502: the program ran, its record comes later.
				if a.Status >= 500 && a.Status != http.StatusServiceUnavailable && a.Status != http.StatusBadGateway {
					t.Errorf("HTTP %d: %s", a.Status, a.Body)
				}
				if a.Status != http.StatusOK {
					time.Sleep(50 * time.Millisecond) // as a client waits before it tries again
				}
			}
		})
	}
	count := func(status int) (n int, next <-chan struct{}) {
		mu.Lock()
		defer mu.Unlock()
		for _, a := range answers {
			if a.status == status {
				n++
			}
		}
		return n, news
	}
	// until waits for so many more answers of a status.
	until := func(what string, status, more int) {
		t.Helper()
		late := time.After(time.Minute)
		began, _ := count(status)
		for {
			n, next := count(status)
			if n >= began+more {
				return
			}
			select {
			case <-next:
			case <-late:
				t.Fatalf("%s: only %d answers with %d\n%s", what, n-began, status, s.Log())
			}
		}
	}
	for range atolltest.Count(1, 5) {
		until("at work", http.StatusOK, 8)
		if err := pg.Stop(); err != nil {
			t.Fatal(err)
		}
		until("without a database", http.StatusServiceUnavailable, 4)
		unready(t, s, "not ready: database")
		if err := pg.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		until("with it again", http.StatusOK, 8)
		if err := s.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	wg.Wait()

	var page struct {
		Data []record
	}
	s.Must(t, atolltest.Key, http.MethodGet, "/v1/executions?status=running", nil).Into(t, http.StatusOK, &page)
	for _, r := range page.Data {
		ended(t, s, r.TraceID)
	}
	for _, a := range answers {
		if a.status != http.StatusOK && a.status != http.StatusBadGateway {
			continue
		}
		var r record
		s.Must(t, atolltest.Key, http.MethodGet, "/v1/executions/"+a.traceID, nil).Into(t, http.StatusOK, &r)
		if r.Status != "success" {
			t.Errorf("%s was answered with %d and is recorded as %s", a.traceID, a.status, r.Status)
		}
	}
	s.CheckHealthy(t)
	// What was kept from the probe is in the log.
	if _, after, ok := strings.Cut(s.Log(), `level=WARN msg="not ready" database=`); !ok || !strings.Contains(after, `msg="ready again"`) {
		t.Errorf("the log does not say why:\n%s", s.Log())
	}
}

// unready checks what a probe is told.
func unready(t *testing.T, s *atolltest.Server, want string) {
	t.Helper()
	var r struct{ Error, Message string }
	s.Must(t, "", http.MethodGet, "/readyz", nil).Into(t, http.StatusServiceUnavailable, &r)
	if r.Error != "service_unavailable" || r.Message != want {
		t.Errorf("a probe is told %+v, want %q", r, want)
	}
}

// TestShortOfDisk checks that a server below its watermark runs nothing, and
// says so to those who send it work.
func TestShortOfDisk(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{NotReady: true, Env: []string{"ATOLL_MIN_FREE_DISK=1000TiB"}})
	s.Settle(t) // the pool is filled all the same
	unready(t, s, "not ready: disk")
	s.Must(t, atolltest.Key, http.MethodPost, "/v1/sandbox/execute", map[string]any{"code": "1"}).Into(t, http.StatusServiceUnavailable, nil)
	m := s.Metrics(t)
	if free, size := m.Sum("atoll_disk_free_bytes"), m.Sum("atoll_disk_size_bytes"); free <= 0 || size < free {
		t.Errorf("%v bytes are free of %v", free, size)
	}
}
