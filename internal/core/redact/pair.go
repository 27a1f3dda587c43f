package redact

import "math"

// Indexes of a program's streams in a Pair.
const (
	Stdout = 0
	Stderr = 1
)

// Pair redacts the two streams of one program. In addition to Stream, it finds registered secrets
// whose bytes are in order but split across both streams.
//
// It follows both streams together only after a switch at which the last bytes may begin a secret,
// and only while they still may. So it holds back nothing that a single stream would not, except
// bytes on one stream that continue a possible secret on the other.
type Pair struct {
	streams [2]*Stream
	current int
	since   int64 // bytes of the current stream since the last change

	joined bool   // a possible secret spans both streams
	state  int32  // with joined: of the automaton over both
	parts  []part // of the live beginning, on changing streams
	length int64  // of parts together
}

// part is the bytes [from, to) of a stream.
type part struct {
	stream   int
	from, to int64
}

// Pair returns a Pair that passes redacted output to the two functions, which must neither keep nor
// modify the bytes.
func (s *Set) Pair(stdout, stderr func([]byte)) *Pair {
	return &Pair{streams: [2]*Stream{s.Stream(stdout), s.Stream(stderr)}}
}

// Write processes the next bytes of a stream. Before it returns, it passes on all bytes of both
// streams that cannot become part of a secret. It does not keep b.
func (p *Pair) Write(stream int, b []byte) {
	for len(b) > 0 {
		n := min(len(b), piece)
		p.write(stream, b[:n])
		b = b[n:]
	}
}

func (p *Pair) write(stream int, b []byte) {
	s := p.streams[stream]
	if s.auto == nil {
		s.write(b)
		return
	}
	if stream != p.current {
		p.change(stream)
	}
	if p.joined {
		p.follow(b)
		s.write(b)
		other := p.streams[1-stream]
		other.release(other.horizon())
	} else {
		s.write(b)
	}
	p.since += int64(len(b))
}

// change switches to the other stream.
func (p *Pair) change(stream int) {
	if last := p.streams[p.current]; !p.joined && len(last.passed) == 0 {
		// The automaton over both has seen only what came since the last change.
		state := last.state
		for int64(last.auto.nodes[state].depth) > p.since {
			state = last.auto.nodes[state].fail
		}
		if state != 0 {
			depth := int64(last.auto.nodes[state].depth)
			p.joined, p.state = true, state
			p.parts = append(p.parts[:0], part{p.current, last.end() - depth, last.end()})
			p.length = depth
		}
	}
	p.current, p.since = stream, 0
	if p.joined {
		end := p.streams[stream].end()
		p.parts = append(p.parts, part{stream, end, end})
	}
}

// follow scans bytes that the current stream is about to get, across both streams, until a possible
// secret lies within one stream again.
func (p *Pair) follow(b []byte) {
	a := p.streams[0].auto
	for i, c := range b {
		p.state = a.step(p.state, c)
		p.parts[len(p.parts)-1].to++
		p.length++
		n := &a.nodes[p.state]
		since := p.since + int64(i) + 1
		if l := int64(n.secret); l > since {
			p.cover(l)
		}
		if int64(n.depth) <= since {
			p.joined = false
			break
		}
		p.trim(int64(n.depth))
	}
	for _, s := range p.streams {
		s.hold = math.MaxInt64
	}
	if p.joined { // neighbours are of different streams
		for _, x := range p.parts[:2] {
			p.streams[x.stream].hold = x.from
		}
	}
}

// cover marks the last n bytes of both streams as a secret.
func (p *Pair) cover(n int64) {
	var found [2]span
	for i := len(p.parts) - 1; i >= 0 && n > 0; i-- {
		x := p.parts[i]
		take := min(n, x.to-x.from)
		n -= take
		if f := &found[x.stream]; f.to == 0 {
			*f = span{x.to - take, x.to, 0}
		} else {
			f.from = x.to - take
		}
	}
	for i, f := range found {
		if f.to > f.from {
			p.streams[i].add(f)
		}
	}
}

// trim keeps only the last n bytes in parts.
func (p *Pair) trim(n int64) {
	for p.length > n {
		x := &p.parts[0]
		cut := min(p.length-n, x.to-x.from)
		x.from += cut
		p.length -= cut
		if x.from == x.to {
			p.parts = p.parts[1:]
		}
	}
}

// Flush passes on all held bytes at the end of both streams.
func (p *Pair) Flush() {
	for _, s := range p.streams {
		s.Flush()
	}
	p.joined, p.since = false, 0
}

// Pending returns how many bytes of both streams are held.
func (p *Pair) Pending() int { return p.streams[0].Pending() + p.streams[1].Pending() }

// Clean reports whether a new Pair would continue exactly as this one.
func (p *Pair) Clean() bool {
	return !p.joined && p.streams[0].Clean() && p.streams[1].Clean()
}
