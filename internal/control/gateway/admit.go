package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/redact"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/infra/trace"
)

// startTimeout limits recording a request and finding an executor for it.
const startTimeout = 30 * time.Second

// Execute runs req for p. With Inline delivery it waits for the end and returns the
// record with its output; otherwise it returns the record as soon as an executor has
// the run. A repeated idempotency key returns the key's earlier execution. A started
// run continues even if ctx ends.
//
// If no code ran, the error says why, and the record, if one exists, comes with it.
// Each valid call leaves one audit row, even if a limit or a lack of capacity
// rejects it.
func (g *Gateway) Execute(ctx context.Context, p *tenant.Principal, req execution.Request, c Call) (*execution.Execution, error) {
	ctx, span := trace.Start(ctx, "execution.execute", trace.String(trace.TraceID, req.TraceID), trace.String("atoll.language", string(req.Language)))
	defer span.End()
	policy := g.Policy(p)
	sum := sha256.Sum256([]byte(req.Code))
	err := g.admissible(p, policy, req, c)
	if err == nil && c.IdempotencyKey == "" { // the key may stand for an earlier call
		err = g.crowded(p.Tenant.ID)
	}
	if err == nil {
		err = g.cfg.Recordable(ctx, p)
	}
	if err != nil {
		g.trail(ctx, p, req, c, sum, err)
		return nil, err
	}
	mounts, err := storage.Resolve(p.Storage, req.SubPaths)
	if err != nil {
		return nil, err
	}
	e := newExecution(p, req, c, sum)
	e.Mounts = storage.Labels(mounts)
	if e.Text, err = g.Text(p, cmp.Or(c.Shown, req.Code)); err != nil {
		return nil, err
	}
	admission := execution.Admission{
		Concurrency: p.Plan.Concurrency,
		Cause:       &tenant.PlanLimit{Plan: p.Plan, Dimension: tenant.DimensionConcurrency},
		Credits:     p.Tenant.MonthlyCredits,
		Threads:     p.Plan.MaxThreads,
		Outputs:     g.quota(p),
	}
	if c.IdempotencyKey != "" {
		admission.IdempotencyKey, admission.IdempotencyBody = c.IdempotencyKey, digest(e, req, c.WebhookURL)
	}

	// From here on the client's going away changes nothing.
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
	defer cancel()
	admit, took := g.metrics.begin(work, admitStep)
	earlier, err := g.cfg.Store.Admit(admit, e, admission)
	took(err)
	switch {
	case err != nil:
		g.trail(work, p, req, c, sum, err)
		return nil, err
	case earlier != nil:
		return g.again(ctx, earlier, c.Delivery)
	}
	if c.Delivery != execution.Inline {
		if err := g.start(work, e, g.job(p, e, req, c, mounts)); err != nil {
			return g.unstarted(work, e, err)
		}
		return e, nil
	}
	w := g.watch(e.TraceID)
	defer w.close()
	if err := g.start(work, e, g.job(p, e, req, c, mounts)); err != nil {
		return g.unstarted(work, e, err)
	}
	ended, err := g.wait(ctx, e, w)
	return ended, ran(ctx, ended, err)
}

// ran wraps a failure after the start in ErrUnrecorded. A bare Unavailable fault would
// tell the caller that nothing was started.
func ran(ctx context.Context, e *execution.Execution, err error) error {
	if err == nil || e != nil || ctx.Err() != nil || isNotFound(err) || errors.Is(err, ErrUnrecorded) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnrecorded, err)
}

// admissible reports why a request may not run at all.
func (g *Gateway) admissible(p *tenant.Principal, policy execution.Policy, req execution.Request, c Call) error {
	switch {
	case p.Tenant.DisabledAt != nil:
		return fault.New(fault.Forbidden, "this tenant is disabled")
	case p.Environment.ID == "":
		return fault.New(fault.Forbidden, "this key has no environment, so it cannot run code")
	case c.Delivery == execution.Streamed && !p.Plan.Streaming:
		return p.Plan.RefuseStreaming()
	case c.Delivery == execution.Async && !p.Plan.Async:
		return p.Plan.RefuseAsync()
	}
	if err := policy.Check(req); err != nil {
		return err
	}
	if err := p.Plan.Allows(&p.Environment); err != nil {
		return err
	}
	if len(p.Key.Secrets) > 0 { // each level alone was checked when it was set
		if err := redact.Validate(p.Secrets()); err != nil {
			return err
		}
	}
	return g.disk()
}

func (g *Gateway) disk() error {
	err := g.cfg.Disk()
	if err == nil || errors.As(err, new(*fault.Error)) {
		return err
	}
	return fault.Wrap(fault.Unavailable, err, "the server is low on disk space; nothing was started. Try again later")
}

func (g *Gateway) quota(p *tenant.Principal) execution.OutputQuota {
	return execution.OutputQuota{
		Max: p.Plan.MaxOutputs, Keep: g.cfg.Keep,
		Cause: &tenant.PlanLimit{Plan: p.Plan, Dimension: tenant.DimensionOutputs},
	}
}

// Room rejects a new response if the disk is short of space. If the response is kept, Room
// also rejects it if the stored data of the caller's tenant has reached the plan's limit.
func (g *Gateway) Room(ctx context.Context, p *tenant.Principal, ledger Ledger, kept bool) error {
	if err := g.disk(); err != nil {
		return err
	}
	q := g.quota(p)
	if !kept || q.Max <= 0 {
		return nil
	}
	k, err := ledger.Kept(ctx, p.Tenant.ID, q.Keep)
	if err != nil {
		return err
	}
	return q.Check(k)
}

// Ledger measures the stored data of a tenant.
type Ledger interface {
	Kept(ctx context.Context, tenantID tenant.ID, keep time.Duration) (usage.Kept, error)
}

func newExecution(p *tenant.Principal, req execution.Request, c Call, sum [sha256.Size]byte) *execution.Execution {
	e := &execution.Execution{
		TraceID:     req.TraceID,
		Tenant:      p.Tenant.ID,
		Key:         p.Key.ID,
		Environment: p.Environment.ID,
		Source:      c.Source,
		Delivery:    c.Delivery,
		Agent:       c.Agent,
		Turn:        c.Turn,
		By:          c.By,
		Run:         c.Run,
		Thread:      req.Thread,
		Language:    req.Language,
		Timeout:     req.Timeout,
		Metadata:    req.Metadata,
		CodeSHA256:  sum,
		CPU:         p.Environment.Limits.CPU,
		Memory:      p.Environment.Limits.Memory,
		Status:      execution.Running,
		CreatedAt:   time.Now().UTC(),
	}
	if c.Delivery == execution.Async {
		e.Webhook = execution.WebhookTarget{URL: c.WebhookURL, Secret: p.Key.WebhookSecret}
		if c.WebhookURL == "" {
			e.Webhook.URL = p.Key.WebhookURL
		}
	}
	return e
}

// start passes a job to an executor.
func (g *Gateway) start(ctx context.Context, e *execution.Execution, job execution.Job) error {
	began := time.Now()
	job.StartBy = began.UTC().Add(execution.StartTime)
	if job.Thread != nil && g.cfg.ThreadKey != nil { // here, not in job: Expected needs no key
		job.Thread.Key = g.cfg.ThreadKey(job.Tenant)
	}
	start, took := g.metrics.begin(ctx, startStep)
	err := g.cfg.Runner.Start(start, job)
	took(err)
	if err != nil && job.Turn == "" { // only the executor with the turn's sandbox refused a turn's call; others may have room
		g.crowd(e.Tenant, err)
	}
	if err != nil || time.Since(began) < young {
		return err
	}
	// It took so long that it may have been cancelled on the way to an executor.
	// Starts keeps executors from starting it later.
	if now, err := g.cfg.Store.Get(ctx, e.Tenant, e.TraceID); err == nil && now.Status != execution.Running {
		if err := g.cfg.Runner.Cancel(ctx, e.TraceID); err != nil && !isNotFound(err) {
			g.cfg.Logger.WarnContext(ctx, "cannot end a run that was cancelled before it began", "trace_id", e.TraceID, "error", err)
		}
	}
	return nil
}

// unstarted records that no executor took a run, and returns the error for its
// caller. It sends no webhook, because the caller gets the error.
func (g *Gateway) unstarted(ctx context.Context, e *execution.Execution, err error) (*execution.Execution, error) {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		f = fault.Wrap(fault.Unavailable, err, "no executor could be reached; nothing was started. Retry in a few seconds")
	}
	end := g.conclude(ctx, execution.Result{
		TraceID: e.TraceID, Status: execution.Failed, ExitCode: -1, Error: f.Msg, NotStarted: true, Kind: f.Kind,
		LastSeq: 1, CompletedAt: time.Now().UTC(),
	}, true)
	if end.err != nil {
		// Reconcile finds it: no executor has the run.
		g.cfg.Logger.ErrorContext(ctx, "cannot record that a run was not started", "trace_id", e.TraceID, "error", end.err)
		return nil, f
	}
	return end.execution, f
}

// trail writes the audit row of a call that a limit or a lack of capacity rejected.
// Invalid calls leave no row.
func (g *Gateway) trail(ctx context.Context, p *tenant.Principal, req execution.Request, c Call, sum [sha256.Size]byte, refused error) {
	row := audit.Row{
		TraceID: req.TraceID, Tenant: p.Tenant.ID, Key: p.Key.ID, Environment: p.Environment.ID,
		Source: string(c.Source), Agent: c.Agent, SessionID: c.Turn, Language: string(req.Language),
		CodeSHA256: sum, ExitCode: -1, Metadata: req.Metadata,
		Retention: time.Duration(p.Tenant.AuditDays) * 24 * time.Hour,
	}
	Attribute(&row, c.By)
	row.Thread = req.Thread
	switch fault.KindOf(refused) {
	case fault.Exhausted:
		row.ExitStatus = audit.CapExceeded
	case fault.Unavailable:
		row.ExitStatus = audit.Provisioning
	default:
		return
	}
	if f, ok := errors.AsType[*fault.Error](refused); ok {
		row.FailureReason = f.Msg
		g.metrics.refused(f)
	}
	g.Refused(ctx, row)
}
