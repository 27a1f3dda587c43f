package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/control/connections"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// MaxBody is the largest request body in bytes: code and variables of the largest size,
// every byte of them written as a \u escape, fit.
const MaxBody = 8 << 20

// bodyTimeout is how long a client may take to send a body.
const bodyTimeout = 30 * time.Second

// maxDiscarded is how many bytes of a body that is too large are read for nothing: many
// clients read no answer before they have sent everything.
const maxDiscarded = 64 << 20

// decode reads the JSON body of a request into a pointer to its wire type.
func (c *Call) decode(into any) error {
	defer c.letGo()
	body, err := c.ReadJSON()
	if err != nil {
		return err
	}
	if err := c.HoldValues(body); err != nil {
		return err
	}
	return wire.Body.Decode(body, into)
}

// ReadJSON reads a body that is JSON. An optional body that was omitted is {}.
func (c *Call) ReadJSON() ([]byte, error) {
	if !c.op.Body.Optional {
		if err := checkContentType(c.R.Header); err != nil {
			return nil, err
		}
		return c.readBody(&wire.Counter{})
	}
	body, err := c.readBody(&wire.Counter{})
	if err != nil {
		return nil, err
	}
	if len(body) == 0 { // which needs no type
		return []byte("{}"), nil
	}
	return body, checkContentType(c.R.Header)
}

// checkContentType refuses what is not plain JSON in UTF-8.
func checkContentType(h http.Header) error {
	if enc := h.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return fault.New(fault.Unsupported, "Content-Encoding must not be set: send the body as it is")
	}
	media, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || media != "application/json" || len(h.Values("Content-Type")) > 1 {
		return fault.New(fault.Unsupported, "Content-Type must be application/json")
	}
	if cs, ok := params["charset"]; ok && !strings.EqualFold(cs, "utf-8") {
		return fault.New(fault.Unsupported, "Content-Type must be application/json in UTF-8")
	}
	return nil
}

// errBodyTime refuses a body that does not come.
var errBodyTime = &ProtocolError{http.StatusRequestTimeout, "request_timeout", fmt.Sprintf("the request body did not arrive within %s", bodyTimeout)}

// limitReading gives the body bodyTimeout to arrive, until over is called.
func (c *Call) limitReading() (over func()) {
	conn := http.NewResponseController(c.W)
	// Not every ResponseWriter has deadlines (those of tests do not); the server's own does.
	if conn.SetReadDeadline(time.Now().Add(bodyTimeout)) != nil {
		return func() {}
	}
	return func() { _ = conn.SetReadDeadline(time.Time{}) }
}

// ReadBody reads a whole request body within MaxBody and bodyTimeout.
func (c *Call) ReadBody() ([]byte, error) { return c.readBody(nil) }

// counting ends a JSON text at the element that is one too many.
type counting struct {
	io.Reader
	json *wire.Counter
}

func (r counting) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if over := r.json.Add(p[:n]); over != nil {
		return 0, Invalid("%s has %s", wire.Body.Noun, over)
	}
	return n, err
}

// readBody is ReadBody for a body whose elements are counted while it comes; json is nil for others.
func (c *Call) readBody(json *wire.Counter) ([]byte, error) {
	r := c.R
	tooLarge := fault.New(fault.TooLarge, "the request body must be at most %d bytes", MaxBody)
	waits := r.Header.Get("Expect") != "" // for our word before it sends
	if r.ContentLength > MaxBody && waits {
		return nil, tooLarge
	}
	defer c.limitReading()()
	if r.ContentLength > MaxBody {
		_, _ = io.CopyN(io.Discard, r.Body, maxDiscarded) // the answer is the same
		return nil, tooLarge
	}
	var buf bytes.Buffer
	from := io.Reader(http.MaxBytesReader(c.W, r.Body, MaxBody))
	if json != nil {
		from = counting{from, json}
	}
	discard := func() {
		if !waits {
			_, _ = io.CopyN(io.Discard, r.Body, maxDiscarded)
		}
	}
	size := r.ContentLength
	if size < 0 { // it is not announced
		size = MaxBody
	}
	buf.Grow(int(min(size, connections.FreeBytes)) + bytes.MinRead)
	_, err := io.CopyN(&buf, from, connections.FreeBytes)
	switch {
	case err == nil && size > connections.FreeBytes:
		if err := c.hold(connections.BodyCost * size); err != nil {
			discard()
			return nil, err
		}
		if r.ContentLength > 0 {
			buf.Grow(int(size) - buf.Len() + bytes.MinRead) // ReadFrom wants room beyond the end
		}
		_, err = buf.ReadFrom(from)
	case err == io.EOF:
		err = nil
	}
	var over *http.MaxBytesError
	switch {
	case err == nil:
		return buf.Bytes(), nil
	case errors.As(err, &over):
		_, _ = io.CopyN(io.Discard, r.Body, maxDiscarded)
		return nil, tooLarge
	case json != nil && fault.KindOf(err) == fault.Invalid:
		discard()
		return nil, err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, errBodyTime
	default:
		return nil, fault.Wrap(fault.Invalid, err, "the request body ended early")
	}
}

// hold counts bytes that a request takes while its body is read and decoded, against what the
// caller's tenant may take of this process's memory at a time. They are counted until letGo.
func (c *Call) hold(bytes int64) error {
	if c.Caller == nil {
		return nil
	}
	release, err := c.server.decoding.Take(c.Caller.Tenant.ID, bytes)
	if release != nil {
		c.held = append(c.held, release)
	}
	return err
}

// Hold counts a message of so many bytes against what the caller's tenant may have in decoding,
// until the request is answered. It is for bodies that are read without ReadBody.
func (c *Call) Hold(bytes int64) error {
	if bytes <= connections.FreeBytes {
		return nil
	}
	return c.hold(connections.BodyCost * bytes)
}

// HoldBody reserves memory for the request's body, a message of at most most bytes, and returns a
// reader of all of from. A body without Content-Length counts as the largest once it exceeds
// connections.FreeBytes, because its size is unknown until the end.
func (c *Call) HoldBody(from io.Reader, most int64) (io.Reader, error) {
	size, packed := c.R.ContentLength, c.R.Header.Get("Content-Encoding") != ""
	if size >= 0 || packed {
		return from, c.Hold(connections.MessageSize(size, most, packed))
	}
	head := make([]byte, connections.FreeBytes+1)
	n, err := io.ReadFull(from, head)
	if err == nil {
		err = c.Hold(most)
	} else {
		err = nil // the next read of from returns it again
	}
	return io.MultiReader(bytes.NewReader(head[:n]), from), err
}

// HoldValues reserves memory for the elements of a JSON body, because decoded elements take more memory
// than their text.
func (c *Call) HoldValues(body []byte) error {
	if len(body) <= connections.FreeBytes {
		return nil
	}
	values, err := wire.Weigh(wire.Body.Noun, body)
	if err != nil {
		return err
	}
	return c.hold(int64(values) * wire.ValueCost)
}

// letGo gives back what the request holds: its body is decoded, or it was answered.
func (c *Call) letGo() {
	for _, release := range c.held {
		release()
	}
	c.held = nil
}

// noBody refuses a body where all that can be asked for is in the URL, because what it
// asks for would be ignored. {} asks for nothing.
func (c *Call) noBody() error {
	r := c.R
	defer c.limitReading()()
	body, err := io.ReadAll(io.LimitReader(r.Body, 64))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errBodyTime
	}
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "the request body cannot be read")
	}
	if text := strings.TrimSpace(string(body)); text != "" && text != "{}" {
		return Invalid("%s %s takes no body; its parameters belong in the query of the URL", r.Method, r.Pattern)
	}
	return nil
}

// Upload is a body that may take long as a whole, but whose client must not stop sending
// for longer than patience.
func (c *Call) Upload() io.Reader { return &upload{c.R.Body, http.NewResponseController(c.W)} }

type upload struct {
	r    io.Reader
	conn *http.ResponseController
}

func (u *upload) Read(p []byte) (int, error) {
	_ = u.conn.SetReadDeadline(time.Now().Add(patience)) // those of tests have none
	n, err := u.r.Read(p)
	switch {
	case err == nil, err == io.EOF:
		return n, err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return n, &ProtocolError{http.StatusRequestTimeout, "request_timeout", fmt.Sprintf("no byte of the request body arrived for %s", patience)}
	}
	return n, fault.Wrap(fault.Invalid, err, "the request body ended early; files that it was to replace are unchanged")
}

// Content is Upload for a body that is written to this machine's disk. It ends, with what
// the client is to be told, while the disk is short of space.
func (c *Call) Content() io.Reader { return c.Room(c.Upload(), c.R.ContentLength) }

// Room returns what ends as Content does, for content that is made of a body. size is of
// all of it in bytes, negative if it is not known.
func (c *Call) Room(r io.Reader, size int64) io.Reader {
	return connections.WithRoom(r, c.server.room, size)
}
