package skilltool

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/agent/loop/looptest"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/core/run"
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
		{nil, sandboxtool.RunCode, `{"language": "bash", "code": "true"}`, nil, nil},
		{[]string{Planning, Code}, sandboxtool.RunCode, `{"language": "bash", "code": "true"}`, nil, nil},
		{[]string{Browsing}, sandboxtool.RunCode, `{"language": "bash", "code": "true"}`, both[:1], nil},
		{[]string{Browsing}, openPageName, `{"url": "http://x.test"}`, both[:1], both[:1]},
		{[]string{Files, Browsing}, openPageName, `{"url": "http://x.test"}`, both, both[:1]},
		{[]string{Files}, readDocumentName, `{"file_path": "a.docx"}`, both, nil},
		{[]string{Files}, convertDocumentName, convert("a.docx", "a.md"), both, nil},
		{[]string{Files}, convertDocumentName, convert("a.md", "b.PDF"), both, both[:1]},
		{[]string{Files}, convertDocumentName, convert("a.DOCX", "b.pdf"), both, both[1:]},
		{[]string{Files}, convertDocumentName, convert("a.pdf", "b.pdf"), both, nil},
	} {
		w := &world{end: looptest.Ended(execution.Success, "{}\n")}
		for _, name := range c.skills {
			w.of.Skills = append(w.of.Skills, run.Skill{Name: name, Config: json.RawMessage("{}")})
		}
		w.of.Skills = append(w.of.Skills, run.Skill{Name: Browsing, Version: "skv_1"}) // a tenant's own
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
		w := &world{end: looptest.Ended(execution.Success, refusal)}
		w.of.Skills = []run.Skill{{Name: Browsing, Config: json.RawMessage("{}")}}
		if c.images != nil {
			w.images = c.images
		}
		out, refused := w.do(t, openPageName, `{"url": "http://x.test"}`)
		if refused != nil || !out.Result.Failed || looptest.Text(out) != c.want {
			t.Errorf("told %q, %v; want %q", looptest.Text(out), refused, c.want)
		}
		if c.images != nil && !slices.Equal(c.images.of, []string{"browser"}) {
			t.Errorf("asked about %q", c.images.of)
		}
	}
	e := looptest.Ended(execution.Success, refusal)
	s := (&world{end: e, images: &known{err: errors.New("no records")}}).sandbox()
	c := (&world{of: browses("")}).callOf(openPageName, `{"url": "http://x.test"}`)
	if _, err := s.Do(t.Context(), c); err == nil || !strings.Contains(err.Error(), "no records") {
		t.Errorf("without records: %v", err)
	}
}
