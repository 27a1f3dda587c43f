package model

import (
	"iter"
	"slices"
	"strings"
)

// Fold combines deltas into an Answer. The zero Fold is ready for use.
type Fold struct {
	answer Answer
	blocks map[int]*block
	last   *block // nil before the first; the next delta is mostly of the same
	index  int    // of last
}

// block is an unfinished item.
type block struct {
	kind             DeltaKind // Said, Thinking or CallBegun
	text, refusal    strings.Builder
	summary          []strings.Builder
	closed           bool // the next summary text begins another part
	call             Call
	arguments        strings.Builder
	state            State
	hasText, refused bool
	citations        []Citation
}

// Add adds the next delta. It does not detect deltas that contradict each other; Guard rejects
// them.
func (f *Fold) Add(d Delta) {
	switch d.Kind {
	case Started:
		f.answer.RequestID = d.RequestID
	case Said:
		b := f.block(d.Index, Said)
		b.hasText = true
		b.text.WriteString(d.Text)
	case Cited:
		if d.Citation != nil {
			b := f.block(d.Index, Said)
			b.citations = append(b.citations, *d.Citation)
		}
	case Refused:
		b := f.block(d.Index, Said)
		b.refused = true
		b.refusal.WriteString(d.Text)
	case Summarized:
		b := f.block(d.Index, Thinking)
		if len(b.summary) == 0 || b.closed {
			b.summary, b.closed = append(b.summary, strings.Builder{}), false
		}
		b.summary[len(b.summary)-1].WriteString(d.Text)
	case SummaryEnded:
		f.block(d.Index, Thinking).closed = true
	case Thinking:
		f.block(d.Index, Thinking).text.WriteString(d.Text)
	case ThoughtEnded:
		f.block(d.Index, Thinking).state = d.State
	case CallBegun:
		f.block(d.Index, CallBegun).call = d.Call
	case CallArguments:
		f.block(d.Index, CallBegun).arguments.WriteString(d.Text)
	case CallEnded:
		b := f.block(d.Index, CallBegun)
		b.call = d.Call
		b.arguments.Reset()
		b.arguments.WriteString(d.Call.Arguments)
	case Used:
		f.answer.Usage, f.answer.Counted = d.Usage, true
	case Stopped:
		f.answer.Stop = d.Stop
	}
}

func (f *Fold) block(index int, kind DeltaKind) *block {
	if f.last != nil && f.index == index {
		return f.last
	}
	b := f.blocks[index]
	if b == nil {
		if f.blocks == nil {
			f.blocks = map[int]*block{}
		}
		b = &block{kind: kind}
		f.blocks[index] = b
	}
	f.last, f.index = b, index
	return b
}

// Answer returns the answer so far.
func (f *Fold) Answer() Answer {
	out := f.answer
	indexes := make([]int, 0, len(f.blocks))
	for i := range f.blocks {
		indexes = append(indexes, i)
	}
	slices.Sort(indexes)
	out.Items = nil
	for _, i := range indexes {
		out.Items = append(out.Items, f.blocks[i].item())
	}
	return out
}

func (b *block) item() Item {
	switch b.kind {
	case Thinking:
		t := &Thought{Text: b.text.String(), State: b.state}
		for i := range b.summary {
			t.Summary = append(t.Summary, b.summary[i].String())
		}
		return Item{Reasoning: t}
	case CallBegun:
		c := b.call
		c.Arguments = b.arguments.String()
		return Item{Call: &c}
	}
	m := &Message{Role: Assistant}
	if b.hasText {
		m.Parts = append(m.Parts, Part{Kind: PartText, Text: b.text.String(), Citations: b.citations})
	}
	if b.refused {
		m.Parts = append(m.Parts, Part{Kind: PartRefusal, Text: b.refusal.String()})
	}
	return Item{Message: m}
}

// Collect reads all deltas. On an error it also returns the partial answer.
func Collect(deltas iter.Seq2[Delta, error]) (Answer, error) {
	var f Fold
	for d, err := range deltas {
		if err != nil {
			return f.Answer(), err
		}
		f.Add(d)
	}
	return f.Answer(), nil
}

// Text returns the text of an answer's messages.
func (a *Answer) Text() string {
	var out strings.Builder
	for _, it := range a.Items {
		if it.Message != nil {
			for _, p := range it.Message.Parts {
				out.WriteString(p.Text)
			}
		}
	}
	return out.String()
}

// Calls returns the tool calls of an answer, in the model's order.
func (a *Answer) Calls() []Call {
	var out []Call
	for _, it := range a.Items {
		if it.Call != nil {
			out = append(out, *it.Call)
		}
	}
	return out
}
