package httpapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// environments describes what a tenant does with its environments.
func (d describer) environments(doc *huma.OpenAPI) {
	unknown := d.json("not_found: there is no such environment, or it is not the caller's.", ErrorResponse{})
	refused := map[string]*huma.Response{
		"403": d.json("forbidden: the key's scopes lack environments, or the tenant's policy allows no network.", ErrorResponse{}),
		"409": d.json("conflict: the name is taken.", ErrorResponse{}),
		"429": d.json("rate_limited: above the tenant's plan.", ErrorResponse{}),
	}
	id := &huma.Param{Name: "environment", In: "path", Required: true, Description: "Id or name.", Schema: text()}
	with := func(body any, more map[string]*huma.Response) (*huma.RequestBody, map[string]*huma.Response) {
		for status, r := range refused {
			more[status] = r
		}
		return &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": d.media(body)}}, d.refusals(more)
	}
	for _, base := range []struct{ path, suffix string }{{environmentsPath, ""}, {"/default" + environmentsPath, "Default"}} {
		add := func(id, method, path, summary string, params []*huma.Param, body *huma.RequestBody, responses map[string]*huma.Response) {
			doc.AddOperation(&huma.Operation{
				OperationID: id + base.suffix, Method: method, Path: path, Summary: summary, Tags: []string{"environments"},
				Security: keySecurity, Parameters: params, RequestBody: body, Responses: responses,
			})
		}
		add("listOwnEnvironments", http.MethodGet, base.path, "List the tenant's environments", []*huma.Param{
			queryParam("limit", "Most items of a page; 50 if not given.", integer(1, 100)), queryParam("page", "The next_page of an earlier answer.", text()),
		}, nil, d.refusals(map[string]*huma.Response{"200": d.json("A page.", Page[OwnEnvironment]{})}))
		body, responses := with(NewOwnEnvironment{}, map[string]*huma.Response{"201": d.json("It is made; keys are bound to it by the operator.", OwnEnvironment{})})
		add("createOwnEnvironment", http.MethodPost, base.path, "Make an environment", nil, body, responses)
		one := base.path + "/{environment}"
		params := []*huma.Param{id}
		add("getOwnEnvironment", http.MethodGet, one, "Show an environment", params, nil, d.refusals(map[string]*huma.Response{"200": d.json("The environment.", OwnEnvironment{}), "404": unknown}))
		body, responses = with(OwnEnvironmentChange{}, map[string]*huma.Response{"200": d.json("It is changed, from the next execution on.", OwnEnvironment{}), "404": unknown})
		add("changeOwnEnvironment", http.MethodPatch, one, "Change an environment", params, body, responses)
		add("deleteOwnEnvironment", http.MethodDelete, one, "Remove an environment that no living key is bound to", params, nil,
			d.refusals(map[string]*huma.Response{"204": {Description: "It is gone."}, "404": unknown, "409": d.json("conflict: keys are bound to it.", ErrorResponse{})}))
	}
}
