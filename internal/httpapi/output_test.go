package httpapi

import (
	"bytes"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

func TestResultsAreWrittenAsTheEncoderWould(t *testing.T) {
	reason := `"stdout":"` + "\x00"
	for name, text := range map[string]string{
		"empty":            "",
		"short":            "hello\n",
		"looks like JSON":  `","stderr":"x"}`,
		"control bytes":    strings.Repeat("\x00\x1b\n\"\\", outputPiece),
		"cut characters":   "x" + strings.Repeat("漢🙂", outputPiece),
		"not UTF-8":        strings.Repeat("a\xff\xe6\xbc", outputPiece),
		"HTML and U+2028":  strings.Repeat("<&>\u2028", 100),
		"exactly a piece":  strings.Repeat("x", outputPiece),
		"cut at its end":   strings.Repeat("x", outputPiece-1) + "\xf0\x9f",
		"only a character": "🙂",
	} {
		r := ExecuteResponse{Success: true, Stdout: text, Stderr: text + "!", Error: &reason}
		event := Event{Type: eventResult, TraceID: "trc_1", Status: "success", Result: &r, Seq: 7}
		for kind, body := range map[string]any{"answer": &r, "event": &event} {
			want, err := json.Marshal(body, jsontext.AllowInvalidUTF8(true))
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if err := writeResult(&got, body, &r); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%s %s: %.200q, want %.200q", kind, name, got.Bytes(), want)
			}
		}
	}
}

func TestALargeResultTakesLittleMemoryToWrite(t *testing.T) {
	r := ExecuteResponse{Stdout: strings.Repeat("\x00", 8<<20)}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := writeResult(io.Discard, &r, &r); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20 {
		t.Errorf("writing 8 MiB of output allocated %d MiB", used>>20)
	}
}
