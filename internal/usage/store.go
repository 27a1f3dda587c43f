package usage

import (
	"context"
	"time"
)

// Store reads the ledger. Entries are written with the end of their execution.
type Store interface {
	// Summary adds up a tenant's entries in [since, before), by day in UTC.
	Summary(ctx context.Context, tenant string, since, before time.Time) ([]Day, error)
	// Month is what a tenant has used in the current calendar month in UTC.
	Month(ctx context.Context, tenant string) (credits float64, err error)
}

// Day is what a tenant used on one day, in one interface.
type Day struct {
	Date       time.Time // midnight in UTC
	Source     string
	Calls      int64
	Sessions   int64
	Seconds    float64
	CPUSeconds float64 // seconds times cores
	GiBSeconds float64 // seconds times GiB of memory
	BytesOut   int64
	Credits    float64
}
