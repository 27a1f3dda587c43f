package openai

import (
	"encoding/json"
	"testing"
)

// What is read without package json is what package json reads.
func FuzzFlatText(f *testing.F) {
	for _, text := range []string{
		`{"type":"response.output_text.delta","sequence_number":4,"item_id":"m","output_index":12,"content_index":0,"delta":"a\"\n\u00e4","logprobs":[],"obfuscation":"x"}`,
		`{"type": "a", "delta": "b"}`, `{"type":"a","delta":"b","Delta":"c"}`, `{"delta":"b","output_index":01}`, `{"delta":"b","output_index":-1}`,
		`{"delta":"b","output_index":null}`, `{"delta":"b"}}`, `{"delta":"b",}`, `{"delta":"\ud800"}`, `{"delta":"\x"}`, `{"delta":"b","x":[1]}`, `{}`, `{"delta":null}`,
		"{\"delta\":\"\xff\"}", `{"delta":"a","delta":"b"}`, `{"delta":"a","\u0064elta":"b"}`, `{"delta":"a","x":"\y"}`, `{"delta":"a","x":.}`, `{"delta":"a","x":}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		kind, index, delta, ok := flatText(data)
		if !ok {
			return
		}
		var e event
		var fast, slow string
		err := json.Unmarshal(data, &e)
		if bad := json.Unmarshal(delta, &fast); bad != nil {
			if err == nil {
				t.Errorf("%q: %v", data, bad)
			}
			return // it is refused either way
		}
		if err != nil || json.Unmarshal(e.Delta, &slow) != nil || e.Type != kind || e.OutputIndex != index || fast != slow {
			t.Errorf("%q: %q %d %q, not %+v, %v", data, kind, index, fast, e, err)
		}
	})
}
