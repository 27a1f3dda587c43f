package wire

import "encoding/binary"

// Integers are unsigned varints, strings and byte strings carry their length
// before them, and lists their count.

func putUint(b []byte, v uint64) []byte { return binary.AppendUvarint(b, v) }

func putBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func putString[T string | []byte](b []byte, s T) []byte {
	return append(putUint(b, uint64(len(s))), s...)
}

func putList(b []byte, list []string) []byte {
	b = putUint(b, uint64(len(list)))
	for _, s := range list {
		b = putString(b, s)
	}
	return b
}

// reader takes values off a payload. After the first that is not there, every
// further one is zero and bad is set.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.b, r.bad = nil, true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) bool() bool { return r.uint() != 0 }

// bytes returns a slice of the payload itself.
func (r *reader) bytes() []byte {
	n := r.uint()
	if n > uint64(len(r.b)) {
		r.b, r.bad = nil, true
		return nil
	}
	s := r.b[:n:n]
	r.b = r.b[n:]
	return s
}

func (r *reader) string() string { return string(r.bytes()) }

// count returns the length of a list whose elements take at least one byte
// each, so that it never exceeds what is there.
func (r *reader) count() int {
	n := r.uint()
	if n > uint64(len(r.b)) {
		r.b, r.bad = nil, true
		return 0
	}
	return int(n)
}

func (r *reader) list() []string {
	n := r.count()
	if n == 0 {
		return nil
	}
	list := make([]string, 0, min(n, 256))
	for range n {
		list = append(list, r.string())
		if r.bad {
			return nil
		}
	}
	return list
}

// done reports whether the payload was whole and nothing is left over.
func (r *reader) done() bool { return !r.bad && len(r.b) == 0 }
