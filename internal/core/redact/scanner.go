package redact

import "encoding/binary"

// scanner passes over text in which nothing can begin. It knows the first four
// bytes of everything that is looked for, as three pairs, and looks at every
// third pair of the text: wherever something begins, one of its own is hit.
type scanner struct {
	// pairs has for two bytes in a row bit 0 when something begins with them, bit
	// 1 when they are its second and third, bit 2 when its third and fourth.
	pairs [1 << 16]uint8
}

// window is how much of everything the scanner knows; nothing is shorter.
const window = 4

// add makes a text one that is looked for.
func (s *scanner) add(text string) {
	for i := range window - 1 {
		s.pairs[uint16(text[i])|uint16(text[i+1])<<8] |= 1 << i
	}
}

// next returns the first place from i on where something may begin, or, when
// there is none, the first that is too near the end to tell.
func (s *scanner) next(p []byte, i int) int {
	j := i + window - 2 // looking at j tells about j-2, j-1 and j
	for ; j+window <= len(p); j += window - 1 {
		v := s.pairs[binary.LittleEndian.Uint16(p[j:])]
		if v == 0 {
			continue
		}
		for k := window - 2; k >= 0; k-- {
			if v&(1<<k) != 0 && s.may(p, j-k) {
				return j - k
			}
		}
	}
	return j - (window - 2)
}

// may reports whether all pairs at a place are of the right kind.
func (s *scanner) may(p []byte, i int) bool {
	v := binary.LittleEndian.Uint32(p[i:])
	return s.pairs[uint16(v)]&1 != 0 && s.pairs[uint16(v>>8)]&2 != 0 && s.pairs[uint16(v>>16)]&4 != 0
}
