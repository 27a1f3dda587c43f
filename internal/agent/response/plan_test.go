package response

import (
	"testing"

	"github.com/atoll-run/atoll/internal/agent/mcpclient"
	"github.com/atoll-run/atoll/internal/agent/mcptool"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// TestContextManagement checks that a request can have long conversations summarized, from a size on or
// when needed.
func TestContextManagement(t *testing.T) {
	plan := func(compact ...*int64) *Plan {
		p := New(Config{}).Plan(t.Context(), &tenant.Principal{}, &Options{Compact: compact})
		if err := p.Models(new("small"), nil); err != nil {
			t.Fatal(err)
		}
		return p
	}
	for name, c := range map[string]struct {
		in   []*int64
		want *run.Compact
	}{
		"omitted":          {},
		"when needed":      {[]*int64{nil}, &run.Compact{}},
		"from a threshold": {[]*int64{new(int64(2000))}, &run.Compact{At: 2000}},
	} {
		q, err := plan(c.in...).End()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if (q.Compact == nil) != (c.want == nil) || c.want != nil && *q.Compact != *c.want {
			t.Errorf("%s: %+v, want %+v", name, q.Compact, c.want)
		}
	}
	if _, err := plan(new(int64(-5))).End(); err == nil {
		t.Error("a threshold below 1000 is accepted")
	}
}

// TestLoopbackServerWithoutRequest checks that in development mode the tenant dev can name servers on this
// machine where no request of it is at hand, as in hand-offs and queued turns. Other tenants cannot.
func TestLoopbackServerWithoutRequest(t *testing.T) {
	allow, err := outbound.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	allow.OpenLoopback("ten_dev")
	client := mcpclient.New(allow, "test")
	defer client.Close()
	for of, want := range map[tenant.ID]bool{"ten_dev": true, "ten_other": false} {
		p := New(Config{MCP: mcptool.New(mcptool.Config{Client: client})}).Plan(t.Context(), &tenant.Principal{Tenant: tenant.Tenant{ID: of}}, &Options{})
		s, err := p.Server("tools[0]", &RemoteServer{Label: "own", URL: "http://127.0.0.1:9000/mcp"})
		if err == nil {
			err = p.AddServer("tools[0]", s)
		}
		if (err == nil) != want {
			t.Errorf("%s: %v", of, err)
		}
	}
}
