package httpapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/atoll-run/atoll/internal/control/tools"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/wire"
)

const (
	executeCodePath = "/v1/tools/execute_code"
	turnPath        = "/v1/tools/turns/{turn}"
)

// ExecuteCodeRequest is the body of POST /v1/tools/execute_code.
type ExecuteCodeRequest struct {
	Code     *string         `json:"code" required:"true" nullable:"false" minLength:"1" maxLength:"1048576" doc:"Code to execute: 1 byte to 1 MB (1,048,576 bytes of UTF-8)."`
	Language *string         `json:"language,omitzero" enum:"python,node,bash" default:"python" doc:"What the code is written in."`
	Agent    *string         `json:"agent" required:"true" nullable:"false" minLength:"1" maxLength:"128" doc:"Which agent calls. Its hourly cap counts it."`
	Turn     *string         `json:"turn" required:"true" nullable:"false" minLength:"1" maxLength:"128" doc:"Which of its turns this is. Calls of one turn share a sandbox, made fresh for it."`
	Template *string         `json:"template" required:"true" nullable:"false" doc:"The agent's template, which must have opted in to the sandbox."`
	Timeout  *Seconds        `json:"timeout,omitzero" minimum:"1" default:"60" doc:"Most seconds the program may run."`
	Metadata map[string]Text `json:"metadata,omitzero" nullable:"true" doc:"Kept with the execution's record and the audit row, never shown to the program."`

	// Which paths are mounted must not be up to a model.
	SubPaths any `json:"sub_paths,omitzero" hidden:"true"`
}

// postExecuteCode answers an agent. What the agent can react to is a 200.
func (s *Server) postExecuteCode(w http.ResponseWriter, r *http.Request) error {
	caller, err := s.authorize(r, tenant.ScopeTools)
	if err != nil {
		return err
	}
	text, err := readRequest(w, r)
	if err != nil {
		return err
	}
	var body ExecuteCodeRequest
	if err := wire.Body.Decode(text, &body); err != nil {
		return err
	}
	if body.SubPaths != nil {
		return invalid("sub_paths is not available to tools: a model could be talked into naming another path; narrow the key's grant, or use POST /v1/sandbox/execute")
	}
	in, err := body.domain(traceOf(w))
	if err != nil {
		return err
	}
	if s.isDraining() {
		return fault.New(fault.Unavailable, "%s", errShutdown)
	}
	ctx, stop := s.living(r.Context())
	defer stop()
	out, err := s.executeCode.Call(ctx, caller, in)
	if err != nil {
		return s.parted(ctx, in.TraceID, err)
	}
	return writeJSON(w, http.StatusOK, out.Output())
}

// deleteTurn ends a turn of an agent.
func (s *Server) deleteTurn(w http.ResponseWriter, r *http.Request) error {
	caller, err := s.authorize(r, tenant.ScopeTools)
	if err != nil {
		return err
	}
	q, err := parseQuery(r, "agent")
	if err != nil {
		return err
	}
	if err := s.executeCode.EndTurn(r.Context(), caller, q.Get("agent"), r.PathValue("turn")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (body *ExecuteCodeRequest) domain(traceID string) (tools.Input, error) {
	in := tools.Input{TraceID: traceID, Language: execution.Languages[0], Metadata: wire.StringMap(body.Metadata)}
	for _, f := range []struct {
		name string
		from *string
		to   *string
	}{{"code", body.Code, &in.Code}, {"agent", body.Agent, &in.Agent}, {"turn", body.Turn, &in.Turn}, {"template", body.Template, &in.Template}} {
		if f.from == nil {
			return in, invalid("%s is required", f.name)
		}
		*f.to = *f.from
	}
	if body.Language != nil {
		in.Language = execution.Language(*body.Language)
	}
	if body.Timeout != nil {
		timeout := body.Timeout.Duration()
		in.Timeout = &timeout
	}
	return in, nil
}

// tools adds the tools to the document.
func (d describer) tools(doc *huma.OpenAPI) {
	doc.AddOperation(&huma.Operation{
		OperationID: "executeCode", Method: http.MethodPost, Path: executeCodePath, Summary: "Run code for an agent", Tags: []string{"tools"}, Security: keySecurity,
		Description: "The agent tool. Policy, circuit breakers and the sandbox itself answer with a 200 whose error an agent can react to; other statuses are mistakes of the caller.",
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": d.media(ExecuteCodeRequest{})}},
		Responses: d.refusals(map[string]*huma.Response{
			"200": d.json("What the agent is told.", tools.CodeOutput{}),
			"503": d.json("service_unavailable: the server is shutting down, or cannot check the key.", ErrorResponse{}),
		}),
	})
	doc.AddOperation(&huma.Operation{
		OperationID: "endTurn", Method: http.MethodDelete, Path: turnPath, Summary: "End an agent's turn", Tags: []string{"tools"}, Security: keySecurity,
		Description: "The sandbox that the turn's calls shared goes, at once or with the call that uses it. Without this it goes a while after the last call.",
		Parameters: []*huma.Param{
			{Name: "turn", In: "path", Required: true, Schema: text()},
			{Name: "agent", In: "query", Required: true, Schema: text()},
		},
		Responses: d.refusals(map[string]*huma.Response{
			"204": {Description: "It is ended, or there was none."},
			"503": d.json("service_unavailable: its executor cannot be reached.", ErrorResponse{}),
		}),
	})
}
