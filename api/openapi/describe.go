package openapi

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// module is where the packages of the schemas' types begin.
const module = "github.com/atoll-run/atoll/"

// describe gives each schema the comment of its Go type, which the sources below root
// have, and each property without a description that of the tables. What has none then is
// an error.
func (w writer) describe(root string) error {
	sources := comments{root, map[string]map[string]string{}}
	registry := w.schemas.Registry()
	all := registry.Map()
	used := map[string]bool{}
	var lacking []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		about, err := sources.of(registry.TypeFromRef(reference + name))
		if err != nil {
			return err
		}
		if s.Description == "" {
			s.Description = about
		}
		if s.Description == "" {
			lacking = append(lacking, name)
		}
		for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
			p := s.Properties[field]
			if p.Description != "" || refers(p) {
				continue // to a schema, which says what it is
			}
			key := name + "." + field
			text, ok := ofTools[key]
			if !ok {
				key, text = field, common[field]
			}
			used[key] = true
			if p.Description = text; text == "" {
				lacking = append(lacking, name+"."+field)
			}
		}
	}
	if len(lacking) > 0 {
		return fmt.Errorf("these have no description: give a type a comment, and a field the tag doc: %s", strings.Join(lacking, ", "))
	}
	for _, table := range []map[string]string{common, ofTools} {
		for key := range table {
			if !used[key] {
				return fmt.Errorf("fields.go describes %s, which no schema has without a description", key)
			}
		}
	}
	return nil
}

// refers reports whether a property is another schema, or that or null.
func refers(p *huma.Schema) bool {
	return p.Ref != "" || slices.ContainsFunc(p.AnyOf, func(s *huma.Schema) bool { return s.Ref != "" })
}

// comments are those of Go types, read when a type of their package is first asked for.
type comments struct {
	root     string
	packages map[string]map[string]string
}

// of returns the first paragraph of a type's comment, on one line.
func (c comments) of(t reflect.Type) (string, error) {
	path, ok := strings.CutPrefix(t.PkgPath(), module)
	if !ok {
		return "", fmt.Errorf("%s is not a type of this module", t)
	}
	if c.packages[path] == nil {
		read, err := readComments(filepath.Join(c.root, path))
		if err != nil {
			return "", err
		}
		c.packages[path] = read
	}
	name, _, _ := strings.Cut(t.Name(), "[") // of a generic type
	return c.packages[path][name], nil
}

func readComments(dir string) (map[string]string, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, f.Name()), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range parsed.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, s := range g.Specs {
				named := s.(*ast.TypeSpec)
				about := named.Doc
				if about == nil {
					about = g.Doc
				}
				first, _, _ := strings.Cut(about.Text(), "\n\n")
				out[named.Name.Name] = strings.Join(strings.Fields(first), " ")
			}
		}
	}
	return out, nil
}
