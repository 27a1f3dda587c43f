package sandboxes

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// Source names the running time of named sandboxes in the ledger and in the audit trail.
const Source = "sandbox"

// Accounts keeps the ledger and the audit trail; a sandbox.Store implements it.
type Accounts interface {
	Meter(ctx context.Context, id runtime.ID, until time.Time, e usage.Entry) error
	Record(ctx context.Context, row audit.Row, e usage.Entry) error
}

// Ledger implements sandbox.Ledger.
type Ledger struct {
	Accounts Accounts
	Prices   usage.Prices
}

var _ sandbox.Ledger = Ledger{}

// Charge implements sandbox.Ledger.
func (l Ledger) Charge(ctx context.Context, s *sandbox.Sandbox, until time.Time, bytesOut int64) error {
	return l.Accounts.Meter(ctx, s.ID, until, Entry(l.Prices, s, until, bytesOut))
}

// Entry returns the ledger entry for a resident sandbox from its MeteredAt until a time, and for
// bytes that left the sandbox.
func Entry(prices usage.Prices, s *sandbox.Sandbox, until time.Time, bytesOut int64) usage.Entry {
	e := usage.Entry{
		TraceID: string(s.ID), Tenant: s.Tenant, Key: s.Key, Source: Source,
		Seconds: until.Sub(s.MeteredAt).Seconds(), CPU: s.Limits.CPU, Memory: s.Limits.Memory, BytesOut: bytesOut, Standing: true, At: until,
	}
	e.Credits = prices.Credits(e)
	return e
}

// Contacted implements sandbox.Ledger.
func (l Ledger) Contacted(ctx context.Context, s *sandbox.Sandbox, until time.Time, hosts []string) error {
	return l.Accounts.Record(ctx, ContactRow(s, until, hosts), usage.Entry{})
}

// ContactRow returns the audit row for the hosts that a sandbox contacted, or that its network policy
// refused, from its MeteredAt until a time.
func ContactRow(s *sandbox.Sandbox, until time.Time, hosts []string) audit.Row {
	return audit.Row{
		TraceID: string(s.ID), Tenant: s.Tenant, Key: s.Key, Environment: s.Environment, Source: Source, SessionID: s.Session,
		CodeSHA256: sha256.Sum256([]byte(s.Name)), ExitStatus: audit.OK, DurationMS: until.Sub(s.MeteredAt).Milliseconds(),
		OutboundHosts: hosts, Metadata: map[string]string{"sandbox_id": string(s.ID)},
	}
}
