package bus

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/atoll-run/atoll/internal/core/execution"
)

const (
	// resultsBytes bounds the results that no gateway has recorded yet. When it is
	// reached none is lost: Finish fails until gateways have caught up.
	resultsBytes = 2 << 30
	turnsBytes   = 64 << 20

	// A decision about a start outlives any pause of the executor that it concerns.
	startsBytes = 64 << 20
	startsAge   = 7 * 24 * time.Hour

	// turnLease is how long a turn belongs to an executor that says nothing more.
	turnLease = 60 * time.Second
)

// ensure makes the streams, or fits those there are to the configuration.
func (b *Bus) ensure(ctx context.Context) (turns jetstream.KeyValue, err error) {
	for _, s := range []jetstream.StreamConfig{
		{
			Name:        b.names.results,
			Description: "results that no gateway has recorded yet",
			Subjects:    []string{b.names.result + "*.*"},
			Retention:   jetstream.WorkQueuePolicy,
			Discard:     jetstream.DiscardNew,
			MaxBytes:    resultsBytes,
		}, {
			Name:              b.names.outputs,
			Description:       "output of executions, a subject for each",
			Subjects:          []string{b.names.log + "*"},
			Discard:           jetstream.DiscardOld,
			MaxBytes:          b.cfg.MaxBytes,
			MaxAge:            b.cfg.MaxAge,
			MaxMsgsPerSubject: execution.MaxEvents,
			AllowDirect:       true,
		}, {
			Name:              b.names.startsStream,
			Description:       "whether executors start jobs that gateways may count as lost",
			Subjects:          []string{b.names.starts + "*"},
			Discard:           jetstream.DiscardOld,
			MaxBytes:          startsBytes,
			MaxAge:            startsAge,
			MaxMsgsPerSubject: 1,
		},
	} {
		if err := b.ensureStream(ctx, s); err != nil {
			return nil, fmt.Errorf("make stream %s: %w", s.Name, err)
		}
	}
	turns, err = b.ensureBucket(ctx, jetstream.KeyValueConfig{
		Bucket: b.names.turns, Description: "which executor has a turn's sandbox", TTL: turnLease, MaxBytes: turnsBytes,
	})
	if err != nil {
		return nil, fmt.Errorf("make bucket %s: %w", b.names.turns, err)
	}
	return turns, nil
}

// ensureStream makes a stream. Of one that exists it changes only what want sets, so that
// replicas, placement and the like stay as the operator of the NATS cluster has set them.
func (b *Bus) ensureStream(ctx context.Context, want jetstream.StreamConfig) error {
	stream, err := b.js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		want.Replicas = max(1, b.cfg.Replicas)
		_, err = b.js.CreateStream(ctx, want)
		if !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return err
		}
		stream, err = b.js.Stream(ctx, want.Name) // another server has just made it
	}
	if err != nil {
		return err
	}
	have := stream.CachedInfo().Config
	c := have
	c.Description, c.Subjects, c.Discard, c.AllowDirect = want.Description, want.Subjects, want.Discard, want.AllowDirect
	c.MaxBytes, c.MaxAge = want.MaxBytes, want.MaxAge
	if want.MaxMsgsPerSubject != 0 {
		c.MaxMsgsPerSubject = want.MaxMsgsPerSubject
	}
	if b.cfg.Replicas > 0 {
		c.Replicas = b.cfg.Replicas
	}
	if reflect.DeepEqual(c, have) {
		return nil
	}
	_, err = b.js.UpdateStream(ctx, c)
	return err
}

// ensureBucket makes a key-value bucket, as ensureStream makes a stream.
func (b *Bus) ensureBucket(ctx context.Context, c jetstream.KeyValueConfig) (jetstream.KeyValue, error) {
	c.Replicas = max(1, b.cfg.Replicas)
	stream, err := b.js.Stream(ctx, "KV_"+c.Bucket)
	if err == nil {
		have := stream.CachedInfo().Config
		c.Storage, c.Placement = have.Storage, have.Placement
		if b.cfg.Replicas == 0 {
			c.Replicas = have.Replicas
		}
	} else if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, err
	}
	return b.js.CreateOrUpdateKeyValue(ctx, c)
}

// ID identifies the bus: two servers have the same id exactly if they reach the same streams.
func (b *Bus) ID(ctx context.Context) (string, error) {
	stream, err := b.js.Stream(ctx, b.names.results)
	if err != nil {
		return "", unavailable(err)
	}
	return strconv.FormatInt(stream.CachedInfo().Created.UnixNano(), 36), nil
}
