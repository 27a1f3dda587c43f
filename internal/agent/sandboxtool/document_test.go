package sandboxtool

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/skill"
)

func filing(config string) run.Request {
	return run.Request{Skills: []run.Skill{{Name: skill.Files, Config: json.RawMessage(config)}}}
}

func TestDocumentTools(t *testing.T) {
	w := &world{of: filing(`{"formats": ["pdf"], "max_file_mb": 2}`), end: answered(execution.Success, "{}\na page")}
	out, err := w.do(t, skill.ReadDocumentTool, `{"file_path": "a.pdf", "first": 2}`)
	if err != nil || toldIn(out) != "a page" || out.Result.Failed || out.Item != nil {
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
		{answered(execution.Success, "{\"failed\":true}\nthere is no file a.pdf"), "It was not done: there is no file a.pdf"},
		{answered(execution.Success, "noise"), "It failed: the sandbox could not do it"},
		{answered(execution.Failed, ""), "It failed: the sandbox could not do it"},
		{answered(execution.Timeout, ""), "It was ended: it took longer than 10s."},
	} {
		w.end = c.e
		if out, err := w.do(t, skill.ReadDocumentTool, `{"file_path": "a.pdf"}`); err != nil || toldIn(out) != c.told || !out.Result.Failed {
			t.Errorf("%+v, %v", out, err)
		}
	}
	for tool, bad := range map[string][]string{
		skill.ReadDocumentTool:    {`{}`, `{"file_path": ""}`, `{"file_path": "a", "first": 0}`, `{"file_path": "a", "last": 1.5}`, `{"file_path": "a", "x": 1}`, `{"file_path": "` + strings.Repeat("a", maxPath+1) + `"}`},
		skill.ConvertDocumentTool: {`{"file_path": "a"}`, `{"file_path": "a", "to_path": "b", "sheet": -1}`},
		skill.OrganizeTool:        {`{"moves": []}`, `{"moves": [{"from_path": "a"}]}`, `{"moves": [` + strings.Repeat(`{"from_path": "a", "to_path": "b"},`, maxMoves) + `{"from_path": "a", "to_path": "b"}]}`},
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
		for k, v := range map[string]any{"formats": skill.Formats, "most": 1 << 20, "room": 1000} {
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
	write("b.csv.part", "of the user")
	for _, c := range []struct {
		call object
		want string
	}{
		{object{"do": "convert", "file_path": "a.md", "to_path": "new/a.docx"}, "Converted a.md to new/a.docx"},
		{object{"do": "read", "file_path": "new/a.docx"}, "1 to 2 of 2:\n# Top\n\n<&> ü"},
		{object{"do": "read", "file_path": "new/a.docx", "room": 6}, "[the rest begins at first 2]"},
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
