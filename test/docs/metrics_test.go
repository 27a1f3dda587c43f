package docs

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

var update = flag.Bool("update", false, "write docs/reference/metrics.md")

// TestMetricsPage checks that docs/reference/metrics.md lists every metric in the sources; -update
// writes the page.
func TestMetricsPage(t *testing.T) {
	binary, err := atolltest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Dir(filepath.Dir(binary))
	rows := metricRows(t, filepath.Join(root, "internal"))
	slices.Sort(rows)
	page := "# Metrics\n\nLook up a metric of `/metrics`. [Monitor a server](../operate/monitor.md) lists those to watch.\n\n" +
		"| metric | kind | labels | meaning |\n| --- | --- | --- | --- |\n" + strings.Join(slices.Compact(rows), "") +
		"\n<!-- Written by go test ./test/docs -run TestMetricsPage -update -->\n"
	path := filepath.Join(root, "docs/reference/metrics.md")
	if *update {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	shown, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(shown) != page {
		t.Error("docs/reference/metrics.md is out of date; run go test ./test/docs -run TestMetricsPage -update")
	}
}

// metricRows returns a row for each metric in the sources. The sources define metrics with options
// such as prometheus.CounterOpts, whose next argument is the labels, with prometheus.NewDesc, or in a
// table whose rows start with name and help.
func metricRows(t *testing.T, folder string) (rows []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if row, ok := n.(*ast.CompositeLit); ok && len(row.Elts) >= 2 && strings.HasPrefix(literal(row.Elts[0]), "atoll_") && literal(row.Elts[1]) != "" {
				// A row of a table of gauges.
				rows = append(rows, fmt.Sprintf("| `%s` | gauge |  | %s |\n", literal(row.Elts[0]), literal(row.Elts[1])))
			}
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			name, help, kind, labels := "", "", "gauge", ast.Expr(nil)
			if options, ok := call.Args[0].(*ast.CompositeLit); ok {
				selector, ok := options.Type.(*ast.SelectorExpr)
				if !ok || !strings.HasSuffix(selector.Sel.Name, "Opts") {
					return true
				}
				kind = strings.ToLower(strings.TrimSuffix(selector.Sel.Name, "Opts"))
				for _, e := range options.Elts {
					if pair, ok := e.(*ast.KeyValueExpr); ok && types.ExprString(pair.Key) == "Name" {
						name = literal(pair.Value)
					} else if ok && types.ExprString(pair.Key) == "Help" {
						help = literal(pair.Value)
					}
				}
				if len(call.Args) > 1 {
					labels = call.Args[1]
				}
			} else if name = literal(call.Args[0]); len(call.Args) == 4 {
				help, labels = literal(call.Args[1]), call.Args[2]
			}
			if strings.HasPrefix(name, "atoll_") && help != "" {
				rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |\n", name, kind, labelNames(labels), strings.ReplaceAll(help, "|", `\|`)))
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// literal returns the value of a string literal; "" for other expressions.
func literal(e ast.Expr) string {
	if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
		if text, err := strconv.Unquote(l.Value); err == nil {
			return text
		}
	}
	return ""
}

// labelNames joins the string literals in a list of labels.
func labelNames(e ast.Expr) string {
	list, ok := e.(*ast.CompositeLit)
	if !ok {
		return ""
	}
	var names []string
	for _, of := range list.Elts {
		if name := literal(of); name != "" {
			names = append(names, "`"+name+"`")
		}
	}
	return strings.Join(names, ", ")
}
