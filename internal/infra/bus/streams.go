package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// Subjects and streams.
const (
	startSubject = "atoll.start" // to any executor with room
	startGroup   = "executors"
	execPrefix   = "atoll.exec."   // + executor: a start for this one
	runPrefix    = "atoll.run."    // + trace id: about a run, to the executor that has it
	turnPrefix   = "atoll.turn."   // + digest: a start, or the end of the turn, to the executor that has it
	resultPrefix = "atoll.result." // + gateway + trace id
	logPrefix    = "atoll.log."    // + trace id
	newsPrefix   = "atoll.news."   // + the id of a session or run that has changed
	webSubject   = "atoll.web"     // a program's call of a service of the web, to any gateway
	webGroup     = "gateways"
	webEndPrefix = "atoll.web.end." // + a random name: the call is given up

	threadDeletedSubject = "atoll.thread.deleted" // to all processes

	startsPrefix = "atoll.starts." // + trace id: whether an executor starts it, see Starts

	resultsStream = "ATOLL_RESULTS"
	startsStream  = "ATOLL_STARTS"
	outputStream  = "ATOLL_OUTPUT"
	turnsBucket   = "ATOLL_TURNS"

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
func ensure(ctx context.Context, js jetstream.JetStream, cfg Config) (turns jetstream.KeyValue, err error) {
	for _, s := range []jetstream.StreamConfig{
		{
			Name:        resultsStream,
			Description: "results that no gateway has recorded yet",
			Subjects:    []string{resultPrefix + "*.*"},
			Retention:   jetstream.WorkQueuePolicy,
			Discard:     jetstream.DiscardNew,
			MaxBytes:    resultsBytes,
			Replicas:    cfg.Replicas,
		}, {
			Name:              outputStream,
			Description:       "output of executions, a subject for each",
			Subjects:          []string{logPrefix + "*"},
			Discard:           jetstream.DiscardOld,
			MaxBytes:          cfg.MaxBytes,
			MaxAge:            cfg.MaxAge,
			MaxMsgsPerSubject: execution.MaxEvents,
			AllowDirect:       true,
			Replicas:          cfg.Replicas,
		}, {
			Name:              startsStream,
			Description:       "whether executors start jobs that gateways may count as lost",
			Subjects:          []string{startsPrefix + "*"},
			Discard:           jetstream.DiscardOld,
			MaxBytes:          startsBytes,
			MaxAge:            startsAge,
			MaxMsgsPerSubject: 1,
			Replicas:          cfg.Replicas,
		},
	} {
		if _, err := js.CreateOrUpdateStream(ctx, s); err != nil {
			return nil, fmt.Errorf("make stream %s: %w", s.Name, err)
		}
	}
	turns, err = js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket:      turnsBucket,
		Description: "which executor has a turn's sandbox",
		TTL:         turnLease,
		MaxBytes:    turnsBytes,
		Replicas:    cfg.Replicas,
	})
	if err != nil {
		return nil, fmt.Errorf("make bucket %s: %w", turnsBucket, err)
	}
	return turns, nil
}
