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
	key := keyOf(hash)
	entry, err := t.kv.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, errNoTicket
	}
	if err != nil {
		return nil, unavailable(err)
	}
	if err := t.kv.Delete(ctx, key, jetstream.LastRevision(entry.Revision())); err != nil {
		if api := (*jetstream.APIError)(nil); errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence {
			return nil, errNoTicket // another caller was faster
		}
		return nil, unavailable(err)
	}
	return entry.Value(), nil
}

var errNoTicket = fault.New(fault.NotFound, "there is no such ticket")

func keyOf(hash [32]byte) string { return hex.EncodeToString(hash[:]) }
