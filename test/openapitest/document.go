// Package openapitest checks answers of servers against the committed OpenAPI document: the
// status is declared, and the media type, the body and the headers are as declared.
package openapitest

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6" // the MCP SDK's library cannot resolve references into a document around the schema

	"github.com/atoll-run/atoll/api"
)

// where is what the compiler of schemas calls the document.
const where = "https://atoll.invalid/openapi.json"

// Operation is what the document says of one method of a path.
type Operation struct {
	ID, Method, Path string
	Public           bool // it needs no key

	tree map[string]any
	at   []string // its place in the document
}

// document is the committed one. Its schemas are compiled as they are needed.
type document struct {
	operations []*Operation
	mux        *http.ServeMux // its handlers are the operations

	mu       sync.Mutex
	compiler *jsonschema.Compiler          // guarded by mu
	schemas  map[string]*jsonschema.Schema // guarded by mu; by their places
}

var load = sync.OnceValue(func() *document {
	raw, err := jsonschema.UnmarshalJSON(bytes.NewReader(api.OpenAPI))
	if err != nil {
		panic(fmt.Sprintf("openapitest: the document: %v", err))
	}
	d := &document{mux: http.NewServeMux(), compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}}
	d.compiler.DefaultDraft(jsonschema.Draft2020)
	d.compiler.AssertFormat()
	if err := d.compiler.AddResource(where, raw); err != nil {
		panic(fmt.Sprintf("openapitest: the document: %v", err))
	}
	for route, methods := range child(raw, "paths") {
		for method := range child(methods) {
			tree := child(methods, method)
			op := &Operation{ID: tree["operationId"].(string), Method: strings.ToUpper(method), Path: route, Public: tree["security"] == nil, tree: tree, at: []string{"paths", route, method}}
			d.operations = append(d.operations, op)
			d.mux.Handle(op.Method+" "+strings.ReplaceAll(route, "{path}", "{path...}"), op)
		}
	}
	return d
})

// Operations are all of the document.
func Operations() []*Operation { return load().operations }

// ServeHTTP makes operations handlers, by which a ServeMux finds them.
func (*Operation) ServeHTTP(http.ResponseWriter, *http.Request) {}

// find returns the operation of a request, nil if there is none.
func (d *document) find(method string, at *url.URL) *Operation {
	clean := *at
	if clean.Path != path.Clean(clean.Path) && path.Clean(clean.Path)+"/" != clean.Path {
		return nil // which a ServeMux redirects
	}
	h, _ := d.mux.Handler(&http.Request{Method: method, URL: &clean})
	op, _ := h.(*Operation)
	return op
}

// check holds a value against the schema at a place of the document.
func (d *document) check(value any, at ...string) error {
	var pointer strings.Builder
	for _, part := range at {
		pointer.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(part))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.schemas[pointer.String()]
	if s == nil {
		var err error
		if s, err = d.compiler.Compile(where + (&url.URL{Fragment: pointer.String()}).String()); err != nil {
			return err
		}
		d.schemas[pointer.String()] = s
	}
	return s.Validate(value)
}

// answer is what the document says of a status, nil if nothing.
func (op *Operation) answer(status int) map[string]any {
	return child(op.tree, "responses", strconv.Itoa(status))
}

// child follows names into nested objects; nil if one is not there.
func child(tree any, names ...string) map[string]any {
	for _, name := range names {
		m, _ := tree.(map[string]any)
		tree = m[name]
	}
	m, _ := tree.(map[string]any)
	return m
}
