package execute_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/control/gateway/gatewaytest"
	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/edge/httpapi/usage"
	"github.com/atoll-run/atoll/test/httpapitest"
)

// TestDelete deletes an execution: everything that it said goes, what tells that it was
// does not.
func TestDelete(t *testing.T) {
	s := httpapitest.New(t)
	long := strings.Repeat("x", 1<<10) + "\n"
	s.Executor.Program("much", func(r *gatewaytest.Run) int {
		for range 3 << 10 { // more than a record has
			r.Print(execution.Stdout, long)
		}
		return 0
	})
	id, kept := run(t, s, `{"code":"much"}`, "Idempotency-Key", "k"), run(t, s, `{"code":"print kept"}`)
	at := "/v1/executions/" + id
	blob := execution.OutputName(s.Caller.Tenant.ID, id, execution.Stdout)
	if n, err := s.Blobs.Size(t.Context(), blob); err != nil || n == 0 {
		t.Fatalf("its output has %d bytes: %v", n, err)
	}
	if _, err := s.Bus.Log().Result(t.Context(), id); err != nil {
		t.Fatalf("it has no log: %v", err)
	}
	before := decoded[usage.Usage](t, httpapitest.Ask(s, "GET", "/v1/usage", ""))
	if w := httpapitest.Ask(s, "DELETE", at, ""); w.Code != 204 || w.Body.Len() > 0 {
		t.Fatalf("delete: %d %s", w.Code, w.Body)
	}

	for _, c := range [][2]string{{"GET", ""}, {"GET", "/output"}, {"GET", "/output?stream=stdout"}, {"GET", "/file?path=a"}, {"POST", "/cancel"}, {"DELETE", ""}} {
		httpapitest.Refused(t, httpapitest.Ask(s, c[0], at+c[1], ""), 404, "not_found", "not found")
	}
	if w := httpapitest.Ask(s, "GET", "/v1/executions", ""); strings.Contains(w.Body.String(), id) || !strings.Contains(w.Body.String(), kept) {
		t.Errorf("the list is %s", w.Body)
	}
	if _, err := s.Blobs.Size(t.Context(), blob); fault.KindOf(err) != fault.NotFound {
		t.Errorf("its output is still there: %v", err)
	}
	if _, err := s.Bus.Log().Result(t.Context(), id); !errors.Is(err, execution.ErrNoLog) {
		t.Errorf("its log is still there: %v", err)
	}

	after := decoded[usage.Usage](t, httpapitest.Ask(s, "GET", "/v1/usage", ""))
	if after.Totals != before.Totals || after.Month.Credits != before.Month.Credits {
		t.Errorf("what was used is %+v, before %+v", after, before)
	}
	if after.Outputs.Bytes != before.Outputs.Bytes-int64(len(long)*3<<10) || after.Outputs.Limit == nil {
		t.Errorf("kept are %+v, before %+v", after.Outputs, before.Outputs)
	}
	rows, _, err := s.DB.Audit().List(t.Context(), audit.Filter{Tenant: s.Caller.Tenant.ID, TraceID: id, Limit: 10})
	if err != nil || len(rows) != 1 {
		t.Errorf("the trail has %d rows of it: %v", len(rows), err)
	}
	if again := run(t, s, `{"code":"print other"}`, "Idempotency-Key", "k"); again == id {
		t.Error("its idempotency key still names it")
	}
}

func TestDeleteRunning(t *testing.T) {
	s := httpapitest.New(t)
	id := run(t, s, `{"code":"early"}`, "Prefer", "respond-async")
	httpapitest.Refused(t, httpapitest.Ask(s, "DELETE", "/v1/executions/"+id, ""), 409, "conflict", "still running: cancel it")
	if w := httpapitest.Ask(s, "POST", "/v1/executions/"+id+"/cancel", ""); w.Code != 200 {
		t.Fatalf("cancel: %d %s", w.Code, w.Body)
	}
	if w := httpapitest.Ask(s, "DELETE", "/v1/executions/"+id, ""); w.Code != 204 {
		t.Errorf("delete: %d %s", w.Code, w.Body)
	}
}
