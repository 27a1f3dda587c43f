package directory

import (
	"context"
	"crypto/sha256"
	"strings"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// recordTime bounds recording a call, whatever becomes of its caller.
const recordTime = 10 * time.Second

// Record writes the audit row of a call, and charges for the call unless it was rejected. Every
// valid call leaves a row; rejected calls may share one. If Record fails, the caller must not
// return the answer of the call.
func (d *Directory) Record(ctx context.Context, p *tenant.Principal, c sandbox.Call) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	row := audit.Row{
		TraceID: c.TraceID, Tenant: p.Tenant.ID, Key: p.Key.ID, Environment: p.Environment.ID,
		Source: c.Source, Agent: c.Agent, SessionID: c.Session, Turn: c.Turn, Sandbox: c.Metadata["sandbox_id"], Thread: c.Thread, CodeSHA256: sha256.Sum256(c.Command),
		ExitStatus: c.Status, ExitCode: c.ExitCode, FailureReason: c.Reason, DurationMS: time.Since(c.Began).Milliseconds(),
		StdoutBytes: c.StdoutBytes, StderrBytes: c.StderrBytes, StdoutTruncated: c.StdoutTruncated, StderrTruncated: c.StderrTruncated,
		OutboundHosts: c.Hosts, Mounts: c.Mounts, Metadata: c.Metadata, Retention: time.Duration(p.Tenant.AuditDays) * 24 * time.Hour,
	}
	entry := usage.Entry{
		TraceID: c.TraceID, Tenant: p.Tenant.ID, Key: p.Key.ID, Source: c.Source, At: moment(),
	}
	if c.Turn != "" && c.Agent != "" {
		entry.Agent, entry.Session = c.Agent, c.Session
	}
	entry.Credits = d.cfg.Prices.Credits(entry)
	var err error
	if c.Refused {
		err = d.cfg.Refusals.Append(ctx, row)
	} else {
		row.Credits = entry.Credits
		row.Text, err = d.text(p, c.Command)
	}
	if err == nil && !c.Refused {
		err = d.cfg.Store.Record(ctx, row, entry)
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "the call could not be recorded; it may have been done")
	}
	return nil
}

// text returns the activity's text for a command.
func (d *Directory) text(p *tenant.Principal, command []byte) (string, error) {
	if d.cfg.Text == nil {
		return "", nil
	}
	return d.cfg.Text(p, strings.ToValidUTF8(string(command), "\ufffd"))
}

// lastMoment is the last moment returned, in microseconds since 1970.
var lastMoment atomic.Int64

// moment is now, or a little later: no two are the same, because the ledger tells the calls
// of one trace apart by their time.
func moment() time.Time {
	for {
		last := lastMoment.Load()
		next := max(time.Now().UnixMicro(), last+1)
		if lastMoment.CompareAndSwap(last, next) {
			return time.UnixMicro(next).UTC()
		}
	}
}

// GetSnapshot returns p's snapshot.
func (d *Directory) GetSnapshot(ctx context.Context, p *tenant.Principal, id sandbox.SnapshotID) (*sandbox.Snapshot, error) {
	return sandbox.GetSnapshot(ctx, d.cfg.Snapshots, p, id)
}

// ListSnapshots returns p's snapshots, newest first.
func (d *Directory) ListSnapshots(ctx context.Context, p *tenant.Principal, cursor string, limit int) (page []*sandbox.Snapshot, next string, err error) {
	return sandbox.ListSnapshots(ctx, d.cfg.Snapshots, p, cursor, limit)
}

// DeleteSnapshot deletes p's snapshot. Sandboxes created from it keep running.
func (d *Directory) DeleteSnapshot(ctx context.Context, p *tenant.Principal, id sandbox.SnapshotID) error {
	return sandbox.DeleteSnapshot(ctx, d.cfg.Snapshots, p, id)
}
