package httpapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// threads describes homes that outlive their executions.
func (d describer) threads(doc *huma.OpenAPI) {
	thread := &huma.Param{Name: "thread_id", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString, Pattern: threadIDSchema}}
	file := &huma.Param{Name: "path", In: "path", Required: true, Description: "The file, from the home; its slashes stand for themselves.", Schema: text()}
	signature := queryParam(signatureParam, "Of a signed URL, in place of a key.", text())
	unknown := d.json("not_found: there is no such thread, or file, or it is not the caller's.", ErrorResponse{})
	busy := d.json("conflict: an execution, or another edit, is using the thread.", ErrorResponse{})
	full := d.json("rate_limited: over a limit of the plan; the message names it.", ErrorResponse{})
	bytes := map[string]*huma.MediaType{"application/octet-stream": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}
	tar := map[string]*huma.MediaType{"application/x-tar": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}
	download := func(description string, content map[string]*huma.MediaType) *huma.Response {
		r := d.json(description, ErrorResponse{})
		r.Content = content
		return r
	}
	add := func(method, path, id, summary string, params []*huma.Param, body *huma.RequestBody, responses map[string]*huma.Response) {
		doc.AddOperation(&huma.Operation{
			OperationID: id, Method: method, Path: path, Summary: summary, Tags: []string{"threads"}, Security: keySecurity,
			Parameters: params, RequestBody: body, Responses: d.refusals(responses),
		})
	}
	json := func(body any) *huma.RequestBody {
		return &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": d.media(body)}}
	}
	const filePath = threadPath + "/files/{path}"

	add(http.MethodGet, "/v1/threads", "listThreads", "List threads", []*huma.Param{
		queryParam("prefix", "Threads whose id begins so.", text()),
		queryParam("limit", "Most items of a page; 20 if not given.", integer(1, maxPage)),
		queryParam("page", "The next_page of an earlier answer to the same prefix.", text()),
	}, nil, map[string]*huma.Response{"200": d.json("A page, by id.", ThreadPage{})})
	add(http.MethodGet, threadPath, "getThread", "Get a thread", []*huma.Param{thread}, nil,
		map[string]*huma.Response{"200": d.json("Its record.", Thread{}), "404": unknown})
	add(http.MethodPatch, threadPath, "changeThread", "Say when a thread is deleted", []*huma.Param{thread}, json(ThreadChange{}),
		map[string]*huma.Response{"200": d.json("Its record.", Thread{}), "404": unknown})
	add(http.MethodDelete, threadPath, "deleteThread", "Delete a thread", []*huma.Param{thread}, nil,
		map[string]*huma.Response{"204": {Description: "It is gone."}, "404": unknown, "409": busy})
	add(http.MethodGet, threadArchive, "exportThread", "Get a thread as a tar archive", []*huma.Param{thread}, nil,
		map[string]*huma.Response{"200": download("A PAX archive of the home.", tar), "404": unknown})
	add(http.MethodPut, threadArchive, "importThread", "Replace what a thread has by a tar archive", []*huma.Param{thread}, &huma.RequestBody{Required: true, Content: tar},
		map[string]*huma.Response{"200": d.json("Its record. A thread that was not there is now.", Thread{}), "409": busy, "429": full})
	add(http.MethodGet, threadFiles, "listThreadFiles", "List a folder of a thread",
		[]*huma.Param{thread, queryParam("path", "The folder, from the home; the home if not given.", text())}, nil,
		map[string]*huma.Response{"200": d.json("What it holds, by name.", FilesListResponse{}), "404": unknown})
	add(http.MethodGet, filePath, "getThreadFile", "Read a file of a thread", []*huma.Param{thread, file, signature}, nil,
		map[string]*huma.Response{
			"200": download("Its bytes.", bytes), "206": {Description: "With Range: a part of them."}, "404": unknown,
			"416": d.json("range_not_satisfiable: Range is beyond the end of the file.", ErrorResponse{}),
		})
	add(http.MethodPut, filePath, "putThreadFile", "Write a file of a thread", []*huma.Param{thread, file, signature}, &huma.RequestBody{Required: true, Content: bytes},
		map[string]*huma.Response{
			"200": d.json("The file. Thread and folders that were not there are now.", File{}), "409": busy, "429": full,
			"413": d.json("payload_too_large: the file is over 10 GiB.", ErrorResponse{}),
		})
	add(http.MethodDelete, filePath, "deleteThreadFile", "Delete a file or folder of a thread", []*huma.Param{thread, file}, nil,
		map[string]*huma.Response{"204": {Description: "It is gone."}, "404": unknown, "409": busy})
	add(http.MethodPost, threadSignedURL, "signThreadFile", "Make a URL that reads or writes one file without a key", []*huma.Param{thread}, json(SignRequest{}),
		map[string]*huma.Response{"200": d.json("It is good as long as the key that asked for it is.", SignedURL{})})
}
