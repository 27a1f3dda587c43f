package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/execution/executiontest"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
)

// testRunExecutions: executions go with the run that they are calls of, however new they
// are, and those with files stay as long as it does, however old they are.
func testRunExecutions(t *testing.T, open opener) {
	db := open(t)
	ctx := t.Context()
	r := &run.Run{ID: run.NewID(), Tenant: "a", Key: "key_1", Environment: "env_1", Sandbox: "sbx_1", Keep: time.Hour, Status: run.InProgress, CreatedAt: time.Now()}
	begun := run.Entry{Seq: 1, At: time.Now(), Begun: &run.Request{Models: []string{"m"}, Input: []model.Item{model.Text(model.User, "x")}}}
	lease, err := db.Runs().Create(ctx, r, []run.Entry{begun}, "here", 0, nil)
	must(t, err)
	old := time.Now().Add(-48 * time.Hour)
	ended := func(run string, files ...execution.OutputFile) string {
		e := executiontest.New("a", func(e *execution.Execution) { e.Run, e.CreatedAt = run, old })
		_, err := db.Executions().Admit(ctx, e, execution.Admission{})
		must(t, err)
		got, _, err := db.Executions().Conclude(ctx, execution.Result{
			TraceID: e.TraceID, Status: execution.Success, CompletedAt: old.Add(time.Second), Windows: 2, Files: execution.OutputFiles{Files: files},
		}, nil)
		must(t, err)
		if got.Run != run || got.Windows != 2 {
			t.Errorf("recorded as %+v", got)
		}
		return e.TraceID
	}
	file := execution.OutputFile{Name: "a", Bytes: 1}
	other, plain, shared := ended("", file), ended(string(r.ID)), ended(string(r.ID), file)
	expired := func(keep time.Duration) (ids []string) {
		all, err := db.Executions().Expired(ctx, keep, 10)
		must(t, err)
		for _, e := range all {
			ids = append(ids, e.TraceID)
		}
		slices.Sort(ids)
		return ids
	}
	sorted := func(ids ...string) []string { return slices.Sorted(slices.Values(ids)) }
	if got := expired(day); !slices.Equal(got, sorted(other, plain)) {
		t.Errorf("while the run is there, %q are expired; the shared file is of %s", got, shared)
	}
	if got := expired(100 * day); len(got) > 0 {
		t.Errorf("%q are expired", got)
	}
	of, err := db.Executions().OfRun(ctx, string(r.ID), 10)
	if must(t, err); len(of) != 2 {
		t.Errorf("the run has %d", len(of))
	}
	if of, err = db.Executions().OfRun(ctx, "", 10); err != nil || len(of) != 0 {
		t.Errorf("no run has %d, %v", len(of), err)
	}
	must(t, db.Runs().Append(ctx, r.ID, lease, []run.Entry{{Seq: 2, At: time.Now(), Ended: &run.End{Status: run.Completed}}}))
	must(t, db.Runs().Delete(ctx, "a", r.ID))
	if got := expired(100 * day); !slices.Equal(got, sorted(plain, shared)) {
		t.Errorf("without the run, %q are expired", got)
	}
}

const day = 24 * time.Hour
