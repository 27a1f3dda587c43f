package main

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
)

// TestPack checks that the archive contains the files, and that packing them again gives the same bytes.
func TestPack(t *testing.T) {
	folder := fstest.MapFS{"index.html": {Data: []byte("<p>")}, "a/b.js": {Data: bytes.Repeat([]byte("x"), 1000)}}
	var archives [2][]byte
	for i := range archives {
		path := filepath.Join(t.TempDir(), "site.zip")
		if err := pack(folder, path); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		archives[i] = data
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two archives of the same files differ")
	}
	r, err := zip.NewReader(bytes.NewReader(archives[0]), int64(len(archives[0])))
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range folder {
		if data, err := fs.ReadFile(r, name); err != nil || !bytes.Equal(data, f.Data) {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
}
