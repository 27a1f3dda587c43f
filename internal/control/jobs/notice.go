package jobs

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/riverqueue/river"

	"github.com/atoll-run/atoll/internal/control/webhook"
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
func (w *noticeWorker) NextRetry(j *river.Job[noticeArgs]) time.Time {
	return time.Now().Add(webhook.AfterOwn(j.Attempt))
}

// Work makes one attempt, as that of a webhookWorker.
func (w *noticeWorker) Work(ctx context.Context, j *river.Job[noticeArgs]) error {
	c := w.client
	if !c.turns.take(j.Args.Tenant) {
		return c.later(j.Metadata)
	}
	defer c.turns.give(j.Args.Tenant)
	p, err := progressOf(j.Output())
	if err != nil {
		return err
	}
	outcome := execution.WebhookDelivered
	if tried, err := c.cfg.Tell(ctx, j.Args.Tenant, j.Args.ID, j.Args.Sealed); err != nil {
		if err := c.failed(ctx, c.cfg.Log.With("webhook_id", j.Args.ID), j.Args.ID, p, j.Attempt, tried, err); err != nil {
			return err
		}
		outcome = execution.WebhookFailed
	}
	c.cfg.Observe(string(outcome))
	return nil
}

// Notify stores the job to send a sealed message of a tenant, in tx. Call Poke once tx is
// committed, so that it is done at once.
func (c *Client) Notify(ctx context.Context, tx *sql.Tx, tenant, id string, sealed []byte) error {
	if _, err := c.river.InsertTx(ctx, tx, noticeArgs{tenant, id, sealed}, nil); err != nil {
		return fmt.Errorf("store the webhook's job: %w", err)
	}
	return nil
}
