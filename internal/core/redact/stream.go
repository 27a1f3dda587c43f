package redact

import (
	"math"
	"math/bits"
	"slices"
)

// Marker replaces a registered secret. "[redacted:RULE]" replaces a token that a rule matches.
// Markers are at most MaxMarker bytes long. Overlapping matches become one marker, named for the
// match that begins first.
const (
	Marker    = "[redacted]"
	MaxMarker = 32
)

// markers holds the marker of secrets, followed by the marker of each spec.
var markers = func() (m [33][]byte) {
	m[0] = []byte(Marker)
	for i, s := range specs {
		m[i+1] = []byte("[redacted:" + s.rule + "]")
	}
	return m
}()

// piece limits how much of a write is scanned before its output is passed on, which bounds memory.
const piece = 64 << 10

// span is a range of bytes to replace with a marker.
type span struct {
	from, to int64
	marker   uint8 // index into markers
}

// Stream redacts one stream of bytes. It is not safe for concurrent use. Positions count input
// bytes from the start.
type Stream struct {
	auto *automaton
	emit func([]byte)

	state    int32   // of the automaton
	passed   []int64 // line ends within what led to state, see passOver
	live     uint32  // machines at work, by spec
	machines [32]machine

	base     int64  // where held begins
	held     []byte // unprocessed bytes of earlier writes
	now      []byte // the bytes being scanned, after held
	before   [2]byte
	spans    []span // found and not passed on, by their beginning
	coverage int64  // all before this and after base is covered by a marker passed on
	hold     int64  // nothing from here on is passed on, by order of a Pair
}

// Stream returns a Stream that passes redacted output to emit, which must neither keep nor modify
// the bytes.
func (s *Set) Stream(emit func([]byte)) *Stream {
	return &Stream{auto: s.auto, emit: emit, hold: math.MaxInt64}
}

// Write processes the next bytes. Before it returns, it passes on all bytes that cannot become part
// of a secret. It does not keep p.
func (s *Stream) Write(p []byte) {
	for len(p) > piece {
		s.write(p[:piece])
		p = p[piece:]
	}
	s.write(p)
}

func (s *Stream) write(p []byte) {
	if s.auto == nil {
		if len(p) > 0 {
			s.emit(p)
		}
		return
	}
	s.now = p
	s.look(s.base + int64(len(s.held)))
	s.release(s.horizon())
}

// Flush passes on all held bytes at the end of the stream: an incomplete secret is not redacted.
func (s *Stream) Flush() {
	if s.auto == nil {
		return
	}
	s.settle()
	s.live, s.state, s.passed, s.hold = 0, 0, s.passed[:0], math.MaxInt64
	s.release(s.end())
}

// Pending returns how many bytes are held.
func (s *Stream) Pending() int { return len(s.held) }

// Clean reports whether a new Stream would continue exactly as this one.
func (s *Stream) Clean() bool {
	if s.auto == nil {
		return true
	}
	last := s.before[1] // matters for what may not follow a letter
	return len(s.held) == 0 && s.live == 0 && s.state == 0 && !alnum[last] && last != '\\'
}

// end is the position after the last byte taken.
func (s *Stream) end() int64 { return s.base + int64(len(s.held)+len(s.now)) }

// look scans now, which begins at position origin.
func (s *Stream) look(origin int64) {
	p, a := s.now, s.auto
	entered := -1 // where the automaton was last started
	for i := 0; i < len(p); {
		if s.state == 0 && s.live == 0 {
			if i = a.scan.next(p, i); i >= len(p) {
				return
			}
			entered = i
		}
		if s.live != 0 {
			for m := s.live; m != 0; m &= m - 1 {
				s.advance(uint8(bits.TrailingZeros32(m)), p[i], origin+int64(i))
			}
		}
		if n := &a.nodes[s.state]; n.wraps && s.passOver(n, p[i], origin+int64(i)) {
			i++
			continue
		}
		s.state = a.step(s.state, p[i])
		i++
		n := &a.nodes[s.state]
		if len(s.passed) > 0 {
			s.forget(origin + int64(i))
		}
		if n.hit {
			s.found(n, origin+int64(i))
		}
		// What the scanner can judge with the bytes ahead is left to it.
		if start := i - int(n.depth); n.depth < window && s.state != 0 && s.live == 0 && len(s.passed) == 0 && start > entered {
			entered, s.state = start, 0
			i = start
		}
	}
}

// found handles every match that ends at a node of the automaton.
func (s *Stream) found(n *node, end int64) {
	if n.secret != 0 {
		s.add(span{s.start(end, n.secret), end, 0})
	}
	for {
		for l := n.lits; l != 0; {
			e := &s.auto.lits[l-1]
			s.spawn(e.spec, s.start(end, e.len), end)
			l = e.next
		}
		if n.next == 0 {
			return
		}
		n = &s.auto.nodes[n.next]
	}
}

// add inserts a span in order of start and marker, so that the order of discovery does not matter.
func (s *Stream) add(x span) {
	i := len(s.spans)
	for i > 0 && (s.spans[i-1].from > x.from || s.spans[i-1].from == x.from && s.spans[i-1].marker > x.marker) {
		i--
	}
	if i > 0 && s.spans[i-1].from == x.from && s.spans[i-1].marker == x.marker {
		s.spans[i-1].to = max(s.spans[i-1].to, x.to)
		return
	}
	s.spans = slices.Insert(s.spans, i, x)
}

// settle adds the spans that machines cover so far.
func (s *Stream) settle() {
	for m := s.live; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		if mc := &s.machines[i]; mc.stage >= covering {
			s.add(span{mc.from, s.end(), uint8(i) + 1})
		}
	}
}

// horizon returns the position of the earliest undecided match. Bytes before it are final.
func (s *Stream) horizon() int64 {
	h := min(s.hold, s.start(s.end(), s.auto.nodes[s.state].depth))
	for m := s.live; m != 0; m &= m - 1 {
		if mc := &s.machines[bits.TrailingZeros32(m)]; mc.stage < covering {
			h = min(h, mc.from)
		}
	}
	s.settle()
	return h
}

// release passes on everything before position h and keeps the rest.
func (s *Stream) release(h int64) {
	at := max(s.base, s.coverage)
	used := 0
	for _, x := range s.spans {
		if x.from >= h {
			break
		}
		used++
		if x.from >= s.coverage {
			s.pass(at, x.from)
			s.emit(markers[x.marker])
		}
		s.coverage = max(s.coverage, x.to)
		at = max(at, s.coverage)
	}
	s.spans = s.spans[:copy(s.spans, s.spans[used:])]
	s.pass(at, h)
	s.keep(h)
}

// pass emits the bytes of [from, to).
func (s *Stream) pass(from, to int64) {
	if from >= to {
		return
	}
	mid := s.base + int64(len(s.held))
	if from < mid {
		s.emit(s.held[from-s.base : min(to, mid)-s.base])
	}
	if to > mid {
		s.emit(s.now[max(from, mid)-mid : to-mid])
	}
}

// keep drops the bytes before position h.
func (s *Stream) keep(h int64) {
	for i := range s.before {
		if c, ok := s.byteAt(h - 2 + int64(i)); ok {
			s.before[i] = c
		}
	}
	mid := s.base + int64(len(s.held))
	if h >= mid {
		s.held = append(s.held[:0], s.now[h-mid:]...)
	} else {
		s.held = append(s.held[:copy(s.held, s.held[h-s.base:])], s.now...)
	}
	s.now, s.base = nil, h
}

// byteAt returns an input byte. It knows the last two bytes passed on and everything after them.
func (s *Stream) byteAt(at int64) (byte, bool) {
	mid := s.base + int64(len(s.held))
	switch {
	case at < 0 || at < s.base-2:
		return 0, false
	case at < s.base:
		return s.before[at-s.base+2], true
	case at < mid:
		return s.held[at-s.base], true
	default:
		return s.now[at-mid], true
	}
}
