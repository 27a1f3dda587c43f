package daemonclient_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/guest/daemonclient"
	"github.com/atoll-run/atoll/internal/guest/daemonclient/clienttest"
)

func TestFiles(t *testing.T) {
	s := clienttest.New(t)
	c := s.Dial(t)
	for _, part := range []struct {
		name string
		test func(*testing.T, *daemonclient.Client)
	}{
		{"read", testRead},
		{"create", testCreate},
		{"create in a place", testCreatePlaces},
		{"cut off", func(t *testing.T, c *daemonclient.Client) { testCutOff(t, c, s) }},
		{"stat and list", testStat},
		{"glob", testGlob},
		{"remove and move", testMove},
		{"names", testNames},
		{"watch", testWatch},
		{"tar", testTar},
		{"tar from elsewhere", testForeignTar},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, c) })
	}
}

func create(t testing.TB, c *daemonclient.Client, path, content string) {
	t.Helper()
	if _, err := c.Create(t.Context(), path, file.CreateOptions{}, strings.NewReader(content)); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, c *daemonclient.Client, path string, offset, limit int64) string {
	t.Helper()
	_, r, err := c.Read(t.Context(), path, offset, limit)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func testRead(t *testing.T, c *daemonclient.Client) {
	create(t, c, "read", "0123456789")
	for _, try := range []struct {
		offset, limit int64
		want          string
	}{{0, -1, "0123456789"}, {3, 4, "3456"}, {8, 100, "89"}, {10, -1, ""}, {99, 5, ""}, {0, 0, ""}} {
		if got := read(t, c, "read", try.offset, try.limit); got != try.want {
			t.Errorf("%d, %d: %q", try.offset, try.limit, got)
		}
	}
	if got := read(t, c, "/proc/self/comm", 0, -1); got != "atoll-guestd\n" {
		t.Errorf("a file without a size holds %q", got)
	}
	run(t, c, "mkfifo fifo; ln -s read link; ln -s /etc/shadow shadow")
	if got := read(t, c, "link", 0, -1); got != "0123456789" {
		t.Errorf("a link leads to %q", got)
	}
	for path, want := range map[string]fault.Kind{
		"not-there": fault.NotFound, "/home": fault.Invalid, "fifo": fault.Invalid, "/dev/zero": fault.Invalid, "shadow": fault.Forbidden,
		"": fault.Invalid, "a\x00b": fault.Invalid, "/proc/1/mem": fault.Forbidden, "read/x": fault.Invalid,
	} {
		_, _, err := c.Read(t.Context(), path, 0, -1)
		if fault.KindOf(err) != want || err == nil {
			t.Errorf("%q: %v", path, err)
		}
	}
	_, _, err := c.Read(t.Context(), "read", -1, -1)
	kind(t, err, fault.Invalid, "begins at 0")
	// Closed early: the connection is not used again.
	create(t, c, "long", strings.Repeat("x", 5<<20))
	for range 5 {
		_, r, err := c.Read(t.Context(), "long", 0, -1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(r, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		r.Close()
	}
}

func testCreate(t *testing.T, c *daemonclient.Client) {
	size := func(path string, o file.CreateOptions, content string) int64 {
		t.Helper()
		n, err := c.Create(t.Context(), path, o, strings.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := size("new/folder/file", file.CreateOptions{}, "abc"); n != 3 {
		t.Error(n)
	}
	if n := size("new/folder/file", file.CreateOptions{Append: true}, "defg"); n != 7 {
		t.Error(n)
	}
	if n := size("other/folder/file", file.CreateOptions{Append: true}, "x"); n != 1 {
		t.Error(n)
	}
	if n := size("empty", file.CreateOptions{}, ""); n != 0 {
		t.Error(n)
	}
	if got := read(t, c, "new/folder/file", 0, -1); got != "abcdefg" {
		t.Error(got)
	}
	size("script", file.CreateOptions{Mode: 0o755}, "#!/bin/sh\necho ran\n")
	if got := run(t, c, "./script; stat -c '%a %u %g' script new empty"); got.out[0] != "ran\n755 1000 1000\n755 1000 1000\n644 1000 1000\n" {
		t.Errorf("got %q, %q", got.out[0], got.out[1])
	}
	size("script", file.CreateOptions{}, "#!/bin/sh\necho again\n") // its mode stays
	size("secret", file.CreateOptions{Mode: 0o600}, "x")
	size("wide", file.CreateOptions{Mode: 0o666}, "x")
	if got := run(t, c, "./script; stat -c %a secret wide; ls -A | grep -c atoll-"); got.out[0] != "again\n600\n666\n0\n" {
		t.Errorf("got %q, %q", got.out[0], got.out[1])
	}
	// What others have open stays as it was for them.
	if got := run(t, c, "echo old > open; exec 5<open; echo ready > mark; cat <&5"); got.out[0] != "old\n" {
		t.Error(got)
	}
}

func testCreatePlaces(t *testing.T, c *daemonclient.Client) {
	run(t, c, "mkdir places; cd places; echo x > target; ln -s target link; ln -s nowhere dangling; mkfifo fifo; mkdir folder; ln -s loop loop")
	for path, want := range map[string]fault.Kind{
		"places/folder": fault.Invalid, "places/fifo": fault.Invalid, "places/loop": fault.Invalid, "/etc/passwd": fault.Forbidden, "/etc/new": fault.Forbidden,
		"/proc/new": fault.NotFound, "places/target/x": fault.Invalid, "/dev/null": fault.Invalid, "/home/user/places/": fault.Invalid,
	} {
		_, err := c.Create(t.Context(), path, file.CreateOptions{}, strings.NewReader("y"))
		if err == nil || fault.KindOf(err) != want && fault.KindOf(err) != fault.Forbidden {
			t.Errorf("%s: %v", path, err)
		}
		if _, err := c.Create(t.Context(), path, file.CreateOptions{Append: true}, strings.NewReader("y")); err == nil {
			t.Errorf("%s was appended to", path)
		}
	}
	create(t, c, "places/link", "through")
	create(t, c, "places/dangling", "made")
	if got := run(t, c, "cd places; cat target nowhere; readlink link dangling"); got.out[0] != "throughmadetarget\nnowhere\n" {
		t.Errorf("got %q", got.out)
	}
	// Refused early, with much to come.
	_, err := c.Create(t.Context(), "/etc/passwd", file.CreateOptions{}, io.LimitReader(zeros{}, 1<<30))
	kind(t, err, fault.Forbidden, "/etc/passwd")
	// More than there is room for.
	_, err = c.Create(t.Context(), "/dev/shm/big", file.CreateOptions{}, io.LimitReader(zeros{}, 1<<30))
	kind(t, err, fault.Exhausted, "no space")
	if got := run(t, c, "ls -A /dev/shm | wc -l"); got.out[0] != "0\n" {
		t.Errorf("it left %q", got.out[0])
	}
	create(t, c, "/tmp/x", "tmp")
	if got := read(t, c, "/tmp/x", 0, -1); got != "tmp" {
		t.Error(got)
	}
}

// testCutOff: content that does not come whole changes nothing.
func testCutOff(t *testing.T, c *daemonclient.Client, s *clienttest.Sandbox) {
	create(t, c, "whole", "before")
	broken := errors.New("the source broke")
	r := io.MultiReader(strings.NewReader(strings.Repeat("x", 1<<20)), readError{broken})
	if _, err := c.Create(t.Context(), "whole", file.CreateOptions{}, r); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := c.Create(ctx, "whole", file.CreateOptions{}, readFunc(func(p []byte) (int, error) { cancel(); return len(p), nil }))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	for range 200 { // until it has noticed
		if got := run(t, c, "ls -A | grep -c atoll-"); got.out[0] == "0\n" {
			break
		}
	}
	if got := read(t, c, "whole", 0, -1); got != "before" {
		t.Errorf("it holds %d bytes", len(got))
	}
	if left, _ := filepath.Glob(filepath.Join(s.Home, ".atoll-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

type readError struct{ error }

func (e readError) Read([]byte) (int, error) { return 0, e.error }

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

func testStat(t *testing.T, c *daemonclient.Client) {
	run(t, c, "mkdir -p look/deep/er; cd look; echo hello > file; chmod 4751 file; touch -d @1000000000.5 file; ln -s ../x link; mkfifo pipe; echo x > deep/a; echo x > deep/er/b")
	f, err := c.Stat(t.Context(), "look/file")
	if err != nil || f.Kind != file.Regular || f.Size != 6 || f.Mode != 0o751|fs.ModeSetuid || f.Modified.UnixMilli() != 1000000000500 || f.UID != 1000 || f.Path != "/home/user/look/file" {
		t.Errorf("%+v, %v", f, err)
	}
	f, err = c.Stat(t.Context(), "/home/user/look/link")
	if err != nil || f.Kind != file.Link || f.Target != "../x" {
		t.Errorf("%+v, %v", f, err)
	}
	paths := func(l file.Listing) (list []string) {
		for _, e := range l.Entries {
			list = append(list, strings.TrimPrefix(e.Path, "/home/user/look/")+":"+e.Kind.String())
		}
		return list
	}
	l, err := c.List(t.Context(), "look", file.ListOptions{})
	if want := []string{"deep:folder", "file:file", "link:link", "pipe:other"}; err != nil || !slices.Equal(paths(l), want) || l.Truncated {
		t.Errorf("%q, %v", paths(l), err)
	}
	l, err = c.List(t.Context(), "look/", file.ListOptions{Depth: 9})
	if want := []string{"deep:folder", "deep/a:file", "deep/er:folder", "deep/er/b:file", "file:file", "link:link", "pipe:other"}; err != nil || !slices.Equal(paths(l), want) {
		t.Errorf("%q, %v", paths(l), err)
	}
	l, err = c.List(t.Context(), "look", file.ListOptions{Depth: 9, Limit: 3})
	if err != nil || len(l.Entries) != 3 || !l.Truncated {
		t.Errorf("%q, %v", paths(l), err)
	}
	for path, want := range map[string]fault.Kind{"look/file": fault.Invalid, "look/no": fault.NotFound, "/root": fault.Forbidden} {
		if _, err := c.List(t.Context(), path, file.ListOptions{}); fault.KindOf(err) != want || err == nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func testGlob(t *testing.T, c *daemonclient.Client) {
	run(t, c, "mkdir -p glob/src/sub/.hidden glob/b; cd glob; touch -- a.txt B.txt .dot src/m.py src/sub/n.py src/sub/.hidden/o.py 'sp ace' '-dash' $'new\\nline' 'br[1]' b/x; ln -s . loop; ln -s src/m.py link.py")
	for pattern, want := range map[string][]string{
		"*.txt":            {"B.txt", "a.txt"},
		"**/*.py":          {"link.py", "src/m.py", "src/sub/.hidden/o.py", "src/sub/n.py"},
		"*":                {"-dash", ".dot", "B.txt", "a.txt", "b", "br[1]", "link.py", "loop", "new\nline", "sp ace", "src"},
		"src/**":           {"src", "src/m.py", "src/sub", "src/sub/.hidden", "src/sub/.hidden/o.py", "src/sub/n.py"},
		"[ab]*":            {"a.txt", "b", "br[1]"},
		"{a,B}.txt":        {"B.txt", "a.txt"},
		"src/m.py":         {"src/m.py"},
		"br\\[1\\]":        {"br[1]"},
		"./*.txt":          {"B.txt", "a.txt"},
		"../glob/a.*":      {"../glob/a.txt"},
		"none*":            {},
		"/home/user/g*/b*": {"/home/user/glob/b", "/home/user/glob/br[1]"},
		"$(id)":            {},
		"?.txt":            {"B.txt", "a.txt"},
	} {
		got, err := c.Glob(t.Context(), "/home/user/glob", pattern, 0)
		if pattern == "./*.txt" && err == nil {
			for i := range got.Paths {
				got.Paths[i] = strings.TrimPrefix(got.Paths[i], "./")
			}
		}
		if err != nil || !slices.Equal(got.Paths, want) || got.Truncated {
			t.Errorf("%s: %q, %v", pattern, got.Paths, err)
		}
	}
	got, err := c.Glob(t.Context(), "glob", "*", 2)
	if err != nil || !slices.Equal(got.Paths, []string{"-dash", ".dot"}) || !got.Truncated {
		t.Errorf("limited: %+v, %v", got, err)
	}
	_, err = c.Glob(t.Context(), "glob", "[a", 0)
	kind(t, err, fault.Invalid, "no pattern")
	_, err = c.Glob(t.Context(), "not-there", "*", 0)
	kind(t, err, fault.NotFound, "not-there")
	if _, err := c.Glob(t.Context(), "/", "/etc/**", 0); err != nil { // with folders that are closed
		t.Error(err)
	}
}

func testMove(t *testing.T, c *daemonclient.Client) {
	ctx := t.Context()
	run(t, c, "mkdir -p mv/full/deep mv/empty; cd mv; echo 1 > one; echo 2 > two; echo 3 > full/deep/three; ln -s /etc out; chmod 750 full")
	kind(t, c.Move(ctx, "mv/one", "mv/two", false), fault.Conflict, "exists")
	kind(t, c.Move(ctx, "mv/none", "mv/x", false), fault.NotFound, "none")
	if err := c.Move(ctx, "mv/one", "mv/two", true); err != nil {
		t.Error(err)
	}
	if err := c.Move(ctx, "mv/two", "mv/new/folder/two", false); err != nil {
		t.Error(err)
	}
	if err := c.Move(ctx, "mv/full", "/tmp/full", false); err != nil { // another file system
		t.Error(err)
	}
	kind(t, c.Move(ctx, "mv/new", "/tmp/full", false), fault.Conflict, "exists")
	if got := run(t, c, "cat mv/new/folder/two /tmp/full/deep/three; stat -c %a /tmp/full; ls mv"); got.out[0] != "1\n3\n750\nempty\nnew\nout\n" {
		t.Errorf("got %q", got.out[0])
	}
	kind(t, c.Remove(ctx, "mv/new", false), fault.Conflict, "not empty")
	kind(t, c.Remove(ctx, "mv/none", true), fault.NotFound, "none")
	kind(t, c.Remove(ctx, "/home/user", true), fault.Forbidden, "stays")
	kind(t, c.Remove(ctx, "/etc/passwd", false), fault.Forbidden, "passwd")
	for _, path := range []string{"mv/empty", "mv/out"} {
		if err := c.Remove(ctx, path, false); err != nil {
			t.Error(err)
		}
	}
	if err := c.Remove(ctx, "mv", true); err != nil {
		t.Error(err)
	}
	if err := c.Mkdir(ctx, "made/for/all"); err != nil {
		t.Error(err)
	}
	if err := c.Mkdir(ctx, "made/for/all"); err != nil {
		t.Error(err)
	}
	kind(t, c.Mkdir(ctx, "/etc/x"), fault.Forbidden, "/etc/x")
	if got := run(t, c, "ls -d mv /etc/hostname made/for/all"); got.out[0] != "/etc/hostname\nmade/for/all\n" && got.out[0] != "made/for/all\n" {
		t.Errorf("got %q", got.out[0])
	}
}

func testNames(t *testing.T, c *daemonclient.Client) {
	for _, name := range []string{"-rf", "a b", "new\nline", "\xff\xfe", "quote'\"", "$(id)", "*", "ünï", strings.Repeat("n", 255), "..."} {
		path := "/home/user/names/" + name
		create(t, c, path, "in "+name)
		if got := read(t, c, path, 0, -1); got != "in "+name {
			t.Errorf("%q holds %q", name, got)
		}
		l, err := c.List(t.Context(), "names", file.ListOptions{})
		if err != nil || len(l.Entries) != 1 || l.Entries[0].Path != path {
			t.Errorf("%q: %+v, %v", name, l, err)
		}
		g, err := c.Glob(t.Context(), "names", "*", 0)
		if err != nil || !slices.Equal(g.Paths, []string{name}) {
			t.Errorf("%q: %+v, %v", name, g, err)
		}
		if err := c.Move(t.Context(), path, "/home/user/names2/"+name, false); err != nil {
			t.Error(err)
		}
		if err := c.Remove(t.Context(), "names2/"+name, false); err != nil {
			t.Error(err)
		}
	}
	_, err := c.Create(t.Context(), "/home/user/"+strings.Repeat("n", 256), file.CreateOptions{}, strings.NewReader(""))
	kind(t, err, fault.Invalid, "too long")
}

func testWatch(t *testing.T, c *daemonclient.Client) {
	run(t, c, "mkdir -p w/sub; echo x > w/there")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	w, err := c.Watch(ctx, "w", true)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	expect := func(what string) {
		t.Helper()
		var seen []string
		for {
			e, err := w.Next()
			if err != nil {
				t.Fatalf("%s did not come, but %q: %v", what, seen, err)
			}
			got := e.Change.String() + " " + strings.TrimPrefix(e.Path, "/home/user/w/")
			if got == what {
				return
			}
			seen = append(seen, got)
		}
	}
	run(t, c, "echo y >> w/there")
	expect("modified there")
	run(t, c, "echo z > w/sub/new")
	expect("created sub/new")
	run(t, c, "mkdir -p w/deep/er/est; echo 1 > w/deep/er/est/file")
	expect("created deep")
	expect("created deep/er/est/file")
	run(t, c, "echo 2 >> w/deep/er/est/file")
	expect("modified deep/er/est/file")
	run(t, c, "mv w/sub w/moved; echo 3 >> w/moved/new")
	expect("removed sub")
	expect("created moved")
	create(t, c, "w/by-us", "x")
	expect("created by-us")
	run(t, c, "rm -r w/moved w/there")
	expect("removed moved")
	expect("removed there")
	w.Close()
	if _, err := w.Next(); err == nil {
		t.Error("an event after Close")
	}
	_, err = c.Watch(ctx, "not-there", false)
	kind(t, err, fault.NotFound, "not-there")
}

func testTar(t *testing.T, c *daemonclient.Client) {
	other := clienttest.New(t).Dial(t)
	run(t, c, `mkdir -p tree/sub/empty tree/ro; cd tree; echo -n 12345 > file; chmod 640 file; ln file sub/hard; ln -s ../file sub/soft; ln -s /etc/passwd out; mkfifo fifo
echo -n 678 > $'sub/new\nline \xff'; chmod 2775 sub; echo -n 9 > ro/in; chmod 500 ro; touch -d @1000000000 file; touch -d @1000000001 sub`)
	n := transfer(t, c, "tree", other, "/home/user/got/as")
	if n.Bytes != 9 || n.Files != 11 {
		t.Errorf("%+v", n)
	}
	const look = `cd %s; find . | sort | tr '\n' ';'; cat file sub/hard $'sub/new\nline \xff' ro/in; stat -c '%%a %%Y %%h' file; stat -c '%%a %%Y' sub; stat -c %%a ro; readlink sub/soft out; stat -c %%F fifo`
	want := run(t, c, fmt.Sprintf(look, "tree"))
	if got := run(t, other, fmt.Sprintf(look, "got/as")); got.out[0] != want.out[0] || got.out[0] == "" {
		t.Errorf("got  %q\nwant %q %q", got.out[0], want.out[0], want.out[1])
	}
	// A single file, and again over what is there.
	for range 2 {
		if n := transfer(t, c, "tree/file", other, "/home/user/one/name"); n != (file.Counts{Files: 1, Bytes: 5}) {
			t.Errorf("%+v", n)
		}
	}
	if got := run(t, other, "cat one/name; stat -c %a one/name; mkdir -p one/folder/x"); got.out[0] != "12345640\n" {
		t.Errorf("got %q", got.out[0])
	}
	a, err := c.Pack(t.Context(), "tree/file")
	if err != nil {
		t.Fatal(err)
	}
	_, err = other.Unpack(t.Context(), "one/folder", a)
	a.Close()
	kind(t, err, fault.Invalid, "directory")
	_, err = c.Pack(t.Context(), "not-there")
	kind(t, err, fault.NotFound, "not-there")
	// What it cannot read it says, at the end.
	a, err = c.Pack(t.Context(), "/etc")
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(io.Discard, a)
	kind(t, err, fault.Forbidden, "/etc/")
	run(t, c, "chmod 700 tree/ro")
}

// archive makes a tar stream.
func archive(t testing.TB, entries ...tar.Header) io.Reader {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range entries {
		text := h.Uname
		h.Uname, h.Size = "", int64(len(text))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, text)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

func testForeignTar(t *testing.T, c *daemonclient.Client) {
	regular := func(name, text string) tar.Header {
		return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Uname: text}
	}
	link := func(name, to string) tar.Header {
		return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to}
	}
	run(t, c, "mkdir -p victim; echo safe > victim/file; mkdir there; ln -s ../victim there/planted; echo old > there/file; ln -s ../victim/file there/alias")
	n, err := c.Unpack(t.Context(), "there", archive(t, regular("./a/b/c", "1"), regular("file", "new"), regular("alias", "23"), regular("/absolute", "4")))
	if err != nil || n != (file.Counts{Files: 4, Bytes: 7}) {
		t.Errorf("%+v, %v", n, err)
	}
	for name, try := range map[string]struct {
		entries []tar.Header
		kind    fault.Kind
	}{
		"dots":           {[]tar.Header{regular("../victim/file", "x")}, fault.Forbidden},
		"dots inside":    {[]tar.Header{regular("a/../../victim/file", "x")}, fault.Forbidden},
		"a planted link": {[]tar.Header{regular("planted/file", "x")}, fault.Invalid},
		"its own link":   {[]tar.Header{link("l", "../victim"), regular("l/file", "x")}, fault.Invalid},
		"an absolute":    {[]tar.Header{link("m", "/home/user/victim"), regular("m/file", "x")}, fault.Invalid},
		"a hard link":    {[]tar.Header{{Typeflag: tar.TypeLink, Name: "h", Linkname: "../victim/file"}}, fault.Forbidden},
		"by a link":      {[]tar.Header{link("n", "../victim"), {Typeflag: tar.TypeLink, Name: "h", Linkname: "n/file"}}, fault.Invalid},
		"a device":       {[]tar.Header{{Typeflag: tar.TypeChar, Name: "null", Devmajor: 1, Devminor: 3}}, fault.Invalid},
	} {
		_, err := c.Unpack(t.Context(), "there", archive(t, try.entries...))
		if err == nil || fault.KindOf(err) != try.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := run(t, c, "cat victim/file there/a/b/c there/file there/alias there/absolute; ls victim; readlink there/planted"); got.out[0] != "safe\n1new234file\n../victim\n" {
		t.Errorf("got %q, %q", got.out[0], got.out[1])
	}
	for _, bad := range []string{"", "no archive at all", strings.Repeat("\xff", 2000)} {
		_, err := c.Unpack(t.Context(), "bad", strings.NewReader(bad))
		if bad == "" {
			continue // an archive of nothing
		}
		kind(t, err, fault.Invalid, "no tar archive")
	}
	whole, err := io.ReadAll(archive(t, regular("cut", strings.Repeat("x", 5000))))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Unpack(t.Context(), "bad", bytes.NewReader(whole[:3000]))
	kind(t, err, fault.Invalid, "cut off")
	if _, err := os.Stat("/home/user/victim"); err == nil {
		t.Error("the host has it")
	}
}
