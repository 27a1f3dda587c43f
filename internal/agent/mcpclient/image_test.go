package mcpclient

import (
	"bytes"
	"testing"
)

// TestImages: pictures are what they say they are, few and small.
func TestImages(t *testing.T) {
	png := append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 100)...)
	large := append(bytes.Clone(png), make([]byte, maxImageBytes)...)
	var r Result
	for what, test := range map[string]struct {
		mediaType string
		data      []byte
	}{
		"no picture":  {"image/png", []byte("<html>")},
		"another":     {"image/jpeg", png},
		"a script":    {"image/svg+xml", []byte("<svg/>")},
		"too large":   {"image/png", large},
		"of any type": {"", png},
	} {
		if r.image(test.mediaType, test.data) {
			t.Errorf("%s is taken", what)
		}
	}
	for n := range maxImages + 1 {
		if taken := r.image("image/png", png); taken != (n < maxImages) {
			t.Errorf("picture %d: %t", n, taken)
		}
	}
	r = Result{}
	if half := large[:maxImageBytes/2+1]; !r.image("image/png", half) || r.image("image/png", half) {
		t.Error("two halves are more than is taken")
	}
}
