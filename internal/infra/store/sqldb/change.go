package sqldb

import "context"

// Change is a Task of a function that changes one kind of record.
type Change struct {
	Key   string // of the record; "" if it changes several
	Of    string // the tenant of the record; "" for a change that the server makes
	Hold  []int64
	Write func(ctx context.Context, b *Batch) error
	// Refused is the reason why Write has written nothing. Write sets it and returns nil.
	Refused error
}

// Locks, Order, Owner and Do implement Task.
func (c *Change) Locks() []int64 { return c.Hold }
func (c *Change) Order() string  { return "r" + c.Key }
func (c *Change) Owner() string  { return c.Of }
func (c *Change) Do(ctx context.Context, b *Batch) error {
	c.Refused = nil
	return c.Write(ctx, b)
}

// Submit runs a task in a transaction that it shares with concurrent tasks. If it returns the error of
// ctx, nothing is written.
func (db *DB) Submit(ctx context.Context, t Task) error { return db.writer.write(ctx, t) }

// Do submits a change. It returns its refusal, or an error that names the step.
func (db *DB) Do(ctx context.Context, step string, c *Change) error {
	if err := db.Submit(ctx, c); err != nil {
		return db.Write.Wrap(step, err)
	}
	return c.Refused
}
