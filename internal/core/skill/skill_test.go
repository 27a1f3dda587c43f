package skill_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io/fs"
	"reflect"
	"strings"
	"testing"

	_ "github.com/atoll-run/atoll/internal/agent/skilltool" // registers the built-in skills
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/skill/skilltest"
)

const head = "---\nname: report\ndescription: Writes reports.\n---\n"

func TestParseMain(t *testing.T) {
	h, body, err := skill.ParseMain([]byte("\ufeff---\r\nname: report\r\ndescription: |\r\n  Writes reports.\r\nlicense: MIT\r\ncompatibility: python 3\r\nallowed-tools: Bash(git:*) Read\r\nmetadata:\r\n  version: 1.0\r\nother: ignored\r\n---\r\n# Body\r\n---\r\n"))
	want := skill.Head{Name: "report", Description: "Writes reports.", License: "MIT", Compatibility: "python 3", AllowedTools: []string{"Bash(git:*)", "Read"}, Metadata: map[string]string{"version": "1.0"}}
	if err != nil || !reflect.DeepEqual(h, want) || body != "# Body\n---\n" {
		t.Errorf("%+v, %q, %v", h, body, err)
	}
	for text, why := range map[string]string{
		"# No front matter":                                                                   "front matter",
		"---\nname: report\n":                                                                 "front matter",
		"---\nname: [\n---\n":                                                                 "must be YAML",
		"---\nname: report\n---\n":                                                            "description",
		"---\ndescription: x\n---\n":                                                          "name",
		strings.Repeat("x", 256<<10+1):                                                        "at most",
		"---\nname: Report\ndescription: x\n---\n":                                            "name",
		"---\nname: re--port\ndescription: x\n---\n":                                          "name",
		"---\nname: " + strings.Repeat("a", 65) + "\ndescription: x\n---\n":                   "name",
		"---\nname: reflection-loop\ndescription: x\n---\n":                                   "built-in skill",
		"---\nname: report\ndescription: " + strings.Repeat("é", 1025) + "\n---\n":            "1024",
		"---\nname: report\ndescription: a <b> c\n---\n":                                      "< and >",
		"---\nname: report\ndescription: x\nmetadata: {a: [1]}\n---\n":                        "metadata",
		"---\nname: report\ndescription: x\nallowed-tools: {a: b}\n---\n":                     "allowed-tools",
		"---\nname: report\ndescription: x\nlicense: " + strings.Repeat("x", 513) + "\n---\n": "license",
		"---\nname: report\ndescription: \xff\n---\n":                                         "UTF-8",
	} {
		if _, _, err := skill.ParseMain([]byte(text)); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), why) {
			t.Errorf("%.60q: %v, want %q", text, err, why)
		}
	}
}

func TestNewBundle(t *testing.T) {
	main := skill.File{Path: "report/SKILL.md", Data: []byte(head)}
	for why, files := range map[string][]skill.File{
		"must have SKILL.md":   {},
		"at the root":          {{Path: "report/a/SKILL.md", Data: []byte(head)}, {Path: "report/b.txt"}},
		"duplicate":            {main, main},
		"as a folder":          {main, {Path: "report/a"}, {Path: "report/a/b"}},
		". and ..":             {main, {Path: "report/../../etc/passwd"}},
		"must be relative":     {main, {Path: "/etc/passwd"}},
		"control characters":   {main, {Path: "report/a\nb"}},
		"backslashes":          {main, {Path: `report\..\a`}},
		"the same":             {{Path: "other/SKILL.md", Data: []byte(head)}},
		"8388608 bytes":        {main, {Path: "report/a", Data: make([]byte, skill.MaxBytes)}},
		"at most 500":          make([]skill.File, skill.MaxFiles+1),
		"at most 256 bytes":    {main, {Path: "report/" + strings.Repeat("a", 256)}},
		"at the root of the s": {main, {Path: "elsewhere/a"}},
	} {
		if _, err := skill.NewBundle(files); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), why) {
			t.Errorf("%v, want %q", err, why)
		}
	}
	b, err := skill.NewBundle([]skill.File{{Path: "scripts/a.py"}, {Path: "SKILL.md", Data: []byte(head)}})
	if err != nil || b.Files[0].Path != "SKILL.md" || b.Head.Name != "report" {
		t.Errorf("without a folder: %+v, %v", b, err)
	}
}

func tarOf(t *testing.T, zipped bool, entries ...*tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range entries {
		data := []byte(head)
		if h.Typeflag != tar.TypeReg {
			data = nil
		}
		h.Size = int64(len(data))
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write(data)
	}
	_ = w.Close()
	if !zipped {
		return out.Bytes()
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(out.Bytes())
	_ = z.Close()
	return packed.Bytes()
}

func zipOf(t *testing.T, name string, mode fs.FileMode, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	h := &zip.FileHeader{Name: name, Method: zip.Deflate}
	h.SetMode(mode)
	to, err := w.CreateHeader(h)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = to.Write(data)
	_ = w.Close()
	return out.Bytes()
}

func TestUnpack(t *testing.T) {
	b := skilltest.Bundle(t, "report", "Writes reports.")
	packed, err := b.Pack()
	if err != nil {
		t.Fatal(err)
	}
	files, err := skill.Unpack(packed)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := skill.NewBundle(files); err != nil || !reflect.DeepEqual(again, b) {
		t.Errorf("%+v, %v", again, err)
	}
	folder := &tar.Header{Name: "./report/", Typeflag: tar.TypeDir}
	files, err = skill.Unpack(tarOf(t, true, folder, &tar.Header{Name: "./report/SKILL.md", Typeflag: tar.TypeReg, Mode: 0o4755}))
	if err != nil || len(files) != 1 || files[0].Path != "report/SKILL.md" || !files[0].Exec {
		t.Errorf("%+v, %v", files, err)
	}
	for what, archive := range map[string][]byte{
		"nothing": nil, "text": []byte("hello"), "half": packed[:len(packed)/2], "half a gzip": tarOf(t, true, folder)[:20],
		"link":          tarOf(t, false, &tar.Header{Name: "report/a", Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink}),
		"hard link":     tarOf(t, false, &tar.Header{Name: "report/a", Linkname: "report/b", Typeflag: tar.TypeLink}),
		"pipe":          tarOf(t, false, &tar.Header{Name: "report/a", Typeflag: tar.TypeFifo}),
		"out":           tarOf(t, false, &tar.Header{Name: "../a", Typeflag: tar.TypeReg}),
		"zip out":       zipOf(t, "report/../../a", 0o644, nil),
		"zip absolute":  zipOf(t, "/etc/passwd", 0o644, nil),
		"zip link":      zipOf(t, "report/a", fs.ModeSymlink|0o777, []byte("/etc/passwd")),
		"zip backslash": zipOf(t, `..\a`, 0o644, nil),
		"bomb":          zipOf(t, "report/a", 0o644, make([]byte, skill.MaxBytes+1)),
	} {
		if _, err := skill.Unpack(archive); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	packed, err := skilltest.Bundle(f, "report", "Writes reports.").Pack()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(packed)
	f.Fuzz(func(t *testing.T, archive []byte) {
		files, err := skill.Unpack(archive)
		if err != nil {
			return
		}
		if b, err := skill.NewBundle(files); err == nil {
			for _, file := range b.Files {
				if !fs.ValidPath(file.Path) {
					t.Errorf("path %q", file.Path)
				}
			}
		}
	})
}
