package audit

import (
	"context"
	"iter"
	"time"
)

// Store keeps rows and seals. The database behind it refuses to change either,
// and to delete a row that is not sealed or whose retention has not passed.
type Store interface {
	// Append adds a row of a call that has no execution: one that was refused.
	Append(ctx context.Context, r Row) error

	// List returns rows, newest first.
	List(ctx context.Context, f Filter) (page []Row, next string, err error)
	// Export yields a tenant's rows in order of time, without holding a transaction
	// or all of them.
	Export(ctx context.Context, tenant string, since, before time.Time) iter.Seq2[Row, error]

	// Unsealed lists tenants with rows that no seal covers yet.
	Unsealed(ctx context.Context) ([]string, error)
	// Seal takes up to most uncovered rows of a tenant in order of id and stores
	// what seal makes of them and the tenant's last seal (zero for none), in one
	// transaction; no other Seal of the tenant comes between. It returns how many
	// rows it covered. Appending does not wait for it.
	Seal(ctx context.Context, tenant string, most int, seal func(last Seal, rows []Row) Seal) (int, error)
	// Seals yields a tenant's seals, oldest first, each with the rows it covers
	// that are still there.
	Seals(ctx context.Context, tenant string) iter.Seq2[Covered, error]

	// Trails lists the tenants that have rows or seals, also those that are not on
	// record any more.
	Trails(ctx context.Context) ([]string, error)
	// Uncovered lists up to most ids of a tenant's rows that no seal covers and
	// that do not wait for one: of rows whose rule was removed when they came.
	Uncovered(ctx context.Context, tenant string, most int) ([]int64, error)
	// Rules lists what is missing or changed of the rules by which the database
	// protects the trail.
	Rules(ctx context.Context) ([]string, error)

	// Purge deletes up to most sealed rows whose retention has passed by the
	// store's clock; their seals stay.
	Purge(ctx context.Context, most int) (int, error)
}

// Seal covers a batch of a tenant's rows.
type Seal struct {
	Tenant    string
	Number    int64    // 1 for a tenant's first
	Rows      int      // how many it covers
	Previous  [32]byte // hash of the seal before, zero for the first
	Digests   [][]byte // one of each row, by which a row can be checked when others are gone
	Expires   []int64  // when each row may be deleted, in Unix seconds
	Hash      [32]byte // of everything above
	CreatedAt time.Time
}

// Covered is a seal with the rows that are left of what it covers, by their
// place in it.
type Covered struct {
	Seal
	Left map[int]Row
}

// Filter selects rows of a tenant. Zero fields select everything but Tenant,
// which is required.
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
