package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/riverqueue/river"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
)

// maxOwn limits our own failures to build a message; after them the webhook counts
// as failed.
const maxOwn = 20

// webhookArgs name the execution that a webhook reports.
type webhookArgs struct {
	Tenant  string `json:"tenant"`
	TraceID string `json:"trace_id"`
}

func (webhookArgs) Kind() string                 { return "webhook" }
func (webhookArgs) InsertOpts() river.InsertOpts { return river.InsertOpts{Queue: webhookQueue} }

// progress is the state that a job keeps between attempts.
type progress struct {
	Tried int    `json:"tried"` // failed attempts of the receiver
	Error string `json:"error"` // of the last attempt
}

type webhookWorker struct {
	river.WorkerDefaults[webhookArgs]
	client *Client
}

func (w *webhookWorker) Timeout(*river.Job[webhookArgs]) time.Duration { return webhookTimeout }

// NextRetry applies to failures of our own. Work snoozes after the receiver's failures.
func (w *webhookWorker) NextRetry(j *river.Job[webhookArgs]) time.Time {
	return ownRetry(j.Attempt)
}

// ownRetry returns when to retry after a failure of our own.
func ownRetry(attempt int) time.Time {
	return time.Now().Add(min(time.Second<<min(attempt-1, 6), time.Minute))
}

// Work makes one attempt. It returns nil if the job is done, a River snooze to retry
// after the receiver failed, a River cancel if the execution was deleted, or another
// error to retry after a failure of our own.
func (w *webhookWorker) Work(ctx context.Context, j *river.Job[webhookArgs]) error {
	c := w.client
	if !c.turns.take(j.Args.Tenant) {
		return c.later(j.Metadata)
	}
	defer c.turns.give(j.Args.Tenant)
	e, err := c.cfg.Executions.Output(ctx, j.Args.Tenant, j.Args.TraceID)
	if fault.KindOf(err) == fault.NotFound {
		return river.JobCancel(fmt.Errorf("execution %s was deleted", j.Args.TraceID))
	}
	if err != nil {
		return fmt.Errorf("read execution %s: %w", j.Args.TraceID, err)
	}
	var p progress
	if out := j.Output(); out != nil {
		if err := json.Unmarshal(out, &p); err != nil {
			return river.JobCancel(fmt.Errorf("read progress: %w", err))
		}
	}
	if e.WebhookStatus != execution.WebhookPending {
		return nil // its end was recorded just before a process was killed
	}

	tried, err := c.cfg.Deliver(ctx, e)
	if err == nil {
		return w.end(ctx, e, execution.WebhookDelivered)
	}
	log := c.cfg.Log.With("trace_id", e.TraceID, "error", err)
	if !tried {
		if j.Attempt < maxOwn || ctx.Err() != nil {
			return fmt.Errorf("webhook of %s: %w", e.TraceID, err)
		}
		log.WarnContext(ctx, "dropping a webhook: cannot build its message")
		return w.end(ctx, e, execution.WebhookFailed)
	}
	p = progress{Tried: p.Tried + 1, Error: err.Error()}
	if err := river.RecordOutput(ctx, p); err != nil {
		return err
	}
	if p.Tried > len(c.cfg.Retries) {
		log.WarnContext(ctx, "webhook failed", "attempts", p.Tried)
		return w.end(ctx, e, execution.WebhookFailed)
	}
	wait := c.cfg.Retries[p.Tried-1]
	log.InfoContext(ctx, "webhook not delivered, will be tried again", "attempts", p.Tried, "wait", wait)
	c.cfg.Observe(retried)
	c.driver.bell.ringAfter(wait + fetchCooldown)
	return river.JobSnooze(wait)
}

// later postpones a webhook whose tenant already uses its share of the workers.
func (c *Client) later(metadata []byte) error {
	var past struct {
		Snoozes int `json:"snoozes"` // River counts them
	}
	if err := json.Unmarshal(metadata, &past); err != nil {
		return river.JobCancel(fmt.Errorf("read metadata: %w", err))
	}
	wait := turnWait(past.Snoozes)
	c.driver.bell.ringAfter(wait + fetchCooldown)
	return river.JobSnooze(wait)
}

func (w *webhookWorker) end(ctx context.Context, e *execution.Execution, s execution.WebhookStatus) error {
	if err := w.client.cfg.Executions.SetWebhookStatus(ctx, e.TraceID, s); err != nil {
		return fmt.Errorf("record webhook of %s: %w", e.TraceID, err)
	}
	w.client.cfg.Observe(string(s))
	return nil
}
