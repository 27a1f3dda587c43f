package admin

import (
	"encoding/hex"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
)

// AuditRow is one call in the audit trail.
type AuditRow struct {
	ID              int64             `json:"id" doc:"The row's number, which grows with each row."`
	TraceID         string            `json:"trace_id" doc:"Names the request or execution in records and logs."`
	Tenant          string            `json:"tenant_id" doc:"The id of the tenant."`
	Key             string            `json:"key_id" doc:"The key or token that called."`
	Environment     string            `json:"environment_id" doc:"The environment that it runs in."`
	Source          string            `json:"source" doc:"The interface or tool that the caller used: execute, execute_code, a tool, or an operation of a named sandbox."`
	Agent           string            `json:"agent_id" doc:"The agent that made the call; for execute_code, the caller's name for it. Empty without an agent."`
	SessionID       string            `json:"session_id" doc:"The agent's session; for a response, its container; for execute_code, the turn; for other calls, the session that they name."`
	TurnID          string            `json:"turn_id" doc:"The turn of an agent's session, or the response; empty if the call did not come from a model."`
	SandboxID       string            `json:"sandbox_id" doc:"The named sandbox; empty if the call used none."`
	ThreadID        string            `json:"thread_id" doc:"The thread whose home directory the call used; empty if it used none."`
	Language        string            `json:"language"`
	CodeSHA256      string            `json:"executed_code_hash" doc:"SHA-256 of the code, in hexadecimal."`
	ExitStatus      string            `json:"exit_status" enum:"ok,error,timeout,oom,cap_exceeded,provisioning,cancelled" doc:"How it ended."`
	ExitCode        int               `json:"exit_code" doc:"The exit code of the program; 128+n when signal n ended it."`
	FailureReason   string            `json:"failure_reason" doc:"Why it failed or was refused; empty if it did not."`
	DurationMS      int64             `json:"duration_ms" doc:"How long it took, in milliseconds."`
	StdoutBytes     int64             `json:"stdout_bytes" doc:"Before redaction and truncation."`
	StderrBytes     int64             `json:"stderr_bytes" doc:"Bytes that were written to standard error."`
	StdoutTruncated bool              `json:"stdout_truncated" doc:"Whether standard output had more than is kept."`
	StderrTruncated bool              `json:"stderr_truncated" doc:"Whether standard error had more than is kept."`
	Credits         float64           `json:"credits" doc:"Credits charged for the call."`
	CostUSD         float64           `json:"cost_usd" doc:"Cost of the model in US dollars."`
	PeakMemory      int64             `json:"peak_memory_bytes" doc:"Bytes of memory that it used at most at one time."`
	OutboundHosts   []string          `json:"outbound_hosts" doc:"Hosts that were contacted over the network."`
	Mounts          []string          `json:"mounts" doc:"Mounted connections: slug/path, then :ro or :rw."`
	Metadata        map[string]string `json:"metadata" doc:"Other details of the call, such as the sandbox."`
	RetentionDays   int               `json:"retention_days" doc:"How many days the row is kept."`
	CreatedAt       time.Time         `json:"created_at" doc:"When the row was written."`
}

func rowOf(r audit.Row) AuditRow {
	out := AuditRow{
		ID: r.ID, TraceID: r.TraceID, Tenant: r.Tenant, Key: r.Key, Environment: r.Environment, Source: r.Source,
		Agent: r.Agent, SessionID: r.SessionID, TurnID: r.Turn, SandboxID: r.Sandbox, ThreadID: r.Thread, Credits: r.Credits, CostUSD: r.Cost.Dollars(), Language: r.Language, CodeSHA256: hex.EncodeToString(r.CodeSHA256[:]),
		ExitStatus: string(r.ExitStatus), ExitCode: r.ExitCode, FailureReason: r.FailureReason, DurationMS: r.DurationMS,
		StdoutBytes: r.StdoutBytes, StderrBytes: r.StderrBytes, StdoutTruncated: r.StdoutTruncated, StderrTruncated: r.StderrTruncated,
		PeakMemory: r.PeakMemory, OutboundHosts: append([]string{}, r.OutboundHosts...), Mounts: append([]string{}, r.Mounts...), Metadata: r.Metadata,
		RetentionDays: int(r.Retention / (24 * time.Hour)), CreatedAt: r.CreatedAt,
	}
	if out.Metadata == nil {
		out.Metadata = map[string]string{}
	}
	return out
}

// AuditMark names a seal of a tenant's chain.
type AuditMark struct {
	Number int64  `json:"number" doc:"1 for the first."`
	Hash   string `json:"hash" doc:"64 hexadecimal digits."`
}

// AuditTrail is a tenant that has audit rows or seals.
type AuditTrail struct {
	TenantID string  `json:"tenant_id" doc:"The id of the tenant."`
	Tenant   *string `json:"tenant" doc:"Its name; null if no tenant with this id is on record."`
}

// AuditCheck is the body of a verification.
type AuditCheck struct {
	Known *AuditMark `json:"known,omitzero" doc:"The head of an earlier report: the chain must still hold it."`
}

// AuditReport says what a verification found.
type AuditReport struct {
	OK       bool           `json:"ok" doc:"Whether nothing was found."`
	Seals    int64          `json:"seals" doc:"How many seals the trail has."`
	Rows     int64          `json:"rows" doc:"Rows that are there and match their seals."`
	Expired  int64          `json:"expired" doc:"Rows that were deleted after their retention."`
	Head     *AuditMark     `json:"head" doc:"The last seal: keep it elsewhere, and a chain that was cut short shows. null for no seals."`
	Problems []AuditProblem `json:"problems" doc:"At most 1,000."`
}

// AuditProblem is something that should not be.
type AuditProblem struct {
	Seal   int64  `json:"seal" doc:"The seal that it is about; 0 if none."`
	RowID  int64  `json:"row_id,omitzero" doc:"The row that it is about; 0 if none."`
	Kind   string `json:"kind" enum:"changed,missing,chain,order,known,unsealed,backdated,unprotected,tenant" doc:"Kind of the problem: a changed or missing row, a broken chain of hashes, a wrong order, a trail that does not lead to the known mark, or rows without a seal."`
	Detail string `json:"detail" doc:"Description of the problem."`
}

func reportOf(r audit.Report) AuditReport {
	out := AuditReport{OK: len(r.Problems) == 0, Seals: r.Seals, Rows: r.Rows, Expired: r.Expired, Problems: []AuditProblem{}}
	if r.Head.Number > 0 {
		out.Head = &AuditMark{r.Head.Number, hex.EncodeToString(r.Head.Hash[:])}
	}
	for _, p := range r.Problems {
		out.Problems = append(out.Problems, AuditProblem{p.Seal, p.RowID, string(p.Kind), p.Detail})
	}
	return out
}
