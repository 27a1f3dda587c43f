package catalogue

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// openapi returns the summaries and descriptions of the API's document.
func openapi(root string) ([]Text, error) {
	const name = "api/openapi.json"
	content, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return nil, err
	}
	var texts []Text
	for i, line := range strings.Split(string(content), "\n") { // has one member a line
		line = strings.TrimSuffix(strings.TrimSpace(line), ",")
		for _, key := range []string{`"summary": `, `"description": `} {
			var text string
			if value, ok := strings.CutPrefix(line, key); ok && json.Unmarshal([]byte(value), &text) == nil {
				texts = append(texts, Text{API, name, i + 1, text})
			}
		}
	}
	return texts, nil
}

// docstring matches a docstring of Python, and doccomment one of TypeScript before an identifier.
var (
	docstring  = regexp.MustCompile(`(?s)(?:^|\n)[ ]*"""(.+?)"""`)
	doccomment = regexp.MustCompile(`(?s)/\*\*(.+?)\*/`)
	star       = regexp.MustCompile(`(?m)^[ \t]*\* ?`)
	indent     = regexp.MustCompile(`(?m)^[ ]+`)
)

// docstrings returns the docstrings of a client library's files, except generated ones.
func docstrings(root, directory, extension string, pattern *regexp.Regexp, generated ...string) ([]Text, error) {
	var texts []Text
	err := filepath.WalkDir(filepath.Join(root, directory), func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case slices.Contains(generated, d.Name()):
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case d.IsDir() || filepath.Ext(path) != extension:
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		for _, m := range pattern.FindAllSubmatchIndex(content, -1) {
			text := string(content[m[2]:m[3]])
			line := 1 + strings.Count(string(content[:m[2]]), "\n")
			if extension == ".ts" {
				text = star.ReplaceAllString(text, "")
			} else {
				text = indent.ReplaceAllString(text, "")
			}
			texts = append(texts, Text{SDK, filepath.ToSlash(name), line, strings.TrimSpace(text)})
		}
		return nil
	})
	return texts, err
}
