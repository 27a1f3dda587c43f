package model

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// script is a model that says what it is told to.
type script struct {
	deltas []Delta
	err    error
	stall  bool // until its context ends
	asked  Request
}

func (s *script) Generate(ctx context.Context, r Request) iter.Seq2[Delta, error] {
	s.asked = r
	return func(yield func(Delta, error) bool) {
		for _, d := range s.deltas {
			if !yield(d, nil) {
				return
			}
		}
		if s.stall {
			<-ctx.Done()
			yield(Delta{}, context.Cause(ctx))
			return
		}
		if s.err != nil {
			yield(Delta{}, s.err)
		}
	}
}

var able = Spec{Capabilities: Capabilities}

func TestGuardRefuses(t *testing.T) {
	begun := Delta{Kind: CallBegun, Index: 1, Call: Call{ID: "a", Name: "run"}}
	for says, deltas := range map[string][]Delta{
		"was cut short":                           {{Kind: Said, Text: "x"}},
		"ended within a tool call":                {begun, {Kind: Stopped}},
		"arguments of no tool call":               {{Kind: CallArguments, Index: 1, Text: "x"}},
		"contradict each other":                   {begun, {Kind: Said, Index: 1, Text: "x"}},
		"parts of the model's answer contradict":  {begun, begun},
		"model's answer contradict each other":    {begun, {Kind: CallEnded, Index: 1, Call: Call{Arguments: "{}"}}, {Kind: CallArguments, Index: 1, Text: "x"}},
		"without a usable id and name":            {{Kind: CallBegun, Call: Call{Name: "run"}}},
		"of no known kind":                        {{Kind: 99}},
		"more than 50 bytes":                      {{Kind: Said, Text: strings.Repeat("x", 51)}},
		"answer has more than 50 bytes":           {begun, {Kind: CallEnded, Index: 1, Call: Call{Arguments: strings.Repeat("x", 51)}}},
		"the model's answer has more than 50":     {{Kind: ThoughtEnded, State: State{Data: strings.Repeat("x", 51)}}},
		"counts tokens that cannot be":            {{Kind: Used, Usage: Usage{Input: -1}}},
		"asks for more than 1 tool calls at once": {begun, {Kind: CallBegun, Index: 2, Call: Call{ID: "b", Name: "run"}}},
		"ended with an error that is no *Error":   nil,
	} {
		m := &script{deltas: deltas}
		if deltas == nil {
			m.err, says = errors.New("secret"), "could not be read"
		}
		_, err := Collect(Guard(m, able, Bounds{Bytes: 50, Calls: 1, Idle: time.Minute}).Generate(t.Context(), Request{Items: []Item{Text(User, "x")}}))
		if e, ok := errors.AsType[*Error](err); !ok || !strings.Contains(e.Msg, says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
	// What comes after the end is not read.
	got, err := Collect(Guard(&script{deltas: []Delta{{Kind: Said, Text: "x"}, {Kind: Stopped, Stop: StopEnd}, {Kind: 99}}}, able, DefaultBounds).Generate(t.Context(), Request{Items: []Item{Text(User, "x")}}))
	if err != nil || got.Text() != "x" || got.Stop != StopEnd {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestGuardNoticesSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := Guard(&script{deltas: []Delta{{Kind: Said, Text: "x"}}, stall: true}, able, Bounds{Bytes: 100, Calls: 1, Idle: time.Minute})
		begun := time.Now()
		var err error
		for d, failed := range m.Generate(t.Context(), Request{Items: []Item{Text(User, "x")}}) {
			if d.Kind == Said {
				time.Sleep(time.Hour) // the reader may take its time
			}
			err = failed
		}
		if e, ok := errors.AsType[*Error](err); !ok || e.Msg != "the model sent nothing for 1m0s" || time.Since(begun) != time.Hour+time.Minute {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
	})
}

func TestGuardFitsRequests(t *testing.T) {
	small := Spec{Capabilities: []Capability{Tools}, MaxOutput: 100}
	m := &script{deltas: []Delta{{Kind: Stopped}}}
	r := Request{Items: []Item{Text(User, "x")}, Tools: []Tool{{Name: "a"}}, MaxOutputTokens: 1000, Reasoning: Reasoning{Effort: EffortNone, Summary: true}}
	if _, err := Collect(Guard(m, small, DefaultBounds).Generate(t.Context(), r)); err != nil {
		t.Fatal(err)
	}
	if a := m.asked; a.MaxOutputTokens != 100 || a.ParallelToolCalls == nil || *a.ParallelToolCalls || a.Reasoning != (Reasoning{}) {
		t.Errorf("it was asked %+v", a)
	}
	for says, r := range map[string]Request{
		"says nothing":        {},
		"no images":           {Items: []Item{{Result: &Result{Parts: []Part{{Kind: PartImage}}}}}},
		"no files":            {Items: []Item{{Message: &Message{Parts: []Part{{Kind: PartFile}}}}}},
		"no reasoning effort": {Items: []Item{Text(User, "x")}, Reasoning: Reasoning{Effort: EffortLow}},
		"of a JSON":           {Items: []Item{Text(User, "x")}, Format: &Format{}},
	} {
		_, err := Collect(Guard(m, small, DefaultBounds).Generate(t.Context(), r))
		if e, ok := errors.AsType[*Error](err); !ok || e.Failure != Rejected || !strings.Contains(e.Msg, says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
}
