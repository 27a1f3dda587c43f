package httpapitest

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/control/tools"
	"github.com/atoll-run/atoll/internal/control/webhook"
	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/breaker"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi/admin"
	"github.com/atoll-run/atoll/internal/edge/httpapi/tool"
)

// AdminServer is a Server that can be administered.
type AdminServer struct {
	*Server
	t           *testing.T
	AdminKey    string // administers
	Redelivered atomic.Pointer[string]
}

// Redeliver implements admin.Redeliverer.
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
		key, err := tenant.Setup{Store: tenants, Environment: tenant.Environment{Image: "default", Limits: runtime.DefaultLimits()}}.Run(t.Context())
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
		c.Handlers.Admin = &admin.Handlers{
			Tenants: tenant.NewAdmin(tenant.AdminConfig{
				Store: tenants, Authority: authority, Limits: runtime.DefaultLimits(),
				CheckImage: func(_ context.Context, name string) error {
					if name != "default" {
						return fault.New(fault.Invalid, "there is no image %q", name)
					}
					return nil
				},
				CheckWebhook: hooks.CheckURL, CheckSecret: webhook.CheckSecret,
				Reach: func(context.Context, *storage.Connection) error { return nil },
			}),
			Trail: w.DB.Audit(), Verifier: audit.NewSealer(w.DB.Audit()), Usage: w.DB.Usage(), Caps: breakers,
			Executions: w.Gateway, Webhooks: out,
		}
		c.Handlers.Tools = &tool.Handlers{ExecuteCode: tools.NewExecuteCode(tools.Config{
			Runner: w.Gateway, Templates: tenants, Breakers: breakers,
		})}
	})
	return out
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
