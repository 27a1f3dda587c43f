package file_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/file"
)

// body counts those that are open.
type body struct {
	io.Reader
	open *int
}

func (b body) Close() error { *b.open--; return nil }

// TestSeekable reads as http.ServeContent does: it asks for the size first, and what is
// open at the beginning is read all the same.
func TestSeekable(t *testing.T) {
	const text = "0123456789"
	open, opened := 1, 0
	f := file.NewSeekable(int64(len(text)), body{strings.NewReader(text), &open}, func(at int64) (io.ReadCloser, error) {
		if at == 5 {
			return nil, errors.New("gone")
		}
		open, opened = open+1, opened+1
		return body{strings.NewReader(text[at:]), &open}, nil
	})
	read := func(at int64, want string) {
		t.Helper()
		if size, err := f.Seek(0, io.SeekEnd); size != 10 || err != nil {
			t.Fatalf("%d bytes, %v", size, err)
		}
		if _, err := f.Seek(at, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(f); string(got) != want || err != nil {
			t.Errorf("from %d: %q, %v", at, got, err)
		}
	}
	read(0, text)
	if opened != 0 {
		t.Errorf("the whole was opened %d times more", opened)
	}
	read(3, "3456789")
	read(10, "")
	if opened != 1 {
		t.Errorf("a part was opened %d times", opened)
	}
	if _, err := f.Seek(5, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Read(make([]byte, 1)); err == nil {
		t.Error("what cannot be opened was read")
	}
	if _, err := f.Seek(-1, io.SeekStart); err == nil {
		t.Error("there is something before the start")
	}
	if err := f.Close(); err != nil || open != 0 {
		t.Errorf("%d are open, %v", open, err)
	}
}
