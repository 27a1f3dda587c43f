package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/atoll-run/atoll/internal/control/repeats"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// Operation is one method of one path: how it is reached, what it does, and what the
// OpenAPI document says of it. Everything that the server answers is in a table of them.
type Operation struct {
	Method string
	Path   string // as net/http.ServeMux has it; a GET serves HEAD, too
	ID     string // operationId; "" for what is not documented, such as the documentation itself
	Tag    string
	// Summary is a phrase; Description says more, in Markdown.
	Summary, Description string

	Access Access
	Scope  tenant.Scope // that the caller's key must have, with ByScope and Delegated
	// Audit is what the audit trail calls a use of a named sandbox; "" leaves no row.
	Audit string
	// Watched ends a request when its key stops being valid.
	Watched bool
	// Compat is set for an operation of another protocol.
	Compat *Compat

	Params []Param
	Body   *Body // nil for none
	// Answers are those of success first. The refusals that all operations of its kind
	// share are added to the document by themselves.
	Answers []Answer
	Serve   Endpoint
}

// Compat is where another protocol differs from ours in what all operations share.
type Compat struct {
	// Caller finds the caller of a request, where it is not by our Authorization header; nil
	// where it is.
	Caller func(*http.Request) (tenant.Principal, error)
	// Refuse answers with an error, instead of our envelope.
	Refuse func(w http.ResponseWriter, r *http.Request, err error)
	// Refusal is the type of such an answer's JSON; nil for our envelope's.
	Refusal any
}

// Access says how an operation knows its caller.
type Access uint8

// Kinds of access.
const (
	ByScope   Access = iota // by an API key that has the operation's scope
	AnyKey                  // by any valid API key
	Delegated               // the endpoint calls Authorize itself, unless something stands for the key
	Public                  // not at all
)

// Param is a parameter of an operation.
type Param struct {
	Name string // one that ends in "." stands for every name that begins with it
	In   Place
	Doc  string
	Type Type

	Required bool
	Enum     []string // of Text
	Pattern  string   // of Text, documented
	// Min and Max bound an Int; Max bounds the characters of a Text, which then has no
	// control characters. No bound if Max is 0.
	Min, Max int64
	Default  int64 // of an Int
	Example  string
	Many     bool // it may be given more than once: Call.Query has all
	Hidden   bool // another spelling of one that is documented, which some clients use
}

// Place is where a parameter is.
type Place string

// Places of parameters.
const (
	InQuery  Place = "" // the default
	InPath   Place = "path"
	InHeader Place = "header"
)

// Type is the type of a parameter.
type Type uint8

// Types of parameters.
const (
	Text  Type = iota // UTF-8 without NUL
	Bytes             // bytes without NUL, such as the path of a file
	Int
	Bool
	Time // as in RFC 3339
)

// Body is the body of a request.
type Body struct {
	// JSON is an example of the body, and of its type. nil for a body of other media.
	JSON any
	// Media is what a body that is not JSON is; the endpoint reads it.
	Media string
	// Optional bodies may be omitted: JSON is then an object without fields.
	Optional bool
}

// JSON is a body in JSON, by an example of it.
func JSON(example any) *Body { return &Body{JSON: example} }

// Answer is one answer of an operation.
type Answer struct {
	Status int
	Doc    string
	Body   any     // JSON of this type; nil for none
	Media  []Media // other media that the same answer can have
	Header []Param
}

// Media is content that is not one JSON value.
type Media struct {
	Type string
	Body any // the type of each line or event; nil for bytes
}

// OneOf is a body that has one of several types.
type OneOf []any

// OK is an answer of success with JSON.
func OK(body any, doc string) Answer { return Answer{Status: http.StatusOK, Doc: doc, Body: body} }

// Created is the answer to what was created.
func Created(body any, doc string) Answer {
	return Answer{Status: http.StatusCreated, Doc: doc, Body: body}
}

// Located is Created for what has a path of its own, which Location gives.
func Located(body any, doc string) Answer {
	a := Created(body, doc)
	a.Header = []Param{{Name: "Location", Doc: "Its path.", Required: true}}
	return a
}

// NoContent is an answer of success without a body.
func NoContent(doc string) Answer { return Answer{Status: http.StatusNoContent, Doc: doc} }

// Download is an answer of success that is bytes.
func Download(media, doc string) Answer {
	return Answer{Status: http.StatusOK, Doc: doc, Media: []Media{{Type: media}}}
}

// Part is the answer to a request for a range of a download.
func Part(doc string) Answer {
	return Answer{Status: http.StatusPartialContent, Doc: doc, Media: []Media{{Type: OctetStream}}}
}

// Stream is an answer whose lines or server-sent events are of a type.
func Stream(line any, doc string) Answer {
	return Answer{Status: http.StatusOK, Doc: doc, Media: []Media{{NDJSON, line}, {EventStream, line}}}
}

// Refusal is an answer that is an error.
func Refusal(status int, doc string) Answer {
	return Answer{Status: status, Doc: doc, Body: ErrorResponse{}}
}

// Media types of bodies.
const (
	NDJSON      = "application/x-ndjson"
	EventStream = "text/event-stream"
	OctetStream = "application/octet-stream"
	AnyMedia    = "*/*" // as a file's name says
	Tar         = "application/x-tar"
)

// Endpoint is what an operation does.
type Endpoint struct {
	in, out reflect.Type // of JSON bodies; nil for none
	serve   func(*Call) error
}

// Returns serves an operation by a function that returns the JSON of its answer.
func Returns[Out any](f func(*Call) (Out, error)) Endpoint {
	return Endpoint{nil, reflect.TypeFor[Out](), func(c *Call) error {
		out, err := f(c)
		if err != nil {
			return err
		}
		return c.send(out)
	}}
}

// Takes is Returns for an operation that has a JSON body.
func Takes[In, Out any](f func(*Call, *In) (Out, error)) Endpoint {
	return Endpoint{reflect.TypeFor[In](), reflect.TypeFor[Out](), func(c *Call) error {
		var in In
		if err := c.decode(&in); err != nil {
			return err
		}
		out, err := f(c, &in)
		if err != nil {
			return err
		}
		return c.send(out)
	}}
}

// Does serves an operation whose answer has no body.
func Does(f func(*Call) error) Endpoint {
	return Endpoint{serve: func(c *Call) error {
		if err := f(c); err != nil {
			return err
		}
		c.W.WriteHeader(http.StatusNoContent)
		return nil
	}}
}

// Writes serves an operation by a function that writes its answer itself.
func Writes(f func(*Call) error) Endpoint { return Endpoint{serve: f} }

// WritesFrom is Writes for an operation that has a JSON body.
func WritesFrom[In any](f func(*Call, *In) error) Endpoint {
	return Endpoint{in: reflect.TypeFor[In](), serve: func(c *Call) error {
		var in In
		if err := c.decode(&in); err != nil {
			return err
		}
		return f(c, &in)
	}}
}

// success returns the answer that an operation gives by itself.
func (op *Operation) success() *Answer {
	if len(op.Answers) == 0 {
		return nil
	}
	return &op.Answers[0]
}

// check reports where an operation's documentation and its endpoint disagree.
func (op *Operation) check() error {
	if op.Serve.serve == nil {
		return fmt.Errorf("%s %s has no endpoint", op.Method, op.Path)
	}
	if op.Access == ByScope && op.Scope == "" {
		return fmt.Errorf("%s %s names no scope", op.Method, op.Path)
	}
	if op.ID == "" {
		return nil
	}
	if takesKey, _ := repeats.Operation(op.ID); takesKey && (op.Access != ByScope || op.Method != http.MethodPost) {
		return fmt.Errorf("%s takes an Idempotency-Key and is not a POST by a scope", op.ID)
	}
	var in, out reflect.Type
	if op.Body != nil && op.Body.JSON != nil {
		in = reflect.TypeOf(op.Body.JSON)
	}
	if a := op.success(); a == nil {
		return fmt.Errorf("%s documents no answer", op.ID)
	} else if a.Body != nil {
		out = reflect.TypeOf(a.Body)
	}
	if op.Serve.in != nil && op.Serve.in != in {
		return fmt.Errorf("%s takes %s and documents %v", op.ID, op.Serve.in, in)
	}
	if given := op.Serve.out; given != nil && given != out && (given.Kind() != reflect.Pointer || given.Elem() != out) {
		return fmt.Errorf("%s returns %s and documents %v", op.ID, given, out)
	}
	if op.Audit == "" && op.Watched && op.Method != http.MethodGet {
		return fmt.Errorf("%s can change a sandbox and leaves no audit row", op.ID)
	}
	for _, p := range op.Params {
		if p.In == InPath && !strings.Contains(op.Path, "{"+p.Name+"}") && !strings.Contains(op.Path, "{"+p.Name+"...}") {
			return fmt.Errorf("%s documents the path parameter %s, which it has not", op.ID, p.Name)
		}
	}
	return nil
}

// CheckExample reports why the example of an operation's JSON body would be refused as it
// is read.
func CheckExample(op Operation) error {
	if op.Body == nil || op.Body.JSON == nil || op.Serve.in == nil {
		return nil
	}
	text, err := json.Marshal(op.Body.JSON)
	if err != nil {
		return err
	}
	return wire.Body.Decode(text, reflect.New(op.Serve.in).Interface())
}
