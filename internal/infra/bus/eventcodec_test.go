package bus

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
)

// What is written and read without package json is what package json would.
func TestEventCodec(t *testing.T) {
	for _, text := range []string{"", "a", "ä€😀", "\"\\\n\x00", "<&>", "\u2028", "\xff", `"}}`, "a\x7f"} {
		e := run.Event{Delta: &run.Delta{Index: 12, Kind: model.Said, Text: text}}
		data, err := marshalEvent(&e)
		if err != nil {
			t.Fatal(err)
		}
		var slow, fast run.Event
		if err := json.Unmarshal(data, &slow); err != nil {
			t.Errorf("%q: %v", data, err)
		}
		if err := unmarshalEvent(data, &fast); err != nil || !reflect.DeepEqual(fast, slow) {
			t.Errorf("%q: %+v, %v", data, fast.Delta, err)
		}
		if text != "\xff" && slow.Delta.Text != text {
			t.Errorf("%q became %q", text, slow.Delta.Text)
		}
		old, err := json.Marshal(&e) // as earlier versions wrote it
		if err != nil || unmarshalEvent(old, &fast) != nil || !reflect.DeepEqual(fast, slow) {
			t.Errorf("%q: %+v, %v", old, fast.Delta, err)
		}
	}
}

// Only a delta that is text alone has the short way.
func TestEventCodecKeepsTheRest(t *testing.T) {
	for _, e := range []run.Event{
		{Delta: &run.Delta{Index: 1, Kind: model.Cited, Text: "a", Citation: &model.Citation{URL: "https://example.com"}}},
		{Delta: &run.Delta{Index: 1, Kind: model.Said, Text: "a"}, Called: &run.ItemEvent{Index: 1}},
	} {
		data, err := marshalEvent(&e)
		var back run.Event
		if err == nil {
			err = unmarshalEvent(data, &back)
		}
		if err != nil || !reflect.DeepEqual(back, e) {
			t.Errorf("%s: %+v, %v", data, back, err)
		}
	}
}

func FuzzEventCodec(f *testing.F) {
	f.Add([]byte(`{"Delta":{"Index":1,"Kind":2,"Text":"x"}}`))
	f.Add([]byte(`{"Delta":{"Index":01,"Kind":256,"Text":"x"}},"Text":"y"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var slow, fast run.Event
		want, got := json.Unmarshal(data, &slow), unmarshalEvent(data, &fast)
		if (want == nil) != (got == nil) || want == nil && !reflect.DeepEqual(fast, slow) {
			t.Errorf("%q: %+v, %v, not %+v, %v", data, fast, got, slow, want)
		}
	})
}
