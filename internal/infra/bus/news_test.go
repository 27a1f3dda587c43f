package bus

import (
	"testing"
	"time"
)

// TestNews: those who watch an id hear of it, and of nothing else, until they stop.
func TestNews(t *testing.T) {
	b := embedded(t)
	n := b.News()
	first, second := make(chan struct{}, 10), make(chan struct{}, 10)
	watch := func(id string, heard chan struct{}) func() {
		stop, err := n.Watch(id, func() { heard <- struct{}{} })
		if err != nil {
			t.Fatal(err)
		}
		return stop
	}
	stop := watch("sess_1", first)
	watch("sess_1", second)
	other := make(chan struct{}, 10)
	watch("sess_2", other)
	if len(n.watched) != 2 {
		t.Errorf("%d subscriptions for 3 watches of 2 ids", len(n.watched))
	}
	hears := func(heard chan struct{}) {
		t.Helper()
		select {
		case <-heard:
		case <-time.After(time.Minute):
			t.Fatal("nothing was heard")
		}
	}
	n.Changed("sess_1")
	hears(first)
	hears(second)
	stop()
	stop()
	n.Changed("sess_1")
	n.Changed("not a token *")
	hears(second)
	n.Changed("sess_2")
	hears(other)
	if len(first) > 0 {
		t.Error("one who has stopped heard something")
	}
	n.wakeAll() // the bus was away
	hears(second)
	hears(other)
}
