// Package prose finds wording that makes texts hard to read, which docs/contribute/development.md rules out.
package prose

import (
	"regexp"
	"strings"
)

// Rule is a pattern that no text may contain, with advice for its author.
type Rule struct {
	Pattern *regexp.Regexp
	Advice  string
}

// Hit is wording that breaks a rule.
type Hit struct {
	Text, Advice string
}

// Rules apply to one sentence or one line each.
var Rules = []Rule{
	{regexp.MustCompile(`(?i)\b(nobody|somebody|anybody|everybody|whoever|whom|vouch\w*|twins?|likeness|attendants?|ones? who)\b`), "name the actor"},
	{regexp.MustCompile(`(?:^|[.:;|] |- )(What|Who|Whatever|Those that|One that|That of|Such as are|Of those|Nothing of|None of|Neither)\b[^?]*$`), "begin with the actor or the thing"},
	{regexp.MustCompile(`(?i)\b(has not the|have not the|(is|are|was|were) (one|ones|those) (that|of|from|which|whose)|(is|are) there already|that there is not|(is|are) of (no|the|a|an)|as it is there|gets? none)\b`), "use a verb in place of has or is"},
	{regexp.MustCompile(`(?i)\b(of now|by and by|makes itself|comes? into being|is looked at again|is taken away|mend(s|ed)?|tells? of|told of|means? nothing|becomes? of|all the same|in the meantime|time (is|was) over|let(s|ting)? go of|is told to)\b`), "use the word that the field uses"},
	{regexp.MustCompile(`(?i)\bany more($|[.,;:)])`), "write no longer, or say what stopped"},
	{regexp.MustCompile(`^Have (a|an|the) \w+ \w+`), "begin with the verb of the action"},
	{regexp.MustCompile(`(?i)\bthere (is|are) (no such|nothing|none)\b`), "say what was not found"},
}

// code matches code, links and URLs, which the rules exempt.
var code = regexp.MustCompile("`[^`]*`|\\[[^]]*\\]\\([^)]*\\)|https?://\\S+")

// Line returns the wording of one line of a page that breaks a rule.
func Line(line string) []Hit {
	var hits []Hit
	line = code.ReplaceAllString(line, "")
	for _, r := range Rules {
		if word := r.Pattern.FindString(line); word != "" {
			hits = append(hits, Hit{word, r.Advice})
		}
	}
	return hits
}

// end matches the end of a sentence and the space behind it.
var end = regexp.MustCompile(`([.!?]["')]?|[:;])\s+`)

// Text returns the wording of a whole text, such as an error or a description, that breaks a rule.
// Lines that begin with a tab or four spaces are code.
func Text(text string) []Hit {
	var paragraphs []string
	open := false
	for line := range strings.Lines(text) {
		switch s := strings.TrimSpace(line); {
		case s == "", strings.HasPrefix(line, "\t"), strings.HasPrefix(line, "    "):
			open = false
		case open:
			paragraphs[len(paragraphs)-1] += " " + s
		default:
			paragraphs, open = append(paragraphs, s), true
		}
	}
	var hits []Hit
	for _, p := range paragraphs {
		p = code.ReplaceAllString(p, "")
		for p != "" {
			sentence := p
			if at := end.FindStringIndex(p); at != nil {
				sentence, p = p[:at[1]], p[at[1]:]
			} else {
				p = ""
			}
			sentence = strings.TrimSpace(sentence)
			if sentence != "" {
				hits = append(hits, Line(strings.ToUpper(sentence[:1])+sentence[1:])...)
			}
		}
	}
	return hits
}
