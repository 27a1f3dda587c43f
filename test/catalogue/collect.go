// Package catalogue lists the texts that Atoll shows to people and models, and checks their wording.
package catalogue

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Kinds of texts, in the order of the listing.
const (
	Errors   = "errors"
	Help     = "help of commands"
	Logs     = "logs at warn and above"
	Output   = "output of commands"
	Settings = "settings"
	Tools    = "descriptions and answers for models"
	API      = "descriptions of the API"
	SDK      = "docstrings of the client libraries"
	Other    = "other texts"
	Comments = "comments"
)

// Kinds is the order of the listing.
var Kinds = []string{Errors, Help, Logs, Output, Settings, Tools, API, SDK, Other, Comments}

// Text is a text with its place.
type Text struct {
	Kind, File string
	Line       int
	Text       string
}

// source is a parsed Go file.
type source struct {
	name string // relative to the root
	dir  string
	file *ast.File
}

type collector struct {
	fset     *token.FileSet
	sources  []source
	values   map[string]map[string]string // constants and variables with a text, by directory and name
	makers   map[string]bool              // functions that make an error from a format: "fault.New", or "directory name"
	texts    []Text
	packages map[string]string // the names of packages, by directory
}

// goTexts returns the texts in the Go files below directories of root.
func goTexts(root string, directories ...string) ([]Text, error) {
	c := &collector{fset: token.NewFileSet(), values: map[string]map[string]string{}, packages: map[string]string{}, makers: map[string]bool{
		"fault.New": true, "fault.Limit": true, "fault.Wrap": true, "fmt.Errorf": true, "errors.New": true,
	}}
	for _, d := range directories {
		if err := c.parse(root, d); err != nil {
			return nil, err
		}
	}
	for n := -1; n != len(c.makers); { // until no function is found to wrap another
		n = len(c.makers)
		for _, s := range c.sources {
			c.findMakers(s)
		}
	}
	for _, s := range c.sources {
		c.collect(s)
	}
	return c.texts, nil
}

// parse reads the Go files below a directory, except tests, generated files and packages for tests.
func (c *collector) parse(root, directory string) error {
	return filepath.WalkDir(filepath.Join(root, directory), func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (name == "testdata" || strings.HasSuffix(name, "test")):
			return filepath.SkipDir
		case d.IsDir(), !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"), strings.HasSuffix(name, ".gen.go"):
			return nil
		}
		file, err := parser.ParseFile(c.fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		s := source{name: filepath.ToSlash(name), dir: filepath.ToSlash(filepath.Dir(name)), file: file}
		c.sources = append(c.sources, s)
		c.packages[s.dir] = file.Name.Name
		if c.values[s.dir] == nil {
			c.values[s.dir] = map[string]string{}
		}
		for _, decl := range file.Decls {
			g, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range g.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok && len(v.Names) == len(v.Values) {
					for i := range v.Names {
						if text, ok := c.literal(s.dir, v.Values[i]); ok {
							c.values[s.dir][v.Names[i].Name] = text
						}
					}
				}
			}
		}
		return nil
	})
}

// literal returns the text of an expression of literals; "…" stands for other parts.
func (c *collector) literal(dir string, e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, err := strconv.Unquote(e.Value)
			return text, err == nil
		}
	case *ast.ParenExpr:
		return c.literal(dir, e.X)
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		x, okX := c.literal(dir, e.X)
		y, okY := c.literal(dir, e.Y)
		switch {
		case okX && okY:
			return x + y, true
		case okX:
			return x + "…", true
		case okY:
			return "…" + y, true
		}
	case *ast.Ident:
		text, ok := c.values[dir][e.Name]
		return text, ok
	}
	return "", false
}

// callee returns the name of a called function as makers has it.
func (c *collector) callee(dir string, call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return dir + " " + f.Name
	case *ast.SelectorExpr:
		if x, ok := f.X.(*ast.Ident); ok && c.makers[x.Name+"."+f.Sel.Name] {
			return x.Name + "." + f.Sel.Name
		}
		return dir + " " + f.Sel.Name
	}
	return ""
}

// findMakers adds the functions of a file that hand a parameter to a maker.
func (c *collector) findMakers(s source) {
	for _, decl := range s.file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		params := map[string]bool{}
		for _, p := range f.Type.Params.List {
			if t, ok := p.Type.(*ast.Ident); ok && t.Name == "string" {
				for _, n := range p.Names {
					params[n.Name] = true
				}
			}
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !c.makers[c.callee(s.dir, call)] {
				return true
			}
			for _, arg := range call.Args[:min(3, len(call.Args))] { // a kind, a message; not the values of a format
				if id, ok := arg.(*ast.Ident); ok {
					if params[id.Name] {
						c.makers[s.dir+" "+f.Name.Name] = true
						if f.Recv == nil && f.Name.IsExported() {
							c.makers[s.file.Name.Name+"."+f.Name.Name] = true
						}
					}
					continue
				}
				if _, ok := c.literal(s.dir, arg); ok {
					break
				}
			}
			return true
		})
	}
}

// tags are the keys of struct tags that hold prose.
var tags = []string{"doc", "jsonschema", "description", "usage", "help"}

// collect adds the texts of a file.
func (c *collector) collect(s source) {
	var stack []ast.Node
	ast.Inspect(s.file, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		add := func(kind, text string) {
			c.texts = append(c.texts, Text{kind, s.name, c.fset.Position(n.Pos()).Line, text})
		}
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			if n.Tag == nil {
				break
			}
			tag, err := strconv.Unquote(n.Tag.Value)
			for _, key := range tags {
				if text := reflect.StructTag(tag).Get(key); err == nil && text != "" {
					add(area(s.dir), text)
				}
			}
		case *ast.BasicLit, *ast.BinaryExpr:
			if text, ok := c.literal(s.dir, n.(ast.Expr)); ok {
				if kind := c.kind(s, stack, n.(ast.Expr), text); kind != "" {
					add(kind, text)
				}
				if _, ok := n.(*ast.BinaryExpr); ok {
					return false
				}
			}
		}
		stack = append(stack, n)
		return true
	})
}

// area is the kind of a description in a directory.
func area(dir string) string {
	switch {
	case strings.HasPrefix(dir, "internal/edge"), strings.HasPrefix(dir, "api/"):
		return API
	case strings.HasPrefix(dir, "internal/agent"), strings.HasPrefix(dir, "internal/control/tools"), strings.HasPrefix(dir, "internal/core/skill"):
		return Tools
	case strings.HasPrefix(dir, "internal/app/config"):
		return Settings
	}
	return Other
}

// kind says what a text is by the nodes around it; "" if it is not prose.
func (c *collector) kind(s source, stack []ast.Node, e ast.Expr, text string) string {
	wordy := prosaic(text)
	for i := len(stack) - 1; i >= 0; i-- {
		switch n := stack[i].(type) {
		case *ast.Field:
			return "" // its tag, which is added apart
		case *ast.KeyValueExpr:
			if n.Value != e {
				break
			}
			switch key, _ := n.Key.(*ast.Ident); {
			case key == nil:
			case strings.HasPrefix(s.dir, "cmd") && slices.Contains([]string{"Short", "Long", "Example"}, key.Name):
				return Help
			case slices.Contains([]string{"Description", "Summary", "Title"}, key.Name):
				if a := area(s.dir); a != Other {
					return a
				}
			case key.Name == "Msg" && wordy:
				return Errors
			}
		case *ast.CallExpr:
			name := ""
			switch f := n.Fun.(type) {
			case *ast.Ident:
				name = f.Name
			case *ast.SelectorExpr:
				name = f.Sel.Name
			}
			switch at := slices.Index(n.Args, e); {
			case c.makers[c.callee(s.dir, n)]:
				if at >= 0 && strings.Contains(text, " ") {
					return Errors
				}
			case (name == "Warn" || name == "Error") && at == 0, (name == "WarnContext" || name == "ErrorContext") && at == 1:
				return Logs
			case strings.HasPrefix(s.dir, "cmd") && at >= 2 && at == len(n.Args)-1 && flag.MatchString(name):
				return Help
			case strings.HasPrefix(s.dir, "cmd") && strings.HasPrefix(name, "Fprint") && strings.Contains(text, " ") && wordy:
				return Output
			}
		case *ast.FuncLit, *ast.BlockStmt:
			i = 0
		}
	}
	switch {
	case !wordy:
		return ""
	case strings.HasPrefix(s.dir, "sdk"):
		return Errors
	case area(s.dir) == Tools:
		return Tools
	case strings.HasPrefix(s.dir, "cmd"):
		return Output
	}
	return Other
}

// flag matches the names of methods that define a flag.
var flag = regexp.MustCompile(`^(String|Bool|Int|Uint|Float|Duration|Count|Var|Func)\w*$`)

// prosaic reports whether a text has words of English: three words, and no look of a query or of code.
func prosaic(text string) bool {
	words := strings.Fields(text)
	if len(words) < 3 || strings.Count(text, "\n") > 30 {
		return false
	}
	for _, code := range []string{"SELECT ", "INSERT ", "UPDATE ", "DELETE FROM", "WITH ", "CREATE ", "ALTER ", "PRAGMA ", " WHERE ", "#!/", "FROM ", "ORDER BY", "AND ", "import ", "= ?", "function "} {
		if strings.Contains(text, code) {
			return false
		}
	}
	plain := 0
	for _, w := range words {
		if strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'.,:;()…") == "" && len(w) > 1 {
			plain++
		}
	}
	return plain >= 3 && plain*2 > len(words)
}

// comments returns the doc comments of exported identifiers in the Go files below directories of root.
func comments(root string, directories ...string) ([]Text, error) {
	c := &collector{fset: token.NewFileSet(), values: map[string]map[string]string{}, packages: map[string]string{}}
	for _, d := range directories {
		if err := c.parse(root, d); err != nil {
			return nil, err
		}
	}
	for _, s := range c.sources {
		add := func(group *ast.CommentGroup) {
			if text := group.Text(); text != "" {
				c.texts = append(c.texts, Text{Comments, s.name, c.fset.Position(group.Pos()).Line, text})
			}
		}
		add(s.file.Doc)
		for _, decl := range s.file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() {
					add(d.Doc)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						if !spec.Name.IsExported() {
							continue
						}
						add(spec.Doc)
						ast.Inspect(spec.Type, func(n ast.Node) bool {
							if f, ok := n.(*ast.Field); ok {
								add(f.Doc)
								add(f.Comment)
							}
							return true
						})
					case *ast.ValueSpec:
						if !slices.ContainsFunc(spec.Names, func(n *ast.Ident) bool { return n.IsExported() }) {
							continue
						}
						add(spec.Doc)
						add(spec.Comment)
					default:
						continue
					}
					add(d.Doc)
				}
			}
		}
	}
	slices.SortFunc(c.texts, func(a, b Text) int { return strings.Compare(fmt.Sprint(a.File, a.Line), fmt.Sprint(b.File, b.Line)) })
	return slices.Compact(c.texts), nil
}
