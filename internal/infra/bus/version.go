package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// OldestNATS is the oldest version of the NATS server that works. Earlier versions return a
// single message to a batched direct get, so readers of output logs would wait for ever.
const OldestNATS = "2.11.0"

// oldestAPI is the level of JetStream's API that OldestNATS has.
const oldestAPI = 1

// checkServer reports why a connected server cannot be used.
func checkServer(nc *nats.Conn) error {
	if have := nc.ConnectedServerVersion(); !atLeast(have, OldestNATS) {
		return fmt.Errorf("NATS server %q has version %q; Atoll needs %s or later: upgrade the NATS server", nc.ConnectedServerName(), have, OldestNATS)
	}
	if have := nc.MaxPayload(); have < minPayload {
		return fmt.Errorf("the NATS server's max_payload is %d bytes; it must be at least %d", have, minPayload)
	}
	if !nc.HeadersSupported() {
		return errors.New("the NATS server does not support headers: remove no_header_support from its configuration")
	}
	return nil
}

// checkJetStream reports why JetStream cannot be used. In a cluster, the server that leads
// JetStream answers: it may be older than the server that this process is connected to.
func checkJetStream(ctx context.Context, js jetstream.JetStream) error {
	info, err := js.AccountInfo(ctx)
	switch {
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("JetStream is not enabled: enable it on the NATS server and for the account of nats_creds: %w", err)
	case err != nil:
		return fmt.Errorf("ask JetStream about this account: %w", err)
	case info.API.Level < oldestAPI:
		return fmt.Errorf("JetStream has API level %d; Atoll needs %d: upgrade every server of the NATS cluster to %s or later", info.API.Level, oldestAPI, OldestNATS)
	}
	return nil
}

// atLeast reports whether a version such as "2.11.3-RC.1" is not before another. Its suffix
// does not count, and a version that cannot be read is too old.
func atLeast(have, oldest string) bool {
	numbers := func(v string) (n [3]int, ok bool) {
		v, _, _ = strings.Cut(v, "-")
		parts := strings.Split(v, ".")
		if len(parts) != len(n) {
			return n, false
		}
		for i, part := range parts {
			var err error
			if n[i], err = strconv.Atoi(part); err != nil {
				return n, false
			}
		}
		return n, true
	}
	a, ok := numbers(have)
	b, _ := numbers(oldest)
	for i := range a {
		if a[i] != b[i] {
			return ok && a[i] > b[i]
		}
	}
	return ok
}
