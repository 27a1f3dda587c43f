package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/test/httpapitest"
)

// TestCompatProtocol has an operation that finds its caller by a header of its own, and
// refuses in its own words, also where the request did not get as far as its handler.
func TestCompatProtocol(t *testing.T) {
	compat := &httpapi.Compat{Refuse: func(w http.ResponseWriter, _ *http.Request, err error) {
		status, body := httpapi.Render(err)
		http.Error(w, "theirs: "+body.Message, status)
	}}
	s := httpapitest.New(t, func(c *httpapitest.Setup) {
		compat.Caller = func(r *http.Request) (tenant.Principal, error) {
			if r.Header.Get("Their-Key") == "" {
				return tenant.Principal{}, fault.New(fault.Unauthorized, "no Their-Key")
			}
			return c.World.Authenticate(r.Context(), r.Header.Get("Their-Key"))
		}
		c.Config.Operations = append(c.Config.Operations, httpapi.Operation{
			Method: http.MethodGet, Path: "/theirs", Scope: tenant.ScopeSandboxes, Watched: true, Compat: compat,
			Serve: httpapi.Writes(func(c *httpapi.Call) error {
				if c.Caller.Tenant.ID == "" {
					t.Error("no caller")
				}
				return fault.New(fault.Conflict, "not now")
			}),
		})
	})
	for _, c := range []struct {
		path, header, value, says string
		status                    int
	}{
		{"/theirs", "Authorization", "Bearer " + httpapitest.Key, "theirs: no Their-Key", 401},
		{"/theirs", "Their-Key", httpapitest.Key + "x", "theirs: ", 401},
		{"/theirs", "Their-Key", httpapitest.Key, "theirs: not now", 409},
		{"/theirs?x=1", "Their-Key", httpapitest.Key, "theirs: ", 400},
	} {
		w := httpapitest.Ask(s, http.MethodGet, c.path, "", "Authorization", "", c.header, c.value)
		if w.Code != c.status || !strings.HasPrefix(w.Body.String(), c.says) {
			t.Errorf("%s with %s: %d %q, want %d %q", c.path, c.header, w.Code, w.Body, c.status, c.says)
		}
	}
}
