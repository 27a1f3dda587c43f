package sandboxtest

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// decoding takes strings that are not UTF-8: paths, arguments and variables are bytes.
var encoding, decoding = func() (cbor.EncMode, cbor.DecMode) {
	e, err := cbor.EncOptions{Time: cbor.TimeRFC3339Nano}.EncMode()
	if err != nil {
		panic(err)
	}
	d, err := cbor.DecOptions{UTF8: cbor.UTF8DecodeInvalid}.DecMode()
	if err != nil {
		panic(err)
	}
	return e, d
}()

// request begins a call.
type request struct {
	Part   part
	Method string
	Args   []cbor.RawMessage
}

// frame is everything that goes over a connection after a request. A server sends Read or
// Event to the caller whose reader or sink it needs, and at last Answer; then a caller
// asks for the pieces of a stream.
type frame struct {
	Answer *answer `cbor:",omitempty"`
	Err    *failure

	Read       int                `cbor:",omitempty"` // bytes that are asked for
	Next       bool               `cbor:",omitempty"`
	Enough     bool               `cbor:",omitempty"`
	CloseWrite bool               `cbor:",omitempty"`
	Data       []byte             `cbor:",omitempty"`
	Event      *codecontext.Event `cbor:",omitempty"`
	Changed    *file.Event        `cbor:",omitempty"`
	Chunk      *process.Chunk     `cbor:",omitempty"`
	Exit       *process.Exit      `cbor:",omitempty"`
	Counts     *file.Counts       `cbor:",omitempty"`
}

// answer is what a call returned, without its error.
type answer struct{ Results []cbor.RawMessage }

// failure is an error that crosses. These are all that callers tell apart.
type failure struct {
	Text                                       string
	EOF, Gone, Enough, Cut, Canceled, Deadline bool
	Elsewhere                                  *sandbox.Sandbox
	Executor                                   string

	Fault     bool
	Kind      fault.Kind
	Msg       string
	Dimension string
	ResetsAt  time.Time
}

func encodeError(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{
		Text: err.Error(), EOF: err == io.EOF, Gone: errors.Is(err, process.ErrGone), Enough: errors.Is(err, process.ErrEnough), Cut: errors.Is(err, io.ErrUnexpectedEOF),
		Canceled: errors.Is(err, context.Canceled), Deadline: errors.Is(err, context.DeadlineExceeded),
	}
	if e, ok := errors.AsType[*sandbox.ElsewhereError](err); ok {
		f.Elsewhere, f.Executor = e.Sandbox, e.Executor
	}
	if e, ok := errors.AsType[*fault.Error](err); ok {
		f.Fault, f.Kind, f.Msg, f.Dimension, f.ResetsAt = true, e.Kind, e.Msg, e.Dimension, e.ResetsAt
	}
	return f
}

func (f *failure) decode() error {
	if f == nil {
		return nil
	}
	var err error
	switch {
	case f.EOF:
		return io.EOF
	case f.Elsewhere != nil:
		err = &sandbox.ElsewhereError{Sandbox: f.Elsewhere, Executor: f.Executor}
	case f.Gone:
		err = process.ErrGone
	case f.Enough:
		err = process.ErrEnough
	case f.Cut:
		err = io.ErrUnexpectedEOF
	case f.Canceled:
		err = context.Canceled
	case f.Deadline:
		err = context.DeadlineExceeded
	default:
		err = errors.New(f.Text)
	}
	if f.Fault {
		return &fault.Error{Kind: f.Kind, Msg: f.Msg, Err: err, Dimension: f.Dimension, ResetsAt: f.ResetsAt}
	}
	return err
}

// link is a connection with values on it.
type link struct {
	conn   net.Conn
	enc    *cbor.Encoder
	dec    *cbor.Decoder
	ctx    context.Context // ends it; nil for none
	forget func() bool
}

func newLink(conn net.Conn) *link {
	return &link{conn: conn, enc: encoding.NewEncoder(conn), dec: decoding.NewDecoder(conn), forget: func() bool { return true }}
}

// until ends the connection with ctx.
func (l *link) until(ctx context.Context) {
	l.ctx = ctx
	l.forget = context.AfterFunc(ctx, func() { l.conn.Close() })
}

func (l *link) close() {
	l.forget()
	l.conn.Close()
}

// failed is err, or what the connection was ended with.
func (l *link) failed(err error) error {
	if err != nil && l.ctx != nil && l.ctx.Err() != nil {
		return context.Cause(l.ctx)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) {
		return process.ErrGone
	}
	return err
}

func (l *link) send(v any) error { return l.failed(l.enc.Encode(v)) }

func (l *link) receive() (f frame, err error) { return f, l.failed(l.dec.Decode(&f)) }
