package filetool

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/atoll-run/atoll/internal/core/filetool"
)

// tree makes files in a folder of its own, which is the working folder.
func tree(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, data := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// do has Run do a call, as in a sandbox.
func do(t *testing.T, c filetool.Call) *filetool.Answer {
	t.Helper()
	in, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	ok, err := Run(bytes.NewReader(in), &out)
	if err != nil {
		t.Fatal(err)
	}
	a, err := filetool.Parse(out.Bytes())
	if err != nil || a.Failed == ok {
		t.Fatalf("%+v, %v: %s", a, err, out.Bytes())
	}
	return a
}

func is(t *testing.T, name, want string) {
	t.Helper()
	if b, err := os.ReadFile(name); err != nil || string(b) != want {
		t.Errorf("%s is %q, %v; want %q", name, b, err, want)
	}
}

// refused is a call that fails with a message in which words are.
func refused(t *testing.T, c filetool.Call, words string) {
	t.Helper()
	a := do(t, c)
	if !a.Failed || !strings.Contains(string(a.Body), words) {
		t.Errorf("%+v: %+v %q; want %q", c, a, a.Body, words)
	}
}

func TestWrite(t *testing.T) {
	tree(t, map[string]string{"run.sh": "old"})
	if err := os.Chmod("run.sh", 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("run.sh", "link"); err != nil {
		t.Fatal(err)
	}
	if a := do(t, filetool.Call{Op: filetool.Write, Path: "a/b/c.txt", Content: "héllo"}); a.Bytes != 6 || !a.Created {
		t.Errorf("%+v", a)
	}
	is(t, "a/b/c.txt", "héllo")
	if a := do(t, filetool.Call{Op: filetool.Write, Path: "link", Content: ""}); a.Created || a.Bytes != 0 {
		t.Errorf("%+v", a)
	}
	is(t, "run.sh", "")
	if st, err := os.Lstat("run.sh"); err != nil || st.Mode() != 0o750 {
		t.Error(st.Mode(), err)
	}
	if st, err := os.Lstat("link"); err != nil || st.Mode().IsRegular() {
		t.Error(st.Mode(), err)
	}
	refused(t, filetool.Call{Op: filetool.Write, Path: "a"}, "a is a folder")
	refused(t, filetool.Call{Op: filetool.Write, Path: "new/"}, "names no file")
	refused(t, filetool.Call{Op: filetool.Write, Path: "run.sh/x"}, "a part of the path is no folder")
	if left, _ := filepath.Glob(".atoll-*"); len(left) > 0 {
		t.Error(left)
	}
}

func TestRead(t *testing.T) {
	tree(t, map[string]string{
		"three": "one\ntwo\nthree", "empty": "", "binary": "a\x00b", "wide": strings.Repeat("x", 100<<10) + "\nend\n",
		"long": strings.Repeat("0123456789\n", 10_000),
	})
	for _, c := range []struct {
		call            filetool.Call
		body            string
		from, to, lines int64
		truncated       bool
	}{
		{filetool.Call{Path: "three"}, "one\ntwo\nthree", 1, 3, 3, false},
		{filetool.Call{Path: "three", From: 2, To: 2}, "two\n", 2, 2, 3, false},
		{filetool.Call{Path: "three", From: 3, To: 9}, "three", 3, 3, 3, false},
		{filetool.Call{Path: "empty"}, "", 0, 0, 0, false},
		{filetool.Call{Path: "wide"}, strings.Repeat("x", filetool.MaxText), 1, 1, 2, true},
		{filetool.Call{Path: "wide", From: 2}, "end\n", 2, 2, 2, false},
		{filetool.Call{Path: "long"}, strings.Repeat("0123456789\n", filetool.MaxText/11), 1, filetool.MaxText / 11, 10_000, true},
		{filetool.Call{Path: "long", From: 9_999}, "0123456789\n0123456789\n", 9_999, 10_000, 10_000, false},
	} {
		c.call.Op = filetool.Read
		a := do(t, c.call)
		if string(a.Body) != c.body || a.From != c.from || a.To != c.to || a.Lines != c.lines || a.Truncated != c.truncated {
			t.Errorf("%+v: %d bytes, lines %d to %d of %d, truncated %t", c.call, len(a.Body), a.From, a.To, a.Lines, a.Truncated)
		}
	}
	refused(t, filetool.Call{Op: filetool.Read, Path: "three", From: 4}, "has 3 lines")
	refused(t, filetool.Call{Op: filetool.Read, Path: "binary"}, "no text; it has 3 bytes")
	refused(t, filetool.Call{Op: filetool.Read, Path: "missing"}, "missing: no such file or folder")
	refused(t, filetool.Call{Op: filetool.Read, Path: "."}, "is a folder")
	refused(t, filetool.Call{Op: filetool.Read, Path: "/dev/null"}, "no regular file")
}

func TestEdit(t *testing.T) {
	tree(t, map[string]string{"f": "a = 1\nb = 1\na = 1\n", "dos": "x\r\ny\r\n"})
	refused(t, filetool.Call{Op: filetool.Edit, Path: "f", Old: "a = 1", New: "a = 2"}, "is in f 2 times, in lines 1, 3")
	refused(t, filetool.Call{Op: filetool.Edit, Path: "f", Old: "c", New: "d"}, "not in f")
	refused(t, filetool.Call{Op: filetool.Edit, Path: "f", Old: "", New: "d"}, "empty")
	refused(t, filetool.Call{Op: filetool.Edit, Path: "f", Old: "b", New: "b"}, "the same")
	refused(t, filetool.Call{Op: filetool.Edit, Path: "dos", Old: "x\ny", New: "z"}, `end with \r\n`)
	is(t, "f", "a = 1\nb = 1\na = 1\n")
	if a := do(t, filetool.Call{Op: filetool.Edit, Path: "f", Old: "b = 1", New: "b = 2"}); a.Count != 1 {
		t.Errorf("%+v", a)
	}
	if a := do(t, filetool.Call{Op: filetool.Edit, Path: "f", Old: "a = 1\n", New: "", All: true}); a.Count != 2 || a.Bytes != 6 {
		t.Errorf("%+v", a)
	}
	is(t, "f", "b = 2\n")
	if err := os.Truncate("dos", maxFile+1); err != nil {
		t.Fatal(err)
	}
	refused(t, filetool.Call{Op: filetool.Edit, Path: "dos", Old: "x", New: "y"}, "more than 16 MiB")
}

func TestGrep(t *testing.T) {
	tree(t, map[string]string{
		"a.py": "import os\nprint('x')\n", "sub/b.py": "Import sys", "sub/c.txt": "import none", "bin": "import\x00",
		".git/x.py": "import git", "wide.py": "import " + strings.Repeat("y", 5000), "odd\nname": "import odd",
	})
	a := do(t, filetool.Call{Op: filetool.Grep, Pattern: "^import", Include: "*.py"})
	paths, text := a.Split()
	if strings.Join(paths, " ") != "a.py wide.py" || a.Count != 2 || a.Truncated ||
		text != "a.py\n1:import os\nwide.py\n1:import "+strings.Repeat("y", maxLine-7)+"…\n" {
		t.Errorf("%+v: %q\n%s", a, paths, text)
	}
	a = do(t, filetool.Call{Op: filetool.Grep, Pattern: "IMPORT", Fold: true, Path: "sub", Include: "**/*.py"})
	if paths, _ := a.Split(); strings.Join(paths, " ") != "sub/b.py" {
		t.Errorf("%q", paths)
	}
	a = do(t, filetool.Call{Op: filetool.Grep, Pattern: "odd"})
	if paths, text := a.Split(); len(paths) != 1 || text != "\"odd\\nname\"\n1:import odd\n" {
		t.Errorf("%q %q", paths, text)
	}
	if a = do(t, filetool.Call{Op: filetool.Grep, Pattern: "nowhere", Path: "a.py"}); a.Count != 0 || len(a.Body) != 0 {
		t.Errorf("%+v", a)
	}
	refused(t, filetool.Call{Op: filetool.Grep, Pattern: "("}, "no regular expression")
	refused(t, filetool.Call{Op: filetool.Grep, Pattern: "x", Path: "missing"}, "no such file or folder")
	refused(t, filetool.Call{Op: filetool.Grep, Pattern: "x", Include: "[a"}, "no glob pattern")
	tree(t, map[string]string{"many": strings.Repeat("line\n", filetool.MaxMatches+1), "wide": strings.Repeat(strings.Repeat("z", 400)+"\n", 300)})
	if a = do(t, filetool.Call{Op: filetool.Grep, Pattern: "line"}); a.Count != filetool.MaxMatches || !a.Truncated {
		t.Errorf("%+v", a.Count)
	}
	if a = do(t, filetool.Call{Op: filetool.Grep, Pattern: "z"}); !a.Truncated || len(a.Body) > filetool.MaxText {
		t.Errorf("%+v", a.Count)
	}
}

func TestGlob(t *testing.T) {
	tree(t, map[string]string{"a.py": "", "sub/b.py": "", "sub/c.txt": "", "sub/deep/d.py": ""})
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, pattern, want string }{
		{"", "*.py", "a.py"},
		{"", "**/*.py", "a.py sub/b.py sub/deep/d.py"},
		{"sub", "*", "sub/b.py sub/c.txt sub/deep/"},
		{"", "sub/*.{py,txt}", "sub/b.py sub/c.txt"},
		{"sub", "../*.py", "a.py"},
		{"", here + "/sub/*.txt", here + "/sub/c.txt"},
		{"", "none/*", ""},
	} {
		a := do(t, filetool.Call{Op: filetool.Glob, Path: c.path, Pattern: c.pattern})
		paths, text := a.Split()
		if strings.Join(paths, " ") != c.want || a.Count != int64(len(paths)) || text != "" {
			t.Errorf("%+v: %q %q", c, paths, text)
		}
	}
	refused(t, filetool.Call{Op: filetool.Glob, Pattern: "[a"}, "no glob pattern")
	refused(t, filetool.Call{Op: filetool.Glob, Pattern: strings.Repeat("{a,b}", 11)}, "braces")
	refused(t, filetool.Call{Op: filetool.Glob, Pattern: "*", Path: "missing"}, "no such file or folder")
	files := map[string]string{}
	for i := range filetool.MaxMatches + 1 {
		files[strings.Repeat("x", i/100+1)+strings.Repeat("y", i%100)] = ""
	}
	tree(t, files)
	if a := do(t, filetool.Call{Op: filetool.Glob, Pattern: "*"}); a.Count != filetool.MaxMatches || !a.Truncated {
		t.Errorf("%d, %t", a.Count, a.Truncated)
	}
}

func TestShare(t *testing.T) {
	tree(t, map[string]string{"data.csv": "a,b\n", "empty": "", "big": ""})
	if err := os.Symlink("data.csv", "link"); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate("big", filetool.MaxShared+1); err != nil {
		t.Fatal(err)
	}
	if a := do(t, filetool.Call{Op: filetool.Share, Path: "data.csv"}); a.Bytes != 4 {
		t.Errorf("%+v", a)
	}
	for range 2 {
		if a := do(t, filetool.Call{Op: filetool.Share, Path: "link", Beside: ".atoll/shared"}); a.Bytes != 4 {
			t.Errorf("%+v", a)
		}
		is(t, ".atoll/shared", "a,b\n")
	}
	if a := do(t, filetool.Call{Op: filetool.Share, Path: "empty", Beside: ".atoll/shared"}); a.Bytes != 0 {
		t.Errorf("%+v", a)
	}
	is(t, ".atoll/shared", "")
	refused(t, filetool.Call{Op: filetool.Share, Path: "link"}, "is a link; share data.csv")
	refused(t, filetool.Call{Op: filetool.Share, Path: "big"}, "at most")
	refused(t, filetool.Call{Op: filetool.Share, Path: "."}, "is a folder")
	refused(t, filetool.Call{Op: filetool.Share, Path: "missing"}, "no such file")
}

func TestRunRefusesWhatIsNoCall(t *testing.T) {
	for _, text := range []string{"", "[]", `{"op": "none"}`} {
		var out bytes.Buffer
		if _, err := Run(strings.NewReader(text), &out); err == nil || out.Len() > 0 {
			t.Errorf("%q: %v, %q", text, err, &out)
		}
	}
}

func TestErrorsInWords(t *testing.T) {
	for err, want := range map[error]string{
		syscall.EMFILE: "End programs that hold files open",
		syscall.ENFILE: "End programs that hold files open",
		syscall.ENOSPC: "disk is full",
	} {
		if got := why(&fs.PathError{Op: "open", Path: "a", Err: err}); !strings.HasPrefix(got, "a: ") || !strings.Contains(got, want) {
			t.Errorf("%v: %q", err, got)
		}
	}
}
