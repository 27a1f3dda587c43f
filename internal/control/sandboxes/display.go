package sandboxes

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/language"
)

// names are E2B's names of languages, where Atoll has another name.
var names = map[string]language.Name{"javascript": "node", "js": "node", "python3": "python", "shell": "bash"}

// ContextLanguage returns a language of code contexts by Atoll's or E2B's name; nil and "" select
// the default one.
func ContextLanguage(name *string) (language.Name, error) {
	if name == nil || *name == "" {
		return language.Default, nil
	}
	l := language.Name(strings.ToLower(*name))
	if ours, ok := names[string(l)]; ok {
		l = ours
	}
	if !slices.Contains(language.ContextNames(), l) {
		return "", fault.New(fault.Invalid, "language %.40q is not supported by this server; code runs in %s", *name, language.Join(language.ContextNames(), ", ", " or "))
	}
	return l, nil
}

// LanguageName returns E2B's name of a language.
func LanguageName(l language.Name) string {
	if l == "node" {
		return "javascript"
	}
	return string(l)
}

// forms are E2B's names of media types.
var forms = map[string]string{
	"text/plain": "text", "text/html": "html", "text/markdown": "markdown", "image/svg+xml": "svg", "image/png": "png", "image/jpeg": "jpeg",
	"application/pdf": "pdf", "text/latex": "latex", "application/json": "json", "application/javascript": "javascript", "e2b/data": "data", "e2b/chart": "chart",
}

// Forms returns the forms of a value by E2B's names, and the other forms by media type. Like E2B,
// it removes the quotes of a string's representation.
func Forms(v *codecontext.Display) (named, extra map[string]jsontext.Value) {
	named, extra = map[string]jsontext.Value{}, map[string]jsontext.Value{}
	for media, data := range v.Data {
		if form, ok := forms[media]; ok {
			named[form] = data
		} else {
			extra[media] = data
		}
	}
	if text, ok := named["text"]; ok {
		named["text"] = unquoted(text)
	}
	return named, extra
}

func unquoted(text jsontext.Value) jsontext.Value {
	var s string
	if json.Unmarshal(text, &s) != nil || len(s) < 2 || s[0] != s[len(s)-1] || s[0] != '\'' && s[0] != '"' {
		return text
	}
	out, err := json.Marshal(s[1 : len(s)-1])
	if err != nil {
		return text
	}
	return out
}
