package daemon

// ring is the last of what a process wrote, all streams in the order in which it
// was read.
type ring struct {
	pieces []piece
	first  int64 // where what is kept begins
	last   int64 // where it ends
	cost   int   // memory of what is kept, in bytes
}

type piece struct {
	stream uint8
	at     int64
	data   []byte
}

const (
	ringSize   = 1 << 20  // cost of one process
	ringsSize  = 16 << 20 // of all
	pieceSize  = 16 << 10 // bytes of one piece at most, so that dropping is fine enough
	pieceExtra = 64       // memory that a piece takes beside its data
)

// add keeps data, and returns by how much the cost grew.
func (r *ring) add(stream uint8, data []byte) (grown int) {
	before := r.cost
	for len(data) > 0 {
		if n := len(r.pieces); n > 0 && r.pieces[n-1].stream == stream {
			p := &r.pieces[n-1]
			if room := min(cap(p.data)-len(p.data), len(data)); room > 0 {
				p.data = append(p.data, data[:room]...)
				data = data[room:]
				r.last += int64(room)
				continue
			}
		}
		size := min(max(len(data), min(2*r.tail(stream), pieceSize), 64), pieceSize)
		r.pieces = append(r.pieces, piece{stream: stream, at: r.last, data: make([]byte, 0, size)})
		r.cost += size + pieceExtra
	}
	return r.cost - before
}

// tail is the size of the last piece, if it is of the stream: what is written on
// grows, what comes in turns does not.
func (r *ring) tail(stream uint8) int {
	if n := len(r.pieces); n > 0 && r.pieces[n-1].stream == stream {
		return cap(r.pieces[n-1].data)
	}
	return 0
}

// trim drops the oldest pieces until the cost is at most that, but nothing from
// keep on, and returns by how much the cost fell.
func (r *ring) trim(cost int, keep int64) (fallen int) {
	n := 0
	for n < len(r.pieces) && r.cost > cost {
		p := r.pieces[n]
		if p.at+int64(len(p.data)) > keep {
			break
		}
		r.cost -= cap(p.data) + pieceExtra
		fallen += cap(p.data) + pieceExtra
		n++
	}
	if n == 0 {
		return 0
	}
	r.pieces = append(r.pieces[:0], r.pieces[n:]...)
	r.first = r.last
	if len(r.pieces) > 0 {
		r.first = r.pieces[0].at
	}
	return fallen
}

// from returns the piece at a place, or the first after it, from there on.
func (r *ring) from(at int64) (p piece, ok bool) {
	lo, hi := 0, len(r.pieces)
	for lo < hi {
		m := (lo + hi) / 2
		if q := r.pieces[m]; q.at+int64(len(q.data)) <= at {
			lo = m + 1
		} else {
			hi = m
		}
	}
	if lo == len(r.pieces) {
		return piece{}, false
	}
	p = r.pieces[lo]
	if p.at < at {
		p.data, p.at = p.data[at-p.at:], at
	}
	return p, true
}
