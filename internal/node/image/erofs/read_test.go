package erofs_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/atoll-run/atoll/internal/node/image/erofs"
)

// TestRead reads an image, and writes what it read: the same bytes.
func TestRead(t *testing.T) {
	first := write(t, oddTree())
	f, err := os.Open(first)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	root, err := erofs.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(write(t, root))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("an image of %d bytes, read and written, has %d or others", len(want), len(got))
	}
	if _, err := erofs.Read(bytes.NewReader(make([]byte, 8192))); err == nil {
		t.Error("zeros are an image")
	}
}
