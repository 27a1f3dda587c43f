package loop

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// lookEvery is how long a reader waits without events before it checks whether the run
// ended without publishing its last ones.
const lookEvery = time.Second

var (
	errRead   = errors.New("the last event was read")
	errSilent = errors.New("the run has ended, but its stream of events has not")
)

// Follow passes the events of a run to yield, from the first to the last. If a process died
// before it published some, Follow takes them from the run's record.
func (l *Loop) Follow(ctx context.Context, t tenant.ID, id run.ID, yield func([]run.Event) error) error {
	p := run.Heard()
	own, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var heard atomic.Int64
	go l.look(own, t, id, &heard, cancel)
	err := l.cfg.Events.Follow(own, t, id, func(events []run.Event) error {
		heard.Add(int64(len(events)))
		for i := range events {
			if !p.Apply(&events[i]) {
				return run.ErrNoEvents
			}
		}
		if err := yield(events); err != nil {
			return err
		}
		if p.Ended() {
			return errRead
		}
		return nil
	})
	switch {
	case errors.Is(err, errRead):
		return nil
	case errors.Is(context.Cause(own), errSilent) && ctx.Err() == nil:
		s, err := l.State(ctx, id)
		if err != nil {
			return err
		}
		return yield(p.Missing(s))
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return err
}

// look ends a reader's wait once the run has ended and no further events arrive.
func (l *Loop) look(ctx context.Context, t tenant.ID, id run.ID, heard *atomic.Int64, cancel context.CancelCauseFunc) {
	news, stop := l.watch(id)
	defer stop()
	for wait := lookEvery; ; wait = run.LookAgain { // first without news: the run may have ended before
		if !pause(ctx, news, wait) {
			return
		}
		if r, err := l.cfg.Store.Run(ctx, t, id); err == nil && r.Status.Final() {
			break
		}
	}
	// The last events are on their way, and a reader may be slow: what is stored tells how many
	// there are for it to read.
	for n := heard.Load(); ; n = heard.Load() {
		if !pause(ctx, nil, lookEvery) {
			return
		}
		if heard.Load() != n {
			continue
		}
		if there, err := l.cfg.Events.Stored(ctx, id); err == nil && there <= n {
			cancel(errSilent)
			return
		}
	}
}

// watch returns a channel that receives a token when a run ends.
func (l *Loop) watch(id run.ID) (news chan struct{}, stop func()) {
	news = make(chan struct{}, 1)
	if l.cfg.News == nil {
		return news, func() {}
	}
	stop, err := l.cfg.News.Watch(string(id), func() {
		select {
		case news <- struct{}{}:
		default:
		}
	})
	if err != nil { // without a bus there is no news; LookAgain does
		return news, func() {}
	}
	return news, stop
}

// pause waits for news, but no longer than d; false when ctx has ended.
func pause(ctx context.Context, news <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-news:
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// State reads the state of a run from its log. For a turn it omits the conversation before the
// turn, which may be long.
func (l *Loop) State(ctx context.Context, id run.ID) (*run.State, error) {
	entries, err := l.cfg.Store.Log(ctx, id)
	if err != nil {
		return nil, err
	}
	s := run.NewState(id)
	s.Apart = true
	return s, l.replay(ctx, s, entries)
}

// replay applies a log to an empty state.
func (l *Loop) replay(ctx context.Context, s *run.State, entries []run.Entry) error {
	if len(entries) > 0 && entries[0].Begun != nil {
		if err := l.recall(ctx, s, entries[0].Begun); err != nil {
			return err
		}
	}
	for i := range entries {
		if err := s.Apply(&entries[i]); err != nil {
			return err
		}
	}
	return nil
}

// recall reads the conversation before a turn.
func (l *Loop) recall(ctx context.Context, s *run.State, q *run.Request) (err error) {
	if q.Turn == nil || q.Turn.Until == 0 || s.Apart && len(q.Approved) == 0 {
		return nil
	}
	if l.cfg.Conversation == nil {
		return errors.New("this loop does not run turns of sessions")
	}
	s.Earlier, err = l.cfg.Conversation(ctx, q.Turn)
	return err
}

// Wait returns when a run has ended, in whichever process drives it.
func (l *Loop) Wait(ctx context.Context, t tenant.ID, id run.ID) error {
	news, stop := l.watch(id)
	defer stop()
	again := run.LookAgain
	if l.cfg.News == nil {
		again = pollEnd
	}
	for {
		l.mu.Lock()
		d := l.driving[id]
		l.mu.Unlock()
		r, err := l.cfg.Store.Run(ctx, t, id)
		if err != nil || r.Status.Final() {
			return err
		}
		poll := time.NewTimer(again)
		var done <-chan struct{}
		if d != nil {
			done = d.done
		}
		select {
		case <-done:
		case <-news:
		case <-poll.C:
		case <-ctx.Done():
		}
		poll.Stop()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// pollEnd is how often Wait polls the store for the end of a run if Config.News is nil.
const pollEnd = 200 * time.Millisecond
