package store_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/activity"
	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/execution/executiontest"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/infra/store"
)

// worked is a database with calls of every kind by the tenants a and b.
type worked struct {
	db      *store.DB
	running string // trace id
}

// secretText must not appear unencrypted in any column.
const secretText = "curl https://plain.example"

func work(t *testing.T, open opener) *worked {
	t.Helper()
	ctx, db := t.Context(), open(t)
	for _, id := range []string{"a", "b"} {
		must(t, db.Tenants().CreateTenant(ctx, tenant.Tenant{ID: id, Name: id, Plan: "free", Tier: tenant.Standard, AuditDays: 30, AuditText: true, CreatedAt: time.Now()}))
		must(t, db.Tenants().CreateEnvironment(ctx, tenant.Environment{ID: "env_" + id, Tenant: id, Name: "main", Image: "default", Limits: runtime.DefaultLimits(), CreatedAt: time.Now()}))
		must(t, db.Tenants().CreateKey(ctx, tenant.Key{ID: "key_" + id, Tenant: id, Environment: "env_" + id, Name: "ci", Hash: tenant.HashKey(id), Scopes: tenant.DefaultScopes, CreatedAt: time.Now()}))
	}
	by := execution.Origin{Agent: "agt_1", Session: "sess_1", Turn: "turn_1", Tool: "run_code"}
	admit := func(of, text string, by execution.Origin) string {
		e := executiontest.New(of, func(e *execution.Execution) {
			e.Key, e.Environment, e.Source, e.Text, e.By, e.Thread = "key_"+of, "env_"+of, execution.SourceResponse, text, by, "th_1"
			e.CreatedAt = time.Time{}
		})
		_, err := db.Executions().Admit(ctx, e, execution.Admission{})
		must(t, err)
		return e.TraceID
	}
	done := admit("a", secretText, by)
	_, _, err := db.Executions().Conclude(ctx, execution.Result{TraceID: done, Status: execution.Success, CompletedAt: time.Now()}, func(e *execution.Execution) execution.Consequences {
		return execution.Consequences{
			Audit: audit.Row{Key: e.Key, Environment: e.Environment, Source: string(e.Source), Agent: e.By.Agent, SessionID: e.By.Session, Turn: e.By.Turn, Thread: e.Thread, CodeSHA256: e.CodeSHA256, ExitStatus: audit.OK, Credits: 0.25},
			Usage: usage.Entry{Key: e.Key, Source: string(e.Source), Agent: e.By.Agent, Session: e.By.Session, Credits: 0.25},
		}
	})
	must(t, err)
	call := func(of, source, trace, sandbox, key, text string) {
		must(t, db.Sandboxes().Record(ctx, audit.Row{
			TraceID: trace, Tenant: of, Key: key, Environment: "env_" + of, Source: source, SessionID: "pool", Sandbox: sandbox, CodeSHA256: sha256.Sum256([]byte(text)), ExitStatus: audit.Error, ExitCode: 3, Text: text,
		}, usage.Entry{}))
	}
	call("a", "process", "trc_process", "sb-1", "tok_a_0123456789abcdef", secretText)
	call("a", "file_read", "trc_file", "sb-1", "key_other", "")
	call("b", "shell", "trc_other", "sb-2", "key_b", "another tenant's")
	return &worked{db, admit("a", "", by)}
}

func (w *worked) list(t *testing.T, f activity.Filter) (out []string) {
	t.Helper()
	f.Limit = 100
	page, next, err := w.db.Activity().Activity(t.Context(), f)
	must(t, err)
	if next != "" {
		t.Error("got more than one page")
	}
	for i := range page {
		out = append(out, page[i].Source+"/"+string(page[i].ExitStatus))
	}
	return out
}

// testActivity checks that one list contains audit rows and running executions with names, texts
// and cost. Every filter must return the expected entries and none of another tenant.
func testActivity(t *testing.T, open opener) {
	w := work(t, open)
	all := []string{"response/", "file_read/error", "process/error", "response/ok"}
	digest := sha256.Sum256([]byte(secretText))
	for what, test := range map[string]struct {
		f    activity.Filter
		want []string
	}{
		"all":         {activity.Filter{}, all},
		"key":         {activity.Filter{Key: "key_a"}, []string{"response/", "process/error", "response/ok"}},
		"agent":       {activity.Filter{Agent: "agt_1"}, []string{"response/", "response/ok"}},
		"session":     {activity.Filter{Session: "sess_1"}, []string{"response/", "response/ok"}},
		"pool":        {activity.Filter{Session: "pool"}, []string{"file_read/error", "process/error"}},
		"turn":        {activity.Filter{Turn: "turn_1"}, []string{"response/", "response/ok"}},
		"sandbox":     {activity.Filter{Sandbox: "sb-1"}, []string{"file_read/error", "process/error"}},
		"thread":      {activity.Filter{Thread: "th_1"}, []string{"response/", "response/ok"}},
		"environment": {activity.Filter{Environment: "env_a"}, all},
		"kind":        {activity.Filter{Kind: activity.Command}, []string{"process/error"}},
		"other kinds": {activity.Filter{Kind: activity.Other}, nil},
		"source":      {activity.Filter{Source: "response"}, []string{"response/", "response/ok"}},
		"status":      {activity.Filter{Status: "ok"}, []string{"response/ok"}},
		"running":     {activity.Filter{Status: activity.Running}, []string{"response/"}},
		"hash":        {activity.Filter{CodeSHA256: digest[:]}, []string{"process/error"}},
		"since":       {activity.Filter{Since: time.Now().Add(time.Hour)}, nil},
		"before":      {activity.Filter{Before: time.Now().Add(-time.Hour)}, nil},
		"another's":   {activity.Filter{Sandbox: "sb-2"}, nil},
	} {
		test.f.Tenant = "a"
		if got := w.list(t, test.f); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", what, got, test.want)
		}
	}
	page, _, err := w.db.Activity().Activity(t.Context(), activity.Filter{Tenant: "a", Limit: 10})
	must(t, err)
	still, file, process, code := page[0], page[1], page[2], page[3]
	if !still.Running || still.TraceID != w.running || still.Agent != "agt_1" || still.SessionID != "sess_1" || still.Turn != "turn_1" || still.Text != "" {
		t.Errorf("running: %+v", still)
	}
	if code.Text != secretText || code.Credits != 0.25 || code.KeyName != "ci" || code.EnvironmentName != "main" || code.Kind() != activity.Code {
		t.Errorf("the code is %+v", code)
	}
	if process.Text != secretText || process.KeyName != "ci" || process.ExitCode != 3 || file.KeyName != "" || file.Text != "" {
		t.Errorf("the process is %+v, the file %+v", process, file)
	}
	testActivityTextsOff(t, w)
	testActivityAtRest(t, w)
	testActivityPages(t, w)
}

// testActivityTextsOff checks that Atoll hides older texts while a tenant keeps no texts.
func testActivityTextsOff(t *testing.T, w *worked) {
	ctx := t.Context()
	for _, on := range []bool{false, true} {
		_, err := w.db.Tenants().ChangeTenant(ctx, "a", func(of *tenant.Tenant) ([]tenant.PolicyEvent, error) { of.AuditText = on; return nil, nil })
		must(t, err)
		page, _, err := w.db.Activity().Activity(ctx, activity.Filter{Tenant: "a", Limit: 10})
		must(t, err)
		if shown := slices.ContainsFunc(page, func(e activity.Entry) bool { return e.Text != "" }); shown != on {
			t.Errorf("with audit_text %v, texts are shown: %v", on, shown)
		}
	}
}

// testActivityAtRest checks that texts are encrypted and are deleted with their audit rows.
func testActivityAtRest(t *testing.T, w *worked) {
	rows, err := w.db.SQL().QueryContext(t.Context(), `SELECT text FROM activity_texts`)
	must(t, err)
	n := 0
	for rows.Next() {
		var sealed []byte
		must(t, rows.Scan(&sealed))
		if n++; bytes.Contains(sealed, []byte("plain.example")) {
			t.Error("a text is stored in plain")
		}
	}
	must(t, rows.Err())
	must(t, rows.Close())
	if n != 3 {
		t.Errorf("%d texts are kept", n)
	}
	_, err = w.db.SQL().ExecContext(t.Context(), fmt.Sprintf(`UPDATE activity_texts SET expires_at = expires_at - %d WHERE tenant = 'a'`, 31*day.Microseconds()))
	must(t, err)
	_, err = w.db.Audit().Purge(t.Context(), 10)
	must(t, err)
	must(t, w.db.SQL().QueryRowContext(t.Context(), `SELECT count(*) FROM activity_texts`).Scan(&n))
	if n != 1 {
		t.Errorf("%d texts are left", n)
	}
}

// testActivityPages checks that pages continue across the boundary between running and ended
// calls, and that a cursor works only for its tenant.
func testActivityPages(t *testing.T, w *worked) {
	var got []string
	f := activity.Filter{Tenant: "a", Limit: 1}
	for range 10 {
		page, next, err := w.db.Activity().Activity(t.Context(), f)
		must(t, err)
		for i := range page {
			got = append(got, page[i].Source)
		}
		if f.Cursor = next; next == "" {
			break
		}
		if _, _, err := w.db.Activity().Activity(t.Context(), activity.Filter{Tenant: "b", Limit: 1, Cursor: next}); fault.KindOf(err) != fault.Invalid {
			t.Errorf("the cursor of another tenant: %v", err)
		}
	}
	if want := []string{"response", "file_read", "process", "response"}; !slices.Equal(got, want) {
		t.Errorf("page by page %q, want %q", got, want)
	}
	if _, _, err := w.db.Activity().Activity(t.Context(), activity.Filter{Tenant: "a"}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a page without a limit: %v", err)
	}
}
