package bus

import (
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
)

// maxHeard is how many messages may wait for the one goroutine that hands them to readers,
// which never waits for any of them. Beyond it they are dropped, and read from the stream.
const maxHeard = 64 << 10

// hear begins to hear acknowledgements and what readers follow, until the bus is closed.
// Both come to one goroutine: each that is woken for a message costs as much as the message.
func (l *Log) hear() error {
	l.acks, l.heard = l.b.data.NewInbox()+".", make(chan *nats.Msg, maxHeard)
	if _, err := l.b.data.ChanSubscribe(l.acks+">", l.heard); err != nil { // ends with the connection
		return err
	}
	l.senders.Go(l.watch)
	l.senders.Go(func() {
		for {
			select {
			case m := <-l.heard:
				if id, ok := strings.CutPrefix(m.Subject, l.b.names.log); ok {
					l.hand(id, m.Data)
				} else {
					l.acknowledge(m)
				}
			case <-l.b.closed.Done():
				return
			}
		}
	})
	return nil
}

// hand hands a message to the readers of its log. Those who read what is stored look when
// it is, if that is going to be heard.
func (l *Log) hand(id string, data []byte) {
	p, readers := l.pipeAndReaders(id)
	for _, f := range readers {
		f.tail.add(data)
	}
	flying := false
	if p != nil { // after add, so that either sees the other
		p.mu.Lock()
		flying = p.flight.on
		p.mu.Unlock()
	}
	for _, f := range readers {
		if !flying || !f.patient {
			f.tail.wake()
		}
	}
}

func (l *Log) pipeAndReaders(id string) (*pipe, []*follower) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pipes[id], l.readers[id]
}

func wake(readers []*follower) {
	for _, f := range readers {
		f.tail.wake()
	}
}

// attend has f hear its log, until the function that it returns is called. A log has one
// subscription, however many read it.
func (l *Log) attend(f *follower) (leave func(), err error) {
	l.attending.Lock()
	defer l.attending.Unlock()
	if l.subs[f.traceID] == nil {
		sub, err := l.b.data.ChanSubscribe(l.b.names.log+f.traceID, l.heard)
		if err != nil {
			return nil, unavailable(err)
		}
		l.subs[f.traceID] = sub
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.readers[f.traceID] = append(slices.Clip(l.readers[f.traceID]), f)
	return func() { l.leave(f) }, nil
}

func (l *Log) leave(f *follower) {
	l.attending.Lock()
	defer l.attending.Unlock()
	l.mu.Lock()
	left := slices.DeleteFunc(slices.Clone(l.readers[f.traceID]), func(other *follower) bool { return other == f })
	l.readers[f.traceID] = left
	if len(left) == 0 {
		delete(l.readers, f.traceID)
	}
	l.mu.Unlock()
	if len(left) == 0 {
		_ = l.subs[f.traceID].Unsubscribe() // fails on a closed connection only
		delete(l.subs, f.traceID)
	}
}

// missed has every reader read from the stream: messages were dropped.
func (l *Log) missed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, readers := range l.readers {
		for _, f := range readers {
			f.tail.miss()
		}
		wake(readers)
	}
}
