package redact

import "bytes"

// stage is where a machine stands. All before covering are undecided.
type stage uint8

const (
	idle    stage = iota
	between       // literal and body
	body
	dot // a JWT's second part
	covering
	closing // a private key's last line
)

// Bounds of what machines hold or swallow, in bytes.
const (
	maxHeader = 8 << 10  // of a JWT's first part
	minPart   = 8        // of a JWT's first two parts
	maxLabel  = 64       // of a PEM block's label
	maxBlock  = 32 << 10 // of a PEM block that does not end
)

// machine follows one spec from its literal on. A stream has one for each spec:
// while it lives, another of the same literals needs none, because whatever
// begins later within the same run of bytes ends with it.
type machine struct {
	from  int64 // what would be covered begins here; all from here on is held until decided
	n     int   // bytes of the current stage
	k     int   // progress within a fixed text
	stage stage
	digit bool
}

const privateKey = "PRIVATE KEY"

// spawn starts the machine of a spec whose literal lies at [start, end).
func (s *Stream) spawn(i uint8, start, end int64) {
	sp, m := &specs[i], &s.machines[i]
	if s.live&(1<<i) != 0 && (m.stage >= covering || !sp.keep) {
		return
	}
	if sp.word && s.afterWord(start) {
		return
	}
	s.live |= 1 << i
	*m = machine{from: start, stage: body}
	if sp.ahead {
		c, _ := s.byteAt(end - 1)
		m.n, m.digit = 1, digit(c)
	}
	if sp.keep {
		m.from = end
		if sp.seps != nil {
			m.stage = between
		}
	}
}

// afterWord reports whether the byte before a position is a letter or digit,
// other than that of an escape such as \n.
func (s *Stream) afterWord(at int64) bool {
	c, ok := s.byteAt(at - 1)
	if !ok || !alnum[c] {
		return false
	}
	if b, ok := s.byteAt(at - 2); ok && b == '\\' && (c == 'n' || c == 'r' || c == 't') {
		return false
	}
	return true
}

// advance gives a byte and its position to the machine of a spec.
func (s *Stream) advance(i uint8, c byte, at int64) {
	sp, m := &specs[i], &s.machines[i]
	switch sp.kind {
	case run:
		s.advanceRun(i, sp, m, c, at)
	case jwt:
		s.advanceJWT(i, sp, m, c, at)
	case pem:
		s.advancePEM(i, m, c, at)
	}
}

func (s *Stream) advanceRun(i uint8, sp *spec, m *machine, c byte, at int64) {
	switch m.stage {
	case between:
		if sp.seps[c] && m.n < maxSeps {
			m.n++
			m.from = at + 1
			return
		}
		if sp.must && m.n == 0 {
			s.stop(i)
			return
		}
		m.stage, m.n = body, 0
		fallthrough
	case body:
		if !sp.class[c] {
			s.stop(i)
			return
		}
		m.n++
		m.digit = m.digit || digit(c)
		if m.n >= sp.min && (!sp.digit || m.digit || m.n >= 2*sp.min) {
			m.stage = covering
		}
	case covering:
		if !sp.class[c] {
			s.cover(i, at)
		}
	}
}

func (s *Stream) advanceJWT(i uint8, sp *spec, m *machine, c byte, at int64) {
	switch m.stage {
	case body:
		switch {
		case sp.class[c]:
			if m.n++; m.n > maxHeader { // only the end of a run so long can be a token's
				m.from++
			}
		case c == '.' && m.n >= minPart:
			m.stage, m.n = dot, 0
		default:
			s.stop(i)
		}
	case dot:
		if !sp.class[c] {
			s.stop(i)
		} else if m.n++; m.n == minPart {
			m.stage, m.n = covering, 0
		}
	case covering:
		if c == '.' && m.n < 3 {
			m.n++
		} else if !sp.class[c] {
			s.cover(i, at)
		}
	}
}

func (s *Stream) advancePEM(i uint8, m *machine, c byte, at int64) {
	m.n++
	switch m.stage {
	case body: // the label, and the dashes after it
		switch {
		case m.n > maxLabel:
			s.stop(i)
		case m.k < len(privateKey):
			switch {
			case c == privateKey[m.k]:
				m.k++
			case c == ' ' || upper[c]:
				m.k = 0
				if c == privateKey[0] {
					m.k = 1
				}
			default:
				s.stop(i)
			}
		case c == '-':
			if m.k++; m.k == len(privateKey)+5 {
				m.stage, m.n, m.k = covering, 0, 0
			}
		case m.k > len(privateKey) || c != ' ' && !upper[c]: // "BLOCK" may follow
			s.stop(i)
		}
	case covering:
		const end = "-----END "
		switch {
		case m.n > maxBlock || c >= 0x7f || c < ' ' && bytes.IndexByte([]byte("\t\r\n"), c) < 0:
			s.cover(i, at)
		case c == end[m.k]:
			if m.k++; m.k == len(end) {
				m.stage, m.n, m.k = closing, 0, 0
			}
		case c != '-':
			m.k = 0
		case m.k != 5: // of a longer row of dashes the last five count
			m.k = 1
		}
	case closing: // through the label and five dashes
		switch {
		case c == '-':
			if m.k++; m.k == 5 {
				s.cover(i, at+1)
			}
		case m.k > 0 || m.n > maxLabel || c != ' ' && !alnum[c]:
			s.cover(i, at)
		}
	}
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// stop ends a machine that found nothing.
func (s *Stream) stop(i uint8) { s.live &^= 1 << i }

// cover ends a machine that found something, which ends before a position.
func (s *Stream) cover(i uint8, end int64) {
	s.add(span{s.machines[i].from, end, i + 1})
	s.stop(i)
}
