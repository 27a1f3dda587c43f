package pooltool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/control/tools"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// RunsCode reports whether a tool is one of those here whose programs can call the services of
// the web.
func RunsCode(t *run.Tool) bool {
	return t.Handler == Handler && (t.Name == shell || t.Name == ExecCode)
}

// giveWeb lets the programs of a call reach the services of the web. Token and trace id are made
// of the call, so that a command which another process of the server goes on with keeps them. The
// token is of no use outside of the call's sandbox.
func (h *Pool) giveWeb(c *loop.Call, by *tools.Caller) {
	if h.Ledger == nil || len(h.Services) == 0 || !by.Principal.May(tenant.ScopeTools) || c.Request.NoWeb || !RunsCode(c.Tool) {
		return
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "web/%s/%d", c.Run.ID, c.Number))
	by.TraceID = execution.TraceIDOf(sum[:])
	by.Web = &execution.WebAccess{Key: c.Run.Key, Environment: c.Run.Environment, Held: true, Token: "atoll-web-" + hex.EncodeToString(sum[16:]), Left: c.Left}
}

// uses counts the calls of the web's services that the programs of a call have made.
func (h *Pool) uses(ctx context.Context, c *loop.Call, by *tools.Caller) (map[string]int, error) {
	if by.Web == nil {
		return nil, nil
	}
	return sandboxtool.Charged(ctx, h.Ledger, c.Run.Tenant, by.TraceID, c.Run.CreatedAt, time.Now())
}
