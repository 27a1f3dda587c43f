package wire

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
)

// StreamPiece is how many bytes of a text WriteStreamed turns into JSON at a time.
const StreamPiece = 32 << 10

// WriteStreamed writes body, a struct or a pointer to one, as JSON. A field with the tag
// stream gets the text of that stream, piece by piece; the encoder writes all other fields. The encoder
// would hold the whole text, of which one byte can become six.
func WriteStreamed(w io.Writer, body any, streams func(tag string) io.Reader) error {
	b := writers.Get().(*bufio.Writer)
	b.Reset(w)
	defer writers.Put(b)
	if err := writeObject(b, reflect.Indirect(reflect.ValueOf(body)), streams); err != nil {
		return err
	}
	return b.Flush()
}

func writeObject(w *bufio.Writer, v reflect.Value, streams func(tag string) io.Reader) error {
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
			if err := writeText(w, streams(f.stream)); err != nil {
				return err
			}
			_ = w.WriteByte('"')
		case f.nested:
			if err := writeObject(w, reflect.Indirect(value), streams); err != nil {
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

// streamed is a field of a struct as WriteStreamed writes it.
type streamed struct {
	index    []int
	name     string // quoted, with its colon
	omitZero bool
	stream   string // whose text it gets; "" for none
	nested   bool   // it leads to a struct that has such a field
}

var layouts sync.Map // of reflect.Type: []streamed

func layoutOf(t reflect.Type) []streamed {
	if known, ok := layouts.Load(t); ok {
		return known.([]streamed)
	}
	var out []streamed
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || name == "" {
			continue
		}
		out = append(out, streamed{
			index: f.Index, name: strconv.Quote(name) + ":", omitZero: options == "omitzero",
			stream: f.Tag.Get("stream"), nested: hasStream(f.Type),
		})
	}
	layouts.Store(t, out)
	return out
}

// hasStream reports whether a type is a struct with an output, or a pointer to one.
func hasStream(t reflect.Type) bool {
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
	writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, StreamPiece) }}
	pieces  = sync.Pool{New: func() any { return &piece{read: make([]byte, StreamPiece)} }}
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
			whole = WholeRunes(p.read[:n])
		}
		p.text = AppendText(p.text[:0], p.read[:whole])
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

// AppendText appends the inside of a JSON string. A byte that is not part of valid UTF-8
// becomes U+FFFD.
func AppendText(dst, text []byte) []byte {
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
