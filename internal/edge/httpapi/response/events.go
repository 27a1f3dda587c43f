package response

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/response"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
)

// stream renders the events of a run. The same events always give the same stream, so
// that its sequence numbers hold for a reader that comes back.
type stream struct {
	*renderer
	set   *response.Settings
	state *run.State // as it was when the run began
	full  func() (*run.State, error)

	seq       int64
	searching int // calls of searches that are in progress
	items     []open
	emit      func(*ResponseEvent) error // which does not keep the event
	last      ResponseEvent              // a delta, of which there are thousands a second
}

// open is an item of the output while it is in progress.
type open struct {
	id      string
	kind    string // of its items
	part    string // type of the part that is in progress; "" for none
	index   int    // of that part
	text    []byte // of it
	cites   []model.Citation
	content []ResponsePart    // completed parts
	writes  *response.Writing // of a call of the server's that the model writes; otherwise nil
}

func (s *stream) send(e *ResponseEvent) error {
	e.Sequence = s.seq
	s.seq++
	return s.emit(e)
}

// begin sends the events that a stream begins with.
func (s *stream) begin() error {
	r, err := s.response(s.state)
	if err != nil {
		return err
	}
	queued := *r
	if err := s.send(&ResponseEvent{Type: "response.created", Response: &queued}); err != nil {
		return err
	}
	return s.send(&ResponseEvent{Type: "response.in_progress", Response: r})
}

// event sends what follows from an event of the run.
func (s *stream) event(e *run.Event) error {
	switch {
	case e.Began != nil:
		return s.began(e.Began)
	case e.Delta != nil:
		return s.delta(e.Delta)
	case e.Called != nil:
		return s.called(e.Called)
	case e.Done != nil:
		return s.done(e.Done)
	case e.End != nil:
		return s.end()
	}
	return nil
}

func (s *stream) began(e *run.ItemEvent) error {
	it, err := response.Recorded(e, s.full)
	if err != nil {
		return err
	}
	shown, err := s.item(response.Unfinished(it), s.set)
	if err != nil {
		return err
	}
	// What it has comes with its deltas, or when it is done.
	switch {
	case it.Message != nil:
		shown.Content = &ResponseContent{Parts: []ResponsePart{}}
	case it.Call != nil && it.Call.Custom:
		shown.Input = new("")
	case it.Call != nil:
		shown.Arguments = new("")
	}
	interpreterAdded(shown, e.Recorded)
	o := open{id: shown.ID, kind: shown.Type}
	if it.Use != nil && it.Use.Input == nil {
		o.writes = &response.Writing{}
	}
	s.items = append(s.items, o)
	if err := s.send(&ResponseEvent{Type: "response.output_item.added", OutputIndex: &e.Index, Item: shown}); err != nil {
		return err
	}
	if err := s.useBegan(it, shown.ID, &e.Index); err != nil {
		return err
	}
	if err := s.interpreterBegan(it, shown.ID, &e.Index); err != nil {
		return err
	}
	if err := s.searchBegan(it, shown); err != nil {
		return err
	}
	return s.written(it, &e.Index)
}

// kinds of parts, by the deltas they are made of.
var partKinds = map[model.DeltaKind]string{
	model.Said: "output_text", model.Refused: "refusal", model.Summarized: "summary_text", model.Thinking: "reasoning_text",
}

func (s *stream) delta(d *run.Delta) error {
	it := &s.items[d.Index]
	at := &d.Index
	switch d.Kind {
	case model.CallArguments:
		if it.writes != nil {
			return s.writes(it, at, d.Text)
		}
		it.text = append(it.text, d.Text...)
		return s.send(&ResponseEvent{Type: argumentsDelta(it.kind), ItemID: it.id, OutputIndex: at, Delta: &d.Text})
	case model.SummaryEnded:
		return s.closePart(it, at)
	case model.Cited:
		return s.cite(it, at, d.Citation)
	}
	kind := partKinds[d.Kind]
	if it.part != kind {
		if err := s.closePart(it, at); err != nil {
			return err
		}
		if err := s.openPart(it, at, kind); err != nil {
			return err
		}
	}
	it.text = append(it.text, d.Text...)
	e := &s.last
	*e = ResponseEvent{ItemID: it.id, OutputIndex: at, Delta: &d.Text}
	switch kind {
	case "output_text":
		e.Type, e.LogProbs = outputDelta, &noLogProbs
	case "refusal":
		e.Type = "response.refusal.delta"
	case "summary_text":
		e.Type = "response.reasoning_summary_text.delta"
	case "reasoning_text":
		e.Type = "response.reasoning.delta"
	}
	e.place(kind, &it.index)
	return s.send(e)
}

// cite tells that a part of the text is cited. A text comes first.
func (s *stream) cite(it *open, at *int, c *model.Citation) error {
	if c == nil || it.part != "output_text" {
		return nil
	}
	n, index, is := len(it.cites), it.index, annotationOf(*c)
	it.cites = append(it.cites, *c)
	return s.send(&ResponseEvent{
		Type: "response.output_text.annotation.added", ItemID: it.id, OutputIndex: at, ContentIndex: &index, AnnotationIndex: &n, Annotation: &is,
	})
}

var noLogProbs = []jsontext.Value{}

// place sets the index of a part.
func (e *ResponseEvent) place(kind string, index *int) {
	if kind == "summary_text" {
		e.SummaryIndex = index
	} else {
		e.ContentIndex = index
	}
}

// part is the part of a kind with a text.
func part(kind, text string) *ResponsePart {
	switch kind {
	case "refusal":
		return &ResponsePart{Type: kind, Refusal: &text}
	case "output_text":
		p := outputText(text, nil)
		return &p
	}
	return &ResponsePart{Type: kind, Text: &text}
}

func (s *stream) openPart(it *open, at *int, kind string) error {
	index := 0
	for _, p := range it.content {
		if (p.Type == "summary_text") == (kind == "summary_text") {
			index++
		}
	}
	it.part, it.index, it.text, it.cites = kind, index, nil, nil
	e := &ResponseEvent{Type: "response.content_part.added", ItemID: it.id, OutputIndex: at, Part: part(kind, "")}
	if kind == "summary_text" {
		e.Type = "response.reasoning_summary_part.added"
	}
	e.place(kind, &index)
	return s.send(e)
}

func (s *stream) closePart(it *open, at *int) error {
	if it.part == "" {
		return nil
	}
	kind, text, index := it.part, string(it.text), it.index
	it.part, it.text = "", nil
	whole := part(kind, text)
	if kind == "output_text" {
		*whole = outputText(text, it.cites)
	}
	it.content = append(it.content, *whole)
	done := &ResponseEvent{ItemID: it.id, OutputIndex: at}
	closed := &ResponseEvent{Type: "response.content_part.done", ItemID: it.id, OutputIndex: at, Part: whole}
	switch kind {
	case "output_text":
		done.Type, done.Text, done.LogProbs = "response.output_text.done", &text, &[]jsontext.Value{}
	case "refusal":
		done.Type, done.Refusal = "response.refusal.done", &text
	case "summary_text":
		done.Type, done.Text = "response.reasoning_summary_text.done", &text
		closed.Type = "response.reasoning_summary_part.done"
	case "reasoning_text":
		done.Type, done.Text = "response.reasoning.done", &text
	}
	done.place(kind, &index)
	closed.place(kind, &index)
	if err := s.send(done); err != nil {
		return err
	}
	return s.send(closed)
}

func (s *stream) done(e *run.ItemEvent) error {
	it, err := response.Recorded(e, s.full)
	if err != nil {
		return err
	}
	o := &s.items[e.Index]
	if err := s.closePart(o, &e.Index); err != nil {
		return err
	}
	if it.Call != nil {
		if err := s.send(argumentsDone(it.Call, o.id, &e.Index)); err != nil {
			return err
		}
	}
	shown, err := s.item(it, s.set)
	if err != nil {
		return err
	}
	if err := s.useDone(it, shown.ID, &e.Index); err != nil {
		return err
	}
	if err := s.interpreterDone(it, shown.ID, &e.Index); err != nil {
		return err
	}
	if err := s.searchDone(it, shown); err != nil {
		return err
	}
	return s.send(&ResponseEvent{Type: "response.output_item.done", OutputIndex: &e.Index, Item: shown})
}

// ends are the last events of a stream.
var ends = map[string]string{
	"completed": "response.completed", "requires_action": "response.completed", "incomplete": "response.incomplete", "failed": "response.failed", "cancelled": "response.cancelled",
}

func (s *stream) end() error {
	full, err := s.full()
	if err != nil {
		return err
	}
	r, err := s.response(full)
	if err != nil {
		return err
	}
	return s.send(&ResponseEvent{Type: ends[r.Status], Response: r, Error: r.Error})
}
