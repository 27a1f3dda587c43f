package redact

// Tools break base64 and hexadecimal digits into lines, of 76, 64 or 60
// characters. A secret's own are found nevertheless: once enough of a form has
// come, the automaton stays where it is over a line end, written as one or as
// its escape in a string. Where that was is remembered, since what is found
// takes more bytes than its form has.

// maxPassed is how many bytes are passed over in a row, as many as "\\r\\n" has.
const maxPassed = 4

// passOver reports whether a byte is part of a line end within a form that
// wraps, of which everything up to a node has come.
func (s *Stream) passOver(n *node, c byte, at int64) bool {
	inRow := 0
	for i := len(s.passed) - 1; i >= 0 && s.passed[i] == at-1-int64(inRow); i-- {
		inRow++
	}
	if inRow == maxPassed {
		return false
	}
	switch c {
	case '\n', '\r', '\\':
	case 'n', 'r':
		if inRow == 0 {
			return false
		}
		if before, _ := s.byteAt(at - 1); before != '\\' {
			return false
		}
	default:
		return false
	}
	s.passed = append(s.passed, at)
	return true
}

// start returns where the last n bytes before end begin, without those that
// were passed over.
func (s *Stream) start(end int64, n int32) int64 {
	start := end - int64(n)
	for i := len(s.passed) - 1; i >= 0 && s.passed[i] >= start; i-- {
		start--
	}
	return start
}

// forget drops what was passed over before the beginning of what led to state.
func (s *Stream) forget(end int64) {
	start := s.start(end, s.auto.nodes[s.state].depth)
	drop := 0
	for drop < len(s.passed) && s.passed[drop] < start {
		drop++
	}
	s.passed = s.passed[:copy(s.passed, s.passed[drop:])]
}
