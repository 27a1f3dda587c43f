package records

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

const (
	publishTime = 10 * time.Second // for the bus to store an event
	firstPause  = 100 * time.Millisecond
	maxPause    = 5 * time.Second
	flushTime   = 3 * time.Second // for Close to send the remaining events
)

// Run sends events until ctx ends. While the bus is away it retries.
func (j *Journal) Run(ctx context.Context) {
	j.sending.Lock()
	defer j.sending.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(j.closing, cancel)()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	away := time.Time{}
	pause, next := firstPause, time.Now()
	for {
		var due <-chan time.Time
		if p := j.head(); p != nil {
			due = time.After(time.Until(next))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			j.compactIfDue()
			continue
		case <-j.changed:
			continue
		case <-due:
		}
		n, err := j.sendAll(ctx)
		if n > 0 {
			pause = firstPause
		}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			if !away.IsZero() {
				j.cfg.Log.Info("the message bus accepts changes of sandboxes again", "after", time.Since(away).Round(time.Second))
			}
			away, next = time.Time{}, time.Now()
			continue
		case away.IsZero():
			away = time.Now()
			j.cfg.Log.Warn("cannot send changes of sandboxes to gateways; the journal keeps them and retries", "error", err)
		}
		next = time.Now().Add(pause/2 + rand.N(pause))
		pause = min(2*pause, maxPause)
	}
}

// sendAll sends events until none is left or one fails, and returns how many it has sent.
func (j *Journal) sendAll(ctx context.Context) (n int, err error) {
	for p := j.head(); p != nil && ctx.Err() == nil; p = j.head() {
		if err := j.send(ctx, p); err != nil {
			return n, err
		}
		n++
		j.compactIfDue()
	}
	return n, nil
}

// head returns the oldest event if it is on disk; nil if no event is ready.
func (j *Journal) head() *pending {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.pending) == 0 || !j.file.durable(j.pending[0].at) {
		return nil
	}
	return j.pending[0]
}

// send sends the oldest event. The file notes that the bus stores it; if the note is lost, the event
// is sent again.
func (j *Journal) send(ctx context.Context, p *pending) error {
	j.mu.Lock()
	p.tried = true
	seq, data := p.seq, p.data
	j.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, publishTime)
	defer cancel()
	if err := j.cfg.Publisher.Publish(ctx, seq, data); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.forget(seq)
	_, err := j.file.write(frame{kind: sent, seq: seq})
	if err != nil && !errors.Is(err, errClosed) {
		j.cfg.Log.Error("cannot note that gateways have an event; the next start of the executor sends it again", "event", seq, "error", err)
	}
	return nil
}

// Close sends the remaining events, for at most 3 s or until ctx ends, and closes the file. The next process
// sends the rest. After Close, calls fail.
func (j *Journal) Close(ctx context.Context) error {
	j.close()
	j.sending.Lock()
	defer j.sending.Unlock()
	ctx, cancel := context.WithTimeout(ctx, flushTime)
	defer cancel()
	_, sent := j.sendAll(ctx)
	if s := j.Status(); s.Events > 0 {
		j.cfg.Log.Warn("some changes of sandboxes were not sent to gateways; the next start of this executor sends them", "events", s.Events, "error", errors.Join(sent, ctx.Err()))
	}
	err := j.compact()
	return errors.Join(err, j.file.close())
}
