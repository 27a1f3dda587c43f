package bus

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// maxKept is how many logs of a tenant are kept while the stream is nearly full,
	// and half of those that are remembered.
	maxKept = 16384
	// maxRemembered bounds the logs that a process remembers, about 150 bytes each.
	maxRemembered = 262_144
	// maxLogs is about how many logs the stream keeps. The NATS server holds some 700 bytes
	// in memory for each, however short it is.
	maxLogs = 50_000
	// askEvery is how often the stream's size is asked while logs are written.
	askEvery = 5 * time.Second
	// endKept is how long the end of a log stays for those who read it.
	endKept = time.Minute
)

// shares keeps a tenant from driving the output of others out of the stream that
// all share. While three quarters of the stream are taken, the oldest output of
// the tenant that has the most of it goes, until it has no more than an eighth;
// only when no tenant has more does the stream drop its oldest messages.
//
// It knows the logs that this process wrote. What an earlier one left goes by its
// age, as the stream's bounds have it.
type shares struct {
	l *Log

	work sync.Mutex // held while output is purged; taken before mu

	mu      sync.Mutex
	tenants map[string]*share // guarded by mu: by id
	logs    int               // guarded by mu: of all tenants
	maxLogs uint64            // of the stream
	unseen  int64             // guarded by mu: bytes written since the stream was asked
	asked   time.Time         // guarded by mu
}

// share is what a tenant has of the stream. Its fields are guarded by shares.mu.
type share struct {
	bytes int64
	logs  []*kept // the oldest first
}

// kept is a log in the stream. Its fields are guarded by shares.mu.
type kept struct {
	traceID string
	bytes   int64
	last    time.Time // when it was written to
	pipe    *pipe     // nil once it has ended
	gone    bool      // it is in no share any more
}

// size is what a message takes in the stream, about.
func size(n int64) int64 { return n + 64 }

// add counts n bytes of a message of p, or with less than 0 bytes that were
// purged, and reports whether relieve is due.
func (s *shares) add(p *pipe, n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.kept == nil || p.kept.gone {
		if n < 0 {
			return false
		}
		p.kept = s.remember(p.tenant, &kept{traceID: p.traceID, pipe: p})
	}
	return s.count(p.tenant, p.kept, n)
}

// end counts the last message of a log, of n bytes. p is nil if it had no other.
func (s *shares) end(p *pipe, traceID, tenant string, n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var k *kept
	if p != nil {
		k, tenant = p.kept, p.tenant
	}
	if k == nil || k.gone {
		k = s.remember(tenant, &kept{traceID: traceID})
	}
	k.pipe = nil
	return s.count(tenant, k, n)
}

// remember makes k the newest of a tenant. mu is held.
func (s *shares) remember(tenant string, k *kept) *kept {
	t := s.tenants[tenant]
	if t == nil {
		t = &share{}
		s.tenants[tenant] = t
	}
	t.logs = append(t.logs, k)
	s.logs++
	if len(t.logs) > 2*maxKept || s.logs > maxRemembered {
		s.forget(t)
	}
	return k
}

// forget takes the oldest log out of t. mu is held.
func (s *shares) forget(t *share) *kept {
	k := t.logs[0]
	t.logs[0] = nil
	t.logs = t.logs[1:]
	t.bytes -= k.bytes
	k.gone = true
	s.logs--
	return k
}

// count counts bytes of k. mu is held.
func (s *shares) count(tenant string, k *kept, n int64) (due bool) {
	if k.gone {
		return false
	}
	k.bytes += n
	s.tenants[tenant].bytes += n
	if n < 0 {
		return false
	}
	k.last = time.Now()
	s.unseen += n
	return s.due()
}

// due reports whether the stream's size is to be asked. mu is held.
func (s *shares) due() bool {
	return s.unseen >= s.l.b.cfg.MaxBytes/64 || time.Since(s.asked) > askEvery
}

// relieve purges output while the stream is nearly full. Those who write wait for
// it, so that none of them outruns it.
func (s *shares) relieve() {
	s.work.Lock()
	defer s.work.Unlock()
	s.mu.Lock()
	due := s.due()
	s.unseen, s.asked = 0, time.Now()
	s.mu.Unlock()
	if !due || s.l.b.closed.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(s.l.b.closed, storeTimeout)
	defer cancel()
	stream, err := s.l.js.Stream(ctx, s.l.b.names.outputs)
	if err != nil {
		return // the stream's own bounds hold, and it is asked again
	}
	state, most := stream.CachedInfo().State, s.l.b.cfg.MaxBytes
	s.expire(state.FirstTime.Add(-time.Minute)) // clocks may differ
	s.trim(ctx, &state)
	over := int64(state.Bytes) - most/4*3
	if over <= 0 {
		return
	}
	for over += most / 32; over > 0; { // a little more, so that it is not due at once
		id, want := s.largest(most/8, over)
		if want == 0 {
			return
		}
		freed := s.purge(ctx, id, want)
		if freed == 0 {
			return
		}
		over -= freed
		s.l.b.cfg.Log.Info("output logs are nearly full; the oldest output of a tenant was deleted", "tenant", id, "bytes", freed)
	}
}

// trim purges an eighth of the stream, the oldest messages, while it has too many logs.
// Later readers find the log truncated and the whole output in the record.
func (s *shares) trim(ctx context.Context, state *jetstream.StreamState) {
	if state.NumSubjects <= s.maxLogs {
		return
	}
	to := state.FirstSeq + (state.LastSeq-state.FirstSeq)/8 + 1
	if err := s.l.stream.Purge(ctx, jetstream.WithPurgeSequence(to)); err != nil {
		s.l.b.cfg.Log.Warn("cannot purge old output logs; retrying", "logs", state.NumSubjects, "error", err)
	}
}

// expire forgets the logs that the stream has dropped: those last written to before
// its first message.
func (s *shares) expire(first time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, t := range s.tenants {
		for len(t.logs) > 0 && t.logs[0].last.Before(first) {
			s.forget(t)
		}
		if len(t.logs) == 0 {
			delete(s.tenants, id)
		}
	}
}

// largest returns the tenant that has the most above fair bytes, or more than
// maxKept logs, and how many bytes of it are to go; 0 if there is none.
func (s *shares) largest(fair, over int64) (id string, want int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var most int64
	for name, t := range s.tenants {
		above := t.bytes - fair
		if len(t.logs) > maxKept {
			above = max(above, t.bytes*int64(len(t.logs)-maxKept)/int64(len(t.logs)), 1)
		}
		if above > most {
			id, most = name, above
		}
	}
	return id, min(most, over)
}

// purge deletes the oldest output of a tenant, of want bytes or somewhat more, and
// returns how many they were. Logs that are still written to are halved.
func (s *shares) purge(ctx context.Context, tenant string, want int64) (freed int64) {
	s.mu.Lock()
	t := s.tenants[tenant]
	logs := slices.Clone(t.logs[:min(len(t.logs), maxKept)])
	s.mu.Unlock()
	for _, k := range logs {
		if freed >= want {
			break
		}
		s.mu.Lock()
		if k.gone {
			s.mu.Unlock()
			continue
		}
		p, had, ended := k.pipe, k.bytes, k.last
		s.mu.Unlock()
		if p != nil {
			p.halve(ctx)
			s.mu.Lock()
			freed += max(0, had-k.bytes)
			s.mu.Unlock()
			continue
		}
		opts := []jetstream.StreamPurgeOpt{jetstream.WithPurgeSubject(s.l.b.names.log + k.traceID)}
		if time.Since(ended) < endKept {
			opts = append(opts, jetstream.WithPurgeKeep(1))
		}
		if err := s.l.stream.Purge(ctx, opts...); err != nil {
			break
		}
		freed += had
		s.mu.Lock()
		if i := slices.Index(t.logs, k); i >= 0 {
			t.logs[0], t.logs[i] = t.logs[i], t.logs[0]
			s.forget(t)
		}
		s.mu.Unlock()
	}
	return freed
}
