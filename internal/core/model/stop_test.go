package model

import (
	"context"
	"iter"
	"strings"
	"testing"
)

// spoken is a Model that says some deltas.
type spoken []Delta

func (s spoken) Generate(context.Context, Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		for _, d := range s {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// TestStop has answers cut before a text, however it comes, with all of their tokens counted.
func TestStop(t *testing.T) {
	said := func(index int, texts ...string) (out []Delta) {
		for _, text := range texts {
			out = append(out, Delta{Kind: Said, Index: index, Text: text})
		}
		return out
	}
	called := func(index int) []Delta {
		c := Call{ID: "c", Name: "f"}
		return []Delta{{Kind: CallBegun, Index: index, Call: c}, {Kind: CallArguments, Index: index, Text: "{}"}, {Kind: CallEnded, Index: index, Call: c}}
	}
	for name, test := range map[string]struct {
		deltas [][]Delta
		stop   StopReason
		want   string
	}{
		"none":                    {[][]Delta{said(0, "a", "b")}, StopEnd, "ab end"},
		"whole":                   {[][]Delta{said(0, "a\n\nHuman: b")}, StopMaxTokens, "a end"},
		"in pieces":               {[][]Delta{said(0, "a\n", "\nHu", "man", ":b", "c")}, StopEnd, "a end"},
		"only begun":              {[][]Delta{said(0, "a\n\nHum")}, StopMaxTokens, "a\n\nHum max_output_tokens"},
		"begun twice":             {[][]Delta{said(0, "a\n\n", "\n\nHuman:")}, StopEnd, "a\n\n end"},
		"the first of two":        {[][]Delta{said(0, "x END y\n\nHuman:")}, StopEnd, "x  end"},
		"at once":                 {[][]Delta{said(0, "END")}, StopEnd, " end"},
		"in no thought":           {[][]Delta{{{Kind: Thinking, Index: 0, Text: "END"}}, said(1, "a")}, StopEnd, "a end"},
		"a call before it":        {[][]Delta{called(0), said(1, "aEND", "b")}, StopToolCalls, "<f>a tool_calls"},
		"a call after it":         {[][]Delta{said(0, "aEND"), called(1)}, StopToolCalls, "a end"},
		"a call after what began": {[][]Delta{said(0, "aEN"), called(1)}, StopToolCalls, "aEN<f> tool_calls"},
		"another text":            {[][]Delta{said(0, "aEN"), said(1, "D")}, StopEnd, "aEND end"},
	} {
		var all spoken
		for _, d := range test.deltas {
			all = append(all, d...)
		}
		all = append(all, Delta{Kind: Used, Usage: Usage{Input: 1, Output: 9}}, Delta{Kind: Stopped, Stop: test.stop})
		var got strings.Builder
		tokens := int64(0)
		for d, err := range Guard(all, Spec{Capabilities: Capabilities}, DefaultBounds).Generate(t.Context(), Request{Items: []Item{Text(User, "go")}, Stop: []string{"\n\nHuman:", "END"}}) {
			switch {
			case err != nil:
				t.Errorf("%s: %v", name, err)
			case d.Kind == Said:
				got.WriteString(d.Text)
			case d.Kind == CallEnded:
				got.WriteString("<" + d.Call.Name + ">")
			case d.Kind == Used:
				tokens = d.Usage.Output
			case d.Kind == Stopped:
				got.WriteString(" " + string(d.Stop))
			}
		}
		if got.String() != test.want || tokens != 9 {
			t.Errorf("%s: %q and %d tokens, want %q", name, got.String(), tokens, test.want)
		}
	}
}
