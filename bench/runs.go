package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/atoll-run/atoll/bench/report"
)

const (
	waitingCount = 1000 // what a tenant may have under way
	settleTime   = 10 * time.Second

	batchRuns  = 500
	batchCalls = 4 // of the sandbox, in each
	batchers   = 32
)

// waitingRuns measures the memory of runs that wait for a model.
func waitingRuns(ctx context.Context, b *bench, r *responding) error {
	n := b.count(waitingCount)
	begin := func(n int) (ids []string, err error) {
		for range n {
			answer, err := r.Call(ctx, http.MethodPost, "/v1/responses", question("wait", map[string]any{"background": true}))
			var made ended
			if err == nil {
				err = json.Unmarshal(answer, &made)
			}
			if err != nil {
				return nil, err
			}
			ids = append(ids, made.ID)
		}
		return ids, wait(ctx, settleTime)
	}
	cancel := func(ids []string) error {
		return each(batchers, len(ids), func(i int) error {
			_, err := r.Call(ctx, http.MethodPost, "/v1/responses/"+ids[i]+"/cancel", map[string]any{})
			return err
		})
	}
	// What a server has for the first ones counts for none.
	ids, err := begin(n / 10)
	if err == nil {
		err = cancel(ids)
	}
	if err == nil {
		err = wait(ctx, settleTime)
	}
	if err != nil {
		return err
	}
	before, err := r.RSS()
	if err != nil {
		return err
	}
	if ids, err = begin(n); err != nil {
		return err
	}
	after, err := r.RSS()
	if err != nil {
		return err
	}
	r.add(report.Row{
		Case: fmt.Sprintf("memory of each of %d runs that wait for a model", n), Unit: "KB", Must: report.AtMost(200), Aim: report.AtMost(50),
		Measured: float64(after-before) / 1000 / float64(n), Note: "resident memory of the server; each has a request to the provider open",
	})
	return cancel(ids)
}

// each calls f for 0 to n-1, some at a time, and returns the first error.
func each(clients, n int, f func(int) error) error {
	errs := make([]error, n)
	next := make(chan int)
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for i := range next {
				errs[i] = f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	return firstError(errs)
}

// unaided does the sandbox calls of many responses with no model between them, as many at a
// time as the machine takes, and returns when each was done.
func unaided(ctx context.Context, r *responding, n int) (report.Sample, error) {
	for path, method := range map[string]string{"": http.MethodPatch, "/templates/bench": http.MethodPut} {
		body := map[string]any{"sandbox_enabled": true, "caps": map[string]any{"tenant_daily": 1_000_000}}
		if path != "" {
			body = map[string]any{"sandbox": map[string]string{"environment": "internal-only"}}
		}
		if _, err := r.Administer(ctx, method, "/v1/admin/tenants/dev"+path, body); err != nil {
			return nil, err
		}
	}
	done := make(report.Sample, n)
	begun := time.Now()
	return done, each(batchers, n, func(i int) error {
		for range batchCalls {
			answer, err := r.Call(ctx, http.MethodPost, "/v1/tools/execute_code", map[string]any{"code": "print(1)", "agent": fmt.Sprint("bench-", i), "turn": "1", "template": "bench"})
			var out struct {
				OK     bool
				Stdout string
			}
			if err == nil {
				err = json.Unmarshal(answer, &out)
			}
			if err != nil || !out.OK || out.Stdout != "1\n" {
				return fmt.Errorf("execute_code answered %.400s: %w", answer, err)
			}
		}
		done[i] = time.Since(begun)
		return nil
	})
}

// inBackground measures many background responses with models that think and sandboxes.
func inBackground(ctx context.Context, b *bench, r *responding) error {
	n := b.count(batchRuns)
	work, err := unaided(ctx, r, n)
	if err != nil {
		return err
	}
	if err := r.Settle(ctx); err != nil {
		return err
	}
	word := func(i int) string { return fmt.Sprintf("think %d %d", batchCalls, i) }
	ids, began := make([]string, n), make([]time.Time, n)
	body := func(i int) map[string]any {
		return question(word(i), map[string]any{"background": true, "tools": sandboxTool})
	}
	if err := each(batchers, n, func(i int) error {
		began[i] = time.Now()
		answer, err := r.Call(ctx, http.MethodPost, "/v1/responses", body(i))
		var made ended
		if err == nil {
			err = json.Unmarshal(answer, &made)
		}
		ids[i] = made.ID
		return err
	}); err != nil {
		return err
	}
	for i, id := range ids {
		for {
			answer, err := r.Call(ctx, http.MethodGet, "/v1/responses/"+id, nil)
			if err != nil {
				return err
			}
			var out ended
			if err := json.Unmarshal(answer, &out); err != nil {
				return err
			}
			if out.Status != "in_progress" {
				if err := checkResponse(answer, body(i)); err != nil {
					return err
				}
				if len(out.Output) != batchCalls+1 {
					return fmt.Errorf("response %d has %d items", i, len(out.Output))
				}
				break
			}
			if err := wait(ctx, 250*time.Millisecond); err != nil {
				return err
			}
		}
	}
	var took report.Sample
	for i := range n {
		took = append(took, r.provider.end(word(i)).Sub(began[i]))
	}
	models := (batchCalls + 1) * thought
	for i := range work {
		work[i] += models
	}
	r.add(report.Row{
		Case: fmt.Sprintf("%d background responses, each %d model calls of 1 s and %d sandbox calls, p95", n, batchCalls+1, batchCalls), Unit: "ms",
		Measured: report.Milliseconds(took.Percentile(95)), Sample: took.Summary(), Must: report.AtMost(1.5),
		Baseline: report.Milliseconds(work.Percentile(95)), BaselineSample: work.Summary(),
		BaselineName: fmt.Sprintf("the same sandbox calls alone, %d at a time, and 5 s", batchers), Note: "none lost; to the last word of the model",
	})
	return nil
}
