package execute_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/control/gateway/gatewaytest"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/execute"
	"github.com/atoll-run/atoll/internal/edge/httpapi/usage"
	"github.com/atoll-run/atoll/test/httpapitest"
)

// decoded reads an answer's body.
func decoded[T any](t *testing.T, w *httptest.ResponseRecorder) T {
	t.Helper()
	var out T
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return out
}

// run executes code and returns its trace id.
func run(t *testing.T, s *httpapitest.Server, body string, headers ...string) string {
	t.Helper()
	w := httpapitest.Post(s, body, headers...)
	if w.Code >= 400 && w.Code != 504 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return httpapitest.TraceID(w)
}

func TestExecutionRecord(t *testing.T) {
	s := httpapitest.New(t)
	id := run(t, s, `{"code":"print hello","language":"node","metadata":{"stdout":"","a b":"é"}}`)
	w := httpapitest.Ask(s, "GET", "/v1/executions/"+id, "")
	record := decoded[map[string]any](t, w)
	created, err := time.Parse(time.RFC3339Nano, fmt.Sprint(record["created_at"]))
	if err != nil || time.Since(created) > time.Minute || time.Since(created) < 0 {
		t.Errorf("created_at is %v", record["created_at"])
	}
	if record["completed_at"] == nil || record["duration_ms"] == nil {
		t.Errorf("no end in %s", w.Body)
	}
	for name, want := range map[string]any{
		"trace_id": id, "status": "success", "language": "node", "delivery_mode": "inline", "key": s.Caller.Key.ID,
		"stdout": "hello\n", "stderr": "", "exit_code": 0.0, "error": nil, "webhook_delivery_status": nil,
		"output_truncated": false, "stdout_truncated": false, "stderr_truncated": false, "start": "cold",
	} {
		if got, ok := record[name]; !ok || got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if m, ok := record["metadata"].(map[string]any); !ok || len(m) != 2 || m["stdout"] != "" || m["a b"] != "é" {
		t.Errorf("metadata is %v", record["metadata"])
	}

	id = run(t, s, `{"code":"oom"}`)
	if record := decoded[map[string]any](t, httpapitest.Ask(s, "GET", "/v1/executions/"+id, "")); record["start"] != "cold" {
		t.Errorf("start is %v", record["start"])
	}

	id = run(t, s, `{"code":"early"}`, "Prefer", "respond-async")
	record = decoded[map[string]any](t, httpapitest.Ask(s, "GET", "/v1/executions/"+id, ""))
	for name, want := range map[string]any{"status": "running", "delivery_mode": "webhook"} {
		if record[name] != want {
			t.Errorf("running: %s is %v", name, record[name])
		}
	}
	for _, name := range []string{"stdout", "stderr", "exit_code", "error", "completed_at", "webhook_delivery_status", "output_truncated", "stdout_truncated", "stderr_truncated", "start"} {
		if got, ok := record[name]; !ok || got != nil {
			t.Errorf("running: %s is %v", name, got)
		}
	}
	httpapitest.Refused(t, httpapitest.Ask(s, "GET", "/v1/executions/"+id+"/output?stream=stdout", ""), 409, "conflict", "still running")
	if w := httpapitest.Ask(s, "POST", "/v1/executions/"+id+"/cancel", ""); w.Code != 200 {
		t.Errorf("cancel: %d %s", w.Code, w.Body)
	}
}

func TestAsync(t *testing.T) {
	s := httpapitest.New(t)
	w := httpapitest.Post(s, `{"code":"print later"}`, "Prefer", "wait=5, Respond-Async", "Accept", httpapi.NDJSON)
	got := decoded[execute.AcceptedResponse](t, w)
	if w.Code != 202 || got.Status != "running" || got.TraceID != httpapitest.TraceID(w) || w.Header().Get("Preference-Applied") != "respond-async" ||
		w.Header().Get("Location") != "/v1/executions/"+got.TraceID || !strings.HasPrefix(w.Body.String(), `{"trace_id":"trc_`) {
		t.Errorf("%d %s %s", w.Code, w.Header(), w.Body)
	}
	httpapitest.Ask(s, "GET", "/v1/executions/"+got.TraceID+"/output", "") // until its end
	record := decoded[execute.Execution](t, httpapitest.Ask(s, "GET", "/v1/executions/"+got.TraceID, ""))
	if record.Status != "success" || *record.Stdout != "later\n" || record.WebhookDeliveryStatus != nil {
		t.Errorf("it ended as %+v", record)
	}

	id := run(t, s, `{"code":"x","webhook_url":"https://hooks.example/a"}`, "Prefer", "respond-async")
	httpapitest.Ask(s, "GET", "/v1/executions/"+id+"/output", "")
	if record := decoded[execute.Execution](t, httpapitest.Ask(s, "GET", "/v1/executions/"+id, "")); record.WebhookDeliveryStatus == nil || *record.WebhookDeliveryStatus != "pending" {
		t.Errorf("its webhook is %v", record.WebhookDeliveryStatus)
	}
	httpapitest.Refused(t, httpapitest.Post(s, `{"code":"x","webhook_url":"http://localhost/"}`, "Prefer", "respond-async"), 400, "validation_error", "webhook_url is refused")
	httpapitest.Refused(t, httpapitest.Post(s, `{"code":"x","webhook_url":"https://hooks.example/a"}`), 400, "validation_error", "webhook_url needs Prefer: respond-async")
	httpapitest.Refused(t, httpapitest.Post(s, `{"code":"x","webhook_url":"https://hooks.example/a"}`, "Accept", httpapi.NDJSON), 400, "validation_error", "webhook_url needs Prefer: respond-async")
}

func TestIdempotencyKey(t *testing.T) {
	s := httpapitest.New(t)
	first := httpapitest.Post(s, `{"code":"print once","timeout":5}`, "Idempotency-Key", "k 1")
	for _, mode := range [][]string{{}, {"Accept", httpapi.NDJSON}, {"Prefer", "respond-async"}} {
		again := httpapitest.Post(s, `{"timeout":5, "code":"print once","language":"python","env_vars":{}}`, append(mode, "Idempotency-Key", "k 1")...)
		if httpapitest.TraceID(again) != httpapitest.TraceID(first) || !strings.Contains(again.Body.String(), "once") && again.Code != 202 {
			t.Errorf("%v: %d %s %s", mode, again.Code, again.Header(), again.Body)
		}
		if again.Code == 202 && decoded[execute.AcceptedResponse](t, again) != (execute.AcceptedResponse{httpapitest.TraceID(first), "success"}) {
			t.Errorf("%s", again.Body)
		}
	}
	httpapitest.Refused(t, httpapitest.Post(s, `{"code":"print twice","timeout":5}`, "Idempotency-Key", "k 1"), 409, "conflict", "Idempotency-Key")
	// Another key of the tenant has keys of its own: it neither gets the answer nor is refused.
	second := tenant.NewKey()
	if err := s.World.DB.Tenants().CreateKey(t.Context(), tenant.Key{ID: tenant.NewID("key"), Tenant: s.Caller.Tenant.ID, Environment: s.Caller.Environment.ID, Name: "second", Hash: tenant.HashKey(second), Scopes: tenant.DefaultScopes}); err != nil {
		t.Fatal(err)
	}
	for _, code := range []string{"print once", "print twice"} {
		w := httpapitest.Post(s, `{"code":"`+code+`","timeout":5}`, "Idempotency-Key", "k 1", "Authorization", "Bearer "+second)
		if code == "print once" && (w.Code != 200 || httpapitest.TraceID(w) == httpapitest.TraceID(first)) || code == "print twice" && w.Code != 409 {
			t.Errorf("another key's %q: %d %s", code, w.Code, w.Body)
		}
	}
	for _, key := range []string{" ", "ä", "a\tb", strings.Repeat("x", 256), "\x7f"} {
		w := httpapitest.Post(s, `{"code":"x"}`, "Idempotency-Key", key)
		if key == " " {
			if w.Code != 200 {
				t.Errorf("a blank: %d", w.Code)
			}
			continue
		}
		httpapitest.Refused(t, w, 400, "validation_error", "Idempotency-Key")
	}
	r := httptest.NewRequest("POST", "/v1/sandbox/execute", strings.NewReader(`{"code":"x"}`))
	r.Header = map[string][]string{"Authorization": {"Bearer " + httpapitest.Key}, "Content-Type": {"application/json"}, "Idempotency-Key": {"a", "b"}}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	httpapitest.Refused(t, w, 400, "validation_error", "Idempotency-Key")
}

func TestRawOutput(t *testing.T) {
	s := httpapitest.New(t)
	s.Executor.Program("raw", func(r *gatewaytest.Run) int {
		r.Print(execution.Stdout, "a\x00\xff\n")
		for range 100 {
			r.Print(execution.Stderr, strings.Repeat("y", 1023)+"\n")
		}
		return 0
	})
	small, large := run(t, s, `{"code":"bytes"}`), run(t, s, `{"code":"raw"}`)
	for _, c := range []struct{ id, stream, want string }{
		{small, "stdout", "\xe2\x82\xac \xff \xe2\x82\n\xf0\x9f"}, {small, "stderr", ""},
		{large, "stdout", "a\x00\xff\n"}, {large, "stderr", strings.Repeat(strings.Repeat("y", 1023)+"\n", 100)},
	} {
		w := httpapitest.Ask(s, "GET", "/v1/executions/"+c.id+"/output?stream="+c.stream, "")
		h := w.Header()
		if w.Code != 200 || w.Body.String() != c.want || h.Get("Content-Type") != "application/octet-stream" ||
			h.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(h.Get("Content-Disposition"), "attachment") || h.Get("Content-Length") != fmt.Sprint(len(c.want)) {
			t.Errorf("%s of %s: %d %s %.100q", c.stream, c.id, w.Code, h, w.Body)
		}
	}
	w := httpapitest.Ask(s, "GET", "/v1/executions/"+large+"/output?stream=stderr", "", "Range", "bytes=1020-1024")
	if w.Code != 206 || w.Body.String() != "yyy\ny" {
		t.Errorf("a range: %d %q", w.Code, w.Body)
	}
	w = httpapitest.Ask(s, "GET", "/v1/executions/"+large+"/output?stream=stderr", "", "Range", "bytes=999999-")
	httpapitest.Refused(t, w, 416, "range_not_satisfiable", "beyond the end")
	if h := w.Header(); h.Get("Content-Range") != "bytes */102400" || h.Get("Content-Disposition") != "" {
		t.Errorf("a range beyond the end: %v", h)
	}
	httpapitest.Refused(t, httpapitest.Ask(s, "GET", "/v1/executions/"+small+"/output?stream=stdin", ""), 400, "validation_error", "stream must be one of stdout, stderr")
	httpapitest.Refused(t, httpapitest.Ask(s, "GET", "/v1/executions/"+small+"/output?stream=stdout&after=1", ""), 400, "validation_error", "after")
}

// TestHead asks for heads alone; the one of a stream that runs comes at once.
func TestHead(t *testing.T) {
	s := httpapitest.New(t)
	ended, running := run(t, s, `{"code":"print hello"}`), run(t, s, `{"code":"early"}`, "Prefer", "respond-async")
	for path, kind := range map[string]string{
		"/v1/executions": "application/json", "/v1/executions/" + ended: "application/json", "/v1/usage": "application/json",
		"/v1/executions/" + ended + "/output?stream=stdout": "application/octet-stream",
		"/v1/executions/" + running + "/output":             httpapi.NDJSON,
	} {
		srv := httptest.NewServer(s)
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodHead, srv.URL+path, nil)
		r.Header.Set("Authorization", "Bearer "+httpapitest.Key)
		res, err := srv.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(res.Body); err != nil || len(body) > 0 || res.StatusCode != 200 || res.Header.Get("Content-Type") != kind {
			t.Errorf("%s: %s %v %q %v", path, res.Status, res.Header, body, err)
		}
		_ = res.Body.Close()
		srv.Close()
	}
	if w := httpapitest.Ask(s, "POST", "/v1/executions/"+running+"/cancel", ""); w.Code != 200 {
		t.Errorf("cancel: %d %s", w.Code, w.Body)
	}
}

func TestList(t *testing.T) {
	s := httpapitest.New(t)
	var ids []string
	for i := range 5 {
		ids = append(ids, run(t, s, fmt.Sprintf(`{"code":"print %d","language":"%s","metadata":{"n":"%d","odd.key=&":"%d","q'uote":"--"}}`, i, execution.Languages[i%3], i, i%2)))
	}
	failed := run(t, s, `{"code":"err"}`)
	list := func(query string) (got []string, next *string) {
		t.Helper()
		w := httpapitest.Ask(s, "GET", "/v1/executions?"+query, "")
		if w.Code != 200 {
			t.Fatalf("%s: %d %s", query, w.Code, w.Body)
		}
		if strings.Contains(w.Body.String(), `"stdout"`) {
			t.Errorf("%s: a list has output", query)
		}
		page := decoded[execute.ExecutionPage](t, w)
		for _, e := range page.Data {
			got = append(got, e.TraceID)
		}
		return got, page.NextPage
	}
	all := []string{failed, ids[4], ids[3], ids[2], ids[1], ids[0]}
	for query, want := range map[string][]string{
		"":                                      all,
		"status=success":                        all[1:],
		"status=failed":                         {failed},
		"status=running":                        nil,
		"language=node":                         {ids[4], ids[1]},
		"metadata.n=3":                          {ids[3]},
		"metadata.n=1&metadata.odd.key%3D%26=1": {ids[1]},
		"metadata.n=1&metadata.odd.key%3D%26=0": nil,
		"metadata.q%27uote=--":                  all[1:],
		"key=" + s.Caller.Key.ID:                all,
		"key=key_0000000000000000":              nil,
		"since=2020-01-01T00:00:00Z":            all,
		"before=2020-01-01T00:00:00%2B02:00":    nil,
		"limit=2":                               all[:2],
	} {
		if got, _ := list(query); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	var paged []string
	query := "limit=2"
	for {
		got, next := list(query)
		paged = append(paged, got...)
		if next == nil {
			break
		}
		query = "limit=2&page=" + url.QueryEscape(*next)
	}
	if strings.Join(paged, " ") != strings.Join(all, " ") {
		t.Errorf("by pages: %v", paged)
	}
	for query, message := range map[string]string{
		"thread_id=-a": "thread_id must be", "foo=1": `unknown query parameter "foo"`, "limit=0": "limit must be", "limit=101": "limit must be",
		"limit=x": "limit must be", "limit=1&limit=2": "must be given once", "status=done": "status must be", "status=": "status must be", "language=ruby": "language must be",
		"since=yesterday": "since must be a time", "before=2020-01-01": "before must be a time", "metadata.=x": "needs a key", "page=": "page must be", "page=nonsense": "",
		"metadata.a=%00": "without NUL", "metadata.%FF=x": "UTF-8", "metadata=x": "unknown query parameter", "a=%zz": "not well-formed", "key=": "key must be", "a;b": "not well-formed",
	} {
		httpapitest.Refused(t, httpapitest.Ask(s, "GET", "/v1/executions?"+query, ""), 400, "validation_error", message)
	}
	if w := httpapitest.Ask(s, "GET", "/v1/executions?status=running", ""); w.Body.String() != `{"data":[],"next_page":null}` {
		t.Errorf("an empty page is %s", w.Body)
	}
}

// TestInjections asks with what would break a query that is put together of
// text, and with headers that would break out of one.
func TestInjections(t *testing.T) {
	s := httpapitest.New(t)
	id := run(t, s, `{"code":"x","metadata":{"a":"b"}}`)
	for _, evil := range []string{`' OR '1'='1`, `'; DROP TABLE executions; --`, `" OR ""="`, `\' OR 1=1 --`, `%' OR '%'='`, `$1`, `?`, `1 UNION SELECT 1`, "*/ OR 1=1 /*"} {
		q := url.QueryEscape(evil)
		for _, query := range []string{"key=" + q, "metadata.a=" + q, "metadata." + q + "=b"} {
			w := httpapitest.Ask(s, "GET", "/v1/executions?"+query, "")
			if w.Code != 200 || w.Body.String() != `{"data":[],"next_page":null}` {
				t.Errorf("%s: %d %s", query, w.Code, w.Body)
			}
		}
		for _, query := range []string{"status=" + q, "language=" + q, "since=" + q, "limit=" + q, "page=" + q} {
			if w := httpapitest.Ask(s, "GET", "/v1/executions?"+query, ""); w.Code != 400 {
				t.Errorf("%s: %d %s", query, w.Code, w.Body)
			}
		}
		for _, path := range []string{"/v1/executions/" + url.PathEscape(evil), "/v1/executions/" + id + url.PathEscape(evil) + "/output"} {
			if w := httpapitest.Ask(s, "GET", path, ""); w.Code != 404 {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
		}
		httpapitest.Refused(t, httpapitest.Ask(s, "GET", "/v1/executions", "", "Authorization", "Bearer "+evil), 401, "unauthorized", "API key")
		body, _ := json.Marshal(map[string]any{"code": "x", "metadata": map[string]string{evil: evil}})
		if made := run(t, s, string(body), "Idempotency-Key", evil); !strings.Contains(httpapitest.Ask(s, "GET", "/v1/executions?metadata."+q+"="+q, "").Body.String(), made) {
			t.Errorf("metadata %q is not found", evil)
		}
	}
	if w := httpapitest.Ask(s, "GET", "/v1/executions/"+id, ""); w.Code != 200 {
		t.Errorf("what was there: %d %s", w.Code, w.Body)
	}
}

// TestTenantsAreApart tries every id of one tenant as another.
func TestTenantsAreApart(t *testing.T) {
	s := httpapitest.New(t)
	s.Principal(t, "other", "pro")
	ended := run(t, s, `{"code":"print secret","metadata":{"whose":"mine"}}`, "Idempotency-Key", "k")
	running := run(t, s, `{"code":"early"}`, "Prefer", "respond-async")
	unknown := strings.Map(func(r rune) rune {
		if r == '0' {
			return '1'
		}
		return r
	}, execution.NewTraceID())
	const other = "Authorization"
	token := "Bearer " + gatewaytest.Token("other")
	for _, id := range []string{ended, running} {
		for _, c := range [][2]string{
			{"GET", ""}, {"GET", "/output"}, {"GET", "/output?after=1"}, {"GET", "/output?stream=stdout"}, {"POST", "/cancel"}, {"GET", "/file?path=a"}, {"DELETE", ""},
		} {
			theirs := httpapitest.Ask(s, c[0], "/v1/executions/"+id+c[1], "", other, token)
			missing := httpapitest.Ask(s, c[0], "/v1/executions/"+unknown+c[1], "", other, token)
			malformed := httpapitest.Ask(s, c[0], "/v1/executions/trc_x"+c[1], "", other, token)
			httpapitest.Refused(t, theirs, 404, "not_found", "not found")
			said := strings.NewReplacer(id, "ID", unknown, "ID", "trc_x", "ID").Replace
			if said(theirs.Body.String()) != said(missing.Body.String()) || said(malformed.Body.String()) != said(missing.Body.String()) {
				t.Errorf("%s %s: %s, %s, %s", c[0], c[1], theirs.Body, missing.Body, malformed.Body)
			}
		}
	}
	for _, query := range []string{"", "metadata.whose=mine", "key=" + s.Caller.Key.ID, "status=running"} {
		if w := httpapitest.Ask(s, "GET", "/v1/executions?"+query, "", other, token); w.Body.String() != `{"data":[],"next_page":null}` {
			t.Errorf("%s: %s", query, w.Body)
		}
	}
	if id := run(t, s, `{"code":"print secret","metadata":{"whose":"mine"}}`, "Idempotency-Key", "k", other, token); id == ended {
		t.Error("an idempotency key crosses tenants")
	}
	_, page := decoded[execute.ExecutionPage](t, httpapitest.Ask(s, "GET", "/v1/executions?limit=1", "")), decoded[execute.ExecutionPage](t, httpapitest.Ask(s, "GET", "/v1/executions?limit=1", ""))
	if page.NextPage == nil {
		t.Fatal("one page only")
	}
	if w := httpapitest.Ask(s, "GET", "/v1/executions?page="+url.QueryEscape(*page.NextPage), "", other, token); strings.Contains(w.Body.String(), ended) {
		t.Errorf("a cursor crosses tenants: %s", w.Body)
	}
	if w := httpapitest.Ask(s, "GET", "/v1/usage", "", other, token); decoded[usage.Usage](t, w).Totals.Calls != 1 {
		t.Errorf("usage: %s", w.Body)
	}
	if w := httpapitest.Ask(s, "POST", "/v1/executions/"+running+"/cancel", ""); w.Code != 200 {
		t.Errorf("its own: %d %s", w.Code, w.Body)
	}
}

func TestUsage(t *testing.T) {
	s := httpapitest.New(t)
	s.Principal(t, "rich", "pro", func(p *tenant.Principal) { p.Tenant.MonthlyCredits = 5 })
	rich := []string{"Authorization", "Bearer " + gatewaytest.Token("rich")}
	for range 3 {
		run(t, s, `{"code":"x"}`, rich...)
	}
	got := decoded[usage.Usage](t, httpapitest.Ask(s, "GET", "/v1/usage", "", rich...))
	if len(got.Days) != 1 || got.Days[0].Calls != 3 || got.Days[0].Source != "execute" || got.Totals.Sessions != 3 || got.Totals.Seconds <= 0 ||
		got.Totals.Credits <= 0 || got.Month.Budget == nil || *got.Month.Budget != 5 || got.Month.Credits <= 0 || !got.Month.ResetsAt.After(time.Now()) {
		t.Errorf("got %+v", got)
	}
	none := decoded[usage.Usage](t, httpapitest.Ask(s, "GET", "/v1/usage?since=2020-01-01T00:00:00Z&before=2020-02-01T00:00:00Z", ""))
	if none.Days == nil || len(none.Days) != 0 || none.Month.Budget != nil || none.Totals != (usage.UsageAmounts{}) {
		t.Errorf("got %+v", none)
	}
	for _, query := range []string{"since=x", "days=1", "since=2020-01-02T00:00:00Z&before=2020-01-01T00:00:00Z", "since=2020-01-02T00:00:00Z"} {
		httpapitest.Refused(t, httpapitest.Ask(s, "GET", "/v1/usage?"+query, ""), 400, "validation_error", "")
	}
}
