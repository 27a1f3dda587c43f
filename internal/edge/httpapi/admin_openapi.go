package httpapi

import (
	"net/http"
	"reflect"
	"regexp"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
)

// adminQuery describes the parameters of queries.
var adminQuery = map[string]*huma.Schema{
	"limit":              {Type: huma.TypeInteger, Description: "Items of a page."},
	"page":               {Type: huma.TypeString, Description: "The next_page of an earlier answer."},
	"since":              {Type: huma.TypeString, Format: "date-time", Description: "From this time on."},
	"before":             {Type: huma.TypeString, Format: "date-time", Description: "Up to, and without, this time."},
	"key":                {Type: huma.TypeString, Description: "Id or name of the key."},
	"agent":              {Type: huma.TypeString},
	"session_id":         {Type: huma.TypeString, Description: "The turn."},
	"source":             {Type: huma.TypeString, Description: "What was called: execute, execute_code, a tool, or what was done with a named sandbox."},
	"exit_status":        {Type: huma.TypeString, Enum: []any{"ok", "error", "timeout", "oom", "cap_exceeded", "provisioning", "cancelled"}},
	"trace_id":           {Type: huma.TypeString},
	"executed_code_hash": {Type: huma.TypeString, Pattern: "^[0-9a-f]{64}$"},
	"metadata.":          {Type: huma.TypeString, Description: "metadata.KEY=VALUE: rows with that value; may be given for several keys."},
}

var pathPart = regexp.MustCompile(`\{([a-z_]+)\}`)

// admin adds the operations under /v1/admin.
func (d describer) admin(doc *huma.OpenAPI) {
	for _, row := range adminTable() {
		op := &huma.Operation{
			OperationID: row.id, Method: row.method, Path: row.path, Summary: row.summary, Tags: []string{"admin"},
			Security: []map[string][]string{{"key": {}}},
			Responses: map[string]*huma.Response{
				"401": d.json("unauthorized: the API key is missing or not valid.", ErrorResponse{}),
				"403": d.json("forbidden: the key's scopes lack admin.", ErrorResponse{}),
				"404": d.json("not_found: there is no such thing.", ErrorResponse{}),
				"503": d.json("service_unavailable: the database cannot be reached.", ErrorResponse{}),
			},
		}
		for _, m := range pathPart.FindAllStringSubmatch(row.path, -1) {
			op.Parameters = append(op.Parameters, &huma.Param{Name: m[1], In: "path", Required: true, Description: "Id or name.", Schema: &huma.Schema{Type: huma.TypeString}})
		}
		for _, name := range row.query {
			schema := adminQuery[name]
			if name == "metadata." {
				name = "metadata.KEY"
			}
			op.Parameters = append(op.Parameters, &huma.Param{Name: name, In: "query", Description: schema.Description, Schema: schema})
		}
		if row.in != nil {
			op.RequestBody = &huma.RequestBody{Required: needed(row.in) || row.status == http.StatusCreated, Content: map[string]*huma.MediaType{"application/json": d.media(row.in)}}
			op.Responses["400"] = d.json("validation_error: the message names the field.", ErrorResponse{})
			op.Responses["409"] = d.json("conflict: the name is taken, or the state of things forbids it.", ErrorResponse{})
			op.Responses["429"] = d.json("rate_limited: above the tenant's plan.", ErrorResponse{})
		}
		status := strconv.Itoa(row.status)
		switch {
		case row.out == nil:
			op.Responses[status] = &huma.Response{Description: http.StatusText(row.status)}
		default:
			op.Responses[status] = d.json(http.StatusText(row.status), row.out)
		}
		if row.id == "exportAudit" {
			op.Responses[status].Content = map[string]*huma.MediaType{ndjson: d.media(row.out)}
		}
		doc.AddOperation(op)
	}
}

// needed reports whether a body has a field that must be there; one without may
// be left out altogether.
func needed(body any) bool {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(body)) {
		if f.Tag.Get("required") == "true" {
			return true
		}
	}
	return false
}
