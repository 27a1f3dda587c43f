package httpapitest

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/agent/model/adapter"
	"github.com/atoll-run/atoll/internal/agent/model/transport"
	"github.com/atoll-run/atoll/internal/control/directory"
	"github.com/atoll-run/atoll/internal/control/environments"
	"github.com/atoll-run/atoll/internal/control/tools"
	"github.com/atoll-run/atoll/internal/control/webhook"
	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/breaker"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi/admin"
	modelapi "github.com/atoll-run/atoll/internal/edge/httpapi/model"
	"github.com/atoll-run/atoll/internal/edge/httpapi/tool"
)

// AdminServer is a Server that can be administered.
type AdminServer struct {
	*Server
	t           *testing.T
	AdminKey    string // administers
	Redelivered atomic.Pointer[string]
	Declared    Declared
}

// Declared are models as a file declares them.
type Declared struct {
	list atomic.Pointer[[]model.Record]
}

// Set replaces them.
func (d *Declared) Set(list ...model.Record) { d.list.Store(&list) }

// Models returns them.
func (d *Declared) Models() []model.Record {
	if list := d.list.Load(); list != nil {
		return *list
	}
	return nil
}

// Redeliver implements execute.Redeliverer.
func (s *AdminServer) Redeliver(_ context.Context, e *execution.Execution) error {
	if e.Webhook.URL == "" {
		return fault.New(fault.Conflict, "the execution has no webhook")
	}
	s.Redelivered.Store(&e.TraceID)
	return nil
}

// NewAdmin returns a server that can be administered, with the tool execute_code.
func NewAdmin(t *testing.T) *AdminServer {
	t.Helper()
	out := &AdminServer{t: t}
	out.Server = New(t, func(c *Setup) {
		w := c.World
		tenants := w.DB.Tenants()
		setup := tenant.Setup{Store: tenants, Environment: tenant.Environment{Image: "default", Limits: runtime.DefaultLimits()}}
		if err := setup.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		key, err := setup.AdminKey(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		out.AdminKey = key
		hooks, err := webhook.New(webhook.Config{Allow: []string{"127.0.0.1"}})
		if err != nil {
			t.Fatal(err)
		}
		breakers, err := breaker.New(w.DB.Breakers(), c.Log, prometheus.NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		authority := tenant.NewAuthority(tenants)
		c.Auth = authority
		all := tenant.NewAdmin(tenant.AdminConfig{
			Store: tenants, Authority: authority, Limits: runtime.DefaultLimits(),
			CheckImage: func(_ context.Context, name string) error {
				if name != "default" {
					return fault.New(fault.Invalid, "there is no image %q", name)
				}
				return nil
			},
			CheckWebhook: hooks.CheckURL, CheckSecret: webhook.CheckSecret,
			Reach: func(context.Context, *storage.Connection) error { return nil },
		})
		c.Handlers.Admin = &admin.Handlers{
			Tenants: all, Trail: w.DB.Audit(), Verifier: audit.NewSealer(w.DB.Audit()), Caps: breakers, Models: out.models(w.DB.Models(), tenants),
			Environments: &environments.Service{Tenants: all, Sandboxes: directory.New(directory.Config{Store: w.DB.Sandboxes()})},
		}
		c.Handlers.Execute.Tenants, c.Handlers.Execute.Webhooks, c.Handlers.Usage.Tenants = all, out, all
		c.Handlers.Models = &modelapi.Handlers{Catalog: c.Handlers.Admin.Models, Tenants: all}
		c.Handlers.Tools = &tool.Handlers{ExecuteCode: tools.NewExecuteCode(tools.Config{
			Runner: w.Gateway, Templates: tenants, Breakers: breakers,
		})}
	})
	return out
}

// models is the catalog of a server whose providers may be on loopback.
func (s *AdminServer) models(records model.Store, tenants tenant.Store) *model.Catalog {
	allow, err := outbound.Parse([]string{"127.0.0.1"})
	if err != nil {
		s.t.Fatal(err)
	}
	rt := transport.New(allow)
	s.t.Cleanup(rt.CloseIdleConnections)
	return model.NewCatalog(model.CatalogConfig{
		Store: records, Tenant: tenants.Tenant, Plan: tenants.Plan, Declared: &s.Declared,
		Check: func(ctx context.Context, base *url.URL) error { return transport.Check(ctx, allow, base) },
		Open:  func(r model.Record) (model.Model, error) { return adapter.Open(r, rt, model.DefaultBounds) },
	})
}

// Admin sends a request with the key that administers.
func (s *AdminServer) Admin(method, path, body string) *httptest.ResponseRecorder {
	return Ask(s, method, path, body, "Authorization", "Bearer "+s.AdminKey, "Content-Type", "application/json")
}

// Must sends a request whose answer has a status, and decodes it.
func (s *AdminServer) Must(status int, method, path, body string) map[string]any {
	s.t.Helper()
	w := s.Admin(method, path, body)
	if w.Code != status {
		s.t.Fatalf("%s %s %s: got %d %s, want %d", method, path, body, w.Code, w.Body, status)
	}
	out := map[string]any{}
	if w.Body.Len() > 0 {
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
			s.t.Fatalf("%s: %v", w.Body, err)
		}
	}
	return out
}
