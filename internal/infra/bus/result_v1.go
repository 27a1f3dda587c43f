package bus

import (
	"encoding/binary"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
)

// Until version 3 of the bus, messages were fields one after the other, without
// names. The Results of that format which are stored when a server is upgraded are
// read here; nothing writes it any more. testdata/result.v1 is one of them.

// decoder reads that format. After the first field that cannot be right it returns
// zeros, and err returns the error.
type decoder struct {
	b   []byte
	bad bool
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

// count reads how many things follow that take at least size bytes each, so that a
// wrong number cannot cost memory.
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

// readResultV1 reads a Result. Those of versions without threads or without traffic
// end where these would begin.
func readResultV1(d *decoder) (r execution.Result) {
	r.TraceID = d.str()
	r.Status = execution.Status(d.str())
	r.ExitCode = int(d.int())
	r.Error = d.str()
	r.NotStarted = d.bool()
	r.Kind = fault.Kind(d.byte())
	r.Stdout = d.bytes()
	r.Stderr = d.bytes()
	r.StdoutBytes = d.int()
	r.StderrBytes = d.int()
	r.StdoutTruncated = d.bool()
	r.StderrTruncated = d.bool()
	r.Stored = d.bool()
	r.OutputTruncated = d.bool()
	r.LastSeq = d.int()
	r.StartedAt = d.time()
	r.CompletedAt = d.time()
	r.PeakMemory = d.int()
	warm := d.bool()
	if !r.NotStarted {
		r.Start = execution.StartOf(warm)
	}
	r.Reused = d.bool()
	if len(d.b) > 0 && d.bool() {
		r.Thread = &execution.ThreadState{State: d.str(), Bytes: d.int(), Files: d.int()}
	}
	if len(d.b) == 0 {
		return r
	}
	t := &r.Traffic
	t.BytesIn, t.BytesOut, t.Hosts = d.int(), d.int(), d.strs()
	for range d.count(3) {
		t.Refused = append(t.Refused, execution.Refusal{Host: d.str(), Port: uint16(d.uint()), Rule: d.str()})
	}
	return r
}
