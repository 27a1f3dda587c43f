// Package audittest is the suite that every audit.Store passes.
package audittest

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/test/check"
)

// Opened is an empty store.
type Opened struct {
	Store audit.Store
	// Age makes every row look as if it had been appended earlier, behind the
	// store's back.
	Age func(t *testing.T, by time.Duration)
}

// Store runs the suite.
func Store(t *testing.T, open func(t *testing.T) Opened) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, o Opened)
	}{
		{"a row comes back whole", testRow},
		{"a row that breaks a rule is refused", testRefused},
		{"lists are newest first, in pages", testPages},
		{"filters", testFilters},
		{"a cursor is its list's alone", testCursor},
		{"an export has every row in order", testExport},
		{"seals are a chain and cover every row once", testSeal},
		{"a seal covers at most what it may", testMost},
		{"seals at the same time", testSealRace},
		{"appending does not wait for a seal", testAppendWhileSealing},
		{"a seal that was made for something else is refused", testWrongSeal},
		{"rows go when their time has passed and they are sealed", testPurge},
		{"tenants have their own", testOwn},
		{"hostile text is text", testHostile},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

var (
	must     = check.Must
	wantKind = check.Kind
)

// row is a valid row.
func row(tenant, trace string, change ...func(*audit.Row)) audit.Row {
	r := audit.Row{
		TraceID: trace, Tenant: tenant, Key: "key_1", Environment: "env_1", Source: "execute", Language: "python",
		CodeSHA256: sha256.Sum256([]byte(trace)), ExitStatus: audit.OK, Retention: audit.DefaultRetention,
	}
	for _, f := range change {
		f(&r)
	}
	return r
}

func appendRows(t *testing.T, o Opened, rows ...audit.Row) {
	t.Helper()
	for _, r := range rows {
		must(t, o.Store.Append(t.Context(), r))
	}
}

func list(t *testing.T, o Opened, f audit.Filter) []audit.Row {
	t.Helper()
	f.Limit = 1000
	page, next, err := o.Store.List(t.Context(), f)
	must(t, err)
	if next != "" {
		t.Errorf("there is more than %d rows", f.Limit)
	}
	return page
}

func traces(rows []audit.Row) []string {
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.TraceID
	}
	return ids
}

func testRow(t *testing.T, o Opened) {
	want := audit.Row{
		TraceID: "trc_1", Tenant: "a", Key: "key_1", Environment: "env_1", Source: "execute_code", Agent: "agent", SessionID: "turn", Language: "bash",
		Turn: "turn_1", Sandbox: "sb-1", Thread: "th_1", Credits: 0.125, Cost: 1 << 40,
		CodeSHA256: sha256.Sum256([]byte("x")), ExitStatus: audit.Provisioning, ExitCode: -1, FailureReason: "no sandbox", DurationMS: 12345,
		StdoutBytes: 1 << 40, StderrBytes: 7, StdoutTruncated: true, StderrTruncated: true, PeakMemory: 1 << 33,
		OutboundHosts: []string{"a.example", "b.example"}, Metadata: map[string]string{"k": "v", "ü": "\"x\""}, Retention: audit.MaxRetention,
	}
	appendRows(t, o, want)
	got := list(t, o, audit.Filter{Tenant: "a"})
	if len(got) != 1 {
		t.Fatalf("got %d rows", len(got))
	}
	if got[0].ID <= 0 || time.Since(got[0].CreatedAt).Abs() > time.Minute || got[0].CreatedAt.Location() != time.UTC || got[0].CreatedAt != got[0].CreatedAt.Truncate(time.Microsecond) {
		t.Errorf("id %d, created at %v", got[0].ID, got[0].CreatedAt)
	}
	want.ID, want.CreatedAt = got[0].ID, got[0].CreatedAt
	if !reflect.DeepEqual(got[0], want) {
		t.Errorf("got  %+v\nwant %+v", got[0], want)
	}
}

func testRefused(t *testing.T, o Opened) {
	for what, change := range map[string]func(*audit.Row){
		"kept for too long":       func(r *audit.Row) { r.Retention = audit.MaxRetention + 24*time.Hour },
		"kept for less than none": func(r *audit.Row) { r.Retention = -24 * time.Hour },
		"kept for half a day":     func(r *audit.Row) { r.Retention = 36 * time.Hour },
		"no status":               func(r *audit.Row) { r.ExitStatus = "" },
		"an unknown status":       func(r *audit.Row) { r.ExitStatus = "fine" },
		"a NUL":                   func(r *audit.Row) { r.Agent = "a\x00" },
		"a NUL in metadata":       func(r *audit.Row) { r.Metadata = map[string]string{"a": "\x00"} },
		"a NUL in a host":         func(r *audit.Row) { r.OutboundHosts = []string{"\x00"} },
		"no UTF-8":                func(r *audit.Row) { r.Metadata = map[string]string{"\xff": ""} },
	} {
		wantKind(t, what, o.Store.Append(t.Context(), row("a", "trc_1", change)), fault.Invalid)
	}
	if got := list(t, o, audit.Filter{Tenant: "a"}); len(got) != 0 {
		t.Errorf("got %d rows", len(got))
	}
}

func testPages(t *testing.T, o Opened) {
	const rows = 23
	var wg sync.WaitGroup
	for i := range rows { // some at the same microsecond
		wg.Go(func() {
			if err := o.Store.Append(t.Context(), row("a", fmt.Sprintf("trc_%d", i))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var all []audit.Row
	cursor := ""
	for pages := 1; ; pages++ {
		page, next, err := o.Store.List(t.Context(), audit.Filter{Tenant: "a", Limit: 5, Cursor: cursor})
		must(t, err)
		all = append(all, page...)
		if next == "" {
			if pages != 5 {
				t.Errorf("got %d pages", pages)
			}
			break
		}
		cursor = next
	}
	seen := map[int64]bool{}
	for i, r := range all {
		seen[r.ID] = true
		if i > 0 && r.CreatedAt.After(all[i-1].CreatedAt) {
			t.Errorf("row %d is newer than the one before", i)
		}
	}
	if len(all) != rows || len(seen) != rows {
		t.Errorf("got %d rows, %d different", len(all), len(seen))
	}
	for _, limit := range []int{0, -1, 1001} {
		_, _, err := o.Store.List(t.Context(), audit.Filter{Tenant: "a", Limit: limit})
		wantKind(t, fmt.Sprintf("limit %d", limit), err, fault.Invalid)
	}
}

func testFilters(t *testing.T, o Opened) {
	appendRows(t, o,
		row("a", "trc_1", func(r *audit.Row) { r.Key = "key_2"; r.Metadata = map[string]string{"env": "prod", "n": "1"} }),
		row("a", "trc_2", func(r *audit.Row) { r.Agent = "support"; r.SessionID = "turn_1"; r.Source = "execute_code" }),
		row("a", "trc_3", func(r *audit.Row) {
			r.ExitStatus = audit.CapExceeded
			r.Metadata = map[string]string{"env": "prod", "n": "2"}
		}),
		row("b", "trc_1", func(r *audit.Row) { r.Metadata = map[string]string{"env": "prod"} }),
	)
	all := list(t, o, audit.Filter{Tenant: "a"})
	if len(all) != 3 {
		t.Fatalf("got %d rows", len(all))
	}
	sum := sha256.Sum256([]byte("trc_2"))
	for what, c := range map[string]struct {
		f    audit.Filter
		want []string
	}{
		"key":        {audit.Filter{Key: "key_2"}, []string{"trc_1"}},
		"agent":      {audit.Filter{Agent: "support"}, []string{"trc_2"}},
		"session":    {audit.Filter{SessionID: "turn_1"}, []string{"trc_2"}},
		"source":     {audit.Filter{Source: "execute"}, []string{"trc_3", "trc_1"}},
		"status":     {audit.Filter{ExitStatus: audit.CapExceeded}, []string{"trc_3"}},
		"trace":      {audit.Filter{TraceID: "trc_1"}, []string{"trc_1"}},
		"code":       {audit.Filter{CodeSHA256: sum[:]}, []string{"trc_2"}},
		"metadata":   {audit.Filter{Metadata: map[string]string{"env": "prod"}}, []string{"trc_3", "trc_1"}},
		"two pairs":  {audit.Filter{Metadata: map[string]string{"env": "prod", "n": "1"}}, []string{"trc_1"}},
		"no pair":    {audit.Filter{Metadata: map[string]string{"env": "1"}}, []string{}},
		"everything": {audit.Filter{Key: "key_1", Source: "execute", Metadata: map[string]string{"n": "2"}}, []string{"trc_3"}},
		"since":      {audit.Filter{Since: all[1].CreatedAt}, []string{"trc_3", "trc_2"}},
		"before":     {audit.Filter{Before: all[1].CreatedAt}, []string{"trc_1"}},
	} {
		c.f.Tenant = "a"
		if got := traces(list(t, o, c.f)); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", what, got, c.want)
		}
	}
}

func testCursor(t *testing.T, o Opened) {
	for i := range 3 {
		appendRows(t, o, row("a", fmt.Sprint(i)), row("b", fmt.Sprint(i)))
	}
	_, next, err := o.Store.List(t.Context(), audit.Filter{Tenant: "a", Limit: 1})
	must(t, err)
	_, _, err = o.Store.List(t.Context(), audit.Filter{Tenant: "b", Limit: 1, Cursor: next})
	wantKind(t, "another tenant's cursor", err, fault.Invalid)
	for i := range len(next) {
		changed := []byte(next)
		changed[i] ^= 1
		_, _, err = o.Store.List(t.Context(), audit.Filter{Tenant: "a", Limit: 1, Cursor: string(changed)})
		wantKind(t, fmt.Sprintf("a cursor whose character %d was changed", i), err, fault.Invalid)
	}
}

func testExport(t *testing.T, o Opened) {
	const rows = 1203 // more than are read at a time
	var wg sync.WaitGroup
	for i := range rows {
		wg.Go(func() {
			if err := o.Store.Append(t.Context(), row("a", fmt.Sprint(i))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	appendRows(t, o, row("b", "other"))
	count := func(since, before time.Time) (n int) {
		t.Helper()
		var last audit.Row
		for r, err := range o.Store.Export(t.Context(), "a", since, before) {
			must(t, err)
			if cmp.Or(last.CreatedAt.Compare(r.CreatedAt), cmp.Compare(last.ID, r.ID)) >= 0 || r.Tenant != "a" {
				t.Fatalf("row %d of %s after %d", r.ID, r.Tenant, last.ID)
			}
			last = r
			n++
		}
		return n
	}
	if n := count(time.Time{}, time.Time{}); n != rows {
		t.Errorf("got %d rows", n)
	}
	page, _, err := o.Store.List(t.Context(), audit.Filter{Tenant: "a", Limit: 101})
	must(t, err)
	at := page[100].CreatedAt
	if since, before := count(at, time.Time{}), count(time.Time{}, at); since < 101 || since+before != rows {
		t.Errorf("%d rows since, %d before", since, before)
	}
	if n := count(time.Now().Add(time.Hour), time.Time{}); n != 0 {
		t.Errorf("%d rows of the future", n)
	}
	for range o.Store.Export(t.Context(), "a", time.Time{}, time.Time{}) {
		break // and the store is not held
	}
	appendRows(t, o, row("a", "after"))
}

func testOwn(t *testing.T, o Opened) {
	appendRows(t, o, row("a", "trc_1"))
	for _, tenant := range []string{"b", "", "a' OR '1'='1", "%"} {
		if got := list(t, o, audit.Filter{Tenant: tenant, TraceID: "trc_1"}); len(got) != 0 {
			t.Errorf("%q sees %d rows", tenant, len(got))
		}
		for range o.Store.Export(t.Context(), tenant, time.Time{}, time.Time{}) {
			t.Errorf("%q exports a row", tenant)
		}
	}
}

func testHostile(t *testing.T, o Opened) {
	for _, text := range []string{`'; DROP TABLE audit_rows; --`, `a' OR '1'='1`, `?`, `$1`, `%`, `{"a":1}`, "\n", "🗝️", `$.a`, `a.b[0]`, `"`, `\`} {
		want := row("a", text, func(r *audit.Row) { r.Agent, r.SessionID, r.Metadata = text, text, map[string]string{text: text} })
		appendRows(t, o, want)
		got := list(t, o, audit.Filter{Tenant: "a", TraceID: text, Agent: text, SessionID: text, Metadata: map[string]string{text: text}})
		if len(got) != 1 || got[0].Metadata[text] != text || got[0].Agent != text {
			t.Errorf("%q: got %+v", text, got)
		}
	}
	// What a run reports is stored even if it is no text.
	appendRows(t, o, row("b", "trc_1", func(r *audit.Row) { r.ExitStatus, r.FailureReason = audit.Error, "a\x00b\xff" }))
	if got := list(t, o, audit.Filter{Tenant: "b"}); len(got) != 1 || got[0].FailureReason != "a\uFFFDb\uFFFD" {
		t.Errorf("got %+v", got)
	}
}
