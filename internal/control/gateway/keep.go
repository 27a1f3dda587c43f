package gateway

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/redact"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// keepTime limits storing a file.
const keepTime = time.Minute

// Keep stores a file of a named sandbox as the output of an execution of req, so that Atoll
// counts, finds and deletes it like other outputs. req.Outputs has its name. Keep redacts
// secrets in r, and fails if r is larger than execution.MaxOutputBytes. A repeated
// idempotency key of c returns the earlier execution instead of storing the file again.
func (g *Gateway) Keep(ctx context.Context, p *tenant.Principal, req execution.Request, c Call, r io.Reader, secrets []string) (*execution.Execution, error) {
	sum := sha256.Sum256([]byte(req.Code))
	err := g.admissible(p, g.Policy(p), req, c)
	if err == nil {
		err = g.cfg.Recordable(ctx, p)
	}
	if err != nil {
		g.trail(ctx, p, req, c, sum, err)
		return nil, err
	}
	set, err := g.sets.Get(secrets, nil)
	if err != nil {
		return nil, err
	}
	e := newExecution(p, req, c, sum)
	ctx, cancel := context.WithTimeout(ctx, keepTime)
	defer cancel()
	earlier, err := g.cfg.Store.Admit(ctx, e, execution.Admission{
		Concurrency: p.Plan.Concurrency, Cause: &tenant.PlanLimit{Plan: p.Plan, Dimension: tenant.DimensionConcurrency},
		Credits: p.Tenant.MonthlyCredits, Outputs: g.quota(p),
		IdempotencyKey: c.IdempotencyKey, IdempotencyBody: digest(e, req, ""),
	})
	switch {
	case err != nil:
		g.trail(context.WithoutCancel(ctx), p, req, c, sum, err)
		return nil, err
	case earlier != nil && earlier.Status != execution.Running:
		return earlier, nil
	case earlier != nil: // whose process ended before the file was stored
		e = earlier
	}
	return g.store(ctx, e, req.Outputs[0], r, set)
}

// store writes the file of an execution to the blob store and concludes the execution.
func (g *Gateway) store(ctx context.Context, e *execution.Execution, name string, r io.Reader, set *redact.Set) (*execution.Execution, error) {
	blob := execution.FilesName(e.Tenant, e.TraceID)
	in, out := io.Pipe()
	var size int64
	copied := make(chan struct{})
	go func() { // ends with r, or once Put has returned
		defer close(copied)
		var err error
		size, err = redact.Copy(set, out, io.LimitReader(r, execution.MaxOutputBytes+1))
		if err == nil && size > execution.MaxOutputBytes {
			err = fault.New(fault.TooLarge, "the file is larger than %d MiB", execution.MaxOutputBytes>>20)
		}
		out.CloseWithError(err)
	}()
	err := g.cfg.Outputs.Put(ctx, blob, in)
	in.CloseWithError(errors.New("the blob store stopped reading"))
	<-copied
	// Whatever becomes of the caller from here on, the record says how it ended.
	ctx = context.WithoutCancel(ctx)
	if err != nil {
		f, told := errors.AsType[*fault.Error](err)
		if !told {
			f = fault.Wrap(fault.Unavailable, err, "the file could not be stored; retry in a few seconds")
		}
		_, failed := g.unstarted(ctx, e, f)
		return nil, errors.Join(failed, g.cfg.Outputs.Delete(ctx, blob))
	}
	now := time.Now().UTC()
	end := g.conclude(ctx, execution.Result{
		TraceID: e.TraceID, Status: execution.Success, LastSeq: 1, StartedAt: now, CompletedAt: now, Reused: true, Kept: size,
		Files: execution.OutputFiles{Files: []execution.OutputFile{{Name: name, Bytes: size}}},
	}, true)
	if end.err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnrecorded, end.err)
	}
	if len(end.execution.Files.Files) == 0 { // it was ended meanwhile, as lost
		return end.execution, g.cfg.Outputs.Delete(ctx, blob)
	}
	return end.execution, nil
}
