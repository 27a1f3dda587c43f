package audit

import (
	"context"
	"iter"
	"time"
)

// Store keeps rows and seals. The database refuses to change either, and to delete a row that is
// unsealed or within its retention.
type Store interface {
	// Append adds a row for a rejected call, which has no execution.
	Append(ctx context.Context, r Row) error

	// List returns rows, newest first.
	List(ctx context.Context, f Filter) (page []Row, next string, err error)
	// Export yields a tenant's rows in time order. It streams them without holding a transaction or
	// loading all of them.
	Export(ctx context.Context, tenant string, since, before time.Time) iter.Seq2[Row, error]

	// Unsealed lists tenants with rows that no seal covers yet.
	Unsealed(ctx context.Context) ([]string, error)
	// Seal passes up to most unsealed rows of a tenant, in id order, and the tenant's last seal
	// (zero for none) to seal, and stores the result in one transaction. It returns the number of
	// rows covered. Calls for one tenant are serialized; Append does not wait for them.
	Seal(ctx context.Context, tenant string, most int, seal func(last Seal, rows []Row) Seal) (int, error)
	// Seals yields a tenant's seals, oldest first, each with the covered rows that still exist.
	Seals(ctx context.Context, tenant string) iter.Seq2[Covered, error]

	// Trails lists the tenants that have rows or seals, including deleted tenants.
	Trails(ctx context.Context) ([]string, error)
	// Uncovered lists up to most ids of a tenant's rows that no seal covers and that do not wait
	// for one: rows appended while the database rule was missing.
	Uncovered(ctx context.Context, tenant string, most int) ([]int64, error)
	// Rules lists the missing or changed database rules that protect the trail.
	Rules(ctx context.Context) ([]string, error)

	// Purge deletes up to most sealed rows whose retention has passed by the store's clock. It
	// keeps their seals.
	Purge(ctx context.Context, most int) (int, error)
}

// Seal covers a batch of a tenant's rows.
type Seal struct {
	Tenant    string
	Number    int64    // 1 for a tenant's first
	Rows      int      // rows covered
	Previous  [32]byte // hash of the previous seal; zero for the first
	Digests   [][]byte // one per row, so that a row can be checked after others are purged
	Expires   []int64  // earliest deletion time of each row, in Unix seconds
	Hash      [32]byte // of all fields above
	CreatedAt time.Time
}

// Covered is a seal with the rows that remain, by their index in the seal.
type Covered struct {
	Seal
	Left map[int]Row
}

// Filter selects rows of a tenant. Tenant is required; any other zero field matches every row.
type Filter struct {
	Tenant        string
	Key           string
	Agent         string
	SessionID     string
	Turn          string
	Source        string
	ExitStatus    ExitStatus
	TraceID       string
	CodeSHA256    []byte
	Metadata      map[string]string
	Since, Before time.Time
	Cursor        string
	Limit         int // 1 to 1000
}
