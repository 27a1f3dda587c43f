package skill

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Head is what the front matter of SKILL.md says of a skill.
type Head struct {
	Name          string
	Description   string
	License       string            `json:",omitzero"`
	Compatibility string            `json:",omitzero"`
	AllowedTools  []string          `json:",omitempty"`
	Metadata      map[string]string `json:",omitempty"`
}

var namePattern = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// CheckName refuses what no skill is called.
func CheckName(path, name string) error {
	if len(name) > 64 || !namePattern.MatchString(name) {
		return invalid("%s must have 1 to 64 lowercase letters, digits and single hyphens between them", path)
	}
	return nil
}

// front is the front matter, as the format has it.
type front struct {
	Name          string            `yaml:"name"`
	Description   string            `yaml:"description"`
	License       string            `yaml:"license"`
	Compatibility string            `yaml:"compatibility"`
	AllowedTools  list              `yaml:"allowed-tools"`
	Metadata      map[string]scalar `yaml:"metadata"`
}

// list is names separated by spaces, or a list of them.
type list []string

func (l *list) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*l = strings.Fields(n.Value)
		return nil
	}
	var all []string
	if err := n.Decode(&all); err != nil {
		return errors.New("allowed-tools must be names, separated by spaces")
	}
	*l = all
	return nil
}

// scalar is a value of metadata, as text.
type scalar string

func (s *scalar) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode {
		return errors.New("metadata must be pairs of texts")
	}
	*s = scalar(n.Value)
	return nil
}

// ParseMain reads SKILL.md: its head, and what follows the front matter.
func ParseMain(text []byte) (h Head, body string, err error) {
	if len(text) > MaxMain || !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return h, "", invalid("%s must be text in UTF-8 without NUL, of at most %d bytes", Main, MaxMain)
	}
	matter, body, ok := cut(strings.TrimPrefix(string(text), "\ufeff"))
	if !ok {
		return h, "", invalid("%s must begin with front matter: a line ---, name and description in YAML, and a line ---", Main)
	}
	var f front
	if err := yaml.NewDecoder(strings.NewReader(matter)).Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return h, "", invalid("%s: the front matter must be YAML with only name, description, license, compatibility, allowed-tools and metadata: %.200s", Main, strings.ReplaceAll(err.Error(), "\n", " "))
	}
	h = Head{Name: f.Name, Description: strings.TrimSpace(f.Description), License: f.License, Compatibility: f.Compatibility, AllowedTools: f.AllowedTools}
	for key, value := range f.Metadata {
		if h.Metadata == nil {
			h.Metadata = map[string]string{}
		}
		h.Metadata[key] = string(value)
	}
	return h, body, h.check()
}

// cut separates the front matter from the body.
func cut(text string) (matter, body string, ok bool) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	rest, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return "", "", false
	}
	if matter, ok = strings.CutSuffix(rest, "\n---"); ok && !strings.Contains(matter, "\n---\n") {
		return matter, "", true
	}
	return strings.Cut(rest, "\n---\n")
}

func (h *Head) check() error {
	if err := CheckName(Main+": name", h.Name); err != nil {
		return err
	}
	if BuiltIn(h.Name) {
		return invalid("%s: name: %s is a built-in skill; choose another name", Main, h.Name)
	}
	size := 0
	for key, value := range h.Metadata {
		size += len(key) + len(value)
	}
	for _, t := range []struct {
		name, text string
		most       int
	}{{"description", h.Description, 1024}, {"license", h.License, 512}, {"compatibility", h.Compatibility, 500}, {"allowed-tools", strings.Join(h.AllowedTools, " "), 4096}} {
		if utf8.RuneCountInString(t.text) > t.most {
			return invalid("%s: %s must have at most %d characters", Main, t.name, t.most)
		}
	}
	switch {
	case h.Description == "":
		return invalid("%s: description must say what the skill does and when to use it", Main)
	case strings.ContainsAny(h.Description, "<>"):
		return invalid("%s: description must not have < and >", Main)
	case len(h.Metadata) > 64 || size > 16<<10:
		return invalid("%s: metadata must have at most 64 pairs and 16384 bytes", Main)
	}
	return nil
}

// CheckTitle refuses what is no title.
func CheckTitle(title string) error {
	if utf8.RuneCountInString(title) > MaxTitle || strings.ContainsFunc(title, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return invalid("display_name must be one line of at most %d characters", MaxTitle)
	}
	return nil
}
