package gateway_test

import (
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/control/gateway"
	"github.com/atoll-run/atoll/internal/control/gateway/gatewaytest"
	"github.com/atoll-run/atoll/internal/core/execution"
)

// TestThreadKey: only a job with a thread brings the key of its tenant, and only where executors
// need it.
func TestThreadKey(t *testing.T) {
	for name, keys := range map[string]func(string) []byte{"with keys": func(tenant string) []byte { return []byte("key of " + tenant) }, "without": nil} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan string, 10)
			w := gatewaytest.Open(t, func(c *gateway.Config) {
				if keys != nil {
					c.ThreadKey = func(tenant string) []byte { asked <- tenant; return keys(tenant) }
				}
			})
			jobs := make(chan execution.Job, 1)
			w.Executor.Program("show", func(r *gatewaytest.Run) int { jobs <- r.Job; return 0 })
			p := w.Principal(t, "a", "enterprise")
			run := func(thread string) execution.Job {
				t.Helper()
				req := gatewaytest.Request("show")
				req.Thread = thread
				if _, err := w.Execute(t.Context(), p, req, inline); err != nil {
					t.Fatal(err)
				}
				return <-jobs
			}
			if job := run(""); job.Thread != nil || len(asked) != 0 {
				t.Errorf("without a thread: %v, and the key was asked for %d times", job.Thread, len(asked))
			}
			want := ""
			if keys != nil {
				want = string(keys(p.Tenant.ID))
			}
			if job := run("notes"); job.Thread == nil || string(job.Thread.Key) != want {
				t.Errorf("with a thread: %v, key %q", job.Thread, job.Thread.Key)
			}
			uses, err := w.DB.Executions().Recent(t.Context(), time.Hour, 10)
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range uses {
				job, err := w.Expected(p, u)
				if err != nil || job.Thread != nil && job.Thread.Key != nil {
					t.Errorf("a job that is only expected: %v, %v", job.Thread, err)
				}
			}
		})
	}
}
