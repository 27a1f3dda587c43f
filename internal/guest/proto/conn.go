// Package proto is the format in which a host and the guest daemon of a sandbox
// speak, shared by both ends: frames on a Unix socket, and the messages in them.
//
// The guest daemon of a running sandbox may be older or newer than its host, so
// messages are JSON and fields are only ever added. Neither end trusts a length.
package proto

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Version is that of the conversation; both ends say theirs and go on by the lower.
const Version = 1

// Type says what a frame holds.
type Type uint8

// Frames from the guest daemon. Hello is the first on every connection.
const (
	Hello  Type = iota + 1 // Greeting
	Answer                 // Reply
	Output                 // OutputSize bytes, then output of a process
	Change                 // a list of Changes
)

// Frames of either end.
const (
	Data Type = iota + 0x40 // bytes
	End                     // the last of an exchange, or of what is sent: Closing
)

// Frames from the host. More and Leave are for the first connection.
const (
	Ask    Type = iota + 0x80 // Request
	Taken                     // the end of a process was taken and may be forgotten
	More                      // Wanted
	Leave                     // close all
	Enough                    // no more output is wanted of what Converse follows; comes once
)

const (
	// HeaderSize is the length of a frame's header: the length of what follows in
	// four bytes, the lowest first, and the type.
	HeaderSize = 5
	// MaxHead bounds a frame of JSON.
	MaxHead = 8 << 20
	// MaxData bounds a frame of bytes.
	MaxData = 1 << 20
	// Piece is how many bytes a frame has where there are enough.
	Piece = 128 << 10
)

// ErrFormat says that what was read is no frame, or none that fits.
var ErrFormat = errors.New("not the format of the conversation")

// Transport is the connection under a Conn.
type Transport interface {
	io.ReadWriteCloser
	SetReadDeadline(time.Time) error
}

// Conn reads and writes frames. One goroutine may read while another writes.
type Conn struct {
	Transport
	r    *bufio.Reader
	left int    // bytes of the frame that were not read
	text []byte // what Payload returned
	w    []byte // frames that were not sent
}

// NewConn returns a Conn. size is that of its buffer for reading.
func NewConn(t Transport, size int) *Conn {
	return &Conn{Transport: t, r: bufio.NewReaderSize(t, size)}
}

// Next returns the type of the next frame, and passes over what is left of the
// one before.
func (c *Conn) Next() (Type, error) {
	if c.left > 0 {
		n, err := c.r.Discard(c.left)
		c.left -= n
		if err != nil {
			return 0, err
		}
	}
	head, err := c.r.Peek(HeaderSize)
	if err != nil {
		if err == io.EOF && len(head) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return 0, err
	}
	n, t := binary.LittleEndian.Uint32(head), Type(head[4])
	most := uint32(MaxHead)
	if t == Data || t == Output {
		most = MaxData
	}
	if n > most {
		return 0, fmt.Errorf("%w: a frame of %d bytes", ErrFormat, n)
	}
	c.left = int(n)
	_, err = c.r.Discard(HeaderSize)
	return t, err
}

// Waiting reports whether something was read that no frame was made of yet.
func (c *Conn) Waiting() bool { return c.left > 0 || c.r.Buffered() > 0 }

// Left is how many bytes of the frame there are still to be read.
func (c *Conn) Left() int { return c.left }

// Read reads what the frame holds, up to io.EOF at its end.
func (c *Conn) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	n, err := c.r.Read(p[:min(len(p), c.left)])
	c.left -= n
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// Raw reads what comes without frames.
func (c *Conn) Raw(p []byte) (int, error) { return c.r.Read(p) }

// Payload returns what the frame holds; it is valid until the next call. Memory
// is only taken for what comes, not for what was announced.
func (c *Conn) Payload() ([]byte, error) {
	c.text = c.text[:0]
	for c.left > 0 {
		if len(c.text) == cap(c.text) {
			grown := make([]byte, len(c.text), max(512, 2*len(c.text), min(c.left, 64<<10)))
			copy(grown, c.text)
			c.text = grown
		}
		n, err := c.Read(c.text[len(c.text):cap(c.text)])
		c.text = c.text[:len(c.text)+n]
		if err != nil {
			return nil, err
		}
	}
	return c.text, nil
}

// Decode reads the frame's JSON into v.
func (c *Conn) Decode(v any) error {
	text, err := c.Payload()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if cap(c.text) > 1<<20 {
		c.text = nil
	}
	return nil
}

// Space returns n bytes to be filled for a frame, which Commit makes.
func (c *Conn) Space(n int) []byte {
	at := len(c.w) + HeaderSize
	if cap(c.w) < at+n {
		grown := make([]byte, len(c.w), at+n)
		copy(grown, c.w)
		c.w = grown
	}
	return c.w[at : at+n]
}

// Commit makes a frame of the first n bytes of the last Space.
func (c *Conn) Commit(t Type, n int) {
	at := len(c.w)
	c.w = c.w[:at+HeaderSize+n]
	binary.LittleEndian.PutUint32(c.w[at:], uint32(n))
	c.w[at+4] = byte(t)
}

// Put adds a frame to those that Flush sends.
func (c *Conn) Put(t Type, payload []byte) {
	copy(c.Space(len(payload)), payload)
	c.Commit(t, len(payload))
}

// Encode adds a frame of JSON to those that Flush sends.
func (c *Conn) Encode(t Type, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(text) > MaxHead {
		return fmt.Errorf("%w: a message of %d bytes", ErrFormat, len(text))
	}
	c.Put(t, text)
	return nil
}

// Pending is how many bytes Flush would send.
func (c *Conn) Pending() int { return len(c.w) }

// Flush sends what was put.
func (c *Conn) Flush() error {
	if len(c.w) == 0 {
		return nil
	}
	_, err := c.Transport.Write(c.w)
	if c.w = c.w[:0]; cap(c.w) > 2*MaxData {
		c.w = nil
	}
	return err
}

// Copy sends what r has as frames of Data, without the End. An error of r is
// returned as a *ReadError.
func (c *Conn) Copy(r io.Reader) (total int64, err error) {
	for {
		n, err := r.Read(c.Space(Piece))
		if n > 0 {
			c.Commit(Data, n)
			total += int64(n)
		}
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, &ReadError{err}
		}
		if c.Pending() >= Piece/2 {
			if err := c.Flush(); err != nil {
				return total, err
			}
		}
	}
}

// ReadError is why what was to be sent could not be read.
type ReadError struct{ Err error }

func (e *ReadError) Error() string { return e.Err.Error() }

func (e *ReadError) Unwrap() error { return e.Err }

// Content reads the frames of Data that come, up to the End, which it keeps.
type Content struct {
	Conn *Conn
	End  Closing
	done bool
	err  error
}

func (b *Content) Read(p []byte) (int, error) {
	for len(p) > 0 {
		if b.err != nil {
			return 0, b.err
		}
		if n, err := b.Conn.Read(p); n > 0 || err != io.EOF {
			if err == io.EOF {
				err = nil
			}
			if err != nil {
				b.err = err
			}
			return n, err
		}
		t, err := b.Conn.Next()
		switch {
		case err == io.EOF:
			b.err = io.ErrUnexpectedEOF
		case err != nil:
			b.err = err
		case t == End:
			if b.err = b.Conn.Decode(&b.End); b.err == nil {
				b.done, b.err = true, io.EOF
			}
		case t != Data || b.Conn.left == 0:
			b.err = fmt.Errorf("%w: a frame of type %d, %d bytes long, where content follows", ErrFormat, t, b.Conn.left)
		}
	}
	return 0, nil
}

// Done reports whether the End was read.
func (b *Content) Done() bool { return b.done }

// Await returns when there is something to read, or nothing to be expected.
func (c *Conn) Await() error {
	_, err := c.r.Peek(1)
	return err
}
