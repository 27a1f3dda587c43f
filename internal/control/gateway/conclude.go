package gateway

import (
	"context"
	"fmt"
	"maps"
	"math"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// conclusion is an end that this process records. Everything but done may be
// read once done is closed.
type conclusion struct {
	done      chan struct{}
	execution *execution.Execution // nil when the execution is not known
	first     bool                 // this end is the one that counts; execution has its output
	kind      fault.Kind           // with NotStarted
	err       error                // it could not be recorded
}

// Conclude records how a run ended, unless that is known already. It may be
// called any number of times; an error asks for another.
func (g *Gateway) Conclude(ctx context.Context, r execution.Result) error {
	return g.conclude(ctx, r, false).err
}

// conclude records r, or waits for the goroutine of this process that is recording it:
// a result comes at the same time to the request that waits for it and to the
// bus's consumer. quiet says that no webhook is to tell of it.
func (g *Gateway) conclude(ctx context.Context, r execution.Result, quiet bool) *conclusion {
	g.mu.Lock()
	if c := g.ending[r.TraceID]; c != nil {
		g.mu.Unlock()
		select {
		case <-c.done:
			return c
		case <-ctx.Done():
			return &conclusion{err: context.Cause(ctx)}
		}
	}
	c := &conclusion{done: make(chan struct{}), kind: r.Kind}
	g.ending[r.TraceID] = c
	g.mu.Unlock()

	ctx, took := g.metrics.begin(ctx, concludeStep)
	c.execution, c.first, c.err = g.cfg.Store.Conclude(ctx, r, func(e *execution.Execution) execution.Consequences {
		return g.consequences(e, r, quiet)
	})
	took(c.err)
	if c.err != nil {
		c.err = fmt.Errorf("record the end of %s: %w", r.TraceID, c.err)
	}
	if c.first {
		c.execution.Stdout, c.execution.Stderr = r.Stdout, r.Stderr
		g.metrics.concluded(c.execution)
	}

	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.ending, r.TraceID)
	close(c.done)
	return c
}

// consequences are what follows from the end of e, which r told of.
func (g *Gateway) consequences(e *execution.Execution, r execution.Result, quiet bool) execution.Consequences {
	row, entry := auditRow(e, &r.Traffic), g.entry(e, r)
	row.Credits = entry.Credits
	return execution.Consequences{
		Audit:   row,
		Usage:   entry,
		Webhook: !quiet && e.Delivery == execution.Async && e.Webhook.URL != "",
	}
}

// exitStatuses are the trail's words for how an execution ended.
var exitStatuses = map[execution.Status]audit.ExitStatus{
	execution.Success:   audit.OK,
	execution.Failed:    audit.Error,
	execution.Timeout:   audit.Timeout,
	execution.OOM:       audit.OOM,
	execution.Blocked:   audit.Provisioning,
	execution.Cancelled: audit.Cancelled,
}

// auditRow is the trail of e. How long it is kept is the tenant's setting,
// which the store knows.
func auditRow(e *execution.Execution, t *execution.Traffic) audit.Row {
	stdout, stderr := e.Source.Cut(math.MaxInt64)
	row := audit.Row{
		TraceID:         e.TraceID,
		Tenant:          e.Tenant,
		Key:             e.Key,
		Environment:     e.Environment,
		Source:          string(e.Source),
		Agent:           e.Agent,
		SessionID:       e.Turn,
		Language:        string(e.Language),
		CodeSHA256:      e.CodeSHA256,
		ExitStatus:      exitStatuses[e.Status],
		ExitCode:        e.ExitCode,
		FailureReason:   e.Error,
		DurationMS:      e.Duration().Milliseconds(),
		StdoutBytes:     e.StdoutBytes,
		StderrBytes:     e.StderrBytes,
		StdoutTruncated: e.StdoutTruncated || e.StdoutBytes > stdout,
		StderrTruncated: e.StderrTruncated || e.StderrBytes > stderr,
		PeakMemory:      e.PeakMemory,
		Mounts:          e.Mounts,
		OutboundHosts:   t.Outbound(),
		Metadata:        e.Metadata,
	}
	row.Thread = e.Thread
	Attribute(&row, e.By)
	if e.NotStarted && e.Status == execution.Failed {
		row.ExitStatus = audit.Provisioning
	}
	if e.Status == execution.Blocked && !e.NotStarted { // a permission ended it
		row.ExitStatus = audit.Error
	}
	if row.FailureReason == "" && row.ExitStatus != audit.OK {
		row.FailureReason = fmt.Sprintf("the program exited with status %d", e.ExitCode)
	}
	return row
}

// Attribute has a row say whose work a model's tool call is.
func Attribute(row *audit.Row, o execution.Origin) {
	if o.Turn == "" {
		return
	}
	row.Agent, row.SessionID, row.Turn = o.Agent, o.Session, o.Turn
	about := map[string]string{"tool": o.Tool}
	maps.Copy(about, row.Metadata)
	row.Metadata = about
}

// entry is what e used, and its price.
func (g *Gateway) entry(e *execution.Execution, r execution.Result) usage.Entry {
	entry := usage.Entry{
		TraceID: e.TraceID, Tenant: e.Tenant, Key: e.Key, Source: string(e.Source),
		CPU: e.CPU, Memory: e.Memory, At: e.CompletedAt,
	}
	if entry.Agent = e.Agent; e.By.Agent != "" {
		entry.Agent, entry.Session = e.By.Agent, e.By.Session
	}
	if e.NotStarted {
		return entry
	}
	if started := r.StartedAt; !started.IsZero() {
		entry.Seconds = max(0, r.CompletedAt.Sub(started).Seconds())
	}
	entry.BytesOut = r.Traffic.BytesOut
	if !r.Reused {
		entry.Sessions = 1
	}
	entry.Credits = g.cfg.Prices.Credits(entry)
	return entry
}
