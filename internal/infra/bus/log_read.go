package bus

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// early is how long a new reader waits before it looks again: a message that another process,
// or the end of a run, had on its way into the stream when the reader began to listen was not
// heard, and may not have been stored when it looked.
var early = []time.Duration{100 * time.Millisecond, time.Second}

const (
	// silence is how long a reader waits, at least, before it looks whether there is
	// still something to wait for. A living run is never silent for as long.
	silence = 20 * time.Second

	away = 200 * time.Millisecond // between two tries on a bus that is away
)

// Follow implements execution.LogReader; it may end with ErrNoLog. It outlives
// the absence of the bus.
//
// A reader listens to the log's subject, and reads from the stream what it has
// missed: at first, and whenever it was too slow. So one that keeps up costs the
// stream nothing, and what it gets may be on its way to the disk still.
func (l *Log) Follow(ctx context.Context, traceID string, after int64, yield func([]execution.Event) error) (*execution.Result, error) {
	if !isToken(traceID) {
		return nil, ErrNoLog
	}
	return l.followLog(ctx, traceID, after, false, yield)
}

// followLog is Follow. With patient a log that there is not is waited for: the caller knows
// that it will be written, and ends ctx otherwise.
func (l *Log) followLog(ctx context.Context, traceID string, after int64, patient bool, yield func([]execution.Event) error) (*execution.Result, error) {
	f := &follower{l: l, traceID: traceID, after: max(1, after), patient: patient, yield: yield, tail: tail{more: make(chan struct{}, 1)}}
	leave, err := l.attend(f)
	if err != nil {
		return nil, err
	}
	defer leave()
	return f.follow(ctx)
}

// follower is one Follow.
type follower struct {
	l       *Log
	traceID string
	after   int64 // seq of the last event passed on
	patient bool
	place   uint64 // in the stream, before which there is nothing to read; 0 if not known
	yield   func([]execution.Event) error
	tail    tail
}

// errAgain says that something was missed.
var errAgain = errors.New("something was missed")

// follow reads what is stored and then listens, until something was missed.
func (f *follower) follow(ctx context.Context) (*execution.Result, error) {
	if err := f.l.b.Ready(); err != nil {
		return nil, err
	}
	if err := f.l.landed(ctx, f.traceID); err != nil {
		return nil, err
	}
	nothing := true // so far, at all
	for n := 0; ; n++ {
		epoch := f.l.b.connection()
		f.tail.reset()
		some, end, err := f.catchUp(ctx)
		if end != nil || err != nil && !errors.Is(err, errAgain) {
			return end, err
		}
		nothing = nothing && !some
		wait, looksEarly := silence, n < len(early)
		if looksEarly {
			wait = early[n]
		}
		if nothing && err == nil && !f.patient && (n == 0 || !looksEarly) {
			if err := f.l.expect(ctx, f.traceID); err != nil {
				return nil, err
			}
		}
		if err == nil {
			end, err = f.listen(ctx, epoch, wait)
			if end != nil || !errors.Is(err, errAgain) {
				return end, err
			}
		}
		// What was heard may not have been stored yet; the bus may be away.
		if err := sleep(ctx, f.l.b.closed, time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// sleep waits, and returns why it was cut short.
func sleep(ctx, closed context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-closed.Done():
		return unavailable(errClosed)
	case <-time.After(d):
		return nil
	}
}

// catchUp passes on what is stored. some says that there was anything.
func (f *follower) catchUp(ctx context.Context) (some bool, end *execution.Result, err error) {
	if f.place == 0 && f.after > 1 {
		if f.place, err = f.l.find(ctx, f.traceID, f.after); err != nil {
			return false, nil, f.lost(ctx, err)
		}
	}
	for {
		records, err := f.l.read(ctx, f.traceID, max(1, f.place))
		if err != nil {
			return some, nil, f.lost(ctx, err)
		}
		if len(records) == 0 {
			return some, nil, nil
		}
		for _, r := range records {
			some = true
			f.place = r.place + 1
			if end, err := f.pass(r.entry); end != nil || err != nil {
				return some, end, err
			}
		}
	}
}

// lost waits a little when the bus is away.
func (f *follower) lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := sleep(ctx, f.l.b.closed, away); err != nil {
		return err
	}
	return errors.Join(errAgain, err)
}

// listen passes on what is heard, until the end or until something was missed. When nothing is
// heard for a time, something may have been.
func (f *follower) listen(ctx, epoch context.Context, wait time.Duration) (*execution.Result, error) {
	// It waits for one channel, which is woken for every reason: that costs less than to
	// wait for four.
	defer context.AfterFunc(ctx, f.tail.wake)()
	defer context.AfterFunc(epoch, f.tail.wake)()
	var quiet atomic.Bool
	look := time.AfterFunc(wait, func() {
		quiet.Store(true)
		f.tail.wake()
	})
	defer look.Stop()
	for heard := false; ; {
		for {
			events, end, err := f.gather()
			if len(events) > 0 {
				heard = true
				if err := f.yield(events); err != nil {
					return nil, err
				}
			}
			if end != nil || err != nil {
				return end, err
			}
			if len(events) == 0 {
				break
			}
		}
		<-f.tail.more
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case epoch.Err() != nil:
			return nil, errAgain
		case !quiet.Swap(false):
		case heard:
			heard = false
			look.Reset(silence)
		default:
			if !f.patient && wait == silence {
				if err := f.l.expect(ctx, f.traceID); err != nil {
					return nil, err
				}
			}
			return nil, errAgain
		}
	}
}

// gather takes the events that were heard, so that a reader who lags gets them together:
// those of one message or, of several, what the size of one has room for.
func (f *follower) gather() (events []execution.Event, end *execution.Result, err error) {
	for size := 0; ; {
		raw, ok := f.tail.peek()
		if !ok || len(events) > 0 && size+len(raw) > execution.MaxChunk {
			return events, nil, nil
		}
		if raw == nil {
			return events, nil, errAgain
		}
		e, err := decodeEntry(raw)
		if err != nil {
			return events, nil, err
		}
		if e.first() > f.after+1 {
			return events, nil, errAgain
		}
		// What is stored does not wait for what is not.
		if len(events) > 0 && f.patient && f.l.storing(f.traceID, e.last()) {
			return events, nil, nil
		}
		f.tail.drop()
		size += len(raw)
		if e.end != nil {
			return events, e.end, nil
		}
		if e = f.fresh(e); len(events) == 0 {
			events = slices.Clip(e.events)
		} else {
			events = append(events, e.events...)
		}
	}
}

// fresh is an entry without what was stored twice, and what the caller has.
func (f *follower) fresh(e entry) entry {
	if skip := f.after - e.first() + 1; skip > 0 {
		e.events = e.events[min(skip, int64(len(e.events))):]
	}
	if len(e.events) > 0 {
		f.after = e.last()
	}
	return e
}

// pass hands on the events of an entry that are new.
func (f *follower) pass(e entry) (*execution.Result, error) {
	if e.end != nil {
		return e.end, nil
	}
	if e = f.fresh(e); len(e.events) == 0 {
		return nil, nil
	}
	return nil, f.yield(e.events)
}

// expect returns ErrNoLog when there is no log and no executor that could
// write one.
func (l *Log) expect(ctx context.Context, traceID string) error {
	alive, err := runner{l.b}.Alive(ctx, traceID)
	if alive || err != nil && ctx.Err() == nil {
		return nil // on a bus that is away: not known
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if _, _, err := l.last(ctx, traceID); errors.Is(err, ErrNoLog) {
		return err
	}
	return nil
}

// find returns where in the stream to begin for the events after a seq: the
// message that has the first of them or, if nothing newer is stored, the last;
// 0 if there is none.
func (l *Log) find(ctx context.Context, traceID string, after int64) (uint64, error) {
	e, hi, err := l.last(ctx, traceID)
	if errors.Is(err, ErrNoLog) {
		return 0, nil
	}
	if err != nil || e.first() <= after+1 {
		return hi, err
	}
	_, lo, err := l.get(ctx, traceID, 1)
	if errors.Is(err, ErrNoLog) {
		return 0, nil
	}
	// Along the stream a log's seqs only rise: halve the way between the first
	// message, which is too early or what we want, and the last.
	for err == nil && lo < hi {
		mid := lo + (hi-lo+1)/2
		var m entry
		var at uint64
		m, at, err = l.get(ctx, traceID, mid)
		switch {
		case err == nil && at <= hi && m.first() <= after+1:
			lo = at
		case err == nil || errors.Is(err, ErrNoLog):
			hi, err = mid-1, nil
		}
	}
	return lo, err
}

// Purge deletes the log of an execution that has ended. Those who read it find that there
// is none.
func (l *Log) Purge(ctx context.Context, traceID string) error {
	if !isToken(traceID) {
		return nil
	}
	return l.erase(ctx, traceID)
}

const (
	// eraseTime limits how long deleting a log may take.
	eraseTime = time.Minute
	// maxOverwritten limits how many messages of a log erase overwrites. NATS rewrites a file of up
	// to 8 MiB for each message, and blocks the stream of all logs until it finishes.
	maxOverwritten = 64
)

// erase deletes a log and overwrites up to maxOverwritten of its messages. A purge alone leaves
// the bytes in the stream's files until NATS compacts them.
func (l *Log) erase(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, eraseTime)
	defer cancel()
	for place, left := uint64(1), maxOverwritten; left > 0; {
		records, err := l.read(ctx, id, place)
		if err != nil {
			return err
		}
		if len(records) == 0 {
			break
		}
		for _, r := range records[:min(left, len(records))] {
			place = r.place + 1
			left--
			if err := l.stream.SecureDeleteMsg(ctx, r.place); err != nil {
				// The error does not say whether the message was already deleted.
				if _, lost := l.stream.GetMsg(ctx, r.place); !errors.Is(lost, jetstream.ErrMsgNotFound) {
					return unavailable(err)
				}
			}
		}
	}
	return l.purge(ctx, id)
}

// purge deletes a log.
func (l *Log) purge(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := l.stream.Purge(ctx, jetstream.WithPurgeSubject(l.b.names.log+id)); err != nil {
		return unavailable(err)
	}
	return nil
}

// Last implements execution.LogWriter.
func (l *Log) Last(ctx context.Context, traceID string) (int64, error) {
	e, _, err := l.last(ctx, traceID)
	if errors.Is(err, ErrNoLog) {
		return 1, nil
	}
	if err != nil {
		return 0, err
	}
	return e.last(), nil
}

// Result returns how an execution ended according to its log, ErrNoLog if it
// does not say. Ask it before a run is concluded as lost.
func (l *Log) Result(ctx context.Context, traceID string) (*execution.Result, error) {
	e, _, err := l.last(ctx, traceID)
	if err != nil {
		return nil, err
	}
	if e.end == nil {
		return nil, ErrNoLog
	}
	return e.end, nil
}

// last returns the last entry of a log.
func (l *Log) last(ctx context.Context, traceID string) (entry, uint64, error) {
	if !isToken(traceID) {
		return entry{}, 0, ErrNoLog
	}
	m, err := l.stream.GetLastMsgForSubject(ctx, l.b.names.log+traceID)
	return found(m, err)
}

// get returns the first entry of a log at or after a place in the stream.
func (l *Log) get(ctx context.Context, traceID string, seq uint64) (entry, uint64, error) {
	m, err := l.stream.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(l.b.names.log+traceID))
	return found(m, err)
}

func found(m *jetstream.RawStreamMsg, err error) (entry, uint64, error) {
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return entry{}, 0, ErrNoLog
	}
	if err != nil {
		return entry{}, 0, unavailable(err)
	}
	e, err := decodeEntry(m.Data)
	return e, m.Sequence, err
}
