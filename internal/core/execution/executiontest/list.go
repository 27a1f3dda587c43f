package executiontest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
)

// names are the agents of executions, which tests name them by.
func names(page []*execution.Execution) []string {
	all := []string{}
	for _, e := range page {
		all = append(all, e.Agent)
	}
	return all
}

func testPages(t *testing.T, o Opened) {
	const all = 17
	at := now()
	for i := range all {
		admit(t, o, "a", func(e *execution.Execution) {
			e.CreatedAt = at.Add(time.Duration(i/5) * time.Microsecond) // five at the same time
			e.Metadata = map[string]string{"k": "v"}
		})
		admit(t, o, "b")
	}
	for _, f := range []execution.Filter{{}, {Metadata: map[string]string{"k": "v"}}, {Metadata: map[string]string{"k": "v"}, Key: "key_1"}} {
		f.Tenant, f.Limit = "a", 4
		var seen []string
		var last *execution.Execution
		for pages := 1; ; pages++ {
			page, next, err := o.Store.List(t.Context(), f)
			must(t, err)
			for _, e := range page {
				if last != nil && e.CreatedAt.After(last.CreatedAt) {
					t.Errorf("%v comes after %v", e.CreatedAt, last.CreatedAt)
				}
				last = e
				seen = append(seen, e.TraceID)
			}
			if next == "" {
				if pages != 5 {
					t.Errorf("got %d pages", pages)
				}
				break
			}
			f.Cursor = next
			// What is new does not move what is old.
			admit(t, o, "a", func(e *execution.Execution) {
				e.CreatedAt = at.Add(time.Second)
				e.Metadata = map[string]string{"k": "v"}
			})
		}
		slices.Sort(seen)
		if n := len(slices.Compact(seen)); n < all || len(seen) != n {
			t.Errorf("%+v: %d executions, %d different", f, len(seen), n)
		}
		clean, err := o.Store.Unfinished(t.Context(), at.Add(time.Hour), 1000)
		must(t, err)
		for _, e := range clean { // leave the next filter what it began with
			if e.Tenant == "a" && e.CreatedAt.Equal(at.Add(time.Second)) {
				end(t, o, e, execution.Success)
				must(t, o.Store.Delete(t.Context(), []string{e.TraceID}))
			}
		}
	}
	page, next, err := o.Store.List(t.Context(), execution.Filter{Tenant: "a", Limit: all})
	if err != nil || len(page) != all || next != "" {
		t.Errorf("a page that fits: %d, %q, %v", len(page), next, err)
	}
}

func testFilters(t *testing.T, o Opened) {
	at := now()
	n := 0
	add := func(name string, change func(*execution.Execution), status execution.Status) {
		n++
		e := admit(t, o, "a", func(e *execution.Execution) {
			e.Agent, e.CreatedAt = name, at.Add(time.Duration(n)*time.Second)
			if change != nil {
				change(e)
			}
		})
		if status != execution.Running {
			end(t, o, e, status)
		}
	}
	meta := func(pairs ...string) func(*execution.Execution) {
		return func(e *execution.Execution) {
			e.Metadata = map[string]string{}
			for i := 0; i < len(pairs); i += 2 {
				e.Metadata[pairs[i]] = pairs[i+1]
			}
		}
	}
	add("plain", nil, execution.Success)
	add("node", func(e *execution.Execution) { e.Language = execution.Node }, execution.Failed)
	add("prod", meta("env", "prod", "n", "1"), execution.Success)
	add("test", meta("env", "test", "n", "1"), execution.OOM)
	add("prod2", meta("env", "prod", "n", "2"), execution.OOM)
	add("other key", func(e *execution.Execution) { e.Key = "key_2" }, execution.Timeout)
	add("running", meta("env", "prod"), execution.Running)
	add("blocked", nil, execution.Blocked)
	add("cancelled", nil, execution.Cancelled)

	for what, c := range map[string]struct {
		f    execution.Filter
		want []string
	}{
		"success":             {execution.Filter{Status: execution.Success}, []string{"prod", "plain"}},
		"failed":              {execution.Filter{Status: execution.Failed}, []string{"node"}},
		"oom":                 {execution.Filter{Status: execution.OOM}, []string{"prod2", "test"}},
		"timeout":             {execution.Filter{Status: execution.Timeout}, []string{"other key"}},
		"blocked":             {execution.Filter{Status: execution.Blocked}, []string{"blocked"}},
		"cancelled":           {execution.Filter{Status: execution.Cancelled}, []string{"cancelled"}},
		"running":             {execution.Filter{Status: execution.Running}, []string{"running"}},
		"node":                {execution.Filter{Language: execution.Node}, []string{"node"}},
		"bash":                {execution.Filter{Language: execution.Bash}, []string{}},
		"python, a key":       {execution.Filter{Language: execution.Python, Key: "key_2"}, []string{"other key"}},
		"a pair":              {execution.Filter{Metadata: map[string]string{"env": "prod"}}, []string{"running", "prod2", "prod"}},
		"two pairs":           {execution.Filter{Metadata: map[string]string{"env": "prod", "n": "1"}}, []string{"prod"}},
		"no such pair":        {execution.Filter{Metadata: map[string]string{"env": "1"}}, []string{}},
		"a pair and a status": {execution.Filter{Metadata: map[string]string{"env": "prod"}, Status: execution.OOM}, []string{"prod2"}},
		"since":               {execution.Filter{Since: at.Add(8 * time.Second)}, []string{"cancelled", "blocked"}},
		"before":              {execution.Filter{Before: at.Add(2 * time.Second)}, []string{"plain"}},
		"between":             {execution.Filter{Since: at.Add(3 * time.Second), Before: at.Add(7 * time.Second), Metadata: map[string]string{"env": "prod"}}, []string{"prod2", "prod"}},
	} {
		c.f.Tenant, c.f.Limit = "a", 100
		page, _, err := o.Store.List(t.Context(), c.f)
		must(t, err)
		if got := names(page); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", what, got, c.want)
		}
	}
}

func testCursor(t *testing.T, o Opened) {
	for range 3 {
		admit(t, o, "a")
		admit(t, o, "b")
	}
	_, next, err := o.Store.List(t.Context(), execution.Filter{Tenant: "a", Limit: 1})
	must(t, err)
	list := func(tenant, cursor string) error {
		_, _, err := o.Store.List(t.Context(), execution.Filter{Tenant: tenant, Limit: 1, Cursor: cursor})
		return err
	}
	must(t, list("a", next))
	wantKind(t, "another tenant's cursor", list("b", next), fault.Invalid)
	for i := range len(next) {
		changed := []byte(next)
		changed[i] ^= 1
		wantKind(t, fmt.Sprintf("a cursor whose character %d was changed", i), list("a", string(changed)), fault.Invalid)
		wantKind(t, fmt.Sprintf("a cursor cut to %d characters", i+1), list("a", next[:i]+" "), fault.Invalid)
	}
}

func testBadFilter(t *testing.T, o Opened) {
	for what, f := range map[string]execution.Filter{
		"no limit":         {},
		"a negative limit": {Limit: -1},
		"a large limit":    {Limit: 101},
		"a status":         {Limit: 1, Status: "' OR 1=1 --"},
		"a language":       {Limit: 1, Language: "perl"},
	} {
		f.Tenant = "a"
		_, _, err := o.Store.List(t.Context(), f)
		wantKind(t, what, err, fault.Invalid)
	}
}
