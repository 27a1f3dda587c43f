package gateway_test

import (
	"context"
	"errors"
	"testing"

	"github.com/atoll-run/atoll/internal/control/gateway"
	"github.com/atoll-run/atoll/internal/control/gateway/gatewaytest"
	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/fault"
)

// awayTrail is a database that cannot be reached.
type awayTrail struct{}

func (awayTrail) Append(context.Context, audit.Row) error { return errors.New("connection refused") }

func TestARefusalWithoutARowIsCounted(t *testing.T) {
	w := gatewaytest.Open(t, func(c *gateway.Config) { c.Trail = awayTrail{} })
	p := w.Principal(t, "free", "free")
	want := func(source string, n float64) {
		t.Helper()
		families, err := w.Metrics.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == "atoll_gateway_unaudited_refusals_total" && m.GetLabel()[0].GetValue() == source {
					if got := m.GetCounter().GetValue(); got != n {
						t.Errorf("%s: %v, want %v", source, got, n)
					}
					return
				}
			}
		}
		t.Errorf("no count of %s", source)
	}
	want("execute", 0)
	want("execute_code", 0)
	if _, err := w.Execute(t.Context(), p, gatewaytest.Request("print x"), streamed); fault.KindOf(err) != fault.Exhausted {
		t.Fatalf("got %v", err)
	}
	req := gatewaytest.Request("print x")
	req.Code = ""
	if _, err := w.Execute(t.Context(), p, req, inline); fault.KindOf(err) != fault.Invalid { // no call, and so no row
		t.Fatalf("got %v", err)
	}
	w.Refused(t.Context(), audit.Row{Source: "execute_code", ExitStatus: audit.Provisioning})
	want("execute", 1)
	want("execute_code", 1)
}
