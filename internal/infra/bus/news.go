package bus

import (
	"slices"
	"sync"

	"github.com/nats-io/nats.go"
)

// News tells the processes of an installation which sessions and runs have changed. It carries
// ids and no content: a process that hears one reads the record. Nothing is stored, so a message
// is lost while the bus is away; every watcher is woken when the bus is back.
type News struct {
	b *Bus

	attending sync.Mutex // held while a subscription begins or ends; taken before mu
	mu        sync.Mutex
	watched   map[string]*watched // guarded by mu: by id
}

// watched is an id with those that wait for it. A process has one subscription for each.
type watched struct {
	sub   *nats.Subscription // guarded by News.attending
	wakes []*func()          // guarded by News.mu
}

// News returns what this process hears and says.
func (b *Bus) News() *News { return &b.news }

// Changed says that a session has changed, or a run has ended. It does not wait.
func (n *News) Changed(id string) {
	if isToken(id) {
		_ = n.b.ctl.Publish(n.b.names.news+id, nil) // while the bus is away: see wakeAll
	}
}

// Watch has wake called whenever an id has changed, until stop is called. wake must not block.
func (n *News) Watch(id string, wake func()) (stop func(), err error) {
	n.attending.Lock()
	defer n.attending.Unlock()
	n.mu.Lock()
	w := n.watched[id]
	n.mu.Unlock()
	if w == nil {
		w = &watched{}
		if w.sub, err = n.b.ctl.Subscribe(n.b.names.news+id, func(*nats.Msg) { n.wake(w) }); err != nil {
			return nil, unavailable(err)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.watched[id] = w
	w.wakes = append(w.wakes, &wake)
	return sync.OnceFunc(func() { n.leave(id, w, &wake) }), nil
}

func (n *News) leave(id string, w *watched, wake *func()) {
	n.attending.Lock()
	defer n.attending.Unlock()
	n.mu.Lock()
	w.wakes = slices.DeleteFunc(w.wakes, func(other *func()) bool { return other == wake })
	last := len(w.wakes) == 0
	if last {
		delete(n.watched, id)
	}
	n.mu.Unlock()
	if last {
		_ = w.sub.Unsubscribe() // fails on a closed connection only
	}
}

func (n *News) wake(w *watched) {
	n.mu.Lock()
	wakes := slices.Clone(w.wakes)
	n.mu.Unlock()
	for _, wake := range wakes {
		(*wake)()
	}
}

// wakeAll wakes every watcher: something may have been missed.
func (n *News) wakeAll() {
	n.mu.Lock()
	var all []*watched
	for _, w := range n.watched {
		all = append(all, w)
	}
	n.mu.Unlock()
	for _, w := range all {
		n.wake(w)
	}
}
