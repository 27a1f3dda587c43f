package skilltool

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/agent/loop/looptest"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/core/run"
)

func files(config string) run.Request {
	return run.Request{Skills: []run.Skill{{Name: Files, Config: json.RawMessage(config)}}}
}

func TestDocumentTools(t *testing.T) {
	w := &world{of: files(`{"formats": ["pdf"], "max_file_mb": 2}`), end: looptest.Ended(execution.Success, "{}\na page")}
	out, err := w.do(t, readDocumentName, `{"file_path": "a.pdf", "first": 2}`)
	if err != nil || looptest.Text(out) != "a page" || out.Result.Failed || out.Item != nil {
		t.Errorf("%+v, %v", out, err)
	}
	if got := string(w.asked.Input.Stdin); got != `{"do":"read","file_path":"a.pdf","first":2,"formats":["pdf"],"most":2097152,"room":65536}` ||
		w.asked.Language != language.Python || !strings.Contains(w.asked.Code, "def organize") {
		t.Errorf("it asked for %s: %s", w.asked.Language, got)
	}
	for _, c := range []struct {
		e    execution.Execution
		told string
	}{
		{looptest.Ended(execution.Success, "{\"failed\":true}\nthere is no file a.pdf"), "It was not done: there is no file a.pdf"},
		{looptest.Ended(execution.Success, "noise"), "It failed: the sandbox could not complete the call"},
		{looptest.Ended(execution.Failed, ""), "It failed: the sandbox could not complete the call"},
		{looptest.Ended(execution.Timeout, ""), "It was ended: it took longer than 10s."},
	} {
		w.end = c.e
		if out, err := w.do(t, readDocumentName, `{"file_path": "a.pdf"}`); err != nil || looptest.Text(out) != c.told || !out.Result.Failed {
			t.Errorf("%+v, %v", out, err)
		}
	}
	for tool, bad := range map[string][]string{
		readDocumentName:    {`{}`, `{"file_path": ""}`, `{"file_path": "a", "first": 0}`, `{"file_path": "a", "last": 1.5}`, `{"file_path": "a", "x": 1}`, `{"file_path": "` + strings.Repeat("a", maxPath+1) + `"}`},
		convertDocumentName: {`{"file_path": "a"}`, `{"file_path": "a", "to_path": "b", "sheet": -1}`},
		organizeName:        {`{"moves": []}`, `{"moves": [{"from_path": "a"}]}`, `{"moves": [` + strings.Repeat(`{"from_path": "a", "to_path": "b"},`, maxMoves) + `{"from_path": "a", "to_path": "b"}]}`},
	} {
		for _, arguments := range bad {
			if _, err := w.do(t, tool, arguments); err == nil {
				t.Errorf("%s takes %.80s", tool, arguments)
			}
		}
	}
}

// TestDocuments runs the program itself with this machine's Python.
func TestDocuments(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	do := func(call map[string]any) (text, refused string) {
		t.Helper()
		for k, v := range map[string]any{"formats": formats, "most": 1 << 20, "room": 1000} {
			if _, there := call[k]; !there {
				call[k] = v
			}
		}
		return answerOf(t, runs(t, documents, dir, call))
	}
	type object = map[string]any
	write("a.md", "# Top\n\n<&> \x01ü\n")
	write("deck.md", "# First <1>\n- a point\n  - below it\n\n## Second\nwords\n")
	write("page.html", "<h1>A page</h1><script>document.body.append('by a script')</script>")
	write("a.csv", "n,x\n1.5,\"a,b\"\n007,\n")
	write("broken.docx", "x")
	write("rich.md", "# A *b*\n\nsome **bold `code`** and [a link](https://example.org/?a=1&b=2)\nsame paragraph\n\n- one\n  1. below\n\n- two\n\n| h | i |\n|---|---|\n| **x** | a \\| b |\n\n```\ndef f():\n  1 < 2\n```\n")
	zipped(t, filepath.Join(dir, "formulas.xlsx"), map[string]string{
		"xl/workbook.xml":            `<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="S" r:id="r1"/></sheets></workbook>`,
		"xl/_rels/workbook.xml.rels": `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Target="s.xml"/></Relationships>`,
		"xl/s.xml":                   `<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData><row r="1"><c r="A1"><f>1+1</f><v>2</v></c><c r="B1"><f>SUM(A1:A1)</f></c><c r="C1"><f>A1</f><v/></c></row></sheetData></worksheet>`,
	})
	write("b.csv.part", "of the user")
	for _, c := range []struct {
		call object
		want string
	}{
		{object{"do": "convert", "file_path": "a.md", "to_path": "new/a.docx"}, "Converted a.md to new/a.docx"},
		{object{"do": "read", "file_path": "new/a.docx"}, "1 to 2 of 2:\n# Top\n\n<&> ü"},
		{object{"do": "read", "file_path": "new/a.docx", "room": 6}, "[the rest begins at first 2]"},
		{object{"do": "convert", "file_path": "rich.md", "to_path": "rich.docx"}, "Converted"},
		{object{"do": "read", "file_path": "rich.docx"}, "# A b\n\nsome bold code and a link same paragraph\n\n- one\n\n- below\n\n- two\n\n| h | i |\n| --- | --- |\n| x | a \\| b |\n\ndef f():\n  1 < 2"},
		{object{"do": "read", "file_path": "formulas.xlsx"}, "| 2 | [not computed: =SUM(A1:A1)] | [not computed: =A1] |"},
		{object{"do": "convert", "file_path": "a.csv", "to_path": "a.xlsx"}, "Converted"},
		{object{"do": "read", "file_path": "a.xlsx"}, "| 1.5 | a,b |\n| 007 |  |"},
		{object{"do": "convert", "file_path": "a.xlsx", "to_path": "b.csv"}, "Converted"},
		{object{"do": "convert", "file_path": "a.xlsx", "to_path": "b.csv"}, "!there is b.csv already"},
		{object{"do": "convert", "file_path": "a.xlsx", "to_path": "b.csv", "overwrite": true}, "Converted"},
		{object{"do": "convert", "file_path": "a.xlsx", "to_path": "c.csv", "sheet": 2}, "!a.xlsx has 1 sheets"},
		{object{"do": "convert", "file_path": "deck.md", "to_path": "deck.pptx"}, "Converted"},
		{object{"do": "read", "file_path": "deck.pptx"}, "# Slide 1\n\nFirst <1>\n\na point\n\nbelow it\n\n# Slide 2\n\nSecond\n\nwords"},
		{object{"do": "convert", "file_path": "deck.md", "to_path": "deck.csv"}, "!md cannot be converted to csv"},
		{object{"do": "convert", "file_path": "deck.pptx", "to_path": "deck.pdf"}, "Converted"},
		{object{"do": "convert", "file_path": "page.html", "to_path": "page.pdf"}, "Converted"},
		{object{"do": "convert", "file_path": "page.html", "to_path": "page.pdf", "formats": []string{"docx"}, "overwrite": true}, "!pdf is not among the formats"},
		{object{"do": "convert", "file_path": "a.md", "to_path": "c.docx", "formats": []string{"pdf"}}, "!docx is not among the formats"},
		{object{"do": "read", "file_path": "broken.docx"}, "!broken.docx is no such document"},
		{object{"do": "read", "file_path": "none.docx"}, "!there is no file none.docx"},
		{object{"do": "read", "file_path": "a.csv"}, "!a.csv is none of"},
		{object{"do": "read", "file_path": "new/a.docx", "most": 10}, "!new/a.docx is larger than"},
		{object{"do": "organize", "moves": []object{{"from_path": "a.csv", "to_path": "a.md"}}}, "!there is a.md already; nothing was moved"},
		{object{"do": "organize", "moves": []object{{"from_path": "new", "to_path": "new/x"}}}, "!new cannot be moved into itself"},
		{object{"do": "organize", "moves": []object{{"from_path": "a.csv", "to_path": "t/1.csv"}, {"from_path": "none", "to_path": "t/2"}}}, "!there is no none; nothing was moved"},
		{object{"do": "organize", "moves": []object{{"from_path": "a.csv", "to_path": "t/1.csv"}, {"from_path": "b.csv", "to_path": "t/2.csv"}}}, "Moved 2:"},
	} {
		text, refused := do(c.call)
		if want, not := strings.CutPrefix(c.want, "!"); not && !strings.HasPrefix(refused, want) || !not && !strings.Contains(text, want) {
			t.Errorf("%v: %q, refused %q; want %q", c.call, text, refused, c.want)
		}
	}
	parts := unzipped(t, filepath.Join(dir, "rich.docx"))
	for part, wants := range map[string][]string{
		"word/document.xml": {
			`<w:b/></w:rPr><w:t xml:space="preserve">bold </w:t>`, `Courier New"/><w:b/>`, `<w:i/></w:rPr><w:t xml:space="preserve">b</w:t>`, `<w:hyperlink r:id="link0">`,
			`<w:ilvl w:val="0"/><w:numId w:val="1"/>`, `<w:ilvl w:val="1"/><w:numId w:val="2"/>`, `<w:tblHeader/>`, `<w:pStyle w:val="Code"/>`, `def f():</w:t><w:br/><w:t xml:space="preserve">  1 &lt; 2</w:t>`,
		},
		"word/_rels/document.xml.rels": {`Target="https://example.org/?a=1&amp;b=2" TargetMode="External"`},
		"word/numbering.xml":           {`<w:num w:numId="2"><w:abstractNumId w:val="1"/>`},
	} {
		for _, want := range wants {
			if !strings.Contains(parts[part], want) {
				t.Errorf("%s lacks %s: %s", part, want, parts[part])
			}
		}
	}
	// The second move fails, as its folder is a file by then: the first one is undone.
	text, refused := do(object{"do": "organize", "moves": []object{{"from_path": "t/1.csv", "to_path": "u"}, {"from_path": "t/2.csv", "to_path": "u/2.csv"}}})
	if _, err := os.Stat(filepath.Join(dir, "t/1.csv")); err != nil || refused == "" {
		t.Errorf("%q, refused %q: %v", text, refused, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "u")); err == nil {
		t.Error("what was moved before the failure is still there")
	}
	if text, refused := do(object{"do": "organize", "dry_run": true, "room": 5, "moves": []object{{"from_path": "t/1.csv", "to_path": "u"}}}); text != "Would move 1:\nt/1.c\n[and more]" {
		t.Errorf("a long list of moves: %q, refused %q", text, refused)
	}
	for name, pages := range map[string]int{"deck.pdf": 2, "page.pdf": 1} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.HasPrefix(data, []byte("%PDF-")) || len(regexp.MustCompile(`/Type\s*/Page\b`).FindAll(data, -1)) != pages {
			t.Errorf("%s has no %d pages: %.100q, %v", name, pages, data, err)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, ".atoll-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left %q", left)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "b.csv.part")); err != nil || string(data) != "of the user" {
		t.Errorf("a file beside that which is made has %q, %v", data, err)
	}
}

// TestDocumentHints checks that the model learns what the user and the operator can do if the tool
// cannot create a PDF file, or only one without the document's layout.
func TestDocumentHints(t *testing.T) {
	bare := strings.NewReplacer(`DIRECT = ["`, `DIRECT = ["/none`, `NAMES = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome"]`, "NAMES = []").Replace(documents)
	if bare == documents {
		t.Fatal("the program finds its browser in another way")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"a.md": "# Top\n", "deck.md": "# One\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	convert := func(program, from, to string) (text, refused string) {
		t.Helper()
		return answerOf(t, runs(t, program, dir, map[string]any{"do": "convert", "file_path": from, "to_path": to, "formats": formats, "most": 1 << 20, "room": 1000}))
	}
	if err := os.WriteFile(filepath.Join(dir, "r.pdf"), []byte("%PDF-1.4"), 0o600); err != nil {
		t.Fatal(err)
	}
	blind := strings.NewReplacer("import pypdf\n", "import none_such\n", `shutil.which("pdftotext")`, "False").Replace(documents)
	if _, refused := answerOf(t, runs(t, blind, dir, map[string]any{"do": "read", "file_path": "r.pdf", "formats": formats, "most": 1 << 20, "room": 1000})); !strings.HasSuffix(refused, "'atoll image build --if-changed'") {
		t.Errorf("without a reader of PDF files: %q", refused)
	}
	convert(documents, "a.md", "a.docx")
	for _, c := range []struct{ program, from, to, want string }{
		{bare, "a.md", "a.pdf", "!the environment has no browser. Tell the user to add chromium to packages.apt of the environment, or to ask the operator to " +
			"run 'atoll image build --with browser' and then 'atoll env set TENANT ENVIRONMENT --image default+browser'"},
		{bare, "a.docx", "b.pdf", "!the environment has neither LibreOffice nor a browser. Tell the user to add libreoffice-writer-nogui to packages.apt of the environment, or to ask the operator to " +
			"run 'atoll image build --with browser,office' and then 'atoll env set TENANT ENVIRONMENT --image default+browser,office'"},
		{documents, "a.docx", "c.pdf", "It has the text and tables alone. For a PDF that looks like the document, tell the user to add libreoffice-writer-nogui to packages.apt of the environment, or to " +
			"ask the operator to run 'atoll image build --with browser,office' and then"},
		{documents, "a.md", "d.pdf", " bytes."},
	} {
		text, refused := convert(c.program, c.from, c.to)
		if want, not := strings.CutPrefix(c.want, "!"); not && refused != want || !not && !strings.Contains(text, want) {
			t.Errorf("%s: %q, refused %q; want %q", c.to, text, refused, c.want)
		}
	}
}

// zipped writes a zip archive of texts.
func zipped(t *testing.T, name string, texts map[string]string) {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for part, text := range texts {
		w, err := z.Create(part)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(z.Close(), os.WriteFile(name, b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// unzipped reads the texts of a zip archive.
func unzipped(t *testing.T, name string) map[string]string {
	t.Helper()
	z, err := zip.OpenReader(name)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	texts := map[string]string{}
	for _, f := range z.File {
		data, err := fs.ReadFile(z, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		texts[f.Name] = string(data)
	}
	return texts
}
