package filetool

import (
	"os"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/filetool"
)

func wrap(lines ...string) string {
	return beginPatch + "\n" + strings.Join(lines, "\n") + "\n" + endPatch + "\n"
}

func apply1(t *testing.T, lines ...string) *filetool.Answer {
	t.Helper()
	return do(t, filetool.Call{Op: filetool.Patch, Patch: wrap(lines...)})
}

func TestPatch(t *testing.T) {
	tree(t, map[string]string{
		"main.py": "import os\n\ndef one():\n    return 1\n\ndef two():\n    return 1\n", "old.txt": "x\n", "gone": "y", "dos": "a\r\nb\r\n", "tail": "1\n2\n1\n2",
	})
	if err := os.Chmod("old.txt", 0o755); err != nil {
		t.Fatal(err)
	}
	a := apply1(t,
		"*** Add File: new/file.txt", "+first", "+", "+third", "",
		"*** Update File: main.py", " import os", "+import sys", "@@ def two():", "-    return 1", "+    return 2",
		"*** Update File: old.txt", "*** Move to: moved.txt", "@@", "-x", "+z",
		"*** Delete File: gone",
		"*** Update File: dos", "@@", " a", "-b", "+c",
		"*** Update File: tail", "@@", "-1", "-2", "+end", "*** End of File")
	if a.Failed {
		t.Fatalf("%s", a.Body)
	}
	paths, _ := a.Split()
	if strings.Join(paths, "|") != "A new/file.txt|M main.py|D old.txt|A moved.txt|D gone|M dos|M tail" {
		t.Errorf("%q", paths)
	}
	is(t, "new/file.txt", "first\n\nthird\n")
	is(t, "main.py", "import os\nimport sys\n\ndef one():\n    return 1\n\ndef two():\n    return 2\n")
	is(t, "moved.txt", "z\n")
	is(t, "dos", "a\r\nc\r\n")
	is(t, "tail", "1\n2\nend\n")
	for _, name := range []string{"old.txt", "gone"} {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s is there", name)
		}
	}
	if st, err := os.Stat("moved.txt"); err != nil || st.Mode() != 0o755 {
		t.Error(st, err)
	}
}

// TestPatchFindsLinesWithOtherSpace: models get the space around lines wrong.
func TestPatchFindsLinesWithOtherSpace(t *testing.T) {
	tree(t, map[string]string{"f": "\tone  \n\ttwo\n"})
	if a := apply1(t, "*** Update File: f", "@@", " one", "-two", "+\tthree"); a.Failed {
		t.Fatalf("%s", a.Body)
	}
	is(t, "f", "one\n\tthree\n")
}

// TestPatchIsWholeOrNothing: what cannot be done leaves everything as it was.
func TestPatchIsWholeOrNothing(t *testing.T) {
	files := map[string]string{"a": "1\n", "b": "2\n"}
	for want, lines := range map[string][]string{
		"does not have these lines": {"*** Update File: a", "@@", "-1", "+3", "*** Update File: b", "@@", "-9", "+8"},
		"is there already":          {"*** Update File: a", "@@", "-1", "+3", "*** Add File: b", "+x"},
		"no such file":              {"*** Delete File: a", "*** Delete File: c"},
		"a part of the path":        {"*** Update File: a", "@@", "-1", "+3", "*** Add File: b/c", "+x"},
		"twice":                     {"*** Update File: a", "@@", "-1", "+3", "*** Update File: ./a", "@@", "-3", "+4"},
		"is there already ":         {"*** Update File: a", "*** Move to: b", "@@", "-1", "+3"},
		"no line \"def x\"":         {"*** Update File: a", "@@ def x", "-1", "+3"},
		"changes nothing":           {},
		"no header":                 {"hello"},
		"names no file":             {"*** Add File:  "},
		"begins with +":             {"*** Add File: c", "text"},
		"neither a space":           {"*** Update File: a", "@@", "text"},
		"no line after @@":          {"*** Update File: a", "@@"},
		"no change of a":            {"*** Update File: a"},
		"a change begins with @@":   {"*** Update File: a", "-1", "*** End of File", "-2"},
	} {
		tree(t, files)
		a := apply1(t, lines...)
		if !a.Failed || !strings.Contains(string(a.Body), strings.TrimSpace(want)) {
			t.Errorf("%q: %+v %s", want, a, a.Body)
		}
		for name, data := range files {
			is(t, name, data)
		}
	}
	refused(t, filetool.Call{Op: filetool.Patch, Patch: "*** Begin Patch"}, "ends with the line")
	refused(t, filetool.Call{Op: filetool.Patch}, "begins with the line")
}

func FuzzPatch(f *testing.F) {
	f.Add(wrap("*** Add File: a", "+x", "*** Update File: b", "@@ f", " c", "-d", "+e", "*** End of File", "*** Delete File: g"))
	f.Fuzz(func(t *testing.T, text string) {
		changes, err := parsePatch(text)
		if err != nil {
			return
		}
		for _, d := range changes {
			if d.path == "" || len(changes) > maxPatched {
				t.Fatalf("%+v", d)
			}
			_, _ = apply(d.path, "c\nd\nc\n", d.chunks)
		}
	})
}
