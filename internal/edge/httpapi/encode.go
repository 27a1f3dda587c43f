package httpapi

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// Output is made JSON by hand: it is most of what is sent, it may be large, and
// an encoder keeps a whole string of which a byte may become six.

// outputPiece is how much output is made JSON at a time.
const outputPiece = 32 << 10

// plain are the bytes that stand for themselves in a JSON string.
var plainByte = func() (t [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// appendText appends the inside of a JSON string. A byte that is not part of
// valid UTF-8 becomes U+FFFD.
func appendText(dst, text []byte) []byte {
	const hex = "0123456789abcdef"
	from := 0 // text[from:i] stands for itself
	for i := 0; i < len(text); {
		c := text[i]
		if plainByte[c] {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			if r, size := utf8.DecodeRune(text[i:]); r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
		}
		dst = append(dst, text[from:i]...)
		switch c {
		case '\n':
			dst = append(dst, '\\', 'n')
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\t':
			dst = append(dst, '\\', 't')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		default:
			if c < ' ' {
				dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			} else {
				dst = append(dst, "\ufffd"...)
			}
		}
		i++
		from = i
	}
	return append(dst, text[from:]...)
}

// appendEvent appends an output or keepalive event as JSON.
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
	dst = appendText(dst, e.Data)
	dst = append(dst, `","seq":`...)
	return append(strconv.AppendInt(dst, e.Seq, 10), '}')
}

// outputs are the two streams of an execution, to be read once.
type outputs struct{ stdout, stderr io.ReadCloser }

func (o outputs) Close() error { return errors.Join(o.stdout.Close(), o.stderr.Close()) }

// noOutput is where a body's outputs go: both fields are there, next to each
// other and empty. No such thing occurs after it, since the names of callers
// stand before it and quotes inside of strings are escaped.
const noOutput = `"stdout":"","stderr":""`

// writeWith writes body as JSON, with what out has as its outputs. It takes
// memory for a piece of them only.
func writeWith(w io.Writer, body any, out outputs) error {
	frame, err := json.Marshal(body, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return err
	}
	at := bytes.LastIndex(frame, []byte(noOutput))
	if at < 0 {
		_, err := w.Write(frame)
		return err
	}
	b := writers.Get().(*bufio.Writer)
	b.Reset(w)
	defer writers.Put(b)
	_, _ = b.Write(frame[:at+len(`"stdout":"`)]) // its error comes again with Flush
	if err := writeText(b, out.stdout); err != nil {
		return err
	}
	_, _ = b.WriteString(`","stderr":"`)
	if err := writeText(b, out.stderr); err != nil {
		return err
	}
	_, _ = b.Write(frame[at+len(noOutput)-1:])
	return b.Flush()
}

var (
	writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, outputPiece) }}
	pieces  = sync.Pool{New: func() any { return &piece{read: make([]byte, outputPiece)} }}
)

// piece is the room to make output JSON in.
type piece struct{ read, text []byte }

// writeText writes what r has as the inside of a JSON string.
func writeText(w io.Writer, r io.Reader) error {
	p := pieces.Get().(*piece)
	defer pieces.Put(p)
	for n := 0; ; {
		m, err := io.ReadFull(r, p.read[n:])
		n += m
		end := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !end {
			return err
		}
		whole := n
		if !end {
			whole = wire.WholeRunes(p.read[:n])
		}
		p.text = appendText(p.text[:0], p.read[:whole])
		if _, err := w.Write(p.text); err != nil || end {
			return err
		}
		n = copy(p.read, p.read[whole:n])
	}
}

// writeJSON answers with body. Bytes in strings that are not UTF-8 become
// U+FFFD, one each.
func writeJSON(w http.ResponseWriter, status int, body any) error {
	startJSON(w, status)
	return json.MarshalWrite(w, body, jsontext.AllowInvalidUTF8(true))
}

// startJSON writes the head of an answer in JSON.
func startJSON(w http.ResponseWriter, status int) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
}
