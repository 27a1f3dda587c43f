package collect

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/execution"
)

func readAll(stream []byte, asked []string) (map[string]string, bool, error) {
	files := map[string]string{}
	truncated, err := Read(bytes.NewReader(stream), asked, func(f execution.OutputFile, r io.Reader) error {
		data, err := io.ReadAll(r)
		files[f.Name] = string(data)
		return err
	})
	return files, truncated, err
}

func TestCollect(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, data := range map[string]string{"a": "A", "out/b": strings.Repeat("\x00\xff\n", 100_000), "out/sub/c": "", "other": "no", "out/bad\nname": "no"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", "out/link"); err != nil {
		t.Fatal(err)
	}
	asked := []string{"out/", "a", "missing", "out/b"}
	var b bytes.Buffer
	if err := Write(&b, asked); err != nil {
		t.Fatal(err)
	}
	files, truncated, err := readAll(b.Bytes(), asked)
	if err != nil || !truncated { // for the name that is none
		t.Errorf("truncated %v, error %v", truncated, err)
	}
	if names := slices.Sorted(maps.Keys(files)); !slices.Equal(names, []string{"a", "out/b", "out/sub/c"}) {
		t.Errorf("files %q", names)
	}
	if files["a"] != "A" || len(files["out/b"]) != 300_000 || files["out/sub/c"] != "" {
		t.Error("contents differ")
	}
	if _, _, err := readAll(b.Bytes(), []string{"out"}); !errors.Is(err, ErrStream) {
		t.Errorf("a file that was not asked for: %v", err)
	}
	for n := range 40 { // every beginning of it is refused
		if _, _, err := readAll(b.Bytes()[:n], asked); !errors.Is(err, ErrStream) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
}

func TestCollectBounds(t *testing.T) {
	t.Chdir(t.TempDir())
	for i := range execution.MaxOutputFiles + 1 {
		if err := os.WriteFile(strings.Repeat("x", i+1), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate("x", execution.MaxOutputBytes+1); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Write(&b, []string{"."}); err != nil {
		t.Fatal(err)
	}
	if !bytes.HasSuffix(b.Bytes(), []byte{0, 1}) || b.Len() > Overhead {
		t.Errorf("%d bytes that end with % x", b.Len(), b.Bytes()[b.Len()-2:])
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("\x01a\x02xy\x00\x00"))
	f.Add([]byte("\x03out\x00\x05out/a\x01x\x00\x01"))
	f.Add([]byte("\x01a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"))
	f.Fuzz(func(t *testing.T, b []byte) {
		files, _, err := readAll(b, []string{"a", "out/"})
		for name := range files {
			if e := execution.CheckFileName("", name); e != nil || name != "a" && name != "out" && !strings.HasPrefix(name, "out/") {
				t.Fatalf("took %q (%v, %v)", name, e, err)
			}
		}
	})
}
