package sandboxes

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

func archiveOf(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []tar.Header{
		{Name: "./", Typeflag: tar.TypeDir}, {Name: "./a", Typeflag: tar.TypeReg, Size: 4}, {Name: "./ab", Typeflag: tar.TypeReg, Size: 4},
		{Name: "./d/", Typeflag: tar.TypeDir}, {Name: "./d/a", Typeflag: tar.TypeReg, Size: 4}, {Name: "./l", Typeflag: tar.TypeLink, Linkname: "./d/a"},
		{Name: "./s", Typeflag: tar.TypeSymlink, Linkname: "d/a"},
	} {
		h.Mode = 0o644
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := w.Write([]byte("text")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func namesOf(t testing.TB, archive []byte) (names []string) {
	t.Helper()
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
}

func TestArchivesWithout(t *testing.T) {
	for excluded, want := range map[string][]string{
		"a":    {"./", "./ab", "./d/", "./d/a", "./l", "./s"},
		"d":    {"./", "./a", "./ab", "./s"},
		"d/a":  {"./", "./a", "./ab", "./d/", "./s"},
		"none": {"./", "./a", "./ab", "./d/", "./d/a", "./l", "./s"},
	} {
		var to bytes.Buffer
		if err := (&Archive{io.NopCloser(bytes.NewReader(archiveOf(t))), []string{excluded}}).Copy(&to); err != nil {
			t.Fatal(err)
		}
		if got := namesOf(t, to.Bytes()); !slices.Equal(got, want) {
			t.Errorf("without %s: %q, want %q", excluded, got, want)
		}
	}
}

// FuzzArchivesWithout checks that nothing below an excluded path passes, whatever a sandbox
// says that its archive is.
func FuzzArchivesWithout(f *testing.F) {
	f.Add(archiveOf(f), "d")
	f.Fuzz(func(t *testing.T, archive []byte, excluded string) {
		excluded = strings.Trim(excluded, "./")
		var to bytes.Buffer
		if excluded == "" || (&Archive{io.NopCloser(bytes.NewReader(archive)), []string{excluded}}).Copy(&to) != nil {
			return
		}
		for _, name := range namesOf(t, to.Bytes()) {
			if strings.HasPrefix(name, excluded+"/") {
				t.Errorf("%q passes without %q", name, excluded)
			}
		}
	})
}

func TestUploadsAreBounded(t *testing.T) {
	over := errors.New("too large")
	for size, want := range map[int]error{4: nil, 5: over} {
		_, err := io.Copy(io.Discard, &Limited{bytes.NewReader(make([]byte, size)), 4, over})
		if !errors.Is(err, want) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}
