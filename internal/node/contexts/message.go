package contexts

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of what an interpreter says.
const (
	maxLine     = 10 << 20
	maxForms    = 32
	maxMime     = 128
	maxTrace    = 10_000
	maxDisplays = 1000     // of one run
	maxShown    = 16 << 20 // bytes of the displays of one run
)

// errProtocol says that a context said what no script of ours says.
var errProtocol = errors.New("the interpreter said what it never says")

// message is a line of descriptor 4.
type message struct {
	ID        int64              `json:"id"`
	Type      string             `json:"type"`
	Data      forms              `json:"data"`
	Metadata  jsontext.Value     `json:"metadata"`
	Name      string             `json:"name"`
	Value     string             `json:"value"`
	Traceback lines              `json:"traceback"`
	Status    codecontext.Status `json:"status"`
	ExitCode  *int               `json:"exit_code"`
}

// forms are the forms of a display. Decoding stops at maxForms.
type forms map[string]jsontext.Value

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (f *forms) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	return members(d, '{', maxForms, func() error {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		if *f == nil {
			*f = forms{}
		}
		key := name.String()
		value, err := d.ReadValue()
		(*f)[key] = value.Clone()
		return err
	})
}

// lines are the lines of a traceback. Decoding stops at maxTrace.
type lines []string

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (l *lines) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	return members(d, '[', maxTrace, func() error {
		var line string
		err := json.UnmarshalDecode(d, &line)
		*l = append(*l, line)
		return err
	})
}

// members calls read for each member of an object or list, and fails after most members. It accepts
// null as empty.
func members(d *jsontext.Decoder, kind jsontext.Kind, most int, read func() error) error {
	opened, err := d.ReadToken()
	if err != nil || opened.Kind() == 'n' {
		return err
	}
	if opened.Kind() != kind {
		return fmt.Errorf("%w: no %v", errProtocol, kind)
	}
	for n := 0; d.PeekKind() != '}' && d.PeekKind() != ']'; n++ {
		if n == most {
			return fmt.Errorf("%w: too much of a kind", errProtocol)
		}
		if err := read(); err != nil {
			return err
		}
	}
	_, err = d.ReadToken()
	return err
}

// decoder cuts descriptor 4 into messages.
type decoder struct {
	held []byte
	// torn says that the next line may lack its beginning, which was not kept.
	torn bool
}

// tear is for bytes that are missing: what is held, and what is left of its line, is
// nothing that was said.
func (d *decoder) tear() { d.held, d.torn = nil, true }

// write takes bytes, and calls take with each message that is whole.
func (d *decoder) write(p []byte, take func(*message) error) error {
	for {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			if len(d.held)+len(p) > maxLine {
				return fmt.Errorf("%w: a line of more than %d bytes", errProtocol, maxLine)
			}
			d.held = append(d.held, p...)
			return nil
		}
		line := p[:end]
		if len(d.held) > 0 {
			if len(d.held)+end > maxLine {
				return fmt.Errorf("%w: a line of more than %d bytes", errProtocol, maxLine)
			}
			line = append(d.held, line...)
		}
		m, err := parse(line)
		torn := d.torn
		d.held, d.torn, p = nil, false, p[end+1:]
		if err != nil && torn {
			continue
		}
		if err != nil {
			return err
		}
		if err := take(m); err != nil {
			return err
		}
	}
}

func parse(line []byte) (*message, error) {
	m := &message{}
	if len(line) > maxLine {
		return nil, fmt.Errorf("%w: a line of %d bytes", errProtocol, len(line))
	}
	if err := json.Unmarshal(line, m, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, fmt.Errorf("%w: %w", errProtocol, err)
	}
	if m.ExitCode != nil && (*m.ExitCode < 0 || *m.ExitCode > 255) {
		return nil, fmt.Errorf("%w: the exit code %d", errProtocol, *m.ExitCode)
	}
	for mime, value := range m.Data {
		if !visible(mime) || value.Kind() != '"' && !isJSON(mime) {
			return nil, fmt.Errorf("%w: a form %.60q", errProtocol, mime)
		}
	}
	if m.Metadata != nil && m.Metadata.Kind() != '{' {
		return nil, fmt.Errorf("%w: metadata", errProtocol)
	}
	switch m.Type {
	case "ready", "display", "result", "error", "began", "unknown":
	case "done", "known":
		if m.Status != codecontext.OK && m.Status != codecontext.Failed && m.Status != codecontext.Interrupted {
			return nil, fmt.Errorf("%w: a status %.60q", errProtocol, m.Status)
		}
	default:
		return nil, fmt.Errorf("%w: %.60q", errProtocol, m.Type)
	}
	return m, nil
}

// visible reports whether a media type can stand in an answer.
func visible(mime string) bool {
	for _, c := range []byte(mime) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return mime != "" && len(mime) <= maxMime
}

// isJSON reports whether values of a media type are JSON, not text.
func isJSON(mime string) bool {
	return mime == "application/json" || len(mime) > 5 && mime[len(mime)-5:] == "+json"
}

// size is what a display counts for.
func displaySize(d *codecontext.Display) int {
	n := len(d.Metadata)
	for mime, value := range d.Data {
		n += len(mime) + len(value)
	}
	return n
}
