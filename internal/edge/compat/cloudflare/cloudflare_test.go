package cloudflare_test

import (
	"context"
	"testing"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/fault"
	domain "github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/compat/cloudflare"
	"github.com/atoll-run/atoll/test/httpapitest"
)

// none has no sandbox.
type none struct{ sandboxes.Sandboxes }

func (none) Destroy(context.Context, *tenant.Principal, string, string) error {
	return fault.New(fault.NotFound, "sandbox not found")
}

// TestDeletingNothing is no error of the protocol, and a refused call in the trail, where
// many of those share a row.
func TestDeletingNothing(t *testing.T) {
	var rows []domain.Call
	s := httpapitest.New(t, func(c *httpapitest.Setup) {
		c.Cloudflare = cloudflare.New(sandboxes.New(sandboxes.Config{Sandboxes: none{}}))
		c.Record = func(_ context.Context, _ *tenant.Principal, row domain.Call) error {
			rows = append(rows, row)
			return nil
		}
	})
	if w := httpapitest.Ask(s.Server, "DELETE", "/v1/sandbox/abc", ""); w.Code != 204 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if len(rows) != 1 || !rows[0].Refused {
		t.Errorf("the trail is %+v", rows)
	}
}
