package wire_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/wire"
)

type parts struct {
	Parts []struct {
		Name *string           `json:"name"`
		Env  map[string]string `json:"env"`
		More []string          `json:"more"`
	} `json:"parts"`
}

// TestDecodeCountsFirst: a body with a list far longer than any that is allowed is refused before
// it takes memory.
func TestDecodeCountsFirst(t *testing.T) {
	text := []byte(`{"parts":[` + strings.Repeat("{},", 2_600_000) + `{}]}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := wire.Body.Decode(text, &parts{})
	runtime.ReadMemStats(&after)
	if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "the request body has a list or object with more than 10000 elements") {
		t.Errorf("got %v", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("refusing %d bytes took %d", len(text), took)
	}
}

func TestWeigh(t *testing.T) {
	many := func(n int, element string) string { return "[" + strings.Repeat(element+",", n-1) + element + "]" }
	for text, says := range map[string]string{
		`{"a":[1,2,{"b":"x,[{\"y"}]}`:                "",
		many(wire.MaxList, "1"):                      "",
		many(wire.MaxList+1, "1"):                    "more than 10000 elements",
		many(wire.MaxList+1, `"a":1`):                "more than 10000 elements",
		many(200, many(200, "1")):                    "",
		many(200, many(600, "1")):                    "more than 100000 elements",
		strings.Repeat("[", 100):                     "",
		strings.Repeat(`{"a":`, 101):                 "more than 100 levels deep",
		strings.Repeat("]", 200) + `"\`:              "",
		strings.Repeat(",", 20_000):                  "more than 10000 elements",
		`"` + strings.Repeat(",", 20_000) + `\",[" `: "",
		": \"\ndata: " + many(wire.MaxList+1, "1"):   "more than 10000 elements",
		": \"\\\ndata: " + many(wire.MaxList+1, "1"): "more than 10000 elements",
	} {
		_, err := wire.Weigh("it", []byte(text))
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%.40s…: %v, want %q", text, err, says)
		}
	}
	if n, err := wire.Weigh("it", []byte(`{"a":[1,2,{}],"b":3}`)); n != 6 || err != nil {
		t.Errorf("%d %v", n, err)
	}
}
