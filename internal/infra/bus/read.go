package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// window is how many bytes of a log a reader holds that it has not passed on;
	// one who is slow holds that much, and nothing else up.
	window = 64 << 10

	readMessages = 256 // at most, at a time
	readTimeout  = 5 * time.Second
)

// tail is what a reader has heard and not yet passed on.
type tail struct {
	more chan struct{} // has a token when there may be something new

	mu     sync.Mutex
	queue  [][]byte
	room   [4][]byte // for a queue that is short, as it mostly is
	bytes  int
	missed bool // something did not fit
}

// add takes a message, or forgets everything when it is too much: what is
// stored will do.
func (t *tail) add(b []byte) {
	t.mu.Lock()
	if t.missed = t.missed || t.bytes+len(b) > window && t.bytes > 0; t.missed {
		t.queue, t.bytes = nil, 0
	} else {
		t.queue = append(t.queue, b)
		t.bytes += len(b)
	}
	t.mu.Unlock()
}

// miss forgets everything, as if too much had been heard.
func (t *tail) miss() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue, t.bytes, t.missed = nil, 0, true
}

// wake has the reader look.
func (t *tail) wake() {
	select {
	case t.more <- struct{}{}:
	default:
	}
}

// peek returns the next message, nil when something was missed before it.
func (t *tail) peek() (b []byte, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.missed {
		return nil, true
	}
	if len(t.queue) == 0 {
		return nil, false
	}
	return t.queue[0], true
}

// drop takes away what peek returned, unless it went with what was missed.
func (t *tail) drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queue) == 0 {
		return
	}
	t.bytes -= len(t.queue[0])
	t.queue[0] = nil
	if t.queue = t.queue[1:]; len(t.queue) == 0 {
		t.queue = t.room[:0]
	}
}

// reset forgets what was heard before what is about to be read.
func (t *tail) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue, t.bytes, t.missed = nil, 0, false
}

// record is an entry with its place in the stream.
type record struct {
	place uint64
	entry entry
}

// read returns what is stored of a log from a place in the stream on, up to a
// bound; nothing if there is nothing.
func (l *Log) read(ctx context.Context, traceID string, place uint64) ([]record, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	ask, err := json.Marshal(map[string]any{"seq": place, "next_by_subj": l.b.names.log + traceID, "batch": readMessages, "max_bytes": window})
	if err != nil {
		return nil, err
	}
	inbox, answers := l.b.data.NewInbox(), make(chan *nats.Msg, readMessages+1)
	sub, err := l.b.data.ChanSubscribe(inbox, answers)
	if err != nil {
		return nil, unavailable(err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails on a closed connection only
	if err := l.b.data.PublishRequest("$JS.API.DIRECT.GET."+l.b.names.outputs, inbox, ask); err != nil {
		return nil, unavailable(err)
	}
	var records []record
	for {
		select {
		case <-ctx.Done():
			return nil, unavailable(context.Cause(ctx))
		case m := <-answers:
			switch status := m.Header.Get("Status"); status {
			case "":
				e, err := decodeEntry(m.Data)
				at, bad := strconv.ParseUint(m.Header.Get(nats.JSSequence), 10, 64)
				if err = errors.Join(err, bad); err != nil {
					return nil, err
				}
				records = append(records, record{at, e})
			case "204", "404": // the end of the answers; there is none
				return records, nil
			default:
				return nil, unavailable(fmt.Errorf("read a log: %s %s", status, m.Header.Get("Description")))
			}
		}
	}
}
