package web_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/control/webcall"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/core/web"
	webapi "github.com/atoll-run/atoll/internal/edge/httpapi/web"
	"github.com/atoll-run/atoll/test/httpapitest"
)

// holders have a key that may search, one that may not, and one of a plan with few requests.
type holders struct{}

func (holders) Entrant(_ context.Context, t tenant.ID, key, _ string) (tenant.Principal, error) {
	p := tenant.Principal{Tenant: tenant.Tenant{ID: t}, Key: tenant.Key{ID: key, Tenant: t, Scopes: []tenant.Scope{tenant.ScopeTools}}}
	switch key {
	case "narrow":
		p.Key.Scopes = []tenant.Scope{tenant.ScopeExecute}
	case "none":
		return p, fault.New(fault.Unauthorized, "invalid API key")
	}
	return p, nil
}

// TestInner: what a program calls is held to what HTTP is, and recorded to its execution and
// the key.
func TestInner(t *testing.T) {
	e, rows, keys := &engine{}, []sandbox.Call{}, []string{}
	s := httpapitest.New(t, func(c *httpapitest.Setup) {
		c.Web = &webapi.Handlers{Web: web.New(web.Config{Web: e, Record: func(_ context.Context, p *tenant.Principal, row sandbox.Call) error {
			rows, keys = append(rows, row), append(keys, p.Tenant.ID+" "+p.Key.ID)
			return nil
		}})}
	})
	inner := webcall.Service{Server: s.API(), Holders: holders{}}
	for _, test := range []struct {
		key, path, body string
		status          int
		says            string
	}{
		{"key_1", "/search", `{"query":"a","max_results":1}`, 200, `{"id":"trc_7","results":[{"title":"One",`},
		{"key_1", "/search", `{"query":"a","max_tokens":0}`, 400, "max_tokens must be"},
		{"key_1", "/search", `{`, 400, "validation_error"},
		{"key_1", "/search", `{"query":"a","search_type":"people"}`, 404, "the setting people_search_provider"},
		{"key_1", "/fetch", `{"url":"http://a.org"}`, 404, "the setting fetch_url"},
		{"narrow", "/search", `{"query":"a"}`, 403, "lacks the scope"},
		{"none", "/search", `{"query":"a"}`, 401, "invalid API key"},
	} {
		a, err := inner.CallWeb(t.Context(), execution.WebCall{TraceID: "trc_7", Tenant: "ten_1", Key: test.key, Path: test.path, Body: []byte(test.body)})
		if err != nil || a.Status != test.status || !strings.Contains(string(a.Body), test.says) {
			t.Errorf("%+v: %d %.200s, %v", test, a.Status, a.Body, err)
		}
	}
	if len(rows) != 1 || rows[0].TraceID != "trc_7" || rows[0].Source != "web_search" || keys[0] != "ten_1 key_1" {
		t.Errorf("rows are %+v of %v", rows, keys)
	}
	held := 0
	inner.Reserve = func(_ context.Context, _ *tenant.Principal, c *execution.WebCall, service string) (func(), error) {
		if held++; service != web.SearchName || *c.Left != 3 {
			t.Errorf("%s with %d left", service, *c.Left)
		}
		return func() { held-- }, nil
	}
	a, err := inner.CallWeb(t.Context(), execution.WebCall{TraceID: "trc_7", Tenant: "ten_1", Key: "key_1", Path: "/search", Body: []byte(`{"query":"a"}`), Left: new(usage.Money(3))})
	if err != nil || a.Status != 200 || held != 0 || len(rows) != 2 {
		t.Errorf("within the budget: %d %s, %v; %d held", a.Status, a.Body, err, held)
	}
	inner.Reserve = func(_ context.Context, p *tenant.Principal, c *execution.WebCall, _ string) (func(), error) {
		return nil, fault.Limit("monthly_cost", time.Now().Add(time.Hour), "%s of %s has used it up", p.Tenant.ID, c.TraceID)
	}
	a, err = inner.CallWeb(t.Context(), execution.WebCall{TraceID: "trc_7", Tenant: "ten_1", Key: "key_1", Path: "/search", Body: []byte(`{"query":"a"}`)})
	if err != nil || a.Status != 429 || a.RetryAfter == "" || !strings.Contains(string(a.Body), "ten_1 of trc_7 has used it up") || len(rows) != 2 {
		t.Errorf("beyond the budget: %d %s, %v", a.Status, a.Body, err)
	}
	for _, path := range []string{"/v1/executions", "/v1/sandbox/execute", "", "/search/", "//search"} {
		if a, err := inner.CallWeb(t.Context(), execution.WebCall{Key: "key_1", Path: path, Body: []byte(`{}`)}); err == nil {
			t.Errorf("%q: %d %s", path, a.Status, a.Body)
		}
	}
	// Who comes by HTTP has no part in it.
	if r := httpapitest.Ask(s, "POST", "/search", `{"query":"a"}`); r.Code != http.StatusOK || strings.Contains(r.Body.String(), `"trc_7"`) {
		t.Errorf("by HTTP: %d %s", r.Code, r.Body)
	}
}
