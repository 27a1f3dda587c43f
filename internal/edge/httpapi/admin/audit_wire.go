package admin

import (
	"encoding/hex"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
)

// AuditRow is one call in the audit trail.
type AuditRow struct {
	ID              int64             `json:"id"`
	TraceID         string            `json:"trace_id"`
	Tenant          string            `json:"tenant_id"`
	Key             string            `json:"key_id"`
	Environment     string            `json:"environment_id"`
	Source          string            `json:"source" doc:"What was called: execute, execute_code, a tool, or what was done with a named sandbox."`
	Agent           string            `json:"agent_id"`
	SessionID       string            `json:"session_id" doc:"The turn that it belonged to."`
	Language        string            `json:"language"`
	CodeSHA256      string            `json:"executed_code_hash" doc:"SHA-256 of the code, in hexadecimal."`
	ExitStatus      string            `json:"exit_status" enum:"ok,error,timeout,oom,cap_exceeded,provisioning,cancelled"`
	ExitCode        int               `json:"exit_code"`
	FailureReason   string            `json:"failure_reason"`
	DurationMS      int64             `json:"duration_ms"`
	StdoutBytes     int64             `json:"stdout_bytes" doc:"Before redaction and truncation."`
	StderrBytes     int64             `json:"stderr_bytes"`
	StdoutTruncated bool              `json:"stdout_truncated"`
	StderrTruncated bool              `json:"stderr_truncated"`
	PeakMemory      int64             `json:"peak_memory_bytes"`
	OutboundHosts   []string          `json:"outbound_hosts"`
	Mounts          []string          `json:"mounts" doc:"What it saw of which connection: slug/path, then :ro or :rw."`
	Metadata        map[string]string `json:"metadata"`
	RetentionDays   int               `json:"retention_days"`
	CreatedAt       time.Time         `json:"created_at"`
}

func rowOf(r audit.Row) AuditRow {
	out := AuditRow{
		ID: r.ID, TraceID: r.TraceID, Tenant: r.Tenant, Key: r.Key, Environment: r.Environment, Source: r.Source,
		Agent: r.Agent, SessionID: r.SessionID, Language: r.Language, CodeSHA256: hex.EncodeToString(r.CodeSHA256[:]),
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
	TenantID string  `json:"tenant_id"`
	Tenant   *string `json:"tenant" doc:"Its name; null if no tenant with this id is on record."`
}

// AuditCheck is the body of a verification.
type AuditCheck struct {
	Known *AuditMark `json:"known,omitzero" doc:"The head of an earlier report: the chain must still hold it."`
}

// AuditReport says what a verification found.
type AuditReport struct {
	OK       bool           `json:"ok"`
	Seals    int64          `json:"seals"`
	Rows     int64          `json:"rows" doc:"Rows that are there and match their seals."`
	Expired  int64          `json:"expired" doc:"Rows that were deleted after their retention."`
	Head     *AuditMark     `json:"head" doc:"The last seal: keep it elsewhere, and a chain that was cut short shows. null for no seals."`
	Problems []AuditProblem `json:"problems" doc:"At most 1,000."`
}

// AuditProblem is something that should not be.
type AuditProblem struct {
	Seal   int64  `json:"seal"`
	RowID  int64  `json:"row_id,omitzero"`
	Kind   string `json:"kind" enum:"changed,missing,chain,order,known,unsealed,backdated,unprotected,tenant"`
	Detail string `json:"detail"`
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
