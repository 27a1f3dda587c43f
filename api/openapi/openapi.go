// Package openapi writes the OpenAPI document of a table of operations.
package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/atoll-run/atoll/internal/control/repeats"
	"github.com/atoll-run/atoll/internal/control/tokens"
	"github.com/atoll-run/atoll/internal/core/release"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Version is the version of the HTTP contract, which is that of the server.
var Version = release.Version

// reference begins the references to schemas.
const reference = "#/components/schemas/"

// Document returns the OpenAPI document of a table as indented JSON. The comments of Go
// types describe schemas: root is the folder of this module's sources.
func Document(table []httpapi.Operation, root string) ([]byte, error) {
	w := writer{wire.NewSchemas(reference)}
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info:    &huma.Info{Title: "Atoll", Version: Version, Description: "Runs code in sandboxes that have a kernel of their own."},
		Components: &huma.Components{
			Schemas: w.schemas.Registry(),
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"key":   {Type: "http", Scheme: "bearer", Description: "An API key, sk-atoll-…"},
				"token": {Type: "http", Scheme: "bearer", Description: "A token, tk-atoll-…, which a key has made for a part of what the key may do."},
			},
		},
		Paths: map[string]*huma.PathItem{},
		Tags:  tags(),
	}
	seen := map[string]bool{}
	for i := range table {
		op := &table[i]
		if op.ID == "" {
			continue
		}
		if seen[op.ID] {
			return nil, fmt.Errorf("the operation id %s is there twice", op.ID)
		}
		seen[op.ID] = true
		if !slices.ContainsFunc(doc.Tags, func(t *huma.Tag) bool { return t.Name == op.Tag }) {
			return nil, fmt.Errorf("%s has the tag %q, which is not in the list of tags", op.ID, op.Tag)
		}
		o, err := w.operation(op)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", op.ID, err)
		}
		doc.AddOperation(o)
	}
	if err := w.describe(root); err != nil {
		return nil, err
	}
	compact, err := doc.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, compact, "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// automaticKey marks the operations with which client libraries send an Idempotency-Key.
const automaticKey = "x-idempotency-automatic"

// ofKey are the headers that only an operation which takes an Idempotency-Key answers with.
func ofKey(status int) []httpapi.Param {
	switch status {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
		http.StatusTooManyRequests, http.StatusServiceUnavailable: // which are never replayed
		return nil
	}
	out := []httpapi.Param{{Name: httpapi.ReplayedHeader, Doc: "true: it is the answer of an earlier request with the same Idempotency-Key.", Enum: []string{"true"}}}
	if status == http.StatusConflict {
		out = append(out, httpapi.Param{Name: "Retry-After", Type: httpapi.Int, Doc: "Seconds after which a request with the same Idempotency-Key, which is still being served, may have its answer."})
	}
	return out
}

type writer struct{ schemas *wire.Schemas }

func (w writer) operation(op *httpapi.Operation) (*huma.Operation, error) {
	o := &huma.Operation{
		OperationID: op.ID, Method: op.Method, Path: strings.ReplaceAll(op.Path, "...}", "}"), Summary: op.Summary, Description: op.Description,
		Tags: []string{op.Tag}, Responses: map[string]*huma.Response{},
	}
	if op.Access != httpapi.Public {
		o.Security = []map[string][]string{{"key": {}}}
		if _, open := tokens.Operation(op.ID); open {
			o.Security = append(o.Security, map[string][]string{"token": {}})
		}
	}
	for _, p := range pathParams(op) {
		o.Parameters = append(o.Parameters, param(p))
	}
	for _, p := range op.Params {
		if p.In != httpapi.InPath && !p.Hidden {
			o.Parameters = append(o.Parameters, param(p))
		}
	}
	takesKey, automatic := repeats.Operation(op.ID)
	if takesKey {
		o.Parameters = append(o.Parameters, param(httpapi.IdempotencyParam))
	}
	if automatic || slices.ContainsFunc(op.Params, func(p httpapi.Param) bool { return p.Name == httpapi.IdempotencyHeader }) {
		o.Extensions = map[string]any{automaticKey: true}
	}
	if op.Body != nil {
		body, err := w.body(op)
		if err != nil {
			return nil, err
		}
		o.RequestBody = body
	}
	for _, a := range slices.Concat(op.Answers, shared(op)) {
		status := strconv.Itoa(a.Status)
		if o.Responses[status] != nil {
			continue // the operation's own says more
		}
		if _, refuses := a.Body.(httpapi.ErrorResponse); refuses && op.Compat != nil && op.Compat.Refusal != nil {
			a.Body = op.Compat.Refusal
		}
		if takesKey {
			a.Header = append(slices.Clone(a.Header), ofKey(a.Status)...)
		}
		o.Responses[status] = w.answer(a)
	}
	return o, nil
}

var pathPart = regexp.MustCompile(`\{([a-z_]+)(?:\.\.\.)?\}`)

// pathParams are the parameters of the path in their order, as they are documented.
func pathParams(op *httpapi.Operation) (out []httpapi.Param) {
	for _, m := range pathPart.FindAllStringSubmatch(op.Path, -1) {
		p := httpapi.Param{Name: m[1], In: httpapi.InPath}
		if i := slices.IndexFunc(op.Params, func(p httpapi.Param) bool { return p.In == httpapi.InPath && p.Name == m[1] }); i >= 0 {
			p = op.Params[i]
		}
		p.Required = true
		out = append(out, p)
	}
	return out
}

func param(p httpapi.Param) *huma.Param {
	in, name := string(p.In), p.Name
	if p.In == httpapi.InQuery {
		in = "query"
	}
	if strings.HasSuffix(name, ".") {
		name += "KEY"
	}
	out := &huma.Param{Name: name, In: in, Description: p.Doc, Required: p.Required, Schema: paramSchema(p)}
	if p.Example != "" {
		out.Example = p.Example
		if n, err := strconv.Atoi(p.Example); err == nil && p.Type == httpapi.Int {
			out.Example = n
		}
	}
	return out
}

func paramSchema(p httpapi.Param) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString, Pattern: p.Pattern}
	switch p.Type {
	case httpapi.Int:
		s.Type = huma.TypeInteger
		least := float64(p.Min)
		s.Minimum = &least
		if p.Max > 0 && p.Max <= 1<<53 { // more than JSON's numbers can tell apart is no bound
			most := float64(p.Max)
			s.Maximum = &most
		}
		if p.Default != 0 {
			s.Default = p.Default
		}
	case httpapi.Bool:
		s.Type = huma.TypeBoolean
	case httpapi.Time:
		s.Format = "date-time"
	case httpapi.Text, httpapi.Bytes:
		for _, v := range p.Enum {
			s.Enum = append(s.Enum, v)
		}
		if p.Type == httpapi.Text && p.Max > 0 {
			s.MaxLength = new(int(p.Max))
		}
		if p.Type == httpapi.Text && p.Min > 0 {
			s.MinLength = new(int(p.Min))
		}
	}
	return s
}

func (w writer) body(op *httpapi.Operation) (*huma.RequestBody, error) {
	b := op.Body
	if b.JSON == nil {
		return &huma.RequestBody{Required: !b.Optional, Content: map[string]*huma.MediaType{b.Media: {Schema: binary()}}}, nil
	}
	media := w.media(b.JSON)
	example, err := exampleOf(b.JSON)
	if err != nil {
		return nil, err
	}
	media.Example = example
	return &huma.RequestBody{Required: !b.Optional || len(w.required(b.JSON)) > 0 || op.Answers[0].Status == http.StatusCreated, Content: map[string]*huma.MediaType{"application/json": media}}, nil
}

func (w writer) media(body any) *huma.MediaType {
	if all, ok := body.(httpapi.OneOf); ok {
		s := &huma.Schema{}
		for _, each := range all {
			s.OneOf = append(s.OneOf, w.media(each).Schema)
		}
		return &huma.MediaType{Schema: s}
	}
	return &huma.MediaType{Schema: w.schemas.Of(reflect.TypeOf(body))}
}

// required lists the fields that a body must have.
func (w writer) required(body any) []string {
	s := w.schemas.Of(reflect.TypeOf(body))
	if s.Ref != "" {
		s = w.schemas.Registry().SchemaFromRef(s.Ref)
	}
	return s.Required
}

func binary() *huma.Schema { return &huma.Schema{Type: huma.TypeString, Format: "binary"} }

func (w writer) answer(a httpapi.Answer) *huma.Response {
	r := &huma.Response{Description: a.Doc, Headers: map[string]*huma.Param{}}
	content := map[string]*huma.MediaType{}
	if a.Body != nil {
		content["application/json"] = w.media(a.Body)
	}
	for _, m := range a.Media {
		if m.Body == nil {
			content[m.Type] = &huma.MediaType{Schema: binary()}
		} else {
			content[m.Type] = w.media(m.Body)
		}
	}
	if len(content) > 0 {
		r.Content = content
	}
	for _, h := range slices.Concat(headers(a), a.Header) {
		r.Headers[h.Name] = &huma.Param{Description: h.Doc, Required: h.Required, Schema: paramSchema(h)}
	}
	return r
}

// headers are those that every answer of a status, or of a media type, has.
func headers(a httpapi.Answer) []httpapi.Param {
	out := []httpapi.Param{{Name: httpapi.TraceHeader, Doc: "Names the request in logs and support.", Pattern: "^trc_[a-z2-7]{20}$", Required: true}}
	length := httpapi.Param{Name: "Content-Range", Doc: "Which bytes these are, or how many there are, as in bytes 0-99/1234 and bytes */1234."}
	wait := httpapi.Param{Name: "Retry-After", Type: httpapi.Int, Doc: "Seconds to wait.", Required: a.Status == http.StatusServiceUnavailable}
	switch a.Status {
	case http.StatusUnauthorized:
		out = append(out, httpapi.Param{Name: "WWW-Authenticate", Doc: "Bearer, with the realm atoll.", Required: true})
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		out = append(out, wait)
	case http.StatusMethodNotAllowed:
		out = append(out, httpapi.Param{Name: "Allow", Doc: "The methods that there are.", Required: true})
	case http.StatusPartialContent, http.StatusRequestedRangeNotSatisfiable:
		length.Required = true
		out = append(out, length)
	}
	for _, m := range a.Media {
		switch m.Type {
		case httpapi.NDJSON, httpapi.EventStream:
			out = append(out, httpapi.Param{Name: "X-Accel-Buffering", Doc: "no: a proxy passes each event on at once.", Enum: []string{"no"}})
		case httpapi.OctetStream, httpapi.Tar:
			out = append(out,
				httpapi.Param{Name: "Content-Disposition", Doc: "attachment, with the name of the file."},
				httpapi.Param{Name: "Last-Modified", Doc: "When the file was changed, where that is known."})
			if m.Type == httpapi.OctetStream {
				out = append(out, httpapi.Param{Name: "Accept-Ranges", Doc: "bytes, where Range works."})
			}
		}
	}
	return out
}

// shared are the refusals that every operation of a kind can have.
func shared(op *httpapi.Operation) []httpapi.Answer {
	if op.Access == httpapi.Public {
		return nil
	}
	all := map[int]string{
		http.StatusBadRequest:          "validation_error: the message names what is wrong.",
		http.StatusUnauthorized:        "unauthorized: the API key is missing or not valid.",
		http.StatusForbidden:           "forbidden: the key's scopes do not allow this.",
		http.StatusTooManyRequests:     "rate_limited: over a rate or another limit of the plan or of the server; message and dimension name it, resets_at and Retry-After say until when.",
		http.StatusInternalServerError: "internal_error: a failure of the server; its log has the trace id.",
		http.StatusServiceUnavailable:  "service_unavailable: nothing was started; try again after Retry-After seconds.",
	}
	if strings.Contains(op.Path, "{") {
		all[http.StatusNotFound] = "not_found: the object does not exist, or belongs to another tenant."
	}
	if op.Method != http.MethodGet {
		all[http.StatusConflict] = "conflict: the present state forbids this."
	}
	if op.Body != nil || op.Method == http.MethodPost || op.Method == http.MethodPut {
		all[http.StatusRequestTimeout] = "request_timeout: the body did not arrive in time."
	}
	switch {
	case op.Body == nil:
	case op.Body.JSON != nil:
		all[http.StatusRequestEntityTooLarge] = "payload_too_large: the body is over 8 MiB."
		all[http.StatusUnsupportedMediaType] = "unsupported_media_type: the body is not application/json."
	default:
		all[http.StatusRequestEntityTooLarge] = "payload_too_large: the body is larger than what can be written."
	}
	out := make([]httpapi.Answer, 0, len(all))
	for _, status := range slices.Sorted(maps.Keys(all)) {
		out = append(out, httpapi.Refusal(status, all[status]))
	}
	return out
}

// exampleOf turns the example of a body into JSON of any kind, so that the document has
// its members in order.
func exampleOf(body any) (any, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	var out any
	return out, json.Unmarshal(text, &out)
}
