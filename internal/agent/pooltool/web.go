package pooltool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/agent/sandboxcall"
	"github.com/atoll-run/atoll/internal/control/tools"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// RunsCode reports whether programs of a tool can call the web services.
func RunsCode(t *run.Tool) bool {
	return t.Handler == Handler && (t.Name == shell || t.Name == ExecCode)
}

// giveWeb lets the programs of a call use the web services. It derives the token and trace id from
// the call, so a command keeps them when another server process takes over. The token works only
// in the call's sandbox.
func (h *Pool) giveWeb(c *loop.Call, by *tools.Caller) {
	if h.Ledger == nil || len(h.Services) == 0 || !by.Principal.May(tenant.ScopeTools) || c.Request.NoWeb || !RunsCode(c.Tool) {
		return
	}
	sum := sha256.Sum256([]byte("web/" + sandboxcall.Key(c)))
	by.TraceID = execution.TraceIDOf(sum[:])
	by.Web = &execution.WebAccess{Key: c.Run.Key, Environment: c.Run.Environment, Held: true, Token: "atoll-web-" + hex.EncodeToString(sum[16:]), Left: c.Left}
}

// uses counts the calls to web services that a call's programs made.
func (h *Pool) uses(ctx context.Context, c *loop.Call, by *tools.Caller) (map[string]int, error) {
	if by.Web == nil {
		return nil, nil
	}
	return sandboxcall.Charged(ctx, h.Ledger, c.Run.Tenant, by.TraceID, c.Run.CreatedAt, time.Now())
}
