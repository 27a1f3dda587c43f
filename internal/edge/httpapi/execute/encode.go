package execute

import (
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// outputs are the two streams of an execution, to be read once.
type outputs struct {
	stdout, stderr io.ReadCloser
	unreadable     bool // the blob store has them, but does not answer
}

// noOutputs are those of an execution whose stored output cannot be read.
func noOutputs() outputs {
	none := io.NopCloser(strings.NewReader(""))
	return outputs{none, none, true}
}

// Close closes both.
func (o outputs) Close() error { return errors.Join(o.stdout.Close(), o.stderr.Close()) }

// write writes body as JSON, with the outputs in it.
func (o outputs) write(w io.Writer, body any) error { return wire.WriteStreamed(w, body, o.of) }

// of returns the stream that a tag names.
func (o outputs) of(tag string) io.Reader {
	if tag == string(execution.Stderr) {
		return o.stderr
	}
	return o.stdout
}

// appendEvent appends an output or keepalive event as JSON: an Event with these fields.
func appendEvent(dst []byte, e execution.Event) []byte {
	switch e.Stream {
	case execution.Stdout:
		dst = append(dst, `{"type":"output","stream":"stdout","data":"`...)
	case execution.Stderr:
		dst = append(dst, `{"type":"output","stream":"stderr","data":"`...)
	default:
		dst = append(dst, `{"type":"keepalive","seq":`...)
		return append(strconv.AppendInt(dst, e.Seq, 10), '}')
	}
	dst = wire.AppendText(dst, e.Data)
	dst = append(dst, `","seq":`...)
	return append(strconv.AppendInt(dst, e.Seq, 10), '}')
}
