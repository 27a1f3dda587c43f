package records

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
)

// The journal's file is a sequence of frames:
//
//	magic (4 bytes) · length n (4) · CRC-32C (4) · kind (1) · number (8) · payload (n-9)
//
// Integers are little-endian. The length and the checksum cover kind, number and payload.

type kind byte

const (
	header  kind = 'h' // payload: headerJSON
	kept    kind = 'k' // payload: a record, see sandbox.EncodeRecord. It replaces an earlier one
	dropped kind = 'd' // payload: the id of a record that is no longer kept
	asked   kind = 'a' // payload: the id of a record that a gateway may have changed, see Journal.Wake
	event   kind = 'e' // payload: an event, under its number. It replaces an earlier one of the number
	sent    kind = 's' // the bus stores the events up to a number
)

const (
	magic     = "ATJ1"
	prefix    = len(magic) + 4 + 4
	bodyHead  = 1 + 8
	maxFrame  = 16 << 20 // bytes of kind, number and payload
	minLength = prefix + bodyHead
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// frame is one entry of the file.
type frame struct {
	kind    kind
	seq     uint64 // of event and sent, else 0
	payload []byte
}

func appendFrame(b []byte, f frame) []byte {
	start := len(b)
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint32(b, uint32(bodyHead+len(f.payload)))
	b = append(b, 0, 0, 0, 0)
	b = append(b, byte(f.kind))
	b = binary.LittleEndian.AppendUint64(b, f.seq)
	b = append(b, f.payload...)
	binary.LittleEndian.PutUint32(b[start+len(magic)+4:], crc32.Checksum(b[start+prefix:], castagnoli))
	return b
}

// readFrame reads the frame at the beginning of b. ok is false if b does not begin with a whole one.
func readFrame(b []byte) (f frame, size int, ok bool) {
	if len(b) < minLength || string(b[:len(magic)]) != magic {
		return f, 0, false
	}
	n := binary.LittleEndian.Uint32(b[len(magic):])
	if n < bodyHead || n > maxFrame || int(n) > len(b)-prefix {
		return f, 0, false
	}
	body := b[prefix : prefix+int(n)]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(b[len(magic)+4:]) {
		return f, 0, false
	}
	f = frame{kind(body[0]), binary.LittleEndian.Uint64(body[1:]), body[bodyHead:]}
	return f, prefix + int(n), f.seq <= math.MaxInt64
}

// parsed is the content of a file.
type parsed struct {
	frames []frame
	torn   int // bytes at the end that a crash left of an unfinished write
	bad    int // bytes between frames; none unless the file was damaged
}

// parse reads as much of a file as it can.
func parse(b []byte) (p parsed) {
	for len(b) > 0 {
		f, n, ok := readFrame(b)
		if ok {
			p.frames = append(p.frames, f)
			b = b[n:]
			continue
		}
		next := findFrame(b[1:])
		if next < 0 {
			p.torn = len(b)
			return p
		}
		p.bad += next + 1
		b = b[next+1:]
	}
	return p
}

// findFrame returns the offset of the next whole frame, or -1.
func findFrame(b []byte) int {
	for at := 0; ; {
		i := bytes.Index(b[at:], []byte(magic))
		if i < 0 {
			return -1
		}
		at += i
		if _, _, ok := readFrame(b[at:]); ok {
			return at
		}
		at++
	}
}
