package httpapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// mcp describes the endpoint of the Model Context Protocol, whose messages are that
// protocol's.
func (d describer) mcp(doc *huma.OpenAPI) {
	message := &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeObject, Description: "A JSON-RPC 2.0 message of the protocol."}}
	answer := func(description string) *huma.Response {
		return &huma.Response{Description: description, Content: map[string]*huma.MediaType{"application/json": message, "text/event-stream": {Schema: text()}}}
	}
	id := &huma.Param{Name: "Mcp-Session-Id", In: "header", Description: "Of the session that initialize began; without it a request stands alone.", Schema: text()}
	version := &huma.Param{Name: "MCP-Protocol-Version", In: "header", Schema: text()}
	query := []*huma.Param{
		queryParam("session", "Names the pool of sandboxes; of the MCP session's own if not given.", text()),
		queryParam("stateless", "true: no MCP session begins.", boolean()),
		queryParam("agent", "As of execute_code.", text()), queryParam("template", "Likewise.", text()),
	}
	unknown := d.json("not_found: there is no such session, or it is over: initialize anew.", ErrorResponse{})
	for _, o := range []struct {
		method, id, summary string
		params              []*huma.Param
		body                *huma.RequestBody
		responses           map[string]*huma.Response
	}{
		{
			http.MethodPost, "mcpSend", "Send a message of the Model Context Protocol", append([]*huma.Param{id, version}, query...),
			&huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": message}},
			map[string]*huma.Response{"200": answer("The answer, as one message or a stream of them."), "202": {Description: "It was a notification or an answer."}, "404": unknown},
		},
		{
			http.MethodGet, "mcpListen", "Listen to what the server has to say in a session", append([]*huma.Param{id, version}, query...), nil,
			map[string]*huma.Response{"200": answer("A stream of messages."), "404": unknown},
		},
		{
			http.MethodDelete, "mcpEnd", "End a session", []*huma.Param{id, version}, nil,
			map[string]*huma.Response{"204": {Description: "It is over."}, "404": unknown},
		},
	} {
		doc.AddOperation(&huma.Operation{
			OperationID: o.id, Method: o.method, Path: mcpPath, Summary: o.summary, Tags: []string{"mcp"}, Security: keySecurity,
			Description: "Streamable HTTP; see https://modelcontextprotocol.io.", Parameters: o.params, RequestBody: o.body, Responses: d.refusals(o.responses),
		})
	}
}
