package bus

import (
	"encoding/binary"
	"errors"
	"math"
	"time"
)

// Messages are a version, then fields one after the other, without names: code
// of a megabyte would cost ten times as much as JSON. Within a version fields
// are only ever added at the end, where an older reader ignores them; a newer
// one must take their absence for zero.
const version = 1

var errMessage = errors.New("a message on the bus cannot be understood")

type encoder struct{ b []byte }

func newEncoder(size int) *encoder {
	e := &encoder{b: make([]byte, 0, size)}
	e.byte(version)
	return e
}

func (e *encoder) byte(v byte)     { e.b = append(e.b, v) }
func (e *encoder) uint(v uint64)   { e.b = binary.AppendUvarint(e.b, v) }
func (e *encoder) int(v int64)     { e.b = binary.AppendVarint(e.b, v) }
func (e *encoder) bytes(v []byte)  { e.uint(uint64(len(v))); e.b = append(e.b, v...) }
func (e *encoder) str(v string)    { e.uint(uint64(len(v))); e.b = append(e.b, v...) }
func (e *encoder) float(v float64) { e.b = binary.LittleEndian.AppendUint64(e.b, math.Float64bits(v)) }

func (e *encoder) bool(v bool) {
	if v {
		e.byte(1)
	} else {
		e.byte(0)
	}
}

func (e *encoder) time(t time.Time) {
	e.bool(!t.IsZero())
	if !t.IsZero() {
		e.int(t.Unix())
		e.uint(uint64(t.Nanosecond()))
	}
}

func (e *encoder) strs(v []string) {
	e.uint(uint64(len(v)))
	for _, s := range v {
		e.str(s)
	}
}

func (e *encoder) strMap(m map[string]string) {
	e.uint(uint64(len(m)))
	for k, v := range m {
		e.str(k)
		e.str(v)
	}
}

// decoder reads what encoder wrote. After the first thing that cannot be it
// gives zeros, and err says so.
type decoder struct {
	b   []byte
	bad bool
}

func newDecoder(b []byte) *decoder {
	d := &decoder{b: b}
	if d.byte() != version {
		d.fail()
	}
	return d
}

func (d *decoder) fail() { d.b, d.bad = nil, true }

func (d *decoder) err() error {
	if d.bad {
		return errMessage
	}
	return nil
}

// take returns the next n bytes, which stay part of the message.
func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.fail()
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) byte() byte {
	if v := d.take(1); len(v) == 1 {
		return v[0]
	}
	return 0
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) bytes() []byte {
	if v := d.take(d.uint()); len(v) > 0 {
		return v
	}
	return nil
}

func (d *decoder) str() string { return string(d.take(d.uint())) }

func (d *decoder) float() float64 {
	if v := d.take(8); len(v) == 8 {
		return math.Float64frombits(binary.LittleEndian.Uint64(v))
	}
	return 0
}

func (d *decoder) bool() bool {
	v := d.byte()
	if v > 1 {
		d.fail()
	}
	return v == 1
}

func (d *decoder) time() time.Time {
	if !d.bool() {
		return time.Time{}
	}
	s, n := d.int(), d.uint()
	if n >= uint64(time.Second) {
		d.fail()
		return time.Time{}
	}
	return time.Unix(s, int64(n)).UTC()
}

// count reads how many things follow that take at least size bytes each, so
// that a lie cannot make anybody allocate for it.
func (d *decoder) count(size uint64) int {
	n := d.uint()
	if n > uint64(len(d.b))/size {
		d.fail()
		return 0
	}
	return int(n)
}

func (d *decoder) strs() []string {
	n := d.count(1)
	if n == 0 {
		return nil
	}
	v := make([]string, 0, n)
	for range n {
		v = append(v, d.str())
	}
	return v
}

func (d *decoder) strMap() map[string]string {
	n := d.count(2)
	if n == 0 {
		return nil
	}
	m := make(map[string]string, n)
	for range n {
		k := d.str()
		m[k] = d.str()
	}
	return m
}
