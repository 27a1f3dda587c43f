package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"github.com/atoll-run/atoll/internal/control/webhook"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
)

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

func progressOf(output []byte) (p progress, err error) {
	if output == nil {
		return p, nil
	}
	if err := json.Unmarshal(output, &p); err != nil {
		return p, river.JobCancel(fmt.Errorf("read progress: %w", err))
	}
	return p, nil
}

// failed handles a failed attempt. It returns nil if the webhook has failed for good, a River snooze
// to retry after the receiver failed, or another error to retry after a failure of our own.
func (c *Client) failed(ctx context.Context, log *slog.Logger, id string, p progress, attempt int, tried bool, cause error) error {
	log = log.With("error", cause)
	if !tried {
		if attempt < webhook.MaxOwnFailures || ctx.Err() != nil {
			return fmt.Errorf("webhook of %s: %w", id, cause)
		}
		log.WarnContext(ctx, "dropping a webhook: cannot build its message")
		return nil
	}
	p = progress{Tried: p.Tried + 1, Error: cause.Error()}
	if err := river.RecordOutput(ctx, p); err != nil {
		return err
	}
	wait, ok := c.cfg.Retries.After(p.Tried)
	if !ok {
		log.WarnContext(ctx, "webhook failed", "attempts", p.Tried)
		return nil
	}
	log.InfoContext(ctx, "webhook not delivered, will be tried again", "attempts", p.Tried, "wait", wait)
	c.cfg.Observe(retried)
	c.driver.bell.ringAfter(wait + fetchCooldown)
	return river.JobSnooze(wait)
}

type webhookWorker struct {
	river.WorkerDefaults[webhookArgs]
	client *Client
}

func (w *webhookWorker) Timeout(*river.Job[webhookArgs]) time.Duration { return webhookTimeout }

// NextRetry applies to failures of our own. Work snoozes after the receiver's failures.
func (w *webhookWorker) NextRetry(j *river.Job[webhookArgs]) time.Time {
	return time.Now().Add(webhook.AfterOwn(j.Attempt))
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
	p, err := progressOf(j.Output())
	if err != nil {
		return err
	}
	if e.WebhookStatus != execution.WebhookPending {
		return nil // its end was recorded just before a process was killed
	}

	tried, err := c.cfg.Deliver(ctx, e)
	if err == nil {
		return w.end(ctx, e, execution.WebhookDelivered)
	}
	if err := c.failed(ctx, c.cfg.Log.With("trace_id", e.TraceID), e.TraceID, p, j.Attempt, tried, err); err != nil {
		return err
	}
	return w.end(ctx, e, execution.WebhookFailed)
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
