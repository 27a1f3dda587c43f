package jobs

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/riverqueue/river"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// noticeArgs are a message about a session, which is sealed.
type noticeArgs struct {
	Tenant string `json:"tenant"`
	ID     string `json:"id"`
	Sealed []byte `json:"sealed"`
}

func (noticeArgs) Kind() string                 { return "session_webhook" }
func (noticeArgs) InsertOpts() river.InsertOpts { return river.InsertOpts{Queue: webhookQueue} }

type noticeWorker struct {
	river.WorkerDefaults[noticeArgs]
	client *Client
}

func (w *noticeWorker) Timeout(*river.Job[noticeArgs]) time.Duration { return webhookTimeout }

// NextRetry is for failures of our own; the receiver's are snoozed.
func (w *noticeWorker) NextRetry(j *river.Job[noticeArgs]) time.Time { return ownRetry(j.Attempt) }

// Work makes one attempt, as that of a webhookWorker.
func (w *noticeWorker) Work(ctx context.Context, j *river.Job[noticeArgs]) error {
	c := w.client
	if !c.turns.take(j.Args.Tenant) {
		return c.later(j.Metadata)
	}
	defer c.turns.give(j.Args.Tenant)
	var p progress
	if out := j.Output(); out != nil {
		if err := json.Unmarshal(out, &p); err != nil {
			return river.JobCancel(fmt.Errorf("read progress: %w", err))
		}
	}
	tried, err := c.cfg.Tell(ctx, j.Args.Tenant, j.Args.ID, j.Args.Sealed)
	log := c.cfg.Log.With("webhook_id", j.Args.ID, "error", err)
	switch {
	case err == nil:
		c.cfg.Observe(string(execution.WebhookDelivered))
		return nil
	case !tried && (j.Attempt < maxOwn || ctx.Err() != nil):
		return fmt.Errorf("webhook %s: %w", j.Args.ID, err)
	case !tried:
		log.WarnContext(ctx, "dropping a webhook: cannot build its message")
		c.cfg.Observe(string(execution.WebhookFailed))
		return nil
	}
	p = progress{Tried: p.Tried + 1, Error: err.Error()}
	if err := river.RecordOutput(ctx, p); err != nil {
		return err
	}
	if p.Tried > len(c.cfg.Retries) {
		log.WarnContext(ctx, "webhook failed", "attempts", p.Tried)
		c.cfg.Observe(string(execution.WebhookFailed))
		return nil
	}
	wait := c.cfg.Retries[p.Tried-1]
	log.InfoContext(ctx, "webhook not delivered, will be tried again", "attempts", p.Tried, "wait", wait)
	c.cfg.Observe(retried)
	c.driver.bell.ringAfter(wait + fetchCooldown)
	return river.JobSnooze(wait)
}

// Notify stores the job to send a sealed message of a tenant, in tx. Call Poke once tx is
// committed, so that it is done at once.
func (c *Client) Notify(ctx context.Context, tx *sql.Tx, tenant, id string, sealed []byte) error {
	if _, err := c.river.InsertTx(ctx, tx, noticeArgs{tenant, id, sealed}, nil); err != nil {
		return fmt.Errorf("store the webhook's job: %w", err)
	}
	return nil
}
