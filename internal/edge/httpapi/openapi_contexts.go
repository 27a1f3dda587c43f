package httpapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// contexts describes code contexts and previews of named sandboxes.
func (d describer) contexts(doc *huma.OpenAPI) {
	name := &huma.Param{Name: "sandbox", In: "path", Required: true, Description: "Its name in the session, or its sandbox_id: then the session does not matter.", Schema: text()}
	session := queryParam("session", "The session; default if not given.", text())
	one := &huma.Param{
		Name: "context", In: "path", Required: true, Schema: text(),
		Description: "Its context_id; python, node or bash for the context of that language which the first run makes.",
	}
	port := &huma.Param{Name: "port", In: "path", Required: true, Schema: integer(1, 65535)}
	unknown := d.json("not_found: there is no such sandbox, context or preview, or it is not the caller's.", ErrorResponse{})
	conflict := d.json("conflict: the context is running code, or has ended; or the sandbox is lost.", ErrorResponse{})
	limited := d.json("rate_limited: too many, or over a limit of the plan.", ErrorResponse{})
	busy := d.json("service_unavailable: nothing was started, try again after Retry-After seconds.", ErrorResponse{})
	gone := &huma.Response{Description: "It is done."}
	add := func(method, path, id, summary string, params []*huma.Param, body any, status string, ok *huma.Response) {
		o := &huma.Operation{
			OperationID: id, Method: method, Path: path, Summary: summary, Tags: []string{"sandboxes"}, Security: keySecurity,
			Parameters: append([]*huma.Param{name, session}, params...),
			Responses:  d.refusals(map[string]*huma.Response{status: ok, "404": unknown, "409": conflict, "429": limited, "503": busy}),
		}
		if body != nil {
			o.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": d.media(body)}}
		}
		doc.AddOperation(o)
	}
	of := []*huma.Param{one}
	result := d.json("How it ended; code that failed is no error of the call. Asked for, each piece of output and each value is a line as it comes.", CodeResult{})
	result.Content[ndjson], result.Content[eventStream] = d.media(CodeEvent{}), d.media(CodeEvent{})

	add(http.MethodGet, contextsPath, "listContexts", "List code contexts", nil, nil, "200", d.json("Oldest first.", CodeContexts{}))
	add(http.MethodPost, contextsPath, "createContext", "Start a code context", nil, NewContext{}, "201", d.json("It takes code.", CodeContext{}))
	add(http.MethodGet, contextPath, "getContext", "Get a code context", of, nil, "200", d.json("The context.", CodeContext{}))
	add(http.MethodDelete, contextPath, "deleteContext", "End a code context", of, nil, "204", gone)
	add(http.MethodPost, contextPath+"/run", "runContext", "Run code in a context", of, RunCode{}, "200", result)
	add(http.MethodPost, contextPath+"/interrupt", "interruptContext", "Interrupt what a context runs", of, nil, "204", gone)
	add(http.MethodPost, contextPath+"/restart", "restartContext", "Start a context anew, with nothing defined", of, nil, "200", d.json("The context.", CodeContext{}))

	add(http.MethodGet, previewsPath, "listPreviews", "List open ports", nil, nil, "200", d.json("By port.", PreviewList{}))
	add(http.MethodPut, previewPath, "openPreview", "Open a port to browsers", []*huma.Param{port}, nil, "200", d.json("It is open, from now or from before.", Preview{}))
	add(http.MethodDelete, previewPath, "closePreview", "Close a port: its URL leads nowhere for good", []*huma.Param{port}, nil, "204", gone)
}
