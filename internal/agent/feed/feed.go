package feed

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Bounds of a feed. Its readers share what it keeps.
const (
	feedItems = 4096
	feedBytes = 1 << 20
	// maxUnderWay bounds the pieces of an item that are kept for readers that come while the model
	// writes it. Those of a longer one get the item when it is whole.
	maxUnderWay = 256 << 10

	// tellCost is how long readers wait for more, for each reader that there is.
	tellCost     = 250 * time.Microsecond
	shortestTell = 5 * time.Millisecond
	longestTell  = 250 * time.Millisecond
)

// errSlow reports that a feed dropped the reader's next item. It ends the stream of a reader in the
// middle of an item, which the records lack; other readers get the missed events from the records.
var errSlow = errors.New("the client reads too slowly; it can resume with Last-Event-ID")

// place is what a feed or reader is about.
type place struct {
	tenant tenant.ID
	id     session.ID // that events are named by; of a thread, its own
	known  int64      // Seq of the last event when it began
}

// item is one thing that readers are told. Exactly one of event, delta and end is set.
type item struct {
	event  *session.Event
	delta  *run.Delta
	turn   run.ID      // of delta
	of     string      // id of the item that delta is a piece of
	frames *frameCache // of event and delta
	end    error       // after which nothing comes: ErrOver, session.ErrNotFound, or a failure
	size   int
}

// ErrOver ends the events of a session that is archived, or of a thread that has ended.
var ErrOver = errors.New("the stream of events has ended")

// feed follows a session or thread for all of its readers in this process. It alone listens to the
// bus and reads new events from the records.
type feed struct {
	h       *Feeds
	of      source
	at      place
	cancel  context.CancelFunc
	readers int           // guarded by hub.mu
	news    chan struct{} // has a token when the session may have changed

	mu       sync.Mutex
	seq      int64                // guarded by mu: of the last event in items, or dropped from them
	first    int64                // guarded by mu: the number of items[0]
	items    []item               // guarded by mu: the last ones
	bytes    int                  // guarded by mu: of items
	more     chan struct{}        // guarded by mu: closed when there is another item
	telling  bool                 // guarded by mu: more is going to be closed
	reading  atomic.Int64         // readers, for mu's holders
	over     bool                 // guarded by mu: the last item is an end
	underWay map[string]*underWay // guarded by mu: what the model writes now, by id of the item

	// ready is closed once the feed knows which pieces of the current turn it tells.
	ready chan struct{}

	// What follows belongs to run.
	isReady  bool
	after    int64           // the feed has told this event and those before it
	began    run.ID          // the last turn whose beginning was told
	sent     map[string]bool // ids of its items whose events were
	due      run.ID          // the turn whose pieces are to come, although it may have ended
	followed run.ID          // the turn whose pieces come, or came
	pieces   bool            // they come
	ids      map[int]string  // of items of that turn, by their index
	whole    map[string]bool // those of which all pieces have come
}

// underWay are the pieces of an item that is not on record yet.
type underWay struct {
	turn   run.ID
	pieces []run.Delta // joined where they are short
	bytes  int
	long   bool // there were more than are kept
}

// wake has the feed look for what began, ended or was added. It does not block.
func (f *feed) wake() {
	select {
	case f.news <- struct{}{}:
	default:
	}
}

func (f *feed) ended() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.over
}

// put tells an item to all readers.
func (f *feed) put(it item) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case it.event != nil:
		f.seq = it.event.Seq
		delete(f.underWay, it.event.Shown)
		it.size = sizeOf(it.event)
	case it.delta != nil:
		f.grow(&it)
		it.size = 64 + len(it.delta.Text)
	default:
		f.over = true
	}
	it.frames = &frameCache{}
	f.items = append(f.items, it)
	f.bytes += it.size
	f.trim()
	f.tell()
}

// trim drops the oldest items of a feed above its limits. The caller holds mu.
func (f *feed) trim() {
	for len(f.items) > feedItems || f.bytes > feedBytes && len(f.items) > 1 {
		f.bytes -= f.items[0].size
		f.items[0] = item{}
		f.items = f.items[1:]
		f.first++
	}
}

// weigh adds the size of the frame that a reader encoded for an item, if the feed still keeps the item.
func (f *feed) weigh(made *frameCache) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range slices.Backward(f.items) {
		if it := &f.items[i]; it.frames == made {
			it.size += len(made.text)
			f.bytes += len(made.text)
			f.trim()
			return
		}
	}
}

// tell wakes the readers. Many of them are woken less often, and get more at a time: a session
// costs no more than some thousand writes a second, however many follow it. mu is held.
func (f *feed) tell() {
	wake := func() {
		close(f.more)
		f.more = make(chan struct{})
	}
	pause := min(time.Duration(f.reading.Load())*tellCost, longestTell)
	switch {
	case f.telling:
	case pause < shortestTell:
		wake()
	default:
		f.telling = true
		time.AfterFunc(pause, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.telling = false
			wake()
		})
	}
}

// sizeOf is about how many bytes an event holds.
func sizeOf(e *session.Event) int {
	n := 256
	if e.Note != nil {
		n += len(e.Note.Data)
	}
	if e.Item == nil {
		return n
	}
	count := func(parts []model.Part) {
		for i := range parts {
			n += len(parts[i].Text) + len(parts[i].Data)
		}
	}
	if m := e.Item.Message; m != nil {
		count(m.Parts)
	}
	if r := e.Item.Result; r != nil {
		count(r.Parts)
	}
	if c := e.Item.Call; c != nil {
		n += len(c.Arguments)
	}
	return n
}

// grow keeps a piece for readers that come later. mu is held.
func (f *feed) grow(it *item) {
	if f.underWay == nil {
		f.underWay = map[string]*underWay{}
	}
	u := f.underWay[it.of]
	if u == nil {
		u = &underWay{turn: it.turn}
		f.underWay[it.of] = u
	}
	if u.bytes += len(it.delta.Text); u.long || u.bytes > maxUnderWay {
		u.long, u.pieces = true, nil
		return
	}
	if last := len(u.pieces) - 1; last >= 0 && u.pieces[last].Kind == it.delta.Kind && len(u.pieces[last].Text) < 4<<10 {
		u.pieces[last].Text += it.delta.Text
		return
	}
	u.pieces = append(u.pieces, *it.delta)
}

// run tells what happens until nothing comes any more, or the last reader has left.
func (f *feed) run(ctx context.Context) {
	f.after = f.at.known
	err := f.read(ctx)
	f.setReady()
	if ctx.Err() == nil {
		f.put(item{end: err})
	}
}

func (f *feed) setReady() {
	if !f.isReady {
		f.isReady = true
		close(f.ready)
	}
}

func (f *feed) read(ctx context.Context) error {
	for {
		now, over, err := f.of.look(ctx)
		if err != nil {
			return err
		}
		if f.due != "" {
			now = f.due // although it may have ended
		}
		if now != "" && now != f.followed {
			if err := f.turn(ctx, now); err != nil {
				return err
			}
			continue
		}
		if err := f.drain(ctx); err != nil {
			return err
		}
		if f.due != "" {
			continue
		}
		f.setReady()
		if over {
			return ErrOver
		}
		look := time.NewTimer(f.h.lookAgain())
		select {
		case <-f.news:
		case <-look.C:
		case <-ctx.Done():
		}
		look.Stop()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// lookAgain is after how long without news a feed looks for what it may have missed.
func (h *Feeds) lookAgain() time.Duration {
	if h.News == nil {
		return time.Second
	}
	return run.LookAgain
}

// turn tells what happens in a turn that is in progress.
func (f *feed) turn(ctx context.Context, now run.ID) error {
	f.due, f.followed, f.pieces, f.ids, f.whole = "", now, true, map[int]string{}, map[string]bool{}
	err := f.drain(ctx)
	if err == nil && f.due == "" { // otherwise an earlier turn is due, which readers get first
		recorded := 0
		if now != f.began { // the feed did not tell the turn's first event: readers have the recorded items as a whole
			recorded, err = f.h.Service.Recorded(ctx, now)
		}
		if f.setReady(); err == nil {
			err = f.h.Service.Follow(ctx, f.at.tenant, now, recorded, func(events []run.Event) error { return f.live(ctx, events) })
		}
	}
	f.pieces = false
	f.mu.Lock()
	clear(f.underWay) // unfinished items stop growing
	f.mu.Unlock()
	if err != nil {
		return err
	}
	return f.drain(ctx)
}

// drain tells what is on record, except what is to come in pieces before.
func (f *feed) drain(ctx context.Context) error {
	for f.due == "" {
		page, err := f.of.after(ctx, f.after, readPage)
		if err != nil {
			return err
		}
		for i := range page {
			e := new(page[i]) // a copy, so that one event does not keep its whole page in memory
			if f.pieces && e.Run == f.followed && e.Shown != "" && !f.whole[e.Shown] {
				return nil
			}
			f.put(item{event: e})
			f.after = e.Seq
			if f.note(e); f.due != "" {
				return nil
			}
		}
		if len(page) < readPage {
			return nil
		}
	}
	return nil
}

// note records an event of a turn. A turn that began after the feed is followed from its
// beginning, however far it is by then.
func (f *feed) note(e *session.Event) {
	switch {
	case e.Status != nil && e.Status.Running:
		f.began, f.sent = e.Run, map[string]bool{}
		if e.Run != f.followed && e.Seq > f.at.known {
			f.due = e.Run
		}
	case e.Shown != "" && e.Run == f.began:
		f.sent[e.Shown] = true
	}
}

// live tells pieces, and looks for what is on record: events are published after that.
func (f *feed) live(ctx context.Context, events []run.Event) error {
	for i := range events {
		switch e := &events[i]; {
		case e.Delta == nil:
			switch {
			case e.Began != nil:
				f.ids[e.Began.Index] = e.Began.Item.ID
			case e.Done != nil:
				f.whole[e.Done.Item.ID] = true
			}
			if err := f.drain(ctx); err != nil {
				return err
			}
		case !f.sent[f.ids[e.Delta.Index]]:
			f.put(item{delta: e.Delta, turn: f.followed, of: f.ids[e.Delta.Index]})
		}
	}
	return nil
}
