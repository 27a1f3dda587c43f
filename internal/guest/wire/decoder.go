package wire

import (
	"bytes"
	"hash/crc32"
)

// Decoder cuts a byte stream into frames. The caller reads into Space, tells
// Advance how much came, and takes frames with Next until there are no more.
// Its memory is fixed; no length in the stream makes it larger.
type Decoder struct {
	buf  []byte
	r, w int
	max  int // longest payload taken

	nonce   uint64
	seeking bool

	// Lost counts the bytes that belonged to no valid frame.
	Lost int64
}

// NewDecoder returns a Decoder for frames with payloads of up to max bytes.
func NewDecoder(max int) *Decoder {
	return &Decoder{buf: make([]byte, 2*(max+HeaderSize)), max: max}
}

// Seek makes Next pass over everything up to the Welcome that answers nonce.
// What an earlier host left half read may hold anything, forged frames of the
// program's own output included; only the nonce proves where frames begin.
func (d *Decoder) Seek(nonce uint64) { d.nonce, d.seeking = nonce, true }

// Space returns where the next bytes go. It is never empty after Next has
// returned false.
func (d *Decoder) Space() []byte {
	if d.r == d.w {
		d.r, d.w = 0, 0
	} else if d.r > 0 && len(d.buf)-d.w < d.max {
		d.w = copy(d.buf, d.buf[d.r:d.w])
		d.r = 0
	}
	return d.buf[d.w:]
}

// Advance says that n bytes were put into Space.
func (d *Decoder) Advance(n int) { d.w += n }

// Next returns the next frame, false when more bytes are needed.
func (d *Decoder) Next() (Frame, bool) {
	for {
		b := d.buf[d.r:d.w]
		if i := bytes.Index(b, []byte(magic)); i < 0 {
			// Keep what may be the beginning of the next magic.
			d.drop(max(0, len(b)-len(magic)+1))
			return Frame{}, false
		} else if i > 0 {
			d.drop(i)
			b = b[i:]
		}
		if len(b) < HeaderSize {
			return Frame{}, false
		}
		f, n, sum, ok := header(b)
		if !ok || n > uint32(d.max) || d.seeking && (f.Type != Welcome || f.ID != d.nonce) {
			d.drop(1)
			continue
		}
		if len(b) < HeaderSize+int(n) {
			return Frame{}, false
		}
		f.Payload = b[HeaderSize : HeaderSize+int(n)]
		if crc32.Checksum(f.Payload, castagnoli) != sum {
			// The header was whole, so its length is right: what lies within is
			// payload, in which no frame may be looked for.
			d.drop(HeaderSize + int(n))
			continue
		}
		d.r += HeaderSize + int(n)
		d.seeking = false
		return f, true
	}
}

func (d *Decoder) drop(n int) {
	d.r += n
	d.Lost += int64(n)
}
