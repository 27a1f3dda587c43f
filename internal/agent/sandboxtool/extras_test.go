package sandboxtool

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/skill"
)

// TestExtras: calls ask for the extras of the agent's skills, and wait for those that they need.
func TestExtras(t *testing.T) {
	both := []string{requirement.Browser, requirement.Office}
	convert := func(from, to string) string {
		text, _ := json.Marshal(map[string]string{"file_path": from, "to_path": to}) // of strings: never fails
		return string(text)
	}
	for _, c := range []struct {
		skills          []string
		tool, arguments string
		extras, need    []string
	}{
		{nil, RunCode, `{"language": "bash", "code": "true"}`, nil, nil},
		{[]string{skill.Planning, skill.Code}, RunCode, `{"language": "bash", "code": "true"}`, nil, nil},
		{[]string{skill.Browsing}, RunCode, `{"language": "bash", "code": "true"}`, both[:1], nil},
		{[]string{skill.Browsing}, skill.OpenPageTool, `{"url": "http://x.test"}`, both[:1], both[:1]},
		{[]string{skill.Files, skill.Browsing}, skill.OpenPageTool, `{"url": "http://x.test"}`, both, both[:1]},
		{[]string{skill.Files}, skill.ReadDocumentTool, `{"file_path": "a.docx"}`, both, nil},
		{[]string{skill.Files}, skill.ConvertDocumentTool, convert("a.docx", "a.md"), both, nil},
		{[]string{skill.Files}, skill.ConvertDocumentTool, convert("a.md", "b.PDF"), both, both[:1]},
		{[]string{skill.Files}, skill.ConvertDocumentTool, convert("a.DOCX", "b.pdf"), both, both[1:]},
		{[]string{skill.Files}, skill.ConvertDocumentTool, convert("a.pdf", "b.pdf"), both, nil},
	} {
		w := &world{end: answered(execution.Success, "{}\n")}
		for _, name := range c.skills {
			w.of.Skills = append(w.of.Skills, run.Skill{Name: name, Config: json.RawMessage("{}")})
		}
		w.of.Skills = append(w.of.Skills, run.Skill{Name: skill.Browsing, Version: "skv_1"}) // a tenant's own
		w.do(t, c.tool, c.arguments)
		if !slices.Equal(w.call.Extras, c.extras) || !slices.Equal(w.call.NeedExtras, c.need) {
			t.Errorf("%s %s with %q asks for %q, and waits for %q", c.tool, c.arguments, c.skills, w.call.Extras, w.call.NeedExtras)
		}
	}
}

// known says what is known of images.
type known struct {
	says string
	err  error
	of   []string
}

func (k *known) Lacking(_ context.Context, _, _ string, extras []string) (string, error) {
	k.of = extras
	return k.says, k.err
}

// TestLacking: a model is told what the server knows of the programs that its sandbox lacks, or else
// what the tool says.
func TestLacking(t *testing.T) {
	const refusal = "{\"failed\": true, \"lacks\": [\"browser\"]}\nthe environment has no browser"
	for _, c := range []struct {
		images *known
		want   string
	}{
		{&known{says: "they are being made"}, "It was not done: this sandbox lacks programs that the tool needs: they are being made."},
		{&known{}, "It was not done: the environment has no browser"},
		{nil, "It was not done: the environment has no browser"},
	} {
		w := &world{end: answered(execution.Success, refusal)}
		w.of.Skills = []run.Skill{{Name: skill.Browsing, Config: json.RawMessage("{}")}}
		if c.images != nil {
			w.images = c.images
		}
		out, refused := w.do(t, skill.OpenPageTool, `{"url": "http://x.test"}`)
		if refused != nil || !out.Result.Failed || toldIn(out) != c.want {
			t.Errorf("told %q, %v; want %q", toldIn(out), refused, c.want)
		}
		if c.images != nil && !slices.Equal(c.images.of, []string{"browser"}) {
			t.Errorf("asked about %q", c.images.of)
		}
	}
	e := answered(execution.Success, refusal)
	s := &Sandbox{Runner: &world{end: e}, Extras: &known{err: errors.New("no records")}}
	if _, err := pageTools[0].outcome(t.Context(), s, nil, &e); err == nil || !strings.Contains(err.Error(), "no records") {
		t.Errorf("without records: %v", err)
	}
}
