package response

import (
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// What is written without package json is what package json writes.
func TestOutputDelta(t *testing.T) {
	for _, text := range []string{"", "a", "ä€😀", "\"\\\n\x00", "<&>", "\u2028"} {
		e := &ResponseEvent{Type: outputDelta, Sequence: 7, ItemID: "msg_0a", OutputIndex: new(2), ContentIndex: new(0), Delta: &text, LogProbs: &[]jsontext.Value{}}
		want, err := json.Marshal(e)
		if got := string(appendOutputDelta(nil, e)); err != nil || got != string(want) {
			t.Errorf("%s, not %s, %v", got, want, err)
		}
	}
}
