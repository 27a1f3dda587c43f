// Package jobs does what must be done even if this process ends now: it tells
// receivers how executions ended, and looks after the records from time to
// time. It is River over the records' own database, so that a job is stored in
// the transaction that gives rise to it.
//
// A job is done at least once. One that a killed process had under way is taken
// up when a client with the same ID starts, or after rescueAfter by any other.
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

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
)

const (
	webhookQueue  = "webhook"
	periodicQueue = "periodic"

	// fetchCooldown is the least time between two looks for jobs.
	fetchCooldown = 20 * time.Millisecond
	// Polls find jobs that no ring announced: those of another process, and what is
	// tried again after a failure of our own. Each takes SQLite's write lock for a
	// moment, and a millisecond of processor time.
	sharedPoll = time.Second // where there are other processes
	ownPoll    = 5 * time.Second

	// webhookTimeout is the most time of one attempt with all that belongs to it.
	webhookTimeout = 30 * time.Second
	// rescueAfter is how long after its start a job of a process that is gone is
	// taken up by another.
	rescueAfter = webhookTimeout + 15*time.Second

	// keepDone is how long finished jobs stay to be looked at.
	keepDone = time.Hour
	// maxAttempts is out of reach: River never gives up on a job, we do.
	maxAttempts = math.MaxInt16
)

// Retries are the waits before the second and further attempts at a webhook.
var Retries = []time.Duration{time.Second, 10 * time.Second, time.Minute}

// Outcomes of an attempt at a webhook: it was taken, will be made again, or was
// the last.
var Outcomes = []string{string(execution.WebhookDelivered), retried, string(execution.WebhookFailed)}

const retried = "retried"

// Executions are the records that webhooks are about.
type Executions interface {
	Output(ctx context.Context, tenant, traceID string) (*execution.Execution, error)
	SetWebhookStatus(ctx context.Context, traceID string, s execution.WebhookStatus) error
	// Redeliver calls Enqueue, in the transaction that makes the webhook pending.
	Redeliver(ctx context.Context, e *execution.Execution) error
}

// Periodic is work that one process of all that share the database does, again
// and again.
type Periodic struct {
	Name    string
	Every   time.Duration
	Timeout time.Duration // 0 for a minute
	Run     func(context.Context) error
}

// Config of a Client.
type Config struct {
	DB       *sql.DB
	Postgres bool
	// ID names the process among those that share the database, the same after a
	// restart. SQLite has one process, and needs none.
	ID  string
	Log *slog.Logger

	Executions Executions
	// Deliver makes one attempt at a webhook. tried says that an error is the
	// receiver's, which counts as an attempt.
	Deliver func(ctx context.Context, e *execution.Execution) (tried bool, err error)
	// Tell makes one attempt at a sealed message about a session.
	Tell    func(ctx context.Context, tenant, id string, sealed []byte) (tried bool, err error)
	Retries []time.Duration // nil for Retries
	Workers int             // webhooks at the same time, shared by the tenants; 0 for 256
	// Observe is told of each attempt which of Outcomes it had. May be nil.
	Observe func(outcome string)

	Periodic []Periodic

	poll time.Duration // of webhooks; 0 for ownPoll or sharedPoll
}

// Client stores jobs and works on them.
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
		cfg.Retries = Retries
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

// Enqueue stores the job to tell the receiver of e about its end, in tx, which
// makes the webhook pending. Call
// Poke once tx is committed, so that it is done at once.
func (c *Client) Enqueue(ctx context.Context, tx *sql.Tx, e *execution.Execution) error {
	_, err := c.river.InsertTx(ctx, tx, webhookArgs{Tenant: e.Tenant, TraceID: e.TraceID}, nil)
	if err != nil {
		return fmt.Errorf("store the webhook's job: %w", err)
	}
	return nil
}

// Poke has the jobs of committed transactions looked for now.
func (c *Client) Poke() { c.driver.bell.ring() }

// Redeliver tells the receiver of e once more, with the same attempts.
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

// Start takes up what an earlier process with this ID left under way, and works
// on jobs until Stop.
func (c *Client) Start(ctx context.Context) error {
	if err := c.takeUp(ctx); err != nil {
		return fmt.Errorf("take up jobs: %w", err)
	}
	if err := c.river.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("start jobs: %w", err)
	}
	return nil
}

// Stop takes on no more jobs and waits for those under way. When ctx ends it
// cuts them short, to be done again after the next start; it returns when they
// have ended.
func (c *Client) Stop(ctx context.Context) error {
	defer c.driver.bell.stop()
	c.stopping.Store(true)
	err := c.river.Stop(ctx)
	if err == nil || ctx.Err() == nil {
		return err
	}
	return c.river.StopAndCancel(context.WithoutCancel(ctx))
}
