package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const schemaPrefix = "#/components/schemas/"

// name returns the name of the type that a schema refers to.
func (s *schema) name() string { return strings.TrimPrefix(s.Ref, schemaPrefix) }

// additional returns the schema of a map's values; nil for other types.
func (s *schema) additional() *schema {
	if len(s.AdditionalProperties) == 0 || !bytes.HasPrefix(s.AdditionalProperties, []byte("{")) {
		return nil
	}
	var of schema
	if err := json.Unmarshal(s.AdditionalProperties, &of); err != nil {
		return nil
	}
	return &of
}

// kind describes the type of a value and links to named types.
func (p *page) kind(s *schema) string {
	if s == nil {
		return "any"
	}
	if name := s.name(); name != "" {
		link := "#" + anchor(name)
		if tag := p.home[name]; tag != p.tag {
			link = file(tag) + link
		}
		return fmt.Sprintf("[%s](%s)", name, link)
	}
	if of := append(slices.Clone(s.OneOf), s.AnyOf...); len(of) > 0 {
		var kinds []string
		for _, o := range of {
			if k := p.kind(o); !slices.Contains(kinds, k) {
				kinds = append(kinds, k)
			}
		}
		return strings.Join(kinds, " or ")
	}
	var kinds []string
	for _, t := range s.Type {
		switch of := s.additional(); {
		case t == "null":
		case t == "array" && s.Items != nil:
			kinds = append(kinds, "list of "+p.kind(s.Items))
		case t == "object" && of != nil:
			kinds = append(kinds, "map of "+p.kind(of))
		case t == "string" && s.Format == "date-time":
			kinds = append(kinds, "time")
		case t == "string" && s.Format == "binary":
			kinds = append(kinds, "bytes")
		default:
			kinds = append(kinds, t)
		}
	}
	if len(kinds) == 0 {
		return "any"
	}
	return strings.Join(kinds, " or ")
}

// meaning returns a description followed by choices, default and limits.
func meaning(description string, s *schema) string {
	parts := []string{}
	if description = strings.TrimSpace(description); description != "" {
		parts = append(parts, cell(strings.TrimSuffix(description, "."))+".")
	}
	if s == nil {
		return strings.Join(parts, " ")
	}
	if len(s.Enum) > 0 {
		var values []string
		for _, v := range s.Enum {
			if v != nil {
				values = append(values, fmt.Sprintf("`%v`", v))
			}
		}
		parts = append(parts, "One of "+strings.Join(values, ", ")+".")
	}
	if s.Default != nil {
		if value, err := json.Marshal(s.Default); err == nil {
			parts = append(parts, "Default: `"+string(value)+"`.")
		}
	}
	if limits := s.limits(); limits != "" {
		parts = append(parts, limits)
	}
	return strings.Join(parts, " ")
}

// limits describes the bounds of a value.
func (s *schema) limits() string {
	between := func(low, high *json.Number, unit string) string {
		switch {
		case low != nil && high != nil:
			return fmt.Sprintf("%s to %s%s.", *low, *high, unit)
		case high != nil:
			return fmt.Sprintf("At most %s%s.", *high, unit)
		case low != nil && *low != "0":
			return fmt.Sprintf("At least %s%s.", *low, unit)
		}
		return ""
	}
	var all []string
	for _, text := range []string{between(s.Minimum, s.Maximum, ""), between(s.MinLength, s.MaxLength, " characters"), between(nil, s.MaxItems, " items")} {
		if text != "" {
			all = append(all, text)
		}
	}
	return strings.Join(all, " ")
}

func file(tag string) string { return strings.ReplaceAll(strings.ToLower(tag), " ", "-") + ".md" }

var notInAnchors = regexp.MustCompile(`[^a-z0-9 _-]`)

// anchor returns the anchor that GitHub and VitePress generate for a heading.
func anchor(heading string) string {
	return strings.ReplaceAll(notInAnchors.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

// text escapes a description for Markdown.
func text(s string) string {
	return outsideCode(strings.TrimSpace(s), strings.NewReplacer("<", "&lt;"))
}

// cell escapes text for a table cell.
func cell(s string) string {
	s = outsideCode(strings.Join(strings.Fields(s), " "), strings.NewReplacer("<", "&lt;", "*", `\*`))
	return strings.ReplaceAll(s, "|", `\|`)
}

// outsideCode applies r to the text outside backquotes, because Markdown does not interpret code.
func outsideCode(s string, r *strings.Replacer) string {
	parts := strings.Split(s, "`")
	for i := range parts {
		if i%2 == 0 {
			parts[i] = r.Replace(parts[i])
		}
	}
	return strings.Join(parts, "`")
}
