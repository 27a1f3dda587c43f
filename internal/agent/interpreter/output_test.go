package interpreter

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/sandboxcall"
	"github.com/atoll-run/atoll/internal/core/codecontext"
)

func shows(t *testing.T, o *collector, mime, text string) {
	t.Helper()
	form, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.take(codecontext.Event{Display: &codecontext.Display{Data: map[string]jsontext.Value{mime: form, "text/plain": jsontext.Value(`"plain"`)}}}); err != nil {
		t.Fatal(err)
	}
}

func TestOutputIsBounded(t *testing.T) {
	o := &collector{}
	for range 3 {
		if err := o.take(codecontext.Event{Text: []byte(strings.Repeat("x", sandboxcall.MaxStream/2-1) + "ü")}); err != nil {
			t.Fatal(err)
		}
	}
	if len(o.logs) > sandboxcall.MaxStream || !o.LogsCut {
		t.Errorf("%d bytes of logs", len(o.logs))
	}
	big := base64.StdEncoding.EncodeToString(make([]byte, maxImageBytes/2+1))
	for range 3 {
		shows(t, o, "image/png", big)
	}
	if len(o.Images) != 1 || o.omitted != 2 {
		t.Errorf("%d images, %d omitted", len(o.Images), o.omitted)
	}
	o = &collector{}
	for range maxImages + 5 {
		shows(t, o, "image/jpeg", "AAAA\n")
	}
	if len(o.Images) != maxImages || o.omitted != 5 || len(o.logs) > 0 {
		t.Errorf("%d images, %d omitted, logs %q", len(o.Images), o.omitted, o.logs)
	}
}

// TestImagesThatAreNone: what is no base64 is shown as the text that it comes with.
func TestImagesThatAreNone(t *testing.T) {
	o := &collector{}
	o.write([]byte("line"))
	shows(t, o, "image/png", "[redacted]")
	if len(o.Images) != 0 || string(o.logs) != "line\nplain\n" {
		t.Errorf("%d images, logs %q", len(o.Images), o.logs)
	}
}
