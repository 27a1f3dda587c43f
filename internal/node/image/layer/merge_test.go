package layer_test

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/node/image/erofs"
	"github.com/atoll-run/atoll/internal/node/image/layer"
	"github.com/atoll-run/atoll/internal/node/image/tree"
)

// Short forms of tar entries.
func dir(name string) tar.Header {
	return tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755}
}
func file(name, content string) tar.Header {
	// The content travels in a field that a regular file does not use.
	return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content)), Linkname: content}
}
func symlink(name, target string) tar.Header {
	return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target}
}
func hardlink(name, target string) tar.Header {
	return tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: target}
}

func pack(t testing.TB, entries ...tar.Header) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, h := range entries {
		content := ""
		if h.Typeflag == tar.TypeReg {
			content, h.Linkname = h.Linkname, ""
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func newMerger(t testing.TB, limits layer.Limits) *layer.Merger {
	t.Helper()
	spool, err := os.Create(filepath.Join(t.TempDir(), "spool"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { spool.Close() })
	return layer.NewMerger(spool, limits)
}

// show lists a tree, one line a file.
func show(t testing.TB, root *erofs.Node) string {
	t.Helper()
	var lines []string
	var walk func(p string, n *erofs.Node)
	walk = func(p string, n *erofs.Node) {
		for name, child := range n.Children {
			q := p + name
			switch {
			case child.IsDir():
				lines = append(lines, q+"/")
				walk(q+"/", child)
			case child.IsSymlink():
				lines = append(lines, q+" -> "+child.Target)
			default:
				data, err := io.ReadAll(io.NewSectionReader(child.Data, 0, child.Size))
				if err != nil {
					t.Fatal(err)
				}
				lines = append(lines, q+"="+string(data))
			}
		}
	}
	walk("", root)
	sort.Strings(lines)
	return strings.Join(lines, " ")
}

func TestMerge(t *testing.T) {
	type layers [][]tar.Header
	cases := []struct {
		name   string
		layers layers
		want   string
	}{
		{"later replaces earlier", layers{{file("a", "1")}, {file("a", "2")}}, "a=2"},
		{"folders complete", layers{{dir("d"), file("d/a", "1")}, {dir("d"), file("d/b", "2")}}, "d/ d/a=1 d/b=2"},
		{"file replaces folder", layers{{dir("d"), file("d/a", "1")}, {file("d", "x")}}, "d=x"},
		{"folder replaces file", layers{{file("d", "x")}, {dir("d")}}, "d/"},
		{"folder replaces link to folder", layers{{dir("d"), file("d/a", "1"), symlink("l", "d")}, {dir("l")}}, "d/ d/a=1 l/"},
		{"parents are implied", layers{{file("a/b/c", "1")}}, "a/ a/b/ a/b/c=1"},
		{"leading slash and dots", layers{{file("/a", "1"), file("./b", "2"), dir("./"), file("c//d", "3")}}, "a=1 b=2 c/ c/d=3"},
		{"whiteout", layers{{file("a", "1"), file("b", "2")}, {file(".wh.a", "")}}, "b=2"},
		{"whiteout of folder", layers{{dir("d"), file("d/a", "1")}, {file(".wh.d", "")}}, ""},
		{"whiteout spares its own layer", layers{{file("a", "1")}, {file("a", "2"), file(".wh.a", "")}}, "a=2"},
		{"whiteout then new folder", layers{{file("d/old", "1")}, {file(".wh.d", ""), file("d/new", "2")}}, "d/ d/new=2"},
		{"new folder then whiteout", layers{{file("d/old", "1")}, {file("d/new", "2"), file(".wh.d", "")}}, "d/ d/new=2"},
		{"opaque", layers{{file("d/old", "1"), file("d/sub/old", "1")}, {dir("d"), file("d/.wh..wh..opq", ""), file("d/new", "2")}}, "d/ d/new=2"},
		{"opaque last", layers{{file("d/old", "1"), file("d/sub/old", "1")}, {file("d/sub/new", "2"), file("d/.wh..wh..opq", "")}}, "d/ d/sub/ d/sub/new=2"},
		{"whiteout of nothing", layers{{file(".wh.a", ""), file("no/such/.wh.a", "")}}, ""},
		{"aufs bookkeeping", layers{{file(".wh..wh.plnk/1.2", "x"), file(".wh..wh.aufs", "x")}}, ""},
		{"through a link", layers{{dir("usr/lib"), symlink("lib", "usr/lib")}, {file("lib/a", "1")}}, "lib -> usr/lib usr/ usr/lib/ usr/lib/a=1"},
		{"through an absolute link", layers{{dir("usr/lib"), symlink("lib", "/usr/lib")}, {file("lib/a", "1")}}, "lib -> /usr/lib usr/ usr/lib/ usr/lib/a=1"},
		{"through a link out of the image", layers{{symlink("out", "../../../etc"), file("out/passwd", "1")}}, "etc/ etc/passwd=1 out -> ../../../etc"},
		{"a link itself is replaced", layers{{file("t", "1"), symlink("l", "t")}, {file("l", "2")}}, "l=2 t=1"},
		{"whiteout through a link", layers{{file("usr/a", "1"), symlink("l", "usr")}, {file("l/.wh.a", "")}}, "l -> usr usr/"},
		{"hard link", layers{{file("a", "1"), hardlink("b", "a")}}, "a=1 b=1"},
		{"hard link across layers", layers{{file("a", "1")}, {hardlink("b", "a")}, {file("a", "2")}}, "a=2 b=1"},
		{"hard link outlives its name", layers{{file("a", "1")}, {hardlink("b", "a")}, {file(".wh.a", "")}}, "b=1"},
		{"hard link to a link", layers{{symlink("a", "x"), hardlink("b", "/a")}}, "a -> x b -> x"},
		{"devices are omitted", layers{{{Typeflag: tar.TypeChar, Name: "null"}, {Typeflag: tar.TypeFifo, Name: "pipe"}, file("a", "1")}}, "a=1"},
		{"a device hides what was there", layers{{file("a", "1")}, {{Typeflag: tar.TypeBlock, Name: "a"}}}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := newMerger(t, layer.DefaultLimits())
			for _, l := range c.layers {
				if err := m.Apply(t.Context(), bytes.NewReader(pack(t, l...))); err != nil {
					t.Fatal(err)
				}
			}
			if got := show(t, m.Root()); got != c.want {
				t.Fatalf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestMetadata(t *testing.T) {
	when := time.Unix(1700000000, 123456789)
	h := file("bin/su", "x")
	h.Mode, h.Uid, h.Gid, h.ModTime, h.Format = 0o6755, 3_000_000_000, 70000, when, tar.FormatPAX
	tmp := dir("tmp")
	tmp.Mode = 0o1777
	root := dir("./")
	root.Mode, root.Uid = 0o700, 7
	m := newMerger(t, layer.DefaultLimits())
	if err := m.Apply(t.Context(), bytes.NewReader(pack(t, h, tmp, root))); err != nil {
		t.Fatal(err)
	}
	n, _, err := tree.Lookup(m.Root(), "/bin/su")
	if err != nil {
		t.Fatal(err)
	}
	if n.Mode != erofs.TypeRegular|0o755 || n.UID != 3_000_000_000 || n.GID != 70000 || n.Mtime != when.Unix() || int(n.MtimeNsec) != when.Nanosecond() {
		t.Fatalf("bin/su: %+v", n)
	}
	if got := m.Root().Children["tmp"].Mode; got != erofs.TypeDir|0o1777 {
		t.Fatalf("tmp: %o", got)
	}
	if m.Root().Mode != erofs.TypeDir|0o700 || m.Root().UID != 7 {
		t.Fatalf("root: %+v", m.Root())
	}
	if s := m.Stats(); s.SetID != 1 || s.Entries != 3 || s.Layers != 1 || s.Bytes != 1 {
		t.Fatalf("stats: %+v", s)
	}
}

func TestHostile(t *testing.T) {
	limits := layer.Limits{Bytes: 1 << 20, FileSize: 1 << 16, Entries: 50, Path: 300, Depth: 8}
	var many []tar.Header
	for i := range 51 {
		many = append(many, dir(fmt.Sprint(i)))
	}
	var implied []tar.Header
	for i := range 10 {
		implied = append(implied, file(fmt.Sprintf("%d/a/b/c/d/e/f", i), ""))
	}
	cut := pack(t, file("a", strings.Repeat("x", 3000)))
	cases := map[string][]byte{
		"dot dot":                   pack(t, file("../a", "1")),
		"dot dot inside":            pack(t, file("a/../../b", "1")),
		"hard link out":             pack(t, hardlink("a", "../../etc/passwd")),
		"hard link to nothing":      pack(t, hardlink("a", "b")),
		"hard link to folder":       pack(t, dir("d"), hardlink("a", "d")),
		"hard link to root":         pack(t, hardlink("a", "/")),
		"below a file":              pack(t, file("a", "1"), file("a/b", "1")),
		"link loop":                 pack(t, symlink("a", "b"), symlink("b", "a"), file("a/c", "1")),
		"root is a file":            pack(t, file(".", "")),
		"long component":            pack(t, file(strings.Repeat("n", 256), "")),
		"long path":                 pack(t, file(strings.Repeat("n/", 160)+"n", "")),
		"deep path":                 pack(t, file("1/2/3/4/5/6/7/8/9", "")),
		"deep through links":        pack(t, dir("1/2/3/4/5"), symlink("l", "1/2/3/4/5"), file("l/6/7/8/9/10", "")),
		"whiteout of dot dot":       pack(t, file(".wh...", "")),
		"empty whiteout":            pack(t, file(".wh.", "")),
		"empty link":                pack(t, symlink("a", "")),
		"too many entries":          pack(t, many...),
		"too many implied folders":  pack(t, implied...),
		"file too big":              pack(t, file("a", strings.Repeat("x", 1<<16+1))),
		"negative owner":            pack(t, tar.Header{Typeflag: tar.TypeReg, Name: "a", Uid: -1, Format: tar.FormatGNU}),
		"unknown type":              pack(t, tar.Header{Typeflag: 'Z', Name: "a"}),
		"cut in a file":             cut[:1000],
		"cut in a header":           cut[:100],
		"not a tar":                 bytes.Repeat([]byte("junk"), 1000),
		"too much after the end":    append(pack(t), make([]byte, 1<<20)...),
		"sparse file of a petabyte": gnuSparse(1 << 50),
	}
	for name, data := range cases {
		t.Run(name, func(t *testing.T) {
			m := newMerger(t, limits)
			err := m.Apply(t.Context(), bytes.NewReader(data))
			if fault.KindOf(err) != fault.Invalid {
				t.Fatalf("want an Invalid fault, got %v", err)
			}
		})
	}
}

// TestStepBomb has links that multiply the work of every path through them.
func TestStepBomb(t *testing.T) {
	entries := []tar.Header{dir("d"), symlink("l0", "d")}
	for i := range 39 {
		entries = append(entries, symlink(fmt.Sprintf("l%d", i+1), strings.Repeat("d/../", 400)+fmt.Sprintf("l%d", i)))
	}
	entries = append(entries, file("l39/x", ""))
	err := newMerger(t, layer.DefaultLimits()).Apply(t.Context(), bytes.NewReader(pack(t, entries...)))
	if fault.KindOf(err) != fault.Invalid {
		t.Fatalf("want an Invalid fault, got %v", err)
	}
}

// TestTotalSize shows that the limit is on all layers together.
func TestTotalSize(t *testing.T) {
	m := newMerger(t, layer.Limits{Bytes: 1 << 20})
	one := pack(t, file("a", strings.Repeat("x", 600<<10)))
	if err := m.Apply(t.Context(), bytes.NewReader(one)); err != nil {
		t.Fatal(err)
	}
	if err := m.Apply(t.Context(), bytes.NewReader(one)); fault.KindOf(err) != fault.Invalid {
		t.Fatalf("want an Invalid fault, got %v", err)
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := newMerger(t, layer.DefaultLimits()).Apply(ctx, bytes.NewReader(pack(t, file("a", "1"))))
	if err != context.Canceled {
		t.Fatalf("want context.Canceled, got %v", err)
	}
}

func TestDecompress(t *testing.T) {
	plain := pack(t, file("a", "1"))
	var gz, zs bytes.Buffer
	g := gzip.NewWriter(&gz)
	g.Write(plain)
	g.Close()
	z, err := zstd.NewWriter(&zs)
	if err != nil {
		t.Fatal(err)
	}
	z.Write(plain)
	z.Close()
	for name, data := range map[string][]byte{"plain": plain, "gzip": gz.Bytes(), "zstd": zs.Bytes()} {
		t.Run(name, func(t *testing.T) {
			r, err := layer.Decompress(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			m := newMerger(t, layer.DefaultLimits())
			if err := m.Apply(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if got := show(t, m.Root()); got != "a=1" {
				t.Fatal(got)
			}
		})
		if name == "plain" {
			continue
		}
		t.Run(name+" cut", func(t *testing.T) {
			r, err := layer.Decompress(bytes.NewReader(data[:len(data)-5]))
			if err == nil {
				defer r.Close()
				err = newMerger(t, layer.DefaultLimits()).Apply(t.Context(), r)
			}
			if fault.KindOf(err) != fault.Invalid {
				t.Fatalf("want an Invalid fault, got %v", err)
			}
		})
	}
	for _, head := range []string{"BZh91AY", "\xfd7zXZ\x00"} {
		if _, err := layer.Decompress(strings.NewReader(head)); fault.KindOf(err) != fault.Invalid {
			t.Fatalf("%q: want an Invalid fault, got %v", head, err)
		}
	}
}

// gnuSparse is a tar stream with one file that is all hole, size bytes long,
// in the form old GNU tar wrote.
func gnuSparse(size int64) []byte {
	b := make([]byte, 512*3)
	octal := func(field []byte, v int64) { copy(field, fmt.Sprintf("%0*o", len(field)-1, v)) }
	copy(b, "sparse")
	octal(b[100:108], 0o644)
	octal(b[108:116], 0)
	octal(b[116:124], 0)
	octal(b[124:136], 0)
	octal(b[136:148], 0)
	b[156] = tar.TypeGNUSparse
	copy(b[257:], "ustar  \x00")
	binary := func(field []byte, v int64) {
		for i := range field {
			field[len(field)-1-i] = byte(v)
			v >>= 8
		}
		field[0] |= 0x80
	}
	binary(b[386:398], size) // the one extent: nothing, at the end
	binary(b[398:410], 0)
	binary(b[483:495], size)
	copy(b[148:156], "        ")
	sum := 0
	for _, c := range b[:512] {
		sum += int(c)
	}
	copy(b[148:156], fmt.Sprintf("%06o\x00 ", sum))
	return b
}
