package noderpc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/remote"
)

// decoding takes strings that are not UTF-8: paths, arguments and variables are bytes.
var encoding, decoding = func() (cbor.UserBufferEncMode, cbor.DecMode) {
	e, err := cbor.EncOptions{Time: cbor.TimeRFC3339Nano, OmitEmpty: cbor.OmitEmptyGoValue}.UserBufferEncMode()
	if err != nil {
		panic(err)
	}
	d, err := cbor.DecOptions{
		UTF8: cbor.UTF8DecodeInvalid, MaxArrayElements: 128 << 10, MaxMapPairs: 16 << 10, MaxNestedLevels: 24,
		IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden, DupMapKey: cbor.DupMapKeyEnforcedAPF,
	}.DecMode()
	if err != nil {
		panic(err)
	}
	return e, d
}()

// target says which object a request calls.
type target uint8

const (
	toNode target = iota
	toHandle
	toGuest
	toContexts
	toClient // what the server keeps for the client
)

// request begins a call.
type request struct {
	Target  target            `cbor:"1,keyasint,omitempty"`
	Handle  uint64            `cbor:"2,keyasint,omitempty"`
	Method  string            `cbor:"3,keyasint"`
	Args    []cbor.RawMessage `cbor:"4,keyasint"`
	Timeout time.Duration     `cbor:"5,keyasint,omitempty"` // until the caller's deadline; 0 for none
	After   uint64            `cbor:"6,keyasint,omitempty"` // the last notice before the call
	Push    bool              `cbor:"7,keyasint,omitempty"` // the upload begins without a grant of credit
}

// outgoing is request for encoding in one pass.
type outgoing struct {
	Target  target        `cbor:"1,keyasint,omitempty"`
	Handle  uint64        `cbor:"2,keyasint,omitempty"`
	Method  string        `cbor:"3,keyasint"`
	Args    []any         `cbor:"4,keyasint"`
	Timeout time.Duration `cbor:"5,keyasint,omitempty"`
	After   uint64        `cbor:"6,keyasint,omitempty"`
	Push    bool          `cbor:"7,keyasint,omitempty"`
}

// message is every message after a request, in both directions.
type message struct {
	Answer  bool              `cbor:"1,keyasint,omitempty"`
	Results []cbor.RawMessage `cbor:"2,keyasint,omitempty"`
	Err     *remote.Failure   `cbor:"3,keyasint,omitempty"` // of an answer, a stream, or the caller's reader or sink

	Credit int64              `cbor:"4,keyasint,omitempty"` // to the client: bytes that it may upload
	Event  *codecontext.Event `cbor:"5,keyasint,omitempty"`
	Sunk   bool               `cbor:"6,keyasint,omitempty"` // to the server: the sink has received an event
	Cancel *remote.Failure    `cbor:"7,keyasint,omitempty"` // to the server: why the caller cancels

	Number  uint64         `cbor:"8,keyasint,omitempty"` // of a piece of output
	Chunk   *process.Chunk `cbor:"9,keyasint,omitempty"`
	Exit    *process.Exit  `cbor:"10,keyasint,omitempty"`
	Ack     uint64         `cbor:"11,keyasint,omitempty"` // to the server: a piece of output; to the client: a notice
	Next    bool           `cbor:"12,keyasint,omitempty"`
	Enough  bool           `cbor:"13,keyasint,omitempty"`
	Changed *file.Event    `cbor:"14,keyasint,omitempty"`
	Counts  *file.Counts   `cbor:"15,keyasint,omitempty"`

	Notice *notice `cbor:"16,keyasint,omitempty"` // on the control stream
	Ended  uint64  `cbor:"17,keyasint,omitempty"` // on the control stream: the sandbox of a handle has ended
}

// answer is message for encoding an answer in one pass.
type answer struct {
	Answer  bool            `cbor:"1,keyasint,omitempty"`
	Results []any           `cbor:"2,keyasint,omitempty"`
	Err     *remote.Failure `cbor:"3,keyasint,omitempty"`
}

// notice tells the server something without waiting for an answer.
type notice struct {
	Seq     uint64 `cbor:"1,keyasint"`
	Handle  uint64 `cbor:"2,keyasint,omitempty"`
	Bytes   int64  `cbor:"3,keyasint,omitempty"`
	Close   bool   `cbor:"4,keyasint,omitempty"`
	Goodbye bool   `cbor:"5,keyasint,omitempty"`
	Output  uint64 `cbor:"6,keyasint,omitempty"` // close it, or keep it without a call that reads it
}

// Kinds of frames.
const (
	frameMore    = 1 + iota // a message continues in the next frame
	frameLast               // the rest of a message
	frameData               // bytes
	frameEnd                // no more bytes follow
	frameNothing            // checks that the stream exists
)

const headerSize = 4

func putHeader(b []byte, kind byte, size int) {
	binary.BigEndian.PutUint32(b, uint32(kind)<<24|uint32(size))
}

// link sends and receives the frames of one stream. One goroutine at a time receives; any may send.
type link struct {
	conn  net.Conn
	limit int           // bytes of a received message
	max   int           // bytes of a sent message
	held  *atomic.Int64 // bytes of large messages over all links of a connection; nil for no limit
	mine  int64         // this link's part of held

	mu  sync.Mutex   // held by senders
	out bytes.Buffer // guarded by mu

	in []byte
}

func newLink(conn net.Conn, limit, maxSent int, held *atomic.Int64) *link {
	return &link{conn: conn, limit: limit, max: maxSent, held: held}
}

// errEncode says that a message was not sent, and that the stream is intact.
var errEncode = errors.New("cannot encode a message")

// close ends the stream in both directions.
func (l *link) close() {
	_ = l.conn.SetReadDeadline(time.Unix(1, 0)) // closing a yamux stream does not end its reads
	l.conn.Close()
}

// release gives up the memory of the last message. Only the receiver calls it.
func (l *link) release() {
	if l.held != nil {
		l.held.Add(-l.mine)
		l.mine = 0
	}
}

// send sends a message.
func (l *link) send(v any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out.Reset()
	l.out.Write(make([]byte, headerSize))
	if err := encoding.MarshalToBuffer(v, &l.out); err != nil {
		return fmt.Errorf("%w: %w", errEncode, err)
	}
	defer func() {
		if l.out.Cap() > fragment {
			l.out = bytes.Buffer{}
		}
	}()
	b := l.out.Bytes()
	if len(b) > l.max {
		return fmt.Errorf("%w: it has %d bytes, more than %d", errEncode, len(b), l.max)
	}
	for ; len(b) > headerSize+fragment; b = b[fragment:] {
		putHeader(b, frameMore, fragment)
		if _, err := l.conn.Write(b[:headerSize+fragment]); err != nil {
			return err
		}
	}
	putHeader(b, frameLast, len(b)-headerSize)
	_, err := l.conn.Write(b)
	return err
}

// sendData sends data, of at most maxFrame bytes.
func (l *link) sendData(data []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out.Reset()
	l.out.Write(make([]byte, headerSize))
	l.out.Write(data)
	putHeader(l.out.Bytes(), frameData, len(data))
	_, err := l.conn.Write(l.out.Bytes())
	return err
}

// sendEmpty sends a frame without a body.
func (l *link) sendEmpty(kind byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b [headerSize]byte
	putHeader(b[:], kind, 0)
	_, err := l.conn.Write(b[:])
	return err
}

// header receives the start of a frame.
func (l *link) header() (kind byte, size int, err error) {
	var b [headerSize]byte
	if _, err := io.ReadFull(l.conn, b[:]); err != nil {
		return 0, 0, err
	}
	return parseHeader(b)
}

func parseHeader(b [headerSize]byte) (kind byte, size int, err error) {
	kind, size = b[0], int(binary.BigEndian.Uint32(b[:])&0xffffff)
	if kind < frameMore || kind > frameNothing || size > maxFrame || kind >= frameEnd && size > 0 {
		return 0, 0, fmt.Errorf("%w: a frame of kind %d and %d bytes", errProtocol, kind, size)
	}
	return kind, size, nil
}

// receive returns the next data, end or message. The body is valid until the next receive.
func (l *link) receive() (kind byte, body []byte, err error) {
	l.release()
	if cap(l.in) > piece+headerSize {
		l.in = nil
	}
	l.in = l.in[:0]
	for {
		kind, size, err := l.header()
		switch {
		case err != nil:
			return 0, nil, err
		case kind == frameNothing && len(l.in) == 0:
			continue
		case len(l.in) > 0 && kind > frameLast, kind == frameMore && size == 0, len(l.in)+size > l.limit:
			return 0, nil, fmt.Errorf("%w: a frame of kind %d and %d bytes after %d bytes", errProtocol, kind, size, len(l.in))
		}
		if err := l.body(size); err != nil {
			return 0, nil, err
		}
		if kind != frameMore {
			return kind, l.in, nil
		}
	}
}

// body appends size bytes to l.in. It allocates in proportion to what has arrived.
func (l *link) body(size int) error {
	for size > 0 {
		n := min(size, max(piece, len(l.in)))
		if l.held != nil && len(l.in)+n > piece {
			l.mine += int64(n)
			if l.held.Add(int64(n)) > maxReceived {
				return fmt.Errorf("%w: %d bytes of large messages at once", errProtocol, maxReceived)
			}
		}
		at := len(l.in)
		l.in = slices.Grow(l.in, n)[:at+n]
		if _, err := io.ReadFull(l.conn, l.in[at:]); err != nil {
			return err
		}
		size -= n
	}
	return nil
}

// message receives a message and nothing else.
func (l *link) message() (m message, err error) {
	kind, body, err := l.receive()
	if err != nil {
		return m, err
	}
	if kind != frameLast {
		return m, fmt.Errorf("%w: a frame of kind %d instead of a message", errProtocol, kind)
	}
	return m, decodeMessage(body, &m)
}

func decodeMessage(body []byte, v any) error {
	if err := decoding.Unmarshal(body, v); err != nil {
		return fmt.Errorf("%w: %w", errProtocol, err)
	}
	return nil
}
