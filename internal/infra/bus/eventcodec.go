package bus

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
)

// The JSON of a delta, the event that there are thousands of a second.
const (
	deltaHead = `{"Delta":{"Index":`
	deltaKind = `,"Kind":`
	deltaText = `,"Text":`
	deltaTail = `}}`
)

// marshalEvent is json.Marshal of an event.
func marshalEvent(e *run.Event) ([]byte, error) {
	if d := e.Delta; d != nil && d.Text != "" && *e == (run.Event{Delta: d}) && *d == (run.Delta{Index: d.Index, Kind: d.Kind, Text: d.Text}) {
		b := make([]byte, 0, len(deltaHead)+len(deltaKind)+len(deltaText)+len(deltaTail)+len(d.Text)+len(d.Text)/8+16)
		b = strconv.AppendInt(append(b, deltaHead...), int64(d.Index), 10)
		b = strconv.AppendUint(append(b, deltaKind...), uint64(d.Kind), 10)
		if b, err := jsontext.AppendQuote(append(b, deltaText...), d.Text); err == nil {
			return append(b, deltaTail...), nil
		} // its text is not UTF-8
	}
	return json.Marshal(e)
}

// unmarshalEvent is json.Unmarshal of an event.
func unmarshalEvent(data []byte, e *run.Event) error {
	if d, ok := readDelta(data); ok {
		*e = run.Event{Delta: &d}
		return nil
	}
	return json.Unmarshal(data, e)
}

// readDelta reads a delta as marshalEvent writes it, if its text has nothing escaped.
func readDelta(b []byte) (d run.Delta, ok bool) {
	b, ok = bytes.CutPrefix(b, []byte(deltaHead))
	if !ok {
		return d, false
	}
	index, b, ok := cutNumber(b, []byte(deltaKind))
	if !ok {
		return d, false
	}
	kind, b, ok := cutNumber(b, []byte(deltaText))
	if !ok || kind > 255 || len(b) < 2+len(deltaTail) || b[0] != '"' {
		return d, false
	}
	text, ok := bytes.CutSuffix(b[1:], []byte(`"`+deltaTail))
	if !ok || !plain(text) {
		return d, false
	}
	return run.Delta{Index: index, Kind: model.DeltaKind(kind), Text: string(text)}, true
}

// cutNumber reads a number, and what must follow it.
func cutNumber(b, next []byte) (n int, rest []byte, ok bool) {
	i := 0
	for ; i < len(b) && i < 9 && b[i] >= '0' && b[i] <= '9'; i++ {
		n = 10*n + int(b[i]-'0')
	}
	if i == 0 || b[0] == '0' && i > 1 {
		return 0, nil, false
	}
	rest, ok = bytes.CutPrefix(b[i:], next)
	return n, rest, ok
}

// plain reports whether the inside of a JSON string is its text.
func plain(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c == '"' || c == '\\' {
			return false
		}
	}
	return utf8.Valid(b)
}
