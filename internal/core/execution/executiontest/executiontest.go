// Package executiontest is the suite that every execution.Store passes.
package executiontest

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/test/check"
)

// Opened is an empty store, with what is recorded beside it.
type Opened struct {
	Store execution.Store
	Audit audit.Store
	Usage usage.Store
	// AgeKeys makes idempotency keys look as if they had been used earlier, and
	// returns how many there are.
	AgeKeys func(t *testing.T, by time.Duration) int
}

// Store runs the suite.
func Store(t *testing.T, open func(t *testing.T) Opened) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, o Opened)
	}{
		{"a record comes back whole", testRecord},
		{"what a record does not say is filled in", testDefaults},
		{"a trace id is used once", testTraceID},
		{"the end comes back whole", testEnd},
		{"the first end counts", testFirst},
		{"an end of nothing is none", testUnknown},
		{"ends at the same time", testEndRace},
		{"an end that breaks a rule hurts no other", testBadEnd},
		{"an end is not before its beginning", testClocks},
		{"output is bytes", testOutput},
		{"webhooks", testWebhook},
		{"what is not started costs nothing", testNotStarted},

		{"no more run than the plan allows", testConcurrency},
		{"no more run than the plan allows, all at once", testConcurrencyRace},
		{"a budget ends admission", testBudget},
		{"what ended executions keep ends admission", testOutputs},
		{"what is kept, all at once", testOutputsRace},
		{"an idempotency key stands for its execution", testIdempotency},
		{"an idempotency key at the same time", testIdempotencyRace},
		{"an idempotency key has its day", testIdempotencyDay},
		{"who has given up is not admitted", testCancelled},

		{"lists are newest first, in pages", testPages},
		{"filters", testFilters},
		{"a cursor is its list's alone", testCursor},
		{"a filter that breaks a rule is refused", testBadFilter},
		{"what is unfinished", testUnfinished},
		{"what is expired goes", testExpired},
		{"what was in use", testRecent},

		{"what is another tenant's does not exist", testOthers},
		{"hostile text is text", testHostile},
		{"text that is none is refused", testNoText},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

var (
	must     = check.Must
	wantKind = check.Kind
	wantSame = check.Same
)

func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// New is an execution of a tenant that was not admitted yet.
func New(tenant string, change ...func(*execution.Execution)) *execution.Execution {
	e := &execution.Execution{
		TraceID: execution.NewTraceID(), Tenant: tenant, Key: "key_1", Environment: "env_1", Source: execution.SourceAPI, Delivery: execution.Inline,
		Language: execution.Python, Timeout: time.Minute, CodeSHA256: sha256.Sum256([]byte("code")), CPU: 1, Memory: 512 << 20, CreatedAt: now(),
	}
	for _, f := range change {
		f(e)
	}
	return e
}

// admit admits a new execution without any bound.
func admit(t *testing.T, o Opened, tenant string, change ...func(*execution.Execution)) *execution.Execution {
	t.Helper()
	e := New(tenant, change...)
	earlier, err := o.Store.Admit(t.Context(), e, execution.Admission{})
	must(t, err)
	if earlier != nil {
		t.Fatalf("%s is taken for %s", e.TraceID, earlier.TraceID)
	}
	return e
}

// Follow is what follows from any end: a row, and an entry of so many credits.
func Follow(credits float64) func(*execution.Execution) execution.Consequences {
	return func(e *execution.Execution) execution.Consequences {
		status := audit.OK
		if e.Status != execution.Success {
			status = audit.Error
		}
		return execution.Consequences{
			Audit: audit.Row{Source: string(e.Source), ExitStatus: status, Metadata: e.Metadata},
			Usage: usage.Entry{Source: string(e.Source), Seconds: e.Duration().Seconds(), Credits: credits},
		}
	}
}

// end concludes an execution, which must be the first to do so.
func end(t *testing.T, o Opened, e *execution.Execution, status execution.Status) *execution.Execution {
	t.Helper()
	got, first, err := o.Store.Conclude(t.Context(), execution.Result{TraceID: e.TraceID, Status: status, CompletedAt: now()}, Follow(1))
	must(t, err)
	if !first {
		t.Fatalf("%s had ended", e.TraceID)
	}
	return got
}

func testRecord(t *testing.T, o Opened) {
	want := New("a", func(e *execution.Execution) {
		e.Source, e.Delivery, e.Agent, e.Turn, e.Language = execution.SourceExecuteCode, execution.Async, "agent", "turn", execution.Bash
		e.Timeout, e.CPU, e.Memory = 1500*time.Millisecond, 0.25, 1<<40
		e.Metadata = map[string]string{"k": "v", "ü": "\"x\"\n"}
		e.Webhook = execution.WebhookTarget{URL: "https://example.com/?a=b&c", Secret: "whsec_x"}
		e.WebhookStatus = execution.WebhookPending
	})
	if _, err := o.Store.Admit(t.Context(), want, execution.Admission{}); err != nil {
		t.Fatal(err)
	}
	if want.Status != execution.Running {
		t.Errorf("an admitted execution is %q", want.Status)
	}
	got, err := o.Store.Get(t.Context(), "a", want.TraceID)
	must(t, err)
	wantSame(t, got, want)
	if got.CreatedAt.Location() != time.UTC {
		t.Errorf("created in %v", got.CreatedAt.Location())
	}
}

func testDefaults(t *testing.T, o Opened) {
	e := admit(t, o, "a", func(e *execution.Execution) { e.CreatedAt = time.Time{} })
	if time.Since(e.CreatedAt).Abs() > time.Minute || e.CreatedAt != e.CreatedAt.Truncate(time.Microsecond) {
		t.Errorf("created at %v", e.CreatedAt)
	}
	precise := admit(t, o, "a", func(e *execution.Execution) { e.CreatedAt = time.Unix(1e9, 123456789).In(time.FixedZone("x", 3600)) })
	got, err := o.Store.Get(t.Context(), "a", precise.TraceID)
	must(t, err)
	if want := time.Unix(1e9, 123456000).UTC(); got.CreatedAt != want || precise.CreatedAt != want {
		t.Errorf("created at %v, %v", got.CreatedAt, precise.CreatedAt)
	}
}

func testTraceID(t *testing.T, o Opened) {
	e := admit(t, o, "a")
	for _, tenant := range []string{"a", "b"} {
		again := New(tenant, func(v *execution.Execution) { v.TraceID = e.TraceID })
		_, err := o.Store.Admit(t.Context(), again, execution.Admission{})
		wantKind(t, "a trace id twice", err, fault.Conflict)
	}
	got, err := o.Store.Get(t.Context(), "a", e.TraceID)
	must(t, err)
	wantSame(t, got, e)
}

func testUnfinished(t *testing.T, o Opened) {
	start := now().Add(-time.Hour)
	at := func(minutes int) func(*execution.Execution) {
		return func(e *execution.Execution) { e.CreatedAt = start.Add(time.Duration(minutes) * time.Minute) }
	}
	third, first, second := admit(t, o, "a", at(3)), admit(t, o, "b", at(1)), admit(t, o, "a", at(2))
	end(t, o, admit(t, o, "a", at(0)), execution.Success)
	for _, c := range []struct {
		before time.Time
		limit  int
		want   []*execution.Execution
	}{
		{start.Add(time.Hour), 10, []*execution.Execution{first, second, third}},
		{start.Add(time.Hour), 2, []*execution.Execution{first, second}},
		{third.CreatedAt, 10, []*execution.Execution{first, second}},
		{start, 10, nil},
	} {
		got, err := o.Store.Unfinished(t.Context(), c.before, c.limit)
		must(t, err)
		wantSame(t, got, c.want)
	}
}

func testExpired(t *testing.T, o Opened) {
	running := admit(t, o, "a")
	var ended []*execution.Execution
	for i := range 3 {
		e := admit(t, o, "a", func(e *execution.Execution) {
			e.CreatedAt = now().Add(time.Duration(i-10) * time.Hour)
			e.Metadata = map[string]string{"n": fmt.Sprint(i), "x": "y"}
		})
		got, _, err := o.Store.Conclude(t.Context(), execution.Result{TraceID: e.TraceID, Status: execution.Success, Stdout: []byte("out"), CompletedAt: e.CreatedAt.Add(time.Minute)}, Follow(1))
		must(t, err)
		got.Stdout, got.Stderr = nil, nil
		ended = append(ended, got)
	}
	got, err := o.Store.Expired(t.Context(), 0, 2)
	must(t, err)
	wantSame(t, got, ended[:2])
	got, err = o.Store.Expired(t.Context(), 9*time.Hour+30*time.Minute, 10)
	must(t, err)
	wantSame(t, got, ended[:1])

	must(t, o.Store.Delete(t.Context(), []string{ended[0].TraceID, running.TraceID, "trc_none", ended[1].TraceID}))
	must(t, o.Store.Delete(t.Context(), nil))
	for _, e := range ended[:2] {
		_, err := o.Store.Output(t.Context(), "a", e.TraceID)
		wantKind(t, "a deleted execution", err, fault.NotFound)
	}
	page, _, err := o.Store.List(t.Context(), execution.Filter{Tenant: "a", Metadata: map[string]string{"x": "y"}, Limit: 10})
	must(t, err)
	wantSame(t, page, ended[2:])
	if _, err := o.Store.Get(t.Context(), "a", running.TraceID); err != nil {
		t.Errorf("a running execution went: %v", err)
	}
	end(t, o, running, execution.Success)
}

func testRecent(t *testing.T, o Opened) {
	ended := now()
	ago := func(d time.Duration, start execution.Start, change ...func(*execution.Execution)) {
		at := ended.Add(-d)
		e := admit(t, o, "a", append([]func(*execution.Execution){func(e *execution.Execution) { e.CreatedAt = at.Add(-time.Second) }}, change...)...)
		_, _, err := o.Store.Conclude(t.Context(), execution.Result{TraceID: e.TraceID, Status: execution.Failed, Start: start, NotStarted: start == "", CompletedAt: at}, Follow(1))
		must(t, err)
	}
	node := func(e *execution.Execution) { e.Language = execution.Node }
	ago(30*time.Hour, execution.StartCold, func(e *execution.Execution) { e.Environment = "env_old" })
	ago(3*time.Hour, execution.StartWarm)
	ago(2*time.Hour, execution.StartCold, node)
	ago(1*time.Hour, execution.StartCold)
	ago(4*time.Hour, execution.StartWarm, node, func(e *execution.Execution) { e.Key = "key_2" })
	ago(5*time.Hour, execution.StartWarm, func(e *execution.Execution) { e.Thread = "thr" })
	ago(time.Minute, "", func(e *execution.Execution) { e.Environment = "env_full" })
	ago(time.Minute, execution.StartWarm, func(e *execution.Execution) { e.Source = execution.SourceExecuteCode })
	admit(t, o, "a", func(e *execution.Execution) { e.Environment = "env_running" })
	want := []execution.Use{
		{Tenant: "a", Key: "key_1", Environment: "env_1", Language: execution.Python, Last: ended.Add(-1 * time.Hour)},
		{Tenant: "a", Key: "key_1", Environment: "env_1", Language: execution.Node, Last: ended.Add(-2 * time.Hour)},
		{Tenant: "a", Key: "key_2", Environment: "env_1", Language: execution.Node, Last: ended.Add(-4 * time.Hour)},
		{Tenant: "a", Key: "key_1", Environment: "env_1", Language: execution.Python, Thread: true, Last: ended.Add(-5 * time.Hour)},
	}
	for limit := range 6 {
		got, err := o.Store.Recent(t.Context(), 24*time.Hour, limit)
		must(t, err)
		if !slices.Equal(got, want[:min(limit, len(want))]) {
			t.Errorf("the newest %d are %+v", limit, got)
		}
	}
}

func testOthers(t *testing.T, o Opened) {
	ctx := t.Context()
	e := admit(t, o, "a", func(e *execution.Execution) { e.Metadata = map[string]string{"k": "v"} })
	end(t, o, e, execution.Success)
	for _, tenant := range []string{"b", "", "a' OR '1'='1", "%", "a "} {
		_, err := o.Store.Get(ctx, tenant, e.TraceID)
		wantKind(t, "get", err, fault.NotFound)
		_, err = o.Store.Output(ctx, tenant, e.TraceID)
		wantKind(t, "output", err, fault.NotFound)
		for _, f := range []execution.Filter{{}, {Key: e.Key}, {Metadata: e.Metadata}, {Status: execution.Success}} {
			f.Tenant, f.Limit = tenant, 10
			page, _, err := o.Store.List(ctx, f)
			must(t, err)
			if len(page) != 0 {
				t.Errorf("%q sees %d executions by %+v", tenant, len(page), f)
			}
		}
	}
}

func testHostile(t *testing.T, o Opened) {
	ctx := t.Context()
	for _, text := range []string{
		`'; DROP TABLE executions; --`, `" OR ""="`, `a' OR '1'='1`, `\'; --`, `%`, `_`, `?`, `$1`, `:name`, `{{.}}`, "\n\t\r", "\u202e", "ключ", "🗝️", `{"a":1}`, `null`, `\u0000`,
	} {
		want := New("a", func(e *execution.Execution) {
			e.TraceID, e.Key, e.Environment, e.Agent, e.Turn = text, text, text, text, text
			e.Webhook = execution.WebhookTarget{URL: text, Secret: text}
			e.Metadata = map[string]string{text: text}
		})
		if _, err := o.Store.Admit(ctx, want, execution.Admission{IdempotencyKey: text, Concurrency: 100}); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		got, err := o.Store.Get(ctx, "a", text)
		must(t, err)
		wantSame(t, got, want)
		page, _, err := o.Store.List(ctx, execution.Filter{Tenant: "a", Key: text, Metadata: map[string]string{text: text}, Limit: 10})
		must(t, err)
		if len(page) != 1 || page[0].TraceID != text {
			t.Errorf("%q: listed %d", text, len(page))
		}
		earlier, err := o.Store.Admit(ctx, New("a"), execution.Admission{IdempotencyKey: text})
		if err != nil || earlier == nil || earlier.TraceID != text {
			t.Errorf("%q: %v, %v", text, earlier, err)
		}
		e, first, err := o.Store.Conclude(ctx, execution.Result{TraceID: text, Status: execution.Failed, Error: text, Stdout: []byte(text)}, Follow(1))
		if err != nil || !first || e.Error != text {
			t.Errorf("%q: %v, %v", text, first, err)
		}
	}
}

func testNoText(t *testing.T, o Opened) {
	ctx := t.Context()
	for _, bad := range []string{"a\x00b", "\xff"} {
		for what, change := range map[string]func(*execution.Execution){
			"trace id":       func(e *execution.Execution) { e.TraceID = bad },
			"agent":          func(e *execution.Execution) { e.Agent = bad },
			"turn":           func(e *execution.Execution) { e.Turn = bad },
			"URL":            func(e *execution.Execution) { e.Webhook.URL = bad },
			"metadata key":   func(e *execution.Execution) { e.Metadata = map[string]string{bad: ""} },
			"metadata value": func(e *execution.Execution) { e.Metadata = map[string]string{"": bad} },
		} {
			_, err := o.Store.Admit(ctx, New("a", change), execution.Admission{})
			wantKind(t, what, err, fault.Invalid)
		}
		_, err := o.Store.Admit(ctx, New("a"), execution.Admission{IdempotencyKey: bad})
		wantKind(t, "idempotency key", err, fault.Invalid)
		_, err = o.Store.Get(ctx, "a", bad)
		wantKind(t, "get", err, fault.Invalid)
		_, _, err = o.Store.List(ctx, execution.Filter{Tenant: "a", Metadata: map[string]string{"k": bad}, Limit: 1})
		wantKind(t, "list", err, fault.Invalid)
		// What an executor says is kept in any case: the end of a run is not refused
		// for a message.
		e := admit(t, o, "a")
		got, first, err := o.Store.Conclude(ctx, execution.Result{TraceID: e.TraceID, Status: execution.Failed, Error: bad}, Follow(1))
		if err != nil || !first || got.Error == "" {
			t.Errorf("%q as an error: %v, %v", bad, first, err)
		}
	}
}
