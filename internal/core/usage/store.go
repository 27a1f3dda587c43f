package usage

import (
	"context"
	"time"
)

// Store reads the ledger. Entries are written with the end of their execution, charges
// with the step of their run.
type Store interface {
	// Summary adds up a tenant's entries in [since, before), by day in UTC. A day
	// that is only partly in it counts as a whole when Purge has been at it.
	Summary(ctx context.Context, tenant string, since, before time.Time) ([]Day, error)
	// Groups sums the usage of agents per agent, or per agent and session, for the UTC days of
	// [since, before). It returns at most MaxGroups, the most expensive first.
	Groups(ctx context.Context, f GroupFilter) ([]Group, error)
	// Month is what a tenant has used in the current calendar month in UTC.
	Month(ctx context.Context, tenant string) (credits float64, err error)
	// MonthCost is what a tenant's runs have cost in that month.
	MonthCost(ctx context.Context, tenant string) (Money, error)
	// CheckCost refuses a tenant whose budget in money is used up with some money more, or
	// would be passed by what comes next, with OverBudget.
	CheckCost(ctx context.Context, tenant string, more, next Money) error
	// Calls counts the calls that a tenant made in [since, before) under a trace id, by
	// source.
	Calls(ctx context.Context, tenant, traceID string, since, before time.Time) (map[string]int, error)
	// Made reports whether what went on under a trace id in [since, before) had a sandbox
	// made for it.
	Made(ctx context.Context, tenant, traceID string, since, before time.Time) (bool, error)
	// Kept is what the ended executions of a tenant keep, those of the days that a time
	// of keep reaches.
	Kept(ctx context.Context, tenant string, keep time.Duration) (Kept, error)
	// Recorded is how many entries a tenant has made, of the days that a time reaches.
	Recorded(ctx context.Context, tenant string, within time.Duration) (int64, error)
	// Purge deletes up to most entries, charges and sums per agent and session of days that ended
	// longer ago than keep, and returns the number. The whole days that Summary and Month return
	// do not change.
	Purge(ctx context.Context, keep time.Duration, most int) (int, error)
}

// Kept is what a tenant's ended executions keep.
type Kept struct {
	Bytes    int64     // of their output and the files they gave back
	ResetsAt time.Time // when a part of it has expired; zero for nothing kept
}

// Day is what a tenant used on one day, in one interface, of one model or of one tool.
type Day struct {
	Date       time.Time // midnight in UTC
	Source     string    // or the Kind of charges
	Name       string    // of the model or tool; "" for an interface
	Calls      int64
	Sessions   int64
	Seconds    float64
	CPUSeconds float64 // seconds times cores
	GiBSeconds float64 // seconds times GiB of memory
	BytesOut   int64
	Credits    float64
	Tokens     Tokens
	Cost       Money
}

// Group is the usage of an agent or of one of its sessions.
type Group struct {
	Agent   string
	Session string // "" for all sessions together, or for work without a session
	Day            // without a Date, Source and Name
}

// GroupFilter selects groups.
type GroupFilter struct {
	Tenant        string
	Sessions      bool   // one group per session
	Agent         string // "" for all
	Session       string // "" for all
	Since, Before time.Time
}

// MaxGroups limits the result of Groups.
const MaxGroups = 1000
