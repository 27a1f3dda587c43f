// Package audit records every call in an append-only trail. Each tenant's rows are sealed in a hash
// chain, so that a verification detects changed or deleted rows.
package audit

import (
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/usage"
)

// ExitStatus is how a call ended.
type ExitStatus string

const (
	OK           ExitStatus = "ok"
	Error        ExitStatus = "error"
	Timeout      ExitStatus = "timeout"
	OOM          ExitStatus = "oom"
	CapExceeded  ExitStatus = "cap_exceeded"
	Provisioning ExitStatus = "provisioning"
	Cancelled    ExitStatus = "cancelled"
)

// ExitStatuses lists every exit status.
var ExitStatuses = []ExitStatus{OK, Error, Timeout, OOM, CapExceeded, Provisioning, Cancelled}

// Valid reports whether s is an exit status.
func (s ExitStatus) Valid() bool { return slices.Contains(ExitStatuses, s) }

// Retention of rows. The database refuses to delete a row earlier, and to keep a row longer than
// MaxRetention.
const (
	minRetention     = 24 * time.Hour
	DefaultRetention = 30 * 24 * time.Hour
	MaxRetention     = 180 * 24 * time.Hour
)

// Row is one call.
type Row struct {
	ID            int64 // assigned by the store, increasing
	TraceID       string
	Tenant        string
	Key           string
	Environment   string
	Source        string // of the execution
	Agent         string
	SessionID     string // the session of the call; the turn for execute_code
	Turn          string // the turn of an agent's session, or the response; empty unless a model made the call
	Sandbox       string // id of the named sandbox; empty for none
	Thread        string // the thread whose home directory the call used; empty for none
	Language      string
	CodeSHA256    [32]byte
	ExitStatus    ExitStatus
	ExitCode      int
	FailureReason string // empty for OK
	DurationMS    int64
	// Sizes before redaction and truncation, in bytes.
	StdoutBytes, StderrBytes         int64
	StdoutTruncated, StderrTruncated bool
	PeakMemory                       int64
	OutboundHosts                    []string
	Mounts                           []string // labels of the storage mounted for the call
	Metadata                         map[string]string
	Credits                          float64     // charged for the call
	Cost                             usage.Money // in US dollars
	// Text is the redacted start of the code or command, if the tenant keeps texts. The store
	// encrypts it outside the row. The digest does not cover it, and lists do not return it.
	Text      string
	Retention time.Duration // whole days
	CreatedAt time.Time     // of the row, by the store's clock, in UTC to the microsecond
}
