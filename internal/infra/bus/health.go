package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sys/unix"
)

const (
	// probeEvery is how often the streams are checked.
	probeEvery = 5 * time.Second
	// probeTime bounds one check. A stream that cannot write does not answer.
	probeTime = 5 * time.Second
	// maxSilent is how many checks in a row may stay without an answer before the bus counts
	// as away, because a busy machine answers late. An error counts at once.
	maxSilent = 2
	// maxFailed is how many checks in a row fail before the embedded server is restarted.
	maxFailed = 2
	// restartFree is how much disk space a restart of the embedded server needs.
	restartFree = 32 << 20

	probePrefix = "probe-"
)

// errSilent says that a stream did not answer.
var errSilent = errors.New("no answer")

// monitor checks whether the streams store messages, until the bus is closed. JetStream can
// stay connected without doing so: without a leader, or after its disk was full.
func (b *Bus) monitor() {
	tick := time.NewTicker(b.cfg.probeEvery)
	defer tick.Stop()
	for silent, failed := 0, 0; ; {
		select {
		case <-b.closed.Done():
			return
		case <-tick.C:
		}
		if !b.ctl.IsConnected() || !b.data.IsConnected() { // Ready says so
			if b.server != nil && !b.server.runs() { // a restart failed
				b.restart()
			}
			continue
		}
		err := b.probe(b.closed)
		switch {
		case b.closed.Err() != nil:
			return
		case err == nil:
			silent, failed = 0, 0
			b.setSick(nil)
			continue
		case errors.Is(err, errSilent):
			if silent++; silent < maxSilent {
				continue
			}
		}
		b.setSick(err)
		if failed++; b.server != nil && failed >= maxFailed && b.restart() {
			failed = 0
		}
	}
}

// setSick notes why nothing can be stored, nil once it can, and logs a change.
func (b *Bus) setSick(err error) {
	before := b.sick.Swap(&err)
	was := before != nil && *before != nil
	switch {
	case err != nil && !was:
		b.cfg.Log.Error("the message bus cannot store messages; rejecting executions until it can", "error", err)
	case err == nil && was:
		b.cfg.Log.Info("the message bus stores messages again")
	}
}

// probe writes to each stream.
func (b *Bus) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, b.cfg.probeTime)
	defer cancel()
	name := probePrefix + b.cfg.Name
	for stream, subject := range map[string]string{
		b.names.results:      b.names.result + probePrefix + "." + b.cfg.Name,
		b.names.outputs:      b.names.log + name,
		b.names.startsStream: b.names.starts + name,
		b.names.turns:        "$KV." + b.names.turns + "." + name,
	} {
		answer, err := b.data.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Data: []byte("probe")})
		switch {
		case errors.Is(err, nats.ErrNoResponders):
			return fmt.Errorf("stream %s is not there, or has no leader", stream)
		case err != nil:
			return fmt.Errorf("stream %s: %w", stream, errors.Join(errSilent, err))
		case !acknowledged(answer.Data):
			return fmt.Errorf("stream %s refuses messages: %s", stream, answer.Data)
		}
	}
	return nil
}

// isProbe reports whether a message of the results is a probe of some server.
func (b *Bus) isProbe(subject string) bool {
	prefix := b.names.result + probePrefix + "."
	return len(subject) > len(prefix) && subject[:len(prefix)] == prefix
}

// restart restarts the embedded server, which does not recover from a full disk. It
// reports whether it tried: without space a restart fails as well.
func (b *Bus) restart() bool {
	var st unix.Statfs_t
	if err := unix.Statfs(b.cfg.Dir, &st); err != nil || int64(st.Bavail)*st.Bsize < restartFree {
		return false
	}
	b.cfg.Log.Warn("restarting the embedded NATS server")
	if err := b.server.restart(b.closed, b.cfg); err != nil && b.closed.Err() == nil {
		b.cfg.Log.Error("cannot restart the embedded NATS server; retrying", "error", err)
	}
	return true
}
