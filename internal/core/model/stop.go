package model

import (
	"iter"
	"strings"
)

// cutAt ends an answer before the first of some texts that the model says, whether or not its
// provider does. What the model says after it is read, since its tokens are counted, and is
// left out.
func cutAt(stop []string, in iter.Seq2[Delta, error]) iter.Seq2[Delta, error] {
	if len(stop) == 0 {
		return in
	}
	return func(yield func(Delta, error) bool) {
		c := cutter{stop: stop, calls: map[int]bool{}, yield: yield}
		for d, err := range in {
			if err != nil {
				yield(d, err)
				return
			}
			if !c.take(d) {
				return
			}
		}
	}
}

type cutter struct {
	stop  []string
	yield func(Delta, error) bool
	held  Delta        // the end of a text that may be the beginning of a stop; no Text for none
	cut   bool         // a stop was said
	calls map[int]bool // blocks of calls that began before that
}

// take passes a delta on, and reports whether more are wanted.
func (c *cutter) take(d Delta) bool {
	switch d.Kind {
	case Said:
		return c.say(d)
	case Stopped:
		if c.cut {
			d.Stop = StopEnd
			if len(c.calls) > 0 {
				d.Stop = StopToolCalls
			}
		}
	case Started, Used:
	default:
		if c.cut && !c.calls[d.Index] {
			return true
		}
		if d.Kind == CallBegun {
			c.calls[d.Index] = true
		}
	}
	return c.release() && c.yield(d, nil)
}

func (c *cutter) say(d Delta) bool {
	if c.cut {
		return true
	}
	if d.Index != c.held.Index && !c.release() {
		return false
	}
	text := c.held.Text + d.Text
	c.held = Delta{}
	end := -1
	for _, s := range c.stop {
		if at := strings.Index(text, s); at >= 0 && (end < 0 || at < end) {
			end = at
		}
	}
	keep := 0
	if c.cut = end >= 0; c.cut {
		text = text[:end]
	} else {
		keep = c.begun(text)
	}
	if keep > 0 {
		c.held = d
		c.held.Text = text[len(text)-keep:]
	}
	d.Text = text[:len(text)-keep]
	return d.Text == "" || c.yield(d, nil)
}

// begun is the length of the longest end of a text with which a stop may begin.
func (c *cutter) begun(text string) (most int) {
	for _, s := range c.stop {
		for n := min(len(s)-1, len(text)); n > most; n-- {
			if strings.HasSuffix(text, s[:n]) {
				most = n
			}
		}
	}
	return most
}

// release passes on what was held.
func (c *cutter) release() bool {
	d := c.held
	c.held = Delta{}
	return d.Text == "" || c.yield(d, nil)
}
