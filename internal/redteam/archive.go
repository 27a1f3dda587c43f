package redteam

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"path/filepath"
	"strings"
)

// archiveCases send archives that are made to be unpacked elsewhere than they should.
func archiveCases() []Case {
	all := []Case{}
	for _, h := range hostileArchives {
		all = append(all, Case{"archives/thread-" + h.name, Critical, "imports an archive with " + h.has + " into a thread", "it is refused, or all of it is in the thread, and other threads are as they were", threadArchive(h)})
	}
	return append(all,
		Case{"archives/sandbox", High, "unpacks each of these archives in a folder of a sandbox, also through a planted link", "nothing of them is outside the folder", sandboxArchives},
		Case{"archives/broken", Medium, "sends archives that are cut, have sizes that are not true, or are none", "each is refused as the client's mistake, and the thread stays as it was", brokenArchives},
		Case{"archives/large", High, "imports an archive above its plan's bound of a thread", "it is refused, and nothing of it is kept", largeArchive},
	)
}

// payload is what the hostile entries hold.
const payload = "redteam payload"

// hostileArchive is one that should not be unpacked as it says.
type hostileArchive struct {
	name, has string
	entries   []tar.Header
}

func file(name string) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(payload))}
}

func link(name, to string) tar.Header {
	return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to, Mode: 0o777}
}

var hostileArchives = []hostileArchive{
	{"dots", "names that climb out", []tar.Header{file("../redteam-escape"), file("../../../../../../tmp/redteam-escape"), file("a/../../" + nearThread + "/own.txt")}},
	{"absolute", "absolute names", []tar.Header{file("/tmp/redteam-escape"), file("//tmp/other/redteam-escape")}},
	{"link", "a link and a file through it", []tar.Header{link("out", "/tmp"), file("out/redteam-escape")}},
	{"link-up", "a link to another thread and a file through it", []tar.Header{link("near", "../"+nearThread), file("near/own.txt")}},
	{"link-chain", "a chain of links and a file through it", []tar.Header{link("a", "."), link("a/b", ".."), link("b/c", ".."), file("b/c/redteam-escape")}},
	{"link-twice", "a file whose name is a link by then", []tar.Header{link("own", "/tmp/redteam-escape"), file("own")}},
	{"link-root", "a link in place of its root", []tar.Header{link(".", "/tmp"), file("redteam-escape")}},
	{"hard-link", "hard links to files outside, and a file over them", []tar.Header{
		{Typeflag: tar.TypeLink, Name: "passwd", Linkname: "/etc/passwd"}, {Typeflag: tar.TypeLink, Name: "near", Linkname: "../" + nearThread + "/own.txt"}, file("near"),
	}},
	{"devices", "devices, a pipe, and set-user-id files", []tar.Header{
		{Typeflag: tar.TypeBlock, Name: "disk", Devmajor: 8, Mode: 0o666}, {Typeflag: tar.TypeChar, Name: "mem", Devmajor: 1, Devminor: 1, Mode: 0o666}, {Typeflag: tar.TypeFifo, Name: "pipe", Mode: 0o666},
		{Typeflag: tar.TypeReg, Name: "root", Mode: 0o6777, Size: int64(len(payload))},
	}},
}

// pack writes an archive; what tar refuses to write cannot be in it.
func (h hostileArchive) pack() ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range h.entries {
		e.Format = tar.FormatPAX
		if err := w.WriteHeader(&e); err != nil {
			return nil, err
		}
		if e.Typeflag == tar.TypeReg {
			if _, err := io.WriteString(w, payload); err != nil {
				return nil, err
			}
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// nearThread is what the archives aim at.
const nearThread = "redteam-near"

// theNear makes it.
func (a *arena) theNear(ctx context.Context) (string, error) {
	return a.near.get(ctx, func(ctx context.Context) (string, error) {
		at := "/v1/threads/" + nearThread + "/files/own.txt"
		return at, a.plain.must(ctx, http.MethodPut, at, []byte("near"), nil)
	})
}

const tarMedia = "application/x-tar"

func threadArchive(h hostileArchive) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		near, err := a.theNear(ctx)
		if err != nil {
			return err
		}
		body, err := h.pack()
		if err != nil {
			return err
		}
		at := "/v1/threads/redteam-archive-" + h.name
		got, err := a.plain.do(ctx, http.MethodPut, at+"/archive", body, "Content-Type", tarMedia)
		if err != nil {
			return err
		}
		if got.Status >= 500 {
			return found("the server answered the import with %s", got)
		}
		own, err := a.plain.do(ctx, http.MethodGet, near, nil)
		if err != nil {
			return err
		}
		if string(own.Body) != "near" {
			return found("the file of another thread is now %s", own)
		}
		if got.Status >= 400 {
			return nil
		}
		if err := a.within(ctx, at, h); err != nil {
			return err
		}
		return gone(ctx, a.plain, at)
	}
}

// within looks whether a thread has all of an archive that was taken, where a reader
// would not be led out.
func (a *arena) within(ctx context.Context, at string, h hostileArchive) error {
	got, err := a.plain.do(ctx, http.MethodGet, at+"/archive", nil)
	if err != nil {
		return err
	}
	if got.Status != http.StatusOK {
		return fmt.Errorf("export: %s", got)
	}
	var want, files int
	for _, e := range h.entries {
		if e.Typeflag == tar.TypeReg {
			want++
		}
	}
	links := map[string]bool{}
	in := tar.NewReader(bytes.NewReader(got.Body))
	for {
		e, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return found("the thread's archive cannot be read: %v", err)
		}
		name := strings.TrimSuffix(e.Name, "/")
		for dir := path.Dir(name); dir != "." && dir != "/"; dir = path.Dir(dir) {
			if links[path.Clean(dir)] {
				return found("the thread has %s, which is behind a link", e.Name)
			}
		}
		switch e.Typeflag {
		case tar.TypeSymlink:
			links[path.Clean(name)] = true
		case tar.TypeReg:
			files++
			if !filepath.IsLocal(name) {
				return found("the thread has the name %s", e.Name)
			}
			if text, _ := io.ReadAll(io.LimitReader(in, 1024)); string(text) != payload {
				return found("the thread has %s with what was not in the archive: %.200q", e.Name, text)
			}
		case tar.TypeBlock, tar.TypeChar:
			return found("the thread has %s, which is a device", e.Name)
		}
	}
	if files < want {
		return found("the import was answered with success, and %d of %d files are not in the thread", want-files, want)
	}
	if h.name == "devices" {
		return a.raises(ctx, strings.TrimPrefix(at, "/v1/threads/"))
	}
	return nil
}

// raises looks whether a program finds devices in a thread, or files that raise its
// rights: a set-user-id bit may be kept if no program gains by it.
func (a *arena) raises(ctx context.Context, thread string) error {
	const look = "find . -type b -o -type c; grep -q 'NoNewPrivs:.*1' /proc/self/status || find . -perm /6000; echo looked"
	e, err := a.execute(ctx, a.plain, "bash", look, 20, map[string]any{"thread_id": thread})
	if err != nil {
		return err
	}
	seen, ok := strings.CutSuffix(e.Stdout, "looked\n")
	if !ok {
		return fmt.Errorf("the looking program: %s", e)
	}
	if seen != "" {
		return found("the thread has %s", seen)
	}
	return nil
}

func sandboxArchives(ctx context.Context, a *arena) error {
	s, err := a.theBox(ctx)
	if err != nil {
		return err
	}
	const plant = "mkdir -p /home/user/in /home/user/out && ln -sfn /home/user/out /home/user/in/planted && ln -sfn /home/user/out /home/user/planted-root"
	if _, err := s.start(ctx, "sh", "-c", plant); err != nil {
		return err
	}
	all := append([]hostileArchive{{name: "planted", entries: []tar.Header{file("planted/redteam-escape")}}}, hostileArchives...)
	for _, h := range all {
		body, err := h.pack()
		if err != nil {
			return err
		}
		got, err := s.by.do(ctx, http.MethodPut, s.path("/archive", "path", "/home/user/in"), body, "Content-Type", tarMedia)
		if err != nil {
			return err
		}
		if got.Status >= 500 {
			return found("the server answered an archive with %s with %s", h.name, got)
		}
	}
	const look = "import os\nfor at, dirs, files in os.walk('/', followlinks=False):\n    dirs[:] = [d for d in dirs if os.path.join(at, d) not in ('/proc', '/sys', '/usr', '/home/user/in')]\n" +
		"    for f in files:\n        if f == 'redteam-escape': print('GOT', os.path.join(at, f))\nprint('tried')"
	out, err := s.start(ctx, "python3", "-c", look)
	if err != nil {
		return err
	}
	if err := judge(out, 1); err != nil {
		return err
	}
	_, err = s.start(ctx, "rm", "-rf", "/home/user/in", "/home/user/out", "/home/user/planted-root")
	return err
}

func brokenArchives(ctx context.Context, a *arena) error {
	const at = "/v1/threads/redteam-archive-broken"
	if err := a.plain.must(ctx, http.MethodPut, at+"/files/own.txt", []byte("own"), nil); err != nil {
		return err
	}
	whole, err := hostileArchive{entries: []tar.Header{file("a"), file("b")}}.pack()
	if err != nil {
		return err
	}
	lying := bytes.Clone(whole)
	copy(lying[bytes.Index(lying, []byte("ustar"))-257+124:], "77777777777\x00") // the size of an entry
	for what, body := range map[string][]byte{
		"cut in its middle": whole[:bytes.Index(whole, []byte(payload))+5], "of lies": lying, "of text": []byte(strings.Repeat("no archive ", 200)), "of gzip": {0x1f, 0x8b, 8, 0, 0, 0, 0, 0},
	} {
		got, err := a.plain.do(ctx, http.MethodPut, at+"/archive", body, "Content-Type", tarMedia)
		if err != nil {
			return err
		}
		if got.Status < 400 || got.Status >= 500 {
			return found("the server answered an archive %s with %s", what, got)
		}
	}
	got, err := a.plain.do(ctx, http.MethodGet, at+"/files/own.txt", nil)
	if err != nil {
		return err
	}
	if string(got.Body) != "own" {
		return found("after archives that were refused, the thread's file is %s", got)
	}
	return gone(ctx, a.plain, at)
}

func largeArchive(ctx context.Context, a *arena) error {
	const at = "/v1/threads/redteam-archive-large"
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for i := range 5 {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprint(i), Mode: 0o644, Size: 4 * mib}); err != nil {
			return err
		}
		if _, err := w.Write(make([]byte, 4*mib)); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	got, err := a.plain.do(ctx, http.MethodPut, at+"/archive", out.Bytes(), "Content-Type", tarMedia)
	if err != nil {
		return err
	}
	if got.Status < 400 || got.Status >= 500 {
		return found("20 MiB in a thread, where 16 MiB are allowed: %s", got)
	}
	got, err = a.plain.do(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	if got.Status != http.StatusNotFound {
		return found("after an import that was refused there is a thread: %s", got)
	}
	return nil
}
