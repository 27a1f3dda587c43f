package sandboxtest

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

func testFiles(s *suite) {
	p := s.caller("files")
	s.destroy(p)
	s.make(p, "x", nil)
	s.make(p, "y", nil)
	h, other := s.open(p, "x"), s.open(p, "y")
	s.group(h, []groupTest{
		{"read", testRead},
		{"create", testCreate},
		{"content that fails changes nothing", testCutOff},
		{"big ones", testBig},
		{"names are bytes", testNames},
		{"stat and list", testStat},
		{"glob", testGlob},
		{"move, remove, make", testMove},
		{"refused by kind", testRefused},
		{"pack and unpack", testPack},
		{"skills", testSkills},
		{"watch", testWatch},
		{"a folder is copied to another sandbox", func(u *use) { testCopyFolder(u, other) }},
	})
}

func (u *use) create(path, content string) {
	u.Helper()
	if _, err := u.Create(u.Context(), path, file.CreateOptions{}, strings.NewReader(content)); err != nil {
		u.Fatal(err)
	}
}

func (u *use) read(path string, offset, limit int64) string {
	u.Helper()
	_, r, err := u.Read(u.Context(), path, offset, limit)
	if err != nil {
		u.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		u.Fatal(err)
	}
	return string(data)
}

func testRead(u *use) {
	u.create("read", "0123456789")
	for _, try := range []struct {
		offset, limit int64
		want          string
	}{{0, -1, "0123456789"}, {3, 4, "3456"}, {8, 100, "89"}, {10, -1, ""}, {99, 5, ""}, {0, 0, ""}} {
		equal(u.T, "a part", u.read("read", try.offset, try.limit), try.want)
	}
	u.shell("ln -s read link")
	equal(u.T, "by a link", u.read("link", 0, -1), "0123456789")
	if u.read("/proc/version", 0, -1) == "" {
		u.Error("a file that says it has no content has none")
	}
	info, r, err := u.Read(u.Context(), "/home/user/read", 5, -1)
	if err != nil || info.Size != 10 || info.Path != "/home/user/read" || info.Kind != file.Regular {
		u.Errorf("described as %+v, %v", info, err)
	}
	r.Close()
}

func testCreate(u *use) {
	size := func(path string, o file.CreateOptions, content string, want int64) {
		u.Helper()
		if n, err := u.Create(u.Context(), path, o, strings.NewReader(content)); err != nil || n != want {
			u.Errorf("%s has %d bytes, not %d; %v", path, n, want, err)
		}
	}
	size("new/folder/file", file.CreateOptions{}, "abc", 3)
	size("new/folder/file", file.CreateOptions{Append: true}, "defg", 7)
	size("empty", file.CreateOptions{}, "", 0)
	size("script", file.CreateOptions{Mode: 0o755}, "#!/bin/sh\necho ran\n", 19)
	equal(u.T, "appended", u.read("new/folder/file", 0, -1), "abcdefg")
	equal(u.T, "modes and owners", u.shell("./script; stat -c '%a %u %g' script empty"), "ran\n755 1000 1000\n644 1000 1000")
	size("script", file.CreateOptions{}, "#!/bin/sh\necho again\n", 21)
	equal(u.T, "its mode stays", u.shell("./script"), "again")
	u.shell("echo x > target; ln -s target tolink")
	u.create("tolink", "through")
	equal(u.T, "through a link", u.shell("cat target; readlink tolink"), "throughtarget")
	u.create("/tmp/x", "tmp")
	equal(u.T, "in /tmp", u.read("/tmp/x", 0, -1), "tmp")
}

func testCutOff(u *use) {
	u.create("whole", "before")
	broken := errors.New("the source broke")
	r := io.MultiReader(strings.NewReader(strings.Repeat("x", 1<<20)), failing{broken})
	if _, err := u.Create(u.Context(), "whole", file.CreateOptions{}, r); !errors.Is(err, broken) {
		u.Errorf("got the error %v", err)
	}
	ctx, cancel := context.WithCancel(u.Context())
	_, err := u.Create(ctx, "whole", file.CreateOptions{}, readFunc(func(p []byte) (int, error) { cancel(); return len(p), nil }))
	if !errors.Is(err, context.Canceled) {
		u.Errorf("got the error %v", err)
	}
	eventually(u.T, "nothing is left behind", func() bool { return u.shell("ls -A | grep -c atoll- || true") == "0" })
	equal(u.T, "it holds", u.read("whole", 0, -1), "before")
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

func testBig(u *use) {
	const size = 24 << 20
	content := func() io.Reader {
		var seed [32]byte
		return io.LimitReader(rand.NewChaCha8(seed), size)
	}
	sum := func(r io.Reader) string {
		u.Helper()
		h := sha256.New()
		if n, err := io.Copy(h, r); err != nil || n != size {
			u.Errorf("%d bytes, %v", n, err)
		}
		return string(h.Sum(nil))
	}
	if n, err := u.Create(u.Context(), "big", file.CreateOptions{}, content()); err != nil || n != size {
		u.Fatal(n, err)
	}
	_, r, err := u.Read(u.Context(), "big", 0, -1)
	if err != nil {
		u.Fatal(err)
	}
	defer r.Close()
	if sum(r) != sum(content()) {
		u.Error("another content comes back")
	}
	for range 3 { // closed early
		_, r, err := u.Read(u.Context(), "big", 0, -1)
		if err != nil {
			u.Fatal(err)
		}
		if _, err := io.ReadFull(r, make([]byte, 10)); err != nil {
			u.Error(err)
		}
		r.Close()
	}
	ctx, cancel := context.WithCancel(u.Context())
	_, r, err = u.Read(ctx, "big", 0, -1)
	if err != nil {
		u.Fatal(err)
	}
	cancel()
	if _, err := io.Copy(io.Discard, r); err == nil {
		u.Error("it is read on after the end of its context")
	}
	r.Close()
	if err := u.Remove(u.Context(), "big", false); err != nil {
		u.Error(err)
	}
	_, err = u.Create(u.Context(), "/dev/shm/big", file.CreateOptions{}, io.LimitReader(readFunc(func(p []byte) (int, error) { return len(p), nil }), 1<<30))
	refused(u.T, "more than there is room for", err, fault.Exhausted, "no space")
}

// oddNames are names of files that are more than names.
var oddNames = []string{"\xff\xfe", "line\nbreak", " ", "-rf", "a\\b", "*", "$(id)", "ü", strings.Repeat("n", 255)}

func testNames(u *use) {
	ctx := u.Context()
	for _, name := range oddNames {
		path := "names/" + name
		u.create(path, name)
		equal(u.T, "content", u.read(path, 0, -1), name)
		if f, err := u.Stat(ctx, path); err != nil || f.Path != "/home/user/"+path {
			u.Errorf("%q: %+v, %v", name, f, err)
		}
	}
	var names []string
	l, err := u.List(ctx, "names", file.ListOptions{})
	for _, e := range l.Entries {
		names = append(names, strings.TrimPrefix(e.Path, "/home/user/names/"))
	}
	sorted := slices.Sorted(slices.Values(oddNames))
	if err != nil || !slices.Equal(names, sorted) {
		u.Errorf("listed: %q, %v", names, err)
	}
	g, err := u.Glob(ctx, "names", "*", 0)
	if err != nil || !slices.Equal(g.Paths, sorted) {
		u.Errorf("globbed: %q, %v", g.Paths, err)
	}
	if err := u.Move(ctx, "names/\xff\xfe", "names/\xfd", false); err != nil {
		u.Error(err)
	}
	if err := u.Mkdir(ctx, "names/\xfc"); err != nil {
		u.Error(err)
	}
	u.shell(`ln -s $'\xfb' names/link`)
	if f, err := u.Stat(ctx, "names/link"); err != nil || f.Target != "\xfb" {
		u.Errorf("a link: %+v, %v", f, err)
	}
	_, err = u.Stat(ctx, "names/\xfa")
	refused(u.T, "one that is not there", err, fault.NotFound, "")
	if err := u.Remove(ctx, "names", true); err != nil {
		u.Error(err)
	}
}

func testStat(u *use) {
	u.shell("mkdir -p look/deep/er; cd look; echo hello > file; chmod 4751 file; touch -d @1000000000.5 file; ln -s ../x link; mkfifo pipe; echo x > deep/a; echo x > deep/er/b")
	f, err := u.Stat(u.Context(), "look/file")
	if err != nil || f.Kind != file.Regular || f.Size != 6 || f.Mode != 0o751|fs.ModeSetuid || f.Modified.UnixMilli() != 1000000000500 || f.UID != 1000 || f.GID != 1000 || f.Path != "/home/user/look/file" {
		u.Errorf("%+v, %v", f, err)
	}
	if f, err = u.Stat(u.Context(), "/home/user/look/link"); err != nil || f.Kind != file.Link || f.Target != "../x" {
		u.Errorf("%+v, %v", f, err)
	}
	for _, try := range []struct {
		o    file.ListOptions
		want []string
		more bool
	}{
		{file.ListOptions{}, []string{"deep:folder", "file:file", "link:link", "pipe:other"}, false},
		{file.ListOptions{Depth: 9}, []string{"deep:folder", "deep/a:file", "deep/er:folder", "deep/er/b:file", "file:file", "link:link", "pipe:other"}, false},
		{file.ListOptions{Depth: 9, Limit: 3}, []string{"deep:folder", "deep/a:file", "deep/er:folder"}, true},
	} {
		l, err := u.List(u.Context(), "look", try.o)
		var got []string
		for _, e := range l.Entries {
			got = append(got, strings.TrimPrefix(e.Path, "/home/user/look/")+":"+e.Kind.String())
		}
		if err != nil || l.Truncated != try.more || !slices.Equal(got, try.want) && !try.more {
			u.Errorf("%+v: %q, %v", try.o, got, err)
		}
	}
}

func testGlob(u *use) {
	u.shell("mkdir -p glob/src/sub/.hidden glob/b; cd glob; touch -- a.txt B.txt .dot src/m.py src/sub/n.py src/sub/.hidden/o.py 'br[1]' b/x")
	for pattern, want := range map[string][]string{
		"*.txt":            {"B.txt", "a.txt"},
		"**/*.py":          {"src/m.py", "src/sub/.hidden/o.py", "src/sub/n.py"},
		"{a,B}.txt":        {"B.txt", "a.txt"},
		"br\\[1\\]":        {"br[1]"},
		"../glob/a.*":      {"../glob/a.txt"},
		"/home/user/g*/b*": {"/home/user/glob/b", "/home/user/glob/br[1]"},
		"none*":            {},
	} {
		got, err := u.Glob(u.Context(), "/home/user/glob", pattern, 0)
		if err != nil || !slices.Equal(got.Paths, want) || got.Truncated {
			u.Errorf("%s: %q, %v", pattern, got.Paths, err)
		}
	}
	got, err := u.Glob(u.Context(), "glob", "*", 2)
	if err != nil || !slices.Equal(got.Paths, []string{".dot", "B.txt"}) || !got.Truncated {
		u.Errorf("limited: %+v, %v", got, err)
	}
}

func testMove(u *use) {
	ctx := u.Context()
	u.shell("mkdir -p mv/full/deep mv/empty; cd mv; echo 1 > one; echo 2 > two; echo 3 > full/deep/three; chmod 750 full")
	refused(u.T, "onto another", u.Move(ctx, "mv/one", "mv/two", false), fault.Conflict, "exists")
	for _, move := range []struct {
		from, to string
		replace  bool
	}{
		{"mv/one", "mv/two", true},
		{"mv/two", "mv/new/folder/two", false},
		{"mv/full", "/tmp/full", false}, // another file system
	} {
		if err := u.Move(ctx, move.from, move.to, move.replace); err != nil {
			u.Errorf("%+v: %v", move, err)
		}
	}
	equal(u.T, "moved", u.shell("cat mv/new/folder/two /tmp/full/deep/three; stat -c %a /tmp/full; ls mv"), "1\n3\n750\nempty\nnew")
	refused(u.T, "a folder with something in it", u.Remove(ctx, "mv/new", false), fault.Conflict, "not empty")
	if err := errors.Join(u.Remove(ctx, "mv/empty", false), u.Remove(ctx, "mv", true), u.Mkdir(ctx, "made/for/all"), u.Mkdir(ctx, "made/for/all")); err != nil {
		u.Error(err)
	}
	equal(u.T, "then there is", u.shell("ls -d mv made/for/all 2>/dev/null || true"), "made/for/all")
}

func testRefused(u *use) {
	ctx := u.Context()
	u.shell("mkfifo fifo; ln -s /etc/shadow shadow; ln -s loop loop; touch plain")
	for path, kinds := range map[string]struct{ read, create, list fault.Kind }{
		"not-there/x": {fault.NotFound, 0, fault.NotFound},
		"/home":       {fault.Invalid, fault.Invalid, 0},
		"fifo":        {fault.Invalid, fault.Invalid, fault.Invalid},
		"shadow":      {fault.Forbidden, fault.Forbidden, fault.Invalid},
		"":            {fault.Invalid, fault.Invalid, fault.Invalid},
		"a\x00b":      {fault.Invalid, fault.Invalid, fault.Invalid},
		"plain/x":     {fault.Invalid, fault.Invalid, fault.Invalid},
		"/root":       {fault.Forbidden, fault.Invalid, fault.Forbidden},
		"/etc/new":    {fault.NotFound, fault.Forbidden, fault.NotFound},
	} {
		_, r, err := u.Read(ctx, path, 0, -1)
		if err == nil {
			r.Close()
		}
		if fault.KindOf(err) != kinds.read || err == nil {
			u.Errorf("read %q: %v", path, err)
		}
		if kinds.create != 0 {
			_, err = u.Create(ctx, path, file.CreateOptions{}, strings.NewReader("x"))
			if got := fault.KindOf(err); got != kinds.create && got != fault.Forbidden || err == nil {
				u.Errorf("create %q: %v", path, err)
			}
		}
		if kinds.list != 0 {
			_, err = u.List(ctx, path, file.ListOptions{})
			if got := fault.KindOf(err); got != kinds.list && got != fault.Forbidden || err == nil {
				u.Errorf("list %q: %v", path, err)
			}
		}
	}
	_, _, err := u.Read(ctx, "plain", -1, -1)
	refused(u.T, "before its beginning", err, fault.Invalid, "begins at 0")
	_, err = u.Glob(ctx, "/", "[a", 0)
	refused(u.T, "no pattern", err, fault.Invalid, "no pattern")
	_, err = u.Glob(ctx, "/", strings.Repeat("{a,b}", 30), 0)
	refused(u.T, "a pattern that stands for a billion others", err, fault.Invalid, "use fewer braces")
	_, err = u.Glob(ctx, "not-there", "*", 0)
	refused(u.T, "no folder to look in", err, fault.NotFound, "not-there")
	refused(u.T, "remove the home", u.Remove(ctx, "/home/user", true), fault.Forbidden, "stays")
	refused(u.T, "remove nothing", u.Remove(ctx, "not-there", true), fault.NotFound, "not-there")
	refused(u.T, "move nothing", u.Move(ctx, "not-there", "x", false), fault.NotFound, "not-there")
	refused(u.T, "make a closed one", u.Mkdir(ctx, "/etc/x"), fault.Forbidden, "/etc/x")
	_, err = u.Pack(ctx, "not-there")
	refused(u.T, "pack nothing", err, fault.NotFound, "not-there")
	_, err = u.Unpack(ctx, "unpacked", strings.NewReader("this is no tar archive, whatever else it may be, and it is long enough"))
	refused(u.T, "unpack what is no archive", err, fault.Invalid, "")
	_, err = u.Watch(ctx, "not-there", false)
	refused(u.T, "watch nothing", err, fault.NotFound, "not-there")
}

func testPack(u *use) {
	u.shell(`mkdir -p tree/sub; cd tree; head -c 300000 /dev/urandom > big; echo x > $'\xff'; ln -s sub/y link; ln big hard; chmod 640 big; touch -d @1000000000.25 sub $'\xff'; touch -hd @1000000000.5 link; mkdir empty`)
	a, err := u.Pack(u.Context(), "tree")
	if err != nil {
		u.Fatal(err)
	}
	data, err := io.ReadAll(a)
	if n := a.Counts(); err != nil || n.Files != 7 || n.Bytes < 300_002 {
		u.Errorf("packed %+v, %v", n, err)
	}
	a.Close()
	first, err := tar.NewReader(bytes.NewReader(data)).Next()
	if err != nil || strings.TrimSuffix(first.Name, "/") != "." || first.Typeflag != tar.TypeDir {
		u.Errorf("it begins with %+v, %v", first, err)
	}
	n, err := u.Unpack(u.Context(), "again", bytes.NewReader(data))
	if err != nil || n.Files != 7 {
		u.Errorf("unpacked %+v, %v", n, err)
	}
	equal(u.T, "the difference", u.shell(`diff -r tree again; cd again; stat -c %a big; stat -c %.9Y sub $'\xff' link; readlink link; cat $'\xff'`), "640\n1000000000.250000000\n1000000000.250000000\n1000000000.500000000\nsub/y\nx")
	broken := errors.New("the source broke")
	if _, err := u.Unpack(u.Context(), "cut", io.MultiReader(bytes.NewReader(data[:200_000]), failing{broken})); !errors.Is(err, broken) {
		u.Errorf("cut off: %v", err)
	}
	_, err = u.Unpack(u.Context(), "cut", bytes.NewReader(data[:200_000]))
	refused(u.T, "half an archive", err, fault.Invalid, "")
	u.create("alone", "one file")
	if a, err = u.Pack(u.Context(), "alone"); err != nil {
		u.Fatal(err)
	}
	defer a.Close()
	if _, err := u.Unpack(u.Context(), "copied", a); err != nil {
		u.Error(err)
	}
	equal(u.T, "one file", u.read("copied", 0, -1), "one file")
}

func testSkills(u *use) {
	var text bytes.Buffer
	put := func(files map[string]string) {
		text.Reset()
		w := tar.NewWriter(&text)
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o555, Size: int64(len(files[name]))}); err != nil {
				u.Fatal(err)
			}
			io.WriteString(w, files[name]) //nolint:errcheck // a buffer takes all
		}
		if err := errors.Join(w.Close(), u.PutSkills(u.Context(), &text)); err != nil {
			u.Fatal(err)
		}
	}
	put(map[string]string{"one/run": "#!/bin/sh\necho ran", "one/a/b": "first", "two/c": "c"})
	put(map[string]string{"one/a/b": "second"})
	const tries = `cd /skills; one/run; cat one/a/b two/c; stat -c %u one/a one/run; for f in new one/new one/a/b; do echo x 2>/dev/null > $f && echo wrote; done; rm -rf one two 2>/dev/null; ls`
	equal(u.T, "what programs make of it", u.shell(tries), "ran\nsecondc0\n0\none\ntwo")
	text.Reset()
	w := tar.NewWriter(&text)
	if err := w.WriteHeader(&tar.Header{Name: "../etc/x", Mode: 0o644}); err != nil {
		u.Fatal(err)
	}
	refused(u.T, "a file elsewhere", u.PutSkills(u.Context(), &text), fault.Forbidden, "leads out")
}

func testWatch(u *use) {
	u.shell("mkdir -p watched/sub; echo x > watched/old")
	e, err := u.Watch(u.Context(), "watched", true)
	if err != nil {
		u.Fatal(err)
	}
	events := make(chan file.Event, 100)
	ended := make(chan error, 1)
	go func() {
		for {
			event, err := e.Next()
			if err != nil {
				ended <- err
				return
			}
			events <- event
		}
	}()
	u.shell("cd watched; echo y > sub/new; echo z >> old; rm sub/new; mkdir folder")
	want := []file.Event{
		{Change: file.Created, Path: "/home/user/watched/sub/new"}, {Change: file.Modified, Path: "/home/user/watched/old"},
		{Change: file.Removed, Path: "/home/user/watched/sub/new"}, {Change: file.Created, Path: "/home/user/watched/folder", Folder: true},
	}
	var seen []file.Event
	for late := time.After(20 * time.Second); len(want) > 0; {
		select {
		case event := <-events:
			seen = append(seen, event)
			want = slices.DeleteFunc(want, func(w file.Event) bool { return w == event })
		case <-late:
			u.Fatalf("not seen: %v; seen: %v", want, seen)
		}
	}
	if err := e.Close(); err != nil {
		u.Error(err)
	}
	select {
	case err := <-ended:
		if err == nil {
			u.Error("Next returned an event after Close")
		}
	case <-time.After(20 * time.Second):
		u.Error("Next does not end with Close")
	}
}

func testCopyFolder(u *use, other sandbox.Handle) {
	u.shell(`mkdir -p copied-from/sub; cd copied-from; head -c 100000 /dev/urandom > big; echo x > $'\xff'; ln -s big link; chmod 750 sub`)
	sums := `cd "$1"; find . | sort | tr '\n' ' '; cat big $'\xff' | sha256sum; readlink link; stat -c %a sub`
	want := u.shell("set -- copied-from; " + sums)
	there := &use{u.T, other.Guest(), other}
	for _, name := range []string{"by-host", "by-stream"} {
		done := false
		if name == "by-host" { // which it may leave undone
			var err error
			if _, done, err = u.h.CopyFolder(u.Context(), "/home/user/copied-from", other, "/home/user/"+name); err != nil {
				u.Errorf("%s: %v", name, err)
			}
		}
		if !done {
			a, err := u.Pack(u.Context(), "copied-from")
			if err != nil {
				u.Fatal(err)
			}
			if _, err := there.Unpack(u.Context(), name, a); err != nil {
				u.Error(err)
			}
			a.Close()
		}
		equal(u.T, name, there.shell("set -- "+name+"; "+sums), want)
	}
}
