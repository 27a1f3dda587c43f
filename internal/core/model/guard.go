package model

import (
	"context"
	"errors"
	"iter"
	"time"
)

// Bounds of one answer, which hold whatever a provider sends.
type Bounds struct {
	Bytes int           // of text, arguments and states together
	Calls int           // tool calls
	Idle  time.Duration // between two deltas
}

// DefaultBounds are well above what answers have.
var DefaultBounds = Bounds{Bytes: 16 << 20, Calls: 128, Idle: 10 * time.Minute}

// maxName bounds the bytes of a call's id and of its name.
const maxName = 512

// maxBlocks bounds the blocks of an answer.
const maxBlocks = 1024

// Guard is a Model that refuses what m cannot do before m is asked, and that holds m's
// answers to the contract of Model and to bounds: its callers need not check deltas.
func Guard(m Model, spec Spec, b Bounds) Model { return &guard{m, spec, b} }

type guard struct {
	model  Model
	spec   Spec
	bounds Bounds
}

var errIdle = errors.New("no delta")

// Generate implements Model.
func (g *guard) Generate(ctx context.Context, r Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		if err := g.spec.fit(&r); err != nil {
			yield(Delta{}, err)
			return
		}
		own, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		quiet := silence{most: g.bounds.Idle, over: func() { cancel(errIdle) }}
		defer quiet.stop()
		quiet.begin()
		a := answering{bounds: g.bounds, blocks: map[int]*guarded{}}
		for d, err := range cutAt(r.Stop, g.model.Generate(own, r)) {
			quiet.end() // the caller may take its time
			if err == nil {
				err = a.take(&d)
			}
			if err != nil {
				yield(Delta{}, g.failure(ctx, own, err))
				return
			}
			if !yield(d, nil) || d.Kind == Stopped {
				return
			}
			quiet.begin()
		}
		yield(Delta{}, g.failure(ctx, own, Errorf(Transient, "the model's answer was cut short")))
	}
}

// failure is what the caller is told of an error.
func (g *guard) failure(ctx, own context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(context.Cause(own), errIdle) {
		return Errorf(Transient, "the model sent nothing for %s", g.bounds.Idle)
	}
	return asError(err)
}

// answering checks an answer while it comes.
type answering struct {
	bounds       Bounds
	bytes, calls int
	blocks       map[int]*guarded
}

// guarded is a block of an answer.
type guarded struct {
	kind  DeltaKind // Said, Thinking or CallBegun
	call  Call      // with CallBegun
	bytes int       // of its arguments
	ended bool
}

var kinds = map[DeltaKind]DeltaKind{
	Said: Said, Refused: Said, Cited: Said, Summarized: Thinking, SummaryEnded: Thinking, Thinking: Thinking, ThoughtEnded: Thinking,
	CallBegun: CallBegun, CallArguments: CallBegun, CallEnded: CallBegun,
}

func (a *answering) take(d *Delta) error {
	a.bytes += len(d.Text) + len(d.State.Data) + len(d.State.ID) + len(d.Call.State.Data) + d.Citation.size()
	if a.bytes > a.bounds.Bytes {
		return Errorf(Broken, "the model's answer has more than %d bytes", a.bounds.Bytes)
	}
	switch d.Kind {
	case Started:
		if len(d.RequestID) > maxName {
			d.RequestID = d.RequestID[:maxName]
		}
		return nil
	case Used:
		u, ok := d.Usage.Sound()
		if !ok {
			return Errorf(Broken, "the model counts tokens that cannot be")
		}
		d.Usage = u
		return nil
	case Stopped:
		for _, b := range a.blocks {
			if b.kind == CallBegun && !b.ended {
				return Errorf(Broken, "the model's answer ended within a tool call")
			}
		}
		return nil
	}
	kind, known := kinds[d.Kind]
	if !known {
		return Errorf(Broken, "the model's answer has a delta of no known kind")
	}
	if d.Kind == Cited {
		c, ok := d.Citation, d.Citation != nil
		if ok {
			*c, ok = c.Sound()
		}
		if !ok {
			return Errorf(Broken, "the model cites what cannot be")
		}
	}
	b := a.blocks[d.Index]
	if b == nil {
		if len(a.blocks) == maxBlocks {
			return Errorf(Broken, "the model's answer has more than %d parts", maxBlocks)
		}
		b = &guarded{kind: kind}
		a.blocks[d.Index] = b
		if kind == CallBegun {
			return a.begin(b, d)
		}
		return nil
	}
	if b.kind != kind || b.ended || d.Kind == CallBegun {
		return Errorf(Broken, "the parts of the model's answer contradict each other")
	}
	switch d.Kind {
	case ThoughtEnded:
		b.ended = true
	case CallArguments:
		b.bytes += len(d.Text)
	case CallEnded:
		b.ended = true
		d.Call.ID, d.Call.Name, d.Call.Custom = b.call.ID, b.call.Name, b.call.Custom
		// What no fragment has told counts here.
		if a.bytes += max(0, len(d.Call.Arguments)-b.bytes); a.bytes > a.bounds.Bytes {
			return Errorf(Broken, "the model's answer has more than %d bytes", a.bounds.Bytes)
		}
	}
	return nil
}

func (a *answering) begin(b *guarded, d *Delta) error {
	a.calls++
	switch {
	case d.Kind != CallBegun:
		return Errorf(Broken, "the model's answer has arguments of no tool call")
	case a.calls > a.bounds.Calls:
		return Errorf(Broken, "the model asks for more than %d tool calls at once", a.bounds.Calls)
	case d.Call.ID == "" || d.Call.Name == "" || len(d.Call.ID) > maxName || len(d.Call.Name) > maxName:
		return Errorf(Broken, "the model asks for a tool call without a usable id and name")
	}
	for _, other := range a.blocks {
		if other != b && other.kind == CallBegun && other.call.ID == d.Call.ID {
			return Errorf(Broken, "the model gives two tool calls one id")
		}
	}
	b.call = d.Call
	return nil
}
