package records_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/control/executors"
	"github.com/atoll-run/atoll/internal/core/proof"
	"github.com/atoll-run/atoll/internal/core/remote/remotetest"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	"github.com/atoll-run/atoll/internal/node/control"
)

// gateway asks a gateway as the product does, through encoded calls.
type gateway struct {
	control.Records
	executor string
	signer   proof.Signer
}

func newGateway(t *testing.T, db *store.DB, executor string) gateway {
	t.Helper()
	box := storetest.Box(t)
	service := executors.NewService(executors.Config{Sandboxes: db.Sandboxes(), Grants: grants{}, Signer: box})
	client := control.New(control.Config{
		Gateways: remotetest.Wire{Handlers: service.Handlers(), From: executor}, Log: slog.New(slog.DiscardHandler), Patience: 1,
	})
	return gateway{control.Records{Client: client}, executor, box}
}

type grantKey struct{}

// grants has the grant that a test passed to the journal, so that tests choose quotas.
type grants struct{}

func (grants) Grant(ctx context.Context, tenantID tenant.ID, key, environment string) (*sandbox.Grant, error) {
	g, ok := ctx.Value(grantKey{}).(*sandbox.Grant)
	if !ok || g.Tenant != tenantID || g.Key != key || g.Environment != environment {
		return nil, sandbox.ErrNoValidKey
	}
	return g, nil
}

// proven returns a grant as another gateway gave it to the executor.
func (g gateway) proven(ctx context.Context, of *sandbox.Grant) (context.Context, *sandbox.Grant) {
	return context.WithValue(ctx, grantKey{}, of), of.ProvenTo(g.executor, g.signer, time.Now().Add(time.Hour))
}

func (g gateway) Create(ctx context.Context, of *sandbox.Grant, s *sandbox.Sandbox) (*sandbox.Sandbox, error) {
	ctx, of = g.proven(ctx, of)
	return g.Records.Create(ctx, of, s)
}

func (g gateway) Wake(ctx context.Context, of *sandbox.Grant, s *sandbox.Sandbox) error {
	ctx, of = g.proven(ctx, of)
	return g.Records.Wake(ctx, of, s)
}
