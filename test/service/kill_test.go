package service

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// TestKilledServer kills the server again and again while executions run, and
// checks that afterwards every one of them has one end, the right one, that its
// output is whole, that it has one audit row, and that its webhook has arrived.
func TestKilledServer(t *testing.T) {
	hooks := newReceiver(t)
	line := newSuccession(t, append(hooks.settings(), "ATOLL_POOL_SIZE=2")...)

	// Clients repeat a request until it is answered; the key makes it one.
	n := atolltest.Count(20, 200)
	ids := make([]string, n)
	submitted := make(chan struct{})
	go func() {
		defer close(submitted)
		var wg sync.WaitGroup
		defer wg.Wait()
		for i := range n {
			wg.Go(func() { ids[i] = submit(line, i, hooks.URL) })
			time.Sleep(time.Duration(rand.IntN(400)) * time.Millisecond) // the load: requests come at any moment
		}
	}()
	kills := 0
	for alive := true; alive; {
		select {
		case <-submitted:
			alive = false
		case <-time.After(time.Duration(200+rand.IntN(3000)) * time.Millisecond):
		}
		line.next(syscall.SIGKILL)
		kills++
	}
	last := line.now()
	defer func() {
		if err := last.Close(); err != nil {
			t.Errorf("%v\n%s", err, last.Log())
		}
		if err := atolltest.Trace(line.data).Gone(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	t.Logf("%d executions, the server killed %d times", n, kills)

	for i, id := range ids {
		if id == "" {
			continue // its client has failed the test
		}
		r := ended(t, last, id)
		if r.Status != "success" || *r.ExitCode != 0 || *r.Stdout != output(i) {
			t.Errorf("execution %d (%s): %s, %v, stdout %q", i, id, r.Status, deref(r.Error), deref(r.Stdout))
		}
	}
	rows := auditTrail(t, last, "dev")
	for i, id := range ids {
		if len(rows[id]) != 1 {
			t.Errorf("execution %d (%s) has %d audit rows", i, id, len(rows[id]))
		}
		told := hooks.await(id, 1, 90*time.Second)
		if len(told) == 0 {
			t.Errorf("the webhook of execution %d (%s) has not arrived; its record says %s", i, id, deref(ended(t, last, id).WebhookStatus))
		}
		for _, h := range told {
			if !h.Result.Success || h.Result.Stdout != output(i) || h.id != told[0].id {
				t.Errorf("execution %d was told as %s", i, h.body)
			}
		}
	}
}

func deref(s *string) string {
	if s == nil {
		return "null"
	}
	return *s
}

// output is what execution i writes.
func output(i int) string {
	var b strings.Builder
	for line := range 20 {
		fmt.Fprintf(&b, "execution %d line %d\n", i, line)
	}
	return b.String()
}

// submit asks for execution i until a server answers.
func submit(line *succession, i int, url string) string {
	code := fmt.Sprintf("import time\nfor line in range(20):\n print('execution %d line', line, flush=True)\n time.sleep(%f)", i, rand.Float64()/5)
	header := http.Header{"Prefer": {"respond-async"}, "Idempotency-Key": {fmt.Sprintf("kill-%d", i)}}
	ctx, cancel := context.WithTimeout(line.Context(), 3*time.Minute)
	defer cancel()
	for {
		s := line.now()
		a, err := s.Call(ctx, atolltest.Key, http.MethodPost, "/v1/sandbox/execute", map[string]any{"code": code, "webhook_url": url + "/end"}, header)
		if err != nil || a.Status == http.StatusServiceUnavailable { // killed in the middle, or not ready
			if err := line.again(ctx, s); err != nil {
				line.Errorf("execution %d was never accepted: %v", i, err)
				return ""
			}
			continue
		}
		if a.Status != http.StatusAccepted {
			line.Errorf("execution %d: HTTP %d %s", i, a.Status, a.Body)
			return ""
		}
		var r record
		a.Into(line, http.StatusAccepted, &r)
		return r.TraceID
	}
}

// TestWebhook checks a webhook's signature, retries, and redelivery.
func TestWebhook(t *testing.T) {
	hooks := newReceiver(t)
	s := atolltest.Start(t, atolltest.Options{Env: hooks.settings()})
	admin := s.AdminKey(t)
	key := s.Tenant(t, "told", "pro")
	s.Must(t, admin, http.MethodPatch, "/v1/admin/tenants/told/keys/main", map[string]any{
		"webhook_url": hooks.URL, "webhook_secret": "a-secret-to-sign-with",
	}).Into(t, http.StatusOK, nil)
	hooks.fail = 1
	a, err := s.Call(t.Context(), key, http.MethodPost, "/v1/sandbox/execute", map[string]any{"code": "print('told')"}, http.Header{"Prefer": {"respond-async"}})
	if err != nil {
		t.Fatal(err)
	}
	var r record
	a.Into(t, http.StatusAccepted, &r)
	await := func(n int) []hook {
		t.Helper()
		got := hooks.await(r.TraceID, n, 20*time.Second)
		if len(got) < n {
			t.Fatalf("the webhook has not come %d times\n%s", n, s.Log())
		}
		return got
	}
	h := await(1)[0]
	if h.Event != "execution.completed" || !h.Result.Success || h.Result.Stdout != "told\n" || !h.signed("a-secret-to-sign-with") {
		t.Errorf("got %s, signed %s", h.body, h.signature)
	}
	atolltest.Until(t, 10*time.Second, "the record says delivered", func() bool { // while it is under way another is refused
		s.Must(t, key, http.MethodGet, "/v1/executions/"+r.TraceID, nil).Into(t, http.StatusOK, &r)
		return deref(r.WebhookStatus) == "delivered"
	})
	s.Must(t, admin, http.MethodPost, "/v1/admin/tenants/told/executions/"+r.TraceID+"/webhook", nil).Into(t, http.StatusAccepted, nil)
	if again := await(2)[1]; again.id != h.id {
		t.Errorf("delivered again with another id: %s, %s", again.id, h.id)
	}
	atolltest.Until(t, 10*time.Second, "the record says delivered; 2 attempts delivered, 1 retried, none failed", func() bool {
		s.Must(t, key, http.MethodGet, "/v1/executions/"+r.TraceID, nil).Into(t, http.StatusOK, &r)
		m := s.Metrics(t)
		attempts := func(outcome string) float64 { return m.Sum("atoll_webhook_attempts_total", "outcome="+outcome) }
		return deref(r.WebhookStatus) == "delivered" && attempts("delivered") == 2 && attempts("retried") == 1 && attempts("failed") == 0
	})
	for _, url := range []string{"https://10.0.0.1/", "https://169.254.169.254/latest", "http://example.org/", "https://[::1]/", "https://127.0.0.2:1/"} {
		a, err := s.Call(t.Context(), key, http.MethodPost, "/v1/sandbox/execute", map[string]any{"code": "1", "webhook_url": url}, http.Header{"Prefer": {"respond-async"}})
		if err != nil {
			t.Fatal(err)
		}
		a.Into(t, http.StatusBadRequest, nil)
	}
}
