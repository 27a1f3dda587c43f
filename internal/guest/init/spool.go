package guestinit

import (
	"encoding/binary"

	"github.com/atoll-run/atoll/internal/guest/raw"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// reserve is room beyond wire.Spool that only control frames may use, so that a
// program's output never keeps an exit or an answer out.
const reserve = 64 << 10

// minRead is the least room worth a read from a program's pipe.
const minRead = 4 << 10

// spool keeps frames in the order they were made until the host acknowledges
// them.
type spool struct {
	buf     []byte // buf[acked:] are the frames kept; len(buf) is their end
	acked   int
	sent    int    // first byte not yet written to the host
	seq     uint64 // of the last frame made
	ackSeq  uint64 // of the last frame acknowledged
	control []byte // goes out before anything else: rest of a cut frame, Welcome
}

func (s *spool) pending() bool { return len(s.control) > 0 || s.sent < len(s.buf) }

// room returns how many bytes of output may be put in now, 0 when the spool is
// as good as full.
func (s *spool) room() int {
	n := wire.Spool - (len(s.buf) - s.acked) - wire.HeaderSize - wire.OffsetSize
	if n < minRead {
		return 0
	}
	return min(n, wire.MaxPayload-wire.OffsetSize)
}

// space returns n bytes at the end of the spool, behind those of a header.
func (s *spool) space(n int) []byte {
	need := wire.HeaderSize + n
	if cap(s.buf)-len(s.buf) < need {
		s.shift(need)
	}
	return s.buf[len(s.buf)+wire.HeaderSize : len(s.buf)+need]
}

// shift moves the kept frames to the front, into a larger buffer if need be.
func (s *spool) shift(need int) {
	kept := s.buf[s.acked:]
	to := s.buf[:0]
	if len(kept)+need > cap(s.buf) {
		size := max(8<<10, 2*cap(s.buf))
		for size < len(kept)+need {
			size *= 2
		}
		to = make([]byte, 0, min(size, wire.Spool+reserve))
	}
	s.buf = append(to, kept...)
	s.sent -= s.acked
	s.acked = 0
}

// commit makes a frame of the first n bytes of space.
func (s *spool) commit(t wire.Type, id uint64, n int) {
	at := len(s.buf)
	s.buf = s.buf[:at+wire.HeaderSize+n]
	s.seq++
	wire.PutHeader(s.buf[at:], wire.Frame{Type: t, ID: id, Seq: s.seq}, n)
}

// output makes a frame of a program's output that was read into
// space(OffsetSize+…)[OffsetSize:].
func (s *spool) output(t wire.Type, id, offset uint64, n int) {
	binary.LittleEndian.PutUint64(s.space(wire.OffsetSize), offset)
	s.commit(t, id, wire.OffsetSize+n)
}

// put makes a control frame. A host that leaves so many unacknowledged that the
// reserve is used up loses the newest.
func (s *spool) put(t wire.Type, id uint64, payload []byte) {
	if len(s.buf)-s.acked+wire.HeaderSize+len(payload) > wire.Spool+reserve {
		return
	}
	copy(s.space(len(payload)), payload)
	s.commit(t, id, len(payload))
}

// ack forgets the frames up to seq.
func (s *spool) ack(seq uint64) {
	if seq <= s.ackSeq || seq > s.seq {
		return
	}
	for s.acked < len(s.buf) {
		n, have := wire.Size(s.buf[s.acked:])
		if have > seq {
			break
		}
		if end := s.acked + n; s.sent < end {
			s.restart(end)
		}
		s.acked += n
	}
	s.ackSeq = seq
	if s.acked == len(s.buf) {
		s.buf, s.acked, s.sent = s.buf[:0], 0, 0
	}
}

// restart makes the frame at offset to the next one sent. A frame that was cut
// goes out whole first: its head may already be in the FIFO.
func (s *spool) restart(to int) {
	for at := s.acked; at < s.sent; {
		n, _ := wire.Size(s.buf[at:])
		if at+n > s.sent {
			s.control = append(s.control, s.buf[s.sent:at+n]...)
		}
		at += n
	}
	s.sent = to
}

// ended appends the runs whose last frame is kept.
func (s *spool) ended(ids []uint64) []uint64 {
	for at := s.acked; at < len(s.buf); {
		if t, id := wire.Peek(s.buf[at:]); t == wire.Exit || t == wire.Refused {
			ids = append(ids, id)
		}
		n, _ := wire.Size(s.buf[at:])
		at += n
	}
	return ids
}

// welcome answers a Hello and starts again from the last acknowledged frame.
func (s *spool) welcome(nonce uint64, payload []byte) {
	if len(s.control) > reserve {
		return // no host reads; it asks again
	}
	s.restart(s.acked)
	s.control = wire.AppendFrame(s.control, wire.Frame{Type: wire.Welcome, ID: nonce, Seq: s.ackSeq, Payload: payload})
}

// flush writes what the FIFO takes.
func (s *spool) flush(fd int) {
	for len(s.control) > 0 {
		n, err := raw.Write(fd, s.control)
		if err != nil {
			return // EAGAIN: the FIFO is full
		}
		if s.control = s.control[n:]; len(s.control) == 0 {
			s.control = nil
		}
	}
	for s.sent < len(s.buf) {
		n, err := raw.Write(fd, s.buf[s.sent:])
		if err != nil {
			return
		}
		s.sent += n
	}
}
