package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// methods lists HTTP methods in the order in which a page shows them.
var methods = []string{"post", "get", "put", "patch", "delete", "head"}

// located is an operation with its method and path.
type located struct {
	*operation
	method, path string
}

// title returns the heading of an operation.
func (l located) title() string {
	if l.Summary != "" {
		return strings.TrimSuffix(l.Summary, ".")
	}
	return l.OperationID
}

func (l located) request() string { return "`" + strings.ToUpper(l.method) + " " + l.path + "`" }

// pages returns the pages by file name. A type appears on the page of the first tag that uses it.
func (d *document) pages() map[string]string {
	byTag := map[string][]located{}
	for _, path := range d.Paths.keys {
		for _, method := range methods {
			if op := d.Paths.values[path][method]; op != nil && len(op.Tags) > 0 {
				byTag[op.Tags[0]] = append(byTag[op.Tags[0]], located{op, method, path})
			}
		}
	}
	home := map[string]string{} // the tag of each type
	types := map[string][]string{}
	for _, tag := range d.Tags {
		for _, op := range byTag[tag.Name] {
			for _, name := range d.uses(op.operation) {
				if _, ok := home[name]; !ok {
					home[name] = tag.Name
					types[tag.Name] = append(types[tag.Name], name)
				}
			}
		}
	}
	usual := d.usual()
	out := map[string]string{}
	index := "# API\n\nLook up an operation, its parameters, fields and answers. [HTTP API](../http-api.md) explains authentication, errors and other rules that all operations share.\n\n| page | operations |\n| --- | --- |\n"
	for _, tag := range d.Tags {
		p := page{tag: tag.Name, home: home, usual: usual}
		p.printf("# %s API\n\n%s\n\n", strings.ToUpper(tag.Name[:1])+tag.Name[1:], text(tag.Description))
		p.table("operation", "request")
		for _, op := range byTag[tag.Name] {
			p.row(fmt.Sprintf("[%s](#%s)", cell(op.title()), anchor(op.title())), op.request())
		}
		for _, op := range byTag[tag.Name] {
			p.operation(op)
		}
		slices.Sort(types[tag.Name])
		if len(types[tag.Name]) > 0 {
			p.printf("\n## Types\n")
		}
		for _, name := range types[tag.Name] {
			p.schema(name, d.Components.Schemas.values[name])
		}
		p.printf("\n<!-- Written by make generate from api/openapi.json. -->\n")
		out[file(tag.Name)] = p.b.String()
		index += fmt.Sprintf("| [%s](%s) | %s |\n", tag.Name, file(tag.Name), cell(tag.Description))
	}
	out["README.md"] = index + "\n<!-- Written by make generate from api/openapi.json. -->\n"
	return out
}

// usual returns the most frequent description of each status.
func (d *document) usual() map[string]string {
	counts := map[string]map[string]int{}
	for _, path := range d.Paths.values {
		for _, op := range path {
			for status, r := range op.Responses.values {
				if counts[status] == nil {
					counts[status] = map[string]int{}
				}
				counts[status][r.Description]++
			}
		}
	}
	out := map[string]string{}
	for status, of := range counts {
		for _, description := range slices.Sorted(maps.Keys(of)) {
			if of[description] > of[out[status]] {
				out[status] = description
			}
		}
	}
	return out
}

// uses lists the types of an operation, and the types of their fields, in a stable order.
func (d *document) uses(op *operation) []string {
	seen := map[string]bool{}
	var visit func(s *schema)
	visit = func(s *schema) {
		if s == nil {
			return
		}
		if name := s.name(); name != "" {
			if !seen[name] {
				seen[name] = true
				visit(d.Components.Schemas.values[name])
			}
			return
		}
		visit(s.Items)
		visit(s.additional())
		for _, of := range append(slices.Clone(s.OneOf), s.AnyOf...) {
			visit(of)
		}
		for _, key := range s.Properties.keys {
			visit(s.Properties.values[key])
		}
	}
	if op.RequestBody != nil {
		for _, c := range op.RequestBody.Content.values {
			visit(c.Schema)
		}
	}
	for _, r := range op.Responses.values {
		for _, c := range r.Content.values {
			visit(c.Schema)
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// page collects the text of one page.
type page struct {
	b    strings.Builder
	tag  string
	home map[string]string
	// usual is the most frequent description of each status, which all operations share.
	usual map[string]string
}

func (p *page) printf(format string, args ...any) { fmt.Fprintf(&p.b, format, args...) }

func (p *page) table(columns ...string) {
	p.row(columns...)
	p.printf("|%s\n", strings.Repeat(" --- |", len(columns)))
}

func (p *page) row(cells ...string) { p.printf("| %s |\n", strings.Join(cells, " | ")) }

func (p *page) operation(op located) {
	p.printf("\n## %s\n\n%s\n", op.title(), op.request())
	if op.Description != "" {
		p.printf("\n%s\n", text(op.Description))
	}
	if len(op.Parameters) > 0 {
		p.printf("\n")
		p.table("parameter", "in", "type", "meaning")
		for _, a := range op.Parameters {
			name := "`" + a.Name + "`"
			if a.Required && a.In != "path" {
				name += " (required)"
			}
			p.row(name, a.In, p.kind(a.Schema), meaning(a.Description, a.Schema))
		}
	}
	if op.RequestBody != nil {
		for _, media := range op.RequestBody.Content.keys {
			p.printf("\nBody: %s\n", p.body(media, op.RequestBody.Content.values[media]))
		}
	}
	p.printf("\n")
	p.table("status", "answer")
	var shared []string
	for _, status := range slices.Sorted(slices.Values(op.Responses.keys)) {
		r := op.Responses.values[status]
		if status >= "400" && r.Description == p.usual[status] {
			shared = append(shared, status)
			continue
		}
		answer := cell(r.Description)
		if status < "400" {
			for _, media := range r.Content.keys {
				answer = p.body(media, r.Content.values[media]) + ". " + answer
			}
		}
		p.row(status, answer)
	}
	if len(shared) > 0 {
		p.row(strings.Join(shared, ", "), "[shared errors](../http-api.md#errors)")
	}
}

// body names the type of a body.
func (p *page) body(media string, c content) string {
	kind := p.kind(c.Schema)
	if media == "application/json" {
		return kind
	}
	return strings.TrimSpace("`" + media + "` " + strings.TrimPrefix(kind, "any"))
}

func (p *page) schema(name string, s *schema) {
	p.printf("\n### %s\n", name)
	if description := strings.TrimPrefix(s.Description, name+" "); description != "" {
		p.printf("\n%s\n", text(strings.ToUpper(description[:1])+description[1:]))
	}
	if len(s.Properties.keys) == 0 {
		p.printf("\n%s\n", p.kind(&schema{Type: s.Type, Items: s.Items, OneOf: s.OneOf, AnyOf: s.AnyOf, Enum: s.Enum, AdditionalProperties: s.AdditionalProperties}))
		return
	}
	p.printf("\n")
	p.table("field", "type", "meaning")
	for _, key := range s.Properties.keys {
		f := s.Properties.values[key]
		field := "`" + key + "`"
		if slices.Contains(s.Required, key) {
			field += " (required)"
		}
		p.row(field, p.kind(f), meaning(f.Description, f))
	}
}
