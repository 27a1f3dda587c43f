package execute

import (
	"bufio"
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// Output is made JSON here and not by the encoder: it is the largest part of what is sent,
// and the encoder holds a whole string, of which one byte can become six.

// outputPiece is how many bytes of output are made JSON at a time.
const outputPiece = 32 << 10

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

// of returns the stream that a tag names.
func (o outputs) of(tag string) io.Reader {
	if tag == string(execution.Stderr) {
		return o.stderr
	}
	return o.stdout
}

// writeStreamed writes body, a struct or a pointer to one, as JSON. A field with the tag
// stream gets the text of that output, piece by piece; every other field is written by the
// encoder.
func writeStreamed(w io.Writer, body any, out outputs) error {
	b := writers.Get().(*bufio.Writer)
	b.Reset(w)
	defer writers.Put(b)
	if err := writeObject(b, reflect.Indirect(reflect.ValueOf(body)), out); err != nil {
		return err
	}
	return b.Flush()
}

func writeObject(w *bufio.Writer, v reflect.Value, out outputs) error {
	// An error of w comes again with Flush.
	_ = w.WriteByte('{')
	first := true
	for _, f := range layoutOf(v.Type()) {
		value := v.FieldByIndex(f.index)
		if f.omitZero && value.IsZero() {
			continue
		}
		if !first {
			_ = w.WriteByte(',')
		}
		first = false
		_, _ = w.WriteString(f.name)
		switch {
		case f.stream != "":
			_ = w.WriteByte('"')
			if err := writeText(w, out.of(f.stream)); err != nil {
				return err
			}
			_ = w.WriteByte('"')
		case f.nested:
			if err := writeObject(w, reflect.Indirect(value), out); err != nil {
				return err
			}
		default:
			if err := json.MarshalWrite(w, value.Interface(), jsontext.AllowInvalidUTF8(true)); err != nil {
				return err
			}
		}
	}
	_ = w.WriteByte('}')
	return nil
}

// member is a field of a struct as it is written.
type member struct {
	index    []int
	name     string // quoted, with its colon
	omitZero bool
	stream   string // the output that it is of; "" for none
	nested   bool   // it leads to a struct that has such a field
}

var layouts sync.Map // of reflect.Type: []member

func layoutOf(t reflect.Type) []member {
	if known, ok := layouts.Load(t); ok {
		return known.([]member)
	}
	var out []member
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || name == "" {
			continue
		}
		out = append(out, member{
			index: f.Index, name: strconv.Quote(name) + ":", omitZero: options == "omitzero",
			stream: f.Tag.Get("stream"), nested: streams(f.Type),
		})
	}
	layouts.Store(t, out)
	return out
}

// streams reports whether a type is a struct with an output, or a pointer to one.
func streams(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return false
	}
	for _, f := range reflect.VisibleFields(t) {
		if f.Tag.Get("stream") != "" {
			return true
		}
	}
	return false
}

var (
	writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, outputPiece) }}
	pieces  = sync.Pool{New: func() any { return &piece{read: make([]byte, outputPiece)} }}
)

// piece is the memory that output is made JSON in.
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

// plainByte are the bytes that stand for themselves in a JSON string.
var plainByte = func() (t [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// appendText appends the inside of a JSON string. A byte that is not part of valid UTF-8
// becomes U+FFFD.
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
	dst = appendText(dst, e.Data)
	dst = append(dst, `","seq":`...)
	return append(strconv.AppendInt(dst, e.Seq, 10), '}')
}
