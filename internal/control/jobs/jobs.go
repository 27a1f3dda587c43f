// Package jobs runs work that must survive the end of this process: it delivers
// webhooks and runs periodic maintenance of the records. It runs River on the
// records' own database, so a job is stored in the transaction that causes it.
//
// A job runs at least once. If a process is killed during a job, a client with
// the same ID resumes the job when it starts, or any client after rescueAfter.
package jobs

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riversqlite"

	"github.com/atoll-run/atoll/internal/control/webhook"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
)

const (
	webhookQueue  = "webhook"
	periodicQueue = "periodic"

	// fetchCooldown is the minimum interval between two fetches of jobs.
	fetchCooldown = 20 * time.Millisecond
	// Polls find jobs that no bell announced: those of another process, and retries
	// after a failure of our own. Each poll briefly takes SQLite's write lock and 1 ms
	// of CPU time.
	sharedPoll = time.Second // if other processes share the database
	ownPoll    = 5 * time.Second

	// webhookTimeout limits one attempt, including reading and recording.
	webhookTimeout = 30 * time.Second
	// rescueAfter is how long after its start another process resumes the job of a
	// process that is gone.
	rescueAfter = webhookTimeout + 15*time.Second

	// keepDone is how long finished jobs stay for inspection.
	keepDone = time.Hour
	// maxAttempts is unreachable: this package decides when to give up, not River.
	maxAttempts = math.MaxInt16
)

// Outcomes are the outcomes of an attempt at a webhook: delivered, to be retried,
// or failed for good.
var Outcomes = []string{string(execution.WebhookDelivered), retried, string(execution.WebhookFailed)}

const retried = "retried"

// Executions stores the executions whose end webhooks report.
type Executions interface {
	Output(ctx context.Context, tenant, traceID string) (*execution.Execution, error)
	SetWebhookStatus(ctx context.Context, traceID string, s execution.WebhookStatus) error
	// Redeliver calls Enqueue, in the transaction that makes the webhook pending.
	Redeliver(ctx context.Context, e *execution.Execution) error
}

// Periodic is work that one of the processes on the database repeats.
type Periodic struct {
	Name    string
	Every   time.Duration
	Timeout time.Duration // 0 means 1 minute
	Run     func(context.Context) error
}

// Config configures a Client.
type Config struct {
	DB       *sql.DB
	Postgres bool
	// ID names this process in a shared database. It must survive a
	// restart. SQLite needs none, because it has only one process.
	ID  string
	Log *slog.Logger

	Executions Executions
	// Deliver makes one attempt at a webhook. tried reports that the receiver caused
	// the error, which counts as an attempt.
	Deliver func(ctx context.Context, e *execution.Execution) (tried bool, err error)
	// Tell makes one attempt at a sealed message about a session.
	Tell    func(ctx context.Context, tenant, id string, sealed []byte) (tried bool, err error)
	Retries webhook.Backoff // nil means webhook.Retries
	Workers int             // concurrent webhooks, shared by the tenants; 0 means 256
	// Observe is called with the outcome, one of Outcomes, of each attempt. It may be nil.
	Observe func(outcome string)

	Periodic []Periodic

	poll time.Duration // of webhooks; 0 means ownPoll or sharedPoll
}

// Client stores jobs and runs them.
type Client struct {
	cfg      Config
	driver   driver
	river    *river.Client[*sql.Tx]
	turns    turns
	stopping atomic.Bool
}

// New returns a Client. Before Start it only stores jobs.
func New(cfg Config) (*Client, error) {
	if cfg.Retries == nil {
		cfg.Retries = webhook.Retries
	}
	if cfg.Workers == 0 {
		cfg.Workers = 256
	}
	if cfg.Observe == nil {
		cfg.Observe = func(string) {}
	}
	c := &Client{cfg: cfg, driver: driver{bell: newBell()}, turns: turns{workers: cfg.Workers}}
	if cfg.Postgres {
		if cfg.ID == "" {
			return nil, errors.New("jobs: a process on a shared database needs an ID")
		}
		c.driver.Driver = riverdatabasesql.New(cfg.DB)
	} else {
		c.cfg.ID = "atoll"
		c.driver.Driver = riversqlite.New(cfg.DB)
	}

	workers := river.NewWorkers()
	river.AddWorker(workers, &webhookWorker{client: c})
	river.AddWorker(workers, &noticeWorker{client: c})
	tasks := &periodicWorker{tasks: map[string]Periodic{}, log: cfg.Log}
	river.AddWorker(workers, tasks)
	var schedule []*river.PeriodicJob
	for _, p := range cfg.Periodic {
		if p.Timeout == 0 {
			p.Timeout = time.Minute
		}
		tasks.tasks[p.Name] = p
		schedule = append(schedule, p.schedule())
	}

	poll := cfg.poll
	if poll == 0 {
		poll = ownPoll
		if cfg.Postgres {
			poll = sharedPoll
		}
	}
	var err error
	c.river, err = river.NewClient(riverdriver.Driver[*sql.Tx](c.driver), &river.Config{
		ID:      c.cfg.ID,
		Logger:  slog.New(quiet{cfg.Log.Handler(), &c.stopping}),
		Workers: workers,
		Queues: map[string]river.QueueConfig{
			webhookQueue:  {MaxWorkers: cfg.Workers, FetchCooldown: fetchCooldown, FetchPollInterval: poll},
			periodicQueue: {MaxWorkers: 2, FetchCooldown: fetchCooldown, FetchPollInterval: ownPoll},
		},
		PeriodicJobs:                schedule,
		MaxAttempts:                 maxAttempts,
		JobTimeout:                  webhookTimeout,
		RescueStuckJobsAfter:        rescueAfter,
		CompletedJobRetentionPeriod: keepDone,
		CancelledJobRetentionPeriod: keepDone,
	})
	if err != nil {
		return nil, fmt.Errorf("jobs: %w", err)
	}
	return c, nil
}

// Enqueue stores the job that delivers the webhook of e in tx, which must also
// make the webhook pending. Call Poke after the commit to run the job immediately.
func (c *Client) Enqueue(ctx context.Context, tx *sql.Tx, e *execution.Execution) error {
	_, err := c.river.InsertTx(ctx, tx, webhookArgs{Tenant: e.Tenant, TraceID: e.TraceID}, nil)
	if err != nil {
		return fmt.Errorf("store the webhook's job: %w", err)
	}
	return nil
}

// Poke fetches the jobs of committed transactions now, without waiting for a poll.
func (c *Client) Poke() { c.driver.bell.ring() }

// Redeliver delivers the webhook of e again, with as many retries as the first time.
// It returns a Conflict fault if e has no webhook or is still running.
func (c *Client) Redeliver(ctx context.Context, e *execution.Execution) error {
	switch {
	case e.Webhook.URL == "":
		return fault.New(fault.Conflict, "the execution has no webhook")
	case e.Status == execution.Running:
		return fault.New(fault.Conflict, "the execution is still running; its webhook is delivered when it ends")
	}
	if err := c.cfg.Executions.Redeliver(ctx, e); err != nil {
		return err
	}
	c.Poke()
	return nil
}

// Start resumes the jobs that an earlier process with this ID left, and runs jobs
// until Stop.
func (c *Client) Start(ctx context.Context) error {
	if err := c.takeUp(ctx); err != nil {
		return fmt.Errorf("take up jobs: %w", err)
	}
	if err := c.river.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("start jobs: %w", err)
	}
	return nil
}

// Stop fetches no more jobs and waits for running ones. When ctx ends, Stop cancels
// them and waits until they have stopped; they run again after the next start.
func (c *Client) Stop(ctx context.Context) error {
	defer c.driver.bell.stop()
	c.stopping.Store(true)
	err := c.river.Stop(ctx)
	if err == nil || ctx.Err() == nil {
		return err
	}
	return c.river.StopAndCancel(context.WithoutCancel(ctx))
}
