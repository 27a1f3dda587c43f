package bus

import (
	"context"
	"encoding/hex"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/atoll-run/atoll/internal/core/fault"
)

const ticketsBytes = 8 << 20

// Tickets keeps values that can be taken once, on any server of the installation, within a time.
type Tickets struct{ kv jetstream.KeyValue }

// OpenTickets opens the values that live for a time, and creates their bucket if it does not exist.
func (b *Bus) OpenTickets(ctx context.Context, life time.Duration) (*Tickets, error) {
	kv, err := b.ensureBucket(ctx, jetstream.KeyValueConfig{
		Bucket: b.names.tickets, Description: "unused tickets by their hashes", TTL: life, MaxBytes: ticketsBytes,
	})
	if err != nil {
		return nil, unavailable(err)
	}
	return &Tickets{kv}, nil
}

// Put keeps a value under the hash of its ticket.
func (t *Tickets) Put(ctx context.Context, hash [32]byte, value []byte) error {
	if _, err := t.kv.Create(ctx, keyOf(hash), value); err != nil {
		return unavailable(err)
	}
	return nil
}

// Take removes a value and returns it, to one of several callers. The others get a NotFound fault.
func (t *Tickets) Take(ctx context.Context, hash [32]byte) ([]byte, error) {
	entry, err := t.find(ctx, keyOf(hash))
	if err != nil {
		return nil, err
	}
	err = t.kv.Delete(ctx, entry.Key(), jetstream.LastRevision(entry.Revision()))
	if errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return nil, errNoTicket // another caller was faster
	}
	if err != nil {
		return nil, unavailable(err)
	}
	return entry.Value(), nil
}

// lag is how far a replica of the bus may be behind, in steps of lagStep.
const (
	lag     = 300 * time.Millisecond
	lagStep = 50 * time.Millisecond
)

// find reads an entry. Any replica may answer, so one that is not found yet is read again.
func (t *Tickets) find(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	for end := time.Now().Add(lag); ; {
		entry, err := t.kv.Get(ctx, key)
		switch {
		case err == nil:
			return entry, nil
		case !errors.Is(err, jetstream.ErrKeyNotFound):
			return nil, unavailable(err)
		case time.Now().After(end):
			return nil, errNoTicket
		}
		select {
		case <-time.After(lagStep):
		case <-ctx.Done():
			return nil, unavailable(context.Cause(ctx))
		}
	}
}

var errNoTicket = fault.New(fault.NotFound, "ticket not found")

func keyOf(hash [32]byte) string { return hex.EncodeToString(hash[:]) }
