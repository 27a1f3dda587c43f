package httpapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

var (
	keySecurity = []map[string][]string{{"key": {}}}
	traceParam  = &huma.Param{Name: "trace_id", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString, Pattern: traceIDPattern.String()}}
)

func queryParam(name, description string, schema *huma.Schema) *huma.Param {
	return &huma.Param{Name: name, In: "query", Description: description, Schema: schema}
}

func text() *huma.Schema   { return &huma.Schema{Type: huma.TypeString} }
func moment() *huma.Schema { return &huma.Schema{Type: huma.TypeString, Format: "date-time"} }

func oneOf(values ...any) *huma.Schema { return &huma.Schema{Type: huma.TypeString, Enum: values} }

func integer(least, most float64) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeInteger, Minimum: &least}
	if most > 0 {
		s.Maximum = &most
	}
	return s
}

// refusals adds the answers that every operation with a key can have.
func (d describer) refusals(responses map[string]*huma.Response) map[string]*huma.Response {
	for status, description := range map[string]string{
		"400": "validation_error: the message names what is wrong.",
		"401": "unauthorized: the API key is missing or not valid.",
		"403": "forbidden: the key's scopes do not allow this.",
		"500": "internal_error: our failure; the log has the trace id.",
	} {
		if responses[status] == nil {
			responses[status] = d.json(description, ErrorResponse{})
		}
	}
	return responses
}

// executions describes what can be done with an execution that has been asked
// for, and the ledger.
func (d describer) executions(doc *huma.OpenAPI) {
	unknown := d.json("not_found: there is no such execution, or it is not the caller's.", ErrorResponse{})
	doc.AddOperation(&huma.Operation{
		OperationID: "listExecutions", Method: http.MethodGet, Path: "/v1/executions", Summary: "List executions", Tags: []string{"executions"}, Security: keySecurity,
		Description: "The tenant's executions, newest first, without their output. All filters must match.",
		Parameters: []*huma.Param{
			queryParam("status", "", oneOf("running", "success", "failed", "timeout", "oom", "blocked", "cancelled")),
			queryParam("language", "", oneOf("python", "node", "bash")),
			queryParam("thread_id", "Executions that had the home of this thread.", &huma.Schema{Type: huma.TypeString, Pattern: threadIDSchema}),
			queryParam("key", "Id of the key they were asked for with.", text()),
			queryParam("metadata.KEY", "A value of the request's metadata, with the key's name in place of KEY. May occur for several keys.", text()),
			queryParam("since", "Created at this time or later.", moment()),
			queryParam("before", "Created before this time.", moment()),
			queryParam("limit", "Most items of a page; 20 if not given.", integer(1, maxPage)),
			queryParam("page", "The next_page of an earlier answer to the same filters.", text()),
		},
		Responses: d.refusals(map[string]*huma.Response{"200": d.json("A page.", ExecutionPage{})}),
	})
	doc.AddOperation(&huma.Operation{
		OperationID: "getExecution", Method: http.MethodGet, Path: "/v1/executions/{trace_id}", Summary: "Get an execution", Tags: []string{"executions"}, Security: keySecurity,
		Parameters: []*huma.Param{traceParam},
		Responses:  d.refusals(map[string]*huma.Response{"200": d.json("Its record, with its output once it has ended.", Execution{}), "404": unknown}),
	})

	output := d.json("The events after a seq, as NDJSON or as server-sent events whose data they are; with stream, that stream's bytes.", Event{})
	output.Content = map[string]*huma.MediaType{ndjson: d.media(Event{}), eventStream: d.media(Event{}), "application/octet-stream": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}
	doc.AddOperation(&huma.Operation{
		OperationID: "getOutput", Method: http.MethodGet, Path: "/v1/executions/{trace_id}/output", Summary: "Follow an execution's output", Tags: []string{"executions"}, Security: keySecurity,
		Description: "Replays what the reconnect buffer has after `after`, goes on live, and ends with the result. `Accept: text/event-stream` gives server-sent events with seq as their id. With `stream` it is the whole of that stream as bytes, of an execution that has ended; `Range` works.",
		Parameters: []*huma.Param{
			traceParam,
			queryParam("after", "The seq that the client has already; 0 for none.", integer(0, 0)),
			queryParam("stream", "Send this stream's bytes instead of events.", oneOf("stdout", "stderr")),
			{Name: "Last-Event-ID", In: "header", Description: "In place of after, as EventSource sends it.", Schema: integer(0, 0)},
		},
		Responses: d.refusals(map[string]*huma.Response{
			"200": output,
			"204": {Description: "The execution has ended and the client has everything."},
			"206": {Description: "With stream and Range: a part of the bytes."},
			"404": unknown,
			"409": d.json("conflict: with stream, the execution is still running.", ErrorResponse{}),
			"416": d.json("range_not_satisfiable: with stream, Range is beyond the end of the output.", ErrorResponse{}),
		}),
	})
	doc.AddOperation(&huma.Operation{
		OperationID: "cancelExecution", Method: http.MethodPost, Path: "/v1/executions/{trace_id}/cancel", Summary: "Cancel a running execution", Tags: []string{"executions"}, Security: keySecurity,
		Description: "Kills the program at once. The answer comes when that is recorded.",
		Parameters:  []*huma.Param{traceParam},
		Responses: d.refusals(map[string]*huma.Response{
			"200": d.json("Its record, with status cancelled.", Execution{}),
			"404": unknown,
			"409": d.json("conflict: it has already ended.", ErrorResponse{}),
		}),
	})
	doc.AddOperation(&huma.Operation{
		OperationID: "getUsage", Method: http.MethodGet, Path: "/v1/usage", Summary: "What the tenant has used", Tags: []string{"usage"}, Security: keySecurity,
		Parameters: []*huma.Param{
			queryParam("since", "From this time on; the start of before's month (UTC) if not given.", moment()),
			queryParam("before", "Up to this time; now if not given.", moment()),
		},
		Responses: d.refusals(map[string]*huma.Response{"200": d.json("By day and interface, with the state of the month's budget.", Usage{})}),
	})
}
