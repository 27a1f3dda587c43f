package feed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/conversation"
	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// sink writes events to memory, and a line for each piece.
type sink struct {
	text   bytes.Buffer
	pieces bool // it takes pieces
}

func (*sink) Event(id string, e *session.Event) ([]byte, error) {
	if e.Kind == "" {
		return nil, nil
	}
	data, err := json.Marshal(e, jsontext.AllowInvalidUTF8(true))
	return fmt.Appendf(nil, "id: %s\nevent: %s\ndata: %s\n\n", id, e.Kind, data), err
}

func (o *sink) Delta(run.ID, string, *run.Delta) ([]byte, error) {
	if !o.pieces {
		return nil, nil
	}
	return []byte("event: delta\n\n"), nil
}

func (o *sink) Add(text []byte) error {
	o.text.Write(text)
	return nil
}

func (*sink) Cached() bool { return true }
func (*sink) Send() error  { return nil }
func (*sink) Full() bool   { return false }

// quiet is a session that has no turn in progress.
type quiet struct{ reads int }

func (*quiet) look(context.Context) (run.ID, bool, error) { return "", false, nil }

func (q *quiet) after(context.Context, int64, int) ([]session.Event, error) {
	q.reads++
	return nil, nil
}

// TestSlowReaderIsDropped: a reader that is far behind ends, and a feed keeps no more for it than
// for the others.
func TestSlowReaderIsDropped(t *testing.T) {
	h, q := &Feeds{}, &quiet{}
	at := place{"ten_1", "sess_1", 0}
	slow, err := h.join("sess_1", q, at)
	if err != nil {
		t.Fatal(err)
	}
	fast, err := h.join("sess_1", q, at)
	if err != nil {
		t.Fatal(err)
	}
	f := slow.feed
	if fast.feed != f || len(h.hub.feeds) != 1 {
		t.Fatal("two readers of a session have two feeds")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	text := strings.Repeat("x", 32<<10)
	for i := range int64(3 * feedBytes / len(text)) {
		f.put(item{event: &session.Event{SessionEvent: run.SessionEvent{Seq: i + 1, Item: &model.Item{Message: &model.Message{Parts: []model.Part{{Text: text}}}}}}})
		if it, err := fast.wait(ctx); err != nil || it.event.Seq != i+1 {
			t.Fatalf("%+v %v", it, err)
		}
	}
	if f.bytes > feedBytes || len(f.items) > feedItems {
		t.Errorf("the feed keeps %d bytes", f.bytes)
	}
	if _, err := slow.wait(ctx); !errors.Is(err, errSlow) {
		t.Errorf("a reader far behind gets %v", err)
	}
	h.leave(slow)
	h.leave(fast)
	if len(h.hub.feeds) != 0 {
		t.Error("a feed without readers stays")
	}
}

// TestFeedCountsFrames checks that the encoded frame of an item counts toward the feed's limit.
func TestFeedCountsFrames(t *testing.T) {
	h := &Feeds{}
	s, err := h.join("sess_1", &quiet{}, place{"ten_1", "sess_1", 0})
	if err != nil {
		t.Fatal(err)
	}
	defer h.leave(s)
	f := s.feed
	text := strings.Repeat("\x01", 8<<10) // JSON escapes each byte as six
	r := &Reader{subscriber: s, id: "sess_1", out: &sink{}}
	for i := range int64(3 * feedBytes / len(text)) {
		e := &session.Event{SessionEvent: run.SessionEvent{Seq: i + 1, Kind: run.EventMessage, Item: &model.Item{Message: &model.Message{Role: model.User, Parts: []model.Part{{Text: text}}}}}}
		f.put(item{event: e})
		it, err := s.wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := r.event(it.event, it.frames); err != nil {
			t.Fatal(err)
		}
		r.out = &sink{}
	}
	kept := 0
	for _, it := range f.items {
		kept += len(it.frames.text) + sizeOf(it.event)
	}
	if kept > feedBytes || kept != f.bytes || len(f.items) < 2 {
		t.Errorf("the feed keeps %d bytes, and counts %d", kept, f.bytes)
	}
}

// TestLateReaderGetsPieces: a reader that comes while the model writes gets what it has written of
// the item so far, and nothing of items that are on record.
func TestLateReaderGetsPieces(t *testing.T) {
	h := &Feeds{}
	first, err := h.join("sess_1", &quiet{}, place{"ten_1", "sess_1", 0})
	if err != nil {
		t.Fatal(err)
	}
	defer h.leave(first)
	f := first.feed
	said := func(of, text string) {
		f.put(item{delta: &run.Delta{Kind: model.Said, Text: text}, turn: "run_1", of: of})
	}
	said("msg_1", "done")
	f.put(item{event: &session.Event{SessionEvent: run.SessionEvent{Seq: 1, Shown: "msg_1"}}})
	for i := range 3000 {
		said("msg_2", fmt.Sprint(i%10, " "))
	}
	late, err := h.join("sess_1", &quiet{}, place{"ten_1", "sess_1", 1})
	if err != nil {
		t.Fatal(err)
	}
	defer h.leave(late)
	if _, ok := late.advance(0); ok {
		t.Error("a reader that lacks an event joins")
	}
	pieces, ok := late.advance(1)
	var text strings.Builder
	for _, p := range pieces {
		if p.of != "msg_2" || p.turn != "run_1" {
			t.Errorf("a piece of %s", p.of)
		}
		text.WriteString(p.delta.Text)
	}
	if !ok || text.Len() != 6000 || len(pieces) > 3 {
		t.Errorf("%d pieces, %d bytes", len(pieces), text.Len())
	}
	for range 2 * maxUnderWay / len(strings.Repeat("y", 1<<10)) {
		said("msg_2", strings.Repeat("y", 1<<10))
	}
	if pieces, _ := late.advance(1); len(pieces) != 0 {
		t.Errorf("%d pieces of an item longer than the bound are kept", len(pieces))
	}
}

// TestPiecesDuringCatchUp checks that a reader gets the pieces of an item that the model writes while
// the reader still reads earlier events from the records.
func TestPiecesDuringCatchUp(t *testing.T) {
	r := &recorded{all: []session.Event{
		{SessionEvent: run.SessionEvent{Seq: 1, Kind: run.EventStatus, Status: &run.SessionState{Running: true}}, Run: "run_1"},
		{SessionEvent: run.SessionEvent{Seq: 2, Kind: run.EventMessage, Shown: "msg_1", Status: &run.SessionState{}}, Run: "run_1"},
	}}
	h := &Feeds{}
	s, err := h.join("sess_1", &quiet{}, place{"ten_1", "sess_1", 1})
	if err != nil {
		t.Fatal(err)
	}
	defer h.leave(s)
	s.feed.put(item{delta: &run.Delta{Kind: model.Said, Text: "well"}, turn: "run_1", of: "msg_1"})
	s.feed.put(item{event: &r.all[1]})
	out := &sink{pieces: true}
	if err := (&Reader{subscriber: s, of: r, id: "sess_1"}).Read(t.Context(), Request{Until: "run_1", Deltas: true}, out); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.text.String()) {
		if kind, ok := strings.CutPrefix(line, "event: "); ok {
			got = append(got, strings.TrimSpace(kind))
		}
	}
	if want := []string{string(run.EventStatus), "delta", string(run.EventMessage)}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// recorded is a session with recorded events. look blocks until begin is closed, then returns looks in
// order, and reports the end of the session after them.
type recorded struct {
	begin chan struct{}
	all   []session.Event
	looks []run.ID
}

func (r *recorded) look(context.Context) (now run.ID, over bool, _ error) {
	<-r.begin
	if len(r.looks) == 0 {
		return "", true, nil
	}
	now, r.looks = r.looks[0], r.looks[1:]
	return now, false, nil
}

func (r *recorded) after(_ context.Context, seq int64, limit int) ([]session.Event, error) {
	rest := r.all[min(seq, int64(len(r.all))):]
	return slices.Clone(rest[:min(limit, len(rest))]), nil
}

// endedRuns and saidOnce fake runs that have ended, each with one message.
type (
	endedRuns struct{ run.Store }
	saidOnce  struct{ loop.Events }
)

func (endedRuns) Run(context.Context, tenant.ID, run.ID) (*run.Run, error) { return &run.Run{}, nil }
func (endedRuns) Log(context.Context, run.ID) ([]run.Entry, error)         { return nil, nil }

func (saidOnce) Follow(_ context.Context, _ tenant.ID, id run.ID, yield func([]run.Event) error) error {
	it := run.ItemEvent{Item: run.Item{ID: "msg_" + string(id)}}
	return yield([]run.Event{{Began: &it}, {Delta: &run.Delta{Text: string(id)}}, {Done: &it}, {End: &run.End{}}})
}

// turnOfEvents returns the events of a turn with one message.
func turnOfEvents(after int64, of run.ID) (all []session.Event) {
	for i, told := range []run.SessionEvent{{Status: &run.SessionState{Running: true}}, {Shown: "msg_" + string(of)}, {Status: &run.SessionState{}}} {
		told.Seq = after + int64(i) + 1
		all = append(all, session.Event{SessionEvent: told, Run: of})
	}
	return all
}

// TestShortTurn checks that readers get a turn before its successor when the first ended, and the
// second began, before the feed looked.
func TestShortTurn(t *testing.T) {
	h := &Feeds{Service: conversation.New(conversation.Config{Runs: loop.New(loop.Config{Events: saidOnce{}, Store: endedRuns{}})})}
	r := &recorded{begin: make(chan struct{}), all: append(turnOfEvents(0, "a"), turnOfEvents(3, "b")...), looks: []run.ID{"b"}}
	s, err := h.join("sess_1", r, place{"ten_1", "sess_1", 0})
	if err != nil {
		t.Fatal(err)
	}
	defer h.leave(s)
	close(r.begin)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var told []string
	for {
		it, err := s.wait(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if it.end != nil {
			break
		}
		if it.delta != nil {
			told = append(told, it.delta.Text)
		} else {
			told = append(told, fmt.Sprint(it.event.Seq))
		}
	}
	if got := strings.Join(told, " "); got != "1 a 2 3 4 b 5 6" {
		t.Error(got)
	}
}

// TestLargeEvents checks that a reader gets a burst of events that exceeds the feed's limit, and that
// the feed drops a reader only in the middle of an item.
func TestLargeEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorded{begin: make(chan struct{})}
		for seq := range int64(4) {
			parts := []model.Part{{Text: strings.Repeat("x", feedBytes)}}
			r.all = append(r.all, session.Event{SessionEvent: run.SessionEvent{Seq: seq + 1, Kind: run.EventMessage, Item: &model.Item{Message: &model.Message{Parts: parts}}}})
		}
		r.all[1].Run, r.all[1].Status = "run_1", &run.SessionState{}
		h := &Feeds{}
		s, err := h.join("sess_1", r, place{"ten_1", "sess_1", 0})
		if err != nil {
			t.Fatal(err)
		}
		defer h.leave(s)
		close(r.begin)
		if synctest.Wait(); !s.feed.ended() {
			t.Fatal("the feed goes on after the end of its session")
		}
		read := func(until run.ID, parts map[string]bool) (ids []string, err error) {
			out := &sink{}
			err = (&Reader{subscriber: &subscriber{feed: s.feed, whole: true}, of: r, id: "sess_1", parts: parts}).Read(t.Context(), Request{Until: until, Deltas: true}, out)
			for line := range strings.Lines(out.text.String()) {
				if id, ok := strings.CutPrefix(line, "id: "); ok {
					ids = append(ids, strings.TrimSpace(id))
				}
			}
			return ids, err
		}
		if ids, err := read("", nil); !errors.Is(err, ErrOver) || len(ids) != 4 || ids[0] != session.EventID("sess_1", 1) || ids[3] != session.EventID("sess_1", 4) {
			t.Errorf("%v %v", ids, err)
		}
		if ids, err := read("run_1", nil); err != nil || len(ids) != 2 {
			t.Errorf("to the end of a turn: %v %v", ids, err)
		}
		r.all[1].Status = nil
		if _, err := read("", map[string]bool{"msg_1": true}); !errors.Is(err, errSlow) {
			t.Errorf("in the middle of an item: %v", err)
		}
	})
}

// passing returns three events, the first two of them large, and keeps no reference to them.
type passing struct {
	recorded
	first weak.Pointer[model.Item]
}

func (p *passing) after(_ context.Context, seq int64, _ int) (all []session.Event, _ error) {
	for ; seq < 3; seq++ {
		it := &model.Item{Message: &model.Message{Parts: []model.Part{{Text: strings.Repeat("x", feedBytes>>(seq/2*10))}}}}
		if seq == 0 {
			p.first = weak.Make(it)
		}
		all = append(all, session.Event{SessionEvent: run.SessionEvent{Seq: seq + 1, Item: it}})
	}
	return all, nil
}

// TestFeedLetsGo checks that an event that a feed drops frees its memory although the feed read it in
// one page with events that it keeps.
func TestFeedLetsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &passing{recorded: recorded{begin: make(chan struct{})}}
		h := &Feeds{}
		s, err := h.join("sess_1", p, place{"ten_1", "sess_1", 0})
		if err != nil {
			t.Fatal(err)
		}
		defer h.leave(s)
		close(p.begin)
		if synctest.Wait(); !s.feed.ended() {
			t.Fatal("the feed goes on after the end of its session")
		}
		if n := len(s.feed.items); n != 2 {
			t.Fatalf("%d items are kept, not the last event and the end", n)
		}
		if runtime.GC(); p.first.Value() != nil {
			t.Error("the first event is kept with the last")
		}
	})
}
