package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/atoll-run/atoll/internal/core/wire"
)

// APIVersion is the version of the HTTP contract.
const APIVersion = "1.0.0"

//go:generate go run ./genopenapi ../../../api/openapi.json

// document builds the OpenAPI document from the wire types, once.
var document = sync.OnceValue(buildDocument)

// Document returns the OpenAPI document as indented JSON, which is what
// api/openapi.json holds.
func Document() []byte { return document() }

func getOpenAPI(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json")
	_, err := w.Write(document())
	return err
}

func buildDocument() []byte {
	schemas := wire.NewSchemas("#/components/schemas/")
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title:       "Atoll",
			Version:     APIVersion,
			Description: "Runs code in sandboxes that have a kernel of their own.",
		},
		Components: &huma.Components{
			Schemas: schemas.Registry(),
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"key": {Type: "http", Scheme: "bearer", Description: "An API key, sk-atoll-…"},
			},
		},
		Paths: map[string]*huma.PathItem{},
	}
	d := describer{schemas}
	doc.AddOperation(d.execute())
	d.executions(doc)
	for _, probe := range []struct{ id, path, summary string }{
		{"getHealth", "/healthz", "The process is up"},
		{"getReady", "/readyz", "The server can run code"},
	} {
		doc.AddOperation(&huma.Operation{
			OperationID: probe.id, Method: http.MethodGet, Path: probe.path, Summary: probe.summary, Tags: []string{"operations"},
			Responses: map[string]*huma.Response{
				"200": d.json("It is.", map[string]string{}),
				"503": d.json("It is not; the message says why.", ErrorResponse{}),
			},
		})
	}
	doc.AddOperation(&huma.Operation{
		OperationID: "getMetrics", Method: http.MethodGet, Path: "/metrics", Summary: "Figures for Prometheus", Tags: []string{"operations"},
		Responses: map[string]*huma.Response{"200": {Description: "Prometheus text format.", Content: map[string]*huma.MediaType{"text/plain": {}}}},
	})
	d.threads(doc)
	d.tools(doc)
	d.toolset(doc)
	d.mcp(doc)
	d.sandboxes(doc)
	d.contexts(doc)
	d.environments(doc)
	d.files(doc)
	d.admin(doc)

	compact, err := doc.MarshalJSON()
	if err != nil {
		panic(fmt.Sprintf("openapi document: %v", err)) // made of constants: a programming error
	}
	var out bytes.Buffer
	if err := json.Indent(&out, compact, "", "  "); err != nil {
		panic(fmt.Sprintf("openapi document: %v", err))
	}
	out.WriteByte('\n')
	return out.Bytes()
}

// describer describes messages by their Go types.
type describer struct{ schemas *wire.Schemas }

func (d describer) media(body any) *huma.MediaType {
	return &huma.MediaType{Schema: d.schemas.Of(reflect.TypeOf(body))}
}

// json describes a response that every client gets with a trace id.
func (d describer) json(description string, body any) *huma.Response {
	return &huma.Response{
		Description: description,
		Headers:     map[string]*huma.Param{traceHeader: {Description: "Names the request in logs and support.", Schema: &huma.Schema{Type: huma.TypeString, Pattern: "^trc_[0-9a-f]{32}$"}}},
		Content:     map[string]*huma.MediaType{"application/json": d.media(body)},
	}
}

func (d describer) execute() *huma.Operation {
	ended := d.json("The program ended. Its failure is a 200 too: see exit_code and error.", ExecuteResponse{})
	ended.Content[ndjson] = d.media(Event{})
	busy := d.json("service_unavailable: nothing was started, try again after Retry-After seconds.", ErrorResponse{})
	busy.Headers["Retry-After"] = &huma.Param{Description: "Seconds to wait.", Schema: &huma.Schema{Type: huma.TypeInteger}}
	accepted := d.json("With Prefer: respond-async: it runs, or did before if the request repeats an earlier one.", AcceptedResponse{})
	accepted.Headers["Preference-Applied"] = &huma.Param{Description: "respond-async", Schema: text()}
	accepted.Headers["Location"] = &huma.Param{Description: "The execution.", Schema: text()}
	return &huma.Operation{
		OperationID: "execute",
		Method:      http.MethodPost,
		Path:        "/v1/sandbox/execute",
		Summary:     "Execute code",
		Description: "Runs Python, Node.js or Bash in a fresh sandbox with a kernel of its own. The answer comes when the program has ended; with `Accept: application/x-ndjson` its output comes as it is written, one event a line; with `Prefer: respond-async` the answer comes at once and the end is told to a webhook.",
		Tags:        []string{"sandbox"},
		Security:    keySecurity,
		Parameters: []*huma.Param{
			{Name: "Prefer", In: "header", Description: "respond-async: answer with 202 at once.", Schema: text()},
			{Name: "Idempotency-Key", In: "header", Description: "The same key with the same body within a day gives the same execution, not another one; with another body 409.", Schema: &huma.Schema{Type: huma.TypeString, MinLength: new(1), MaxLength: new(maxIdempotencyKey)}},
		},
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": d.media(ExecuteRequest{})}},
		Responses: d.refusals(map[string]*huma.Response{
			"200": ended,
			"202": accepted,
			"405": d.json("method_not_allowed: see Allow.", ErrorResponse{}),
			"408": d.json("request_timeout: the body did not arrive in time.", ErrorResponse{}),
			"409": d.json("conflict: the Idempotency-Key was used with another body, or the thread is in use.", ErrorResponse{}),
			"413": d.json("payload_too_large: the body is over 8 MiB.", ErrorResponse{}),
			"415": d.json("unsupported_media_type: the body is not application/json.", ErrorResponse{}),
			"429": d.json("rate_limited: over a limit of the plan or the budget; the message and dimension name it.", ErrorResponse{}),
			"502": d.json("bad_gateway: the server shut down meanwhile; the execution may go on.", ErrorResponse{}),
			"503": busy,
			"504": d.json("The program ran longer than its timeout and was ended. Output so far is here.", TimeoutResponse{}),
		}),
	}
}
