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

type refusal struct {
	Error, Message, Dimension string
}

// TestTenantsDoNotMeet checks that nothing of one tenant exists for another:
// every id of A's answers B as one that was never given.
func TestTenantsDoNotMeet(t *testing.T) {
	s := shared(t)
	a, b := s.Tenant(t, "meet-a", "enterprise"), s.Tenant(t, "meet-b", "enterprise")
	ran := s.Must(t, a, http.MethodPost, "/v1/sandbox/execute", map[string]any{"code": "print('of a')", "metadata": map[string]string{"who": "a"}})
	ran.Into(t, http.StatusOK, nil)
	real, unknown := ran.Header.Get("X-Trace-Id"), "trc_"+strings.Repeat("0", 32)
	for _, c := range []struct{ method, path string }{
		{http.MethodGet, "/v1/executions/%s"},
		{http.MethodGet, "/v1/executions/%s/output"},
		{http.MethodGet, "/v1/executions/%s/output?stream=stdout"},
		{http.MethodPost, "/v1/executions/%s/cancel"},
		{http.MethodGet, "/v1/executions/%s/file?path=a"},
		{http.MethodDelete, "/v1/executions/%s"},
	} {
		others := s.Must(t, b, c.method, fmt.Sprintf(c.path, real), nil)
		never := s.Must(t, b, c.method, fmt.Sprintf(c.path, unknown), nil)
		if others.Status != http.StatusNotFound || strings.ReplaceAll(string(others.Body), real, unknown) != string(never.Body) || never.Status != others.Status {
			t.Errorf("%s %s: another tenant's answers %d %s, an unknown one %d %s", c.method, c.path, others.Status, others.Body, never.Status, never.Body)
		}
	}
	s.Must(t, a, http.MethodGet, "/v1/executions/"+real, nil).Into(t, http.StatusOK, nil)
	for _, query := range []string{"", "?metadata.who=a", "?status=success"} {
		var page struct{ Data []any }
		s.Must(t, b, http.MethodGet, "/v1/executions"+query, nil).Into(t, http.StatusOK, &page)
		if len(page.Data) != 0 {
			t.Errorf("B sees %v", page.Data)
		}
	}
	s.Must(t, b, http.MethodGet, "/v1/admin/tenants", nil).Into(t, http.StatusForbidden, nil)
}

// TestPlan checks every limit of the free plan, as the contract words it.
func TestPlan(t *testing.T) {
	s := shared(t)
	key := s.Tenant(t, "frugal", "free")
	refused := func(header http.Header, body map[string]any, dimension, want string) {
		t.Helper()
		a, err := s.Call(t.Context(), key, http.MethodPost, "/v1/sandbox/execute", body, header)
		if err != nil {
			t.Fatal(err)
		}
		var r refusal
		a.Into(t, http.StatusTooManyRequests, &r)
		if r.Error != "rate_limited" || r.Dimension != dimension || !strings.Contains(r.Message, want) {
			t.Errorf("got %+v, want %q", r, want)
		}
	}
	refused(nil, map[string]any{"code": "1", "timeout": 61}, "timeout", "60 seconds")
	refused(http.Header{"Accept": {"application/x-ndjson"}}, map[string]any{"code": "1"}, "streaming", "Streaming execution requires")
	refused(http.Header{"Prefer": {"respond-async"}}, map[string]any{"code": "1"}, "async", "requires")

	admin := s.AdminKey(t)
	var r refusal
	s.Must(t, admin, http.MethodPost, "/v1/admin/tenants/frugal/environments", map[string]any{"name": "big", "image": atolltest.Image, "limits": map[string]any{"cpu": 2}}).Into(t, http.StatusTooManyRequests, &r)
	if r.Dimension != "cpu" {
		t.Errorf("got %+v", r)
	}

	// Five run at the same time, the sixth is refused.
	var wg sync.WaitGroup
	answers := make(chan *atolltest.Answer, 6)
	for range cap(answers) {
		wg.Go(func() {
			a, err := s.Call(t.Context(), key, http.MethodPost, "/v1/sandbox/execute", map[string]any{"code": "import time; time.sleep(60)", "timeout": 60}, nil)
			if err != nil {
				t.Error(err)
				return
			}
			answers <- a
		})
	}
	sixth := atolltest.Heard(t, answers, "one is refused")
	sixth.Into(t, http.StatusTooManyRequests, &r)
	if !strings.Contains(string(sixth.Body), "concurrent execution limit reached (5/5)") {
		t.Errorf("got %s", sixth.Body)
	}
	var page struct{ Data []record }
	atolltest.Until(t, time.Minute, "five run", func() bool {
		s.Must(t, key, http.MethodGet, "/v1/executions?status=running", nil).Into(t, http.StatusOK, &page)
		return len(page.Data) == 5
	})
	for _, e := range page.Data {
		s.Must(t, key, http.MethodPost, "/v1/executions/"+e.TraceID+"/cancel", nil).Into(t, http.StatusOK, nil)
	}
	wg.Wait()
	close(answers)
	for a := range answers {
		if a.Status == http.StatusTooManyRequests {
			t.Errorf("one more was refused: %s", a.Body)
		}
	}
}

// TestKeys checks that a revoked key is refused at once, and that what
// is stored cannot be read back.
func TestKeys(t *testing.T) {
	s := shared(t)
	key := s.Tenant(t, "keys", "pro")
	s.Must(t, key, http.MethodGet, "/v1/executions", nil).Into(t, http.StatusOK, nil)
	admin := s.AdminKey(t)
	listed := s.Must(t, admin, http.MethodGet, "/v1/admin/tenants/keys/keys", nil)
	listed.Into(t, http.StatusOK, nil)
	if strings.Contains(string(listed.Body), key) {
		t.Error("a key is shown a second time")
	}
	s.Must(t, admin, http.MethodDelete, "/v1/admin/tenants/keys/keys/main", nil).Into(t, http.StatusOK, nil)
	s.Must(t, key, http.MethodGet, "/v1/executions", nil).Into(t, http.StatusUnauthorized, nil)

	var read struct{ Key string }
	s.Must(t, admin, http.MethodPost, "/v1/admin/tenants/keys/keys", map[string]any{"name": "reader", "environment": "main", "scopes": []string{"read"}}).Into(t, http.StatusCreated, &read)
	s.Must(t, read.Key, http.MethodGet, "/v1/executions", nil).Into(t, http.StatusOK, nil)
	s.Must(t, read.Key, http.MethodPost, "/v1/sandbox/execute", map[string]any{"code": "1"}).Into(t, http.StatusForbidden, nil)
}

// TestSecretsAreRedacted checks that an environment's secret does not leave the
// sandbox in output, in no form and however it is written.
func TestSecretsAreRedacted(t *testing.T) {
	s := shared(t)
	key, admin := s.Tenant(t, "secrets", "pro"), s.AdminKey(t)
	const secret = "correct-horse/battery+staple"
	s.Must(t, admin, http.MethodPatch, "/v1/admin/tenants/secrets/environments/main", map[string]any{
		"secrets": map[string]string{"DB_PASSWORD": secret},
	}).Into(t, http.StatusOK, nil)
	code := `
import os, sys, base64, binascii, urllib.parse, time
s = os.environ['DB_PASSWORD']
assert len(s) == 28
print('clear', s)
print('base64', base64.b64encode(s.encode()).decode())
print('hex', binascii.hexlify(s.encode()).decode())
print('url', urllib.parse.quote(s, safe=''))
for c in s: sys.stdout.write(c); sys.stdout.flush(); time.sleep(0.005)
print()
print('stderr', s, file=sys.stderr)
print('harmless')`
	var r struct{ Stdout, Stderr string }
	ran := s.Must(t, key, http.MethodPost, "/v1/sandbox/execute", map[string]any{"code": code})
	ran.Into(t, http.StatusOK, &r)
	for _, leak := range []string{secret, "Y29ycmVjdC1ob3JzZS9iYXR0ZXJ5K3N0YXBsZQ", "636f72726563742d686f727365", "correct-horse%2Fbattery"} {
		for where, text := range map[string]string{
			"answer": string(ran.Body),
			"record": string(s.Must(t, key, http.MethodGet, "/v1/executions/"+ran.Header.Get("X-Trace-Id"), nil).Body),
			"log":    string(s.Must(t, key, http.MethodGet, "/v1/executions/"+ran.Header.Get("X-Trace-Id")+"/output", nil).Body),
		} {
			if strings.Contains(text, leak) {
				t.Errorf("the %s has %q: %s", where, leak, text)
			}
		}
	}
	if !strings.Contains(r.Stdout, "clear ") || !strings.HasSuffix(r.Stdout, "harmless\n") {
		t.Errorf("too much is missing: %q", r.Stdout)
	}
	shown := s.Must(t, admin, http.MethodGet, "/v1/admin/tenants/secrets/environments/main", nil)
	if strings.Contains(string(shown.Body), "battery") {
		t.Errorf("the admin API shows a secret: %s", shown.Body)
	}
}
