package routes_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/api/openapi"
	"github.com/atoll-run/atoll/api/routes"
	"github.com/atoll-run/atoll/internal/edge/compat/openai"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/admin"
	"github.com/atoll-run/atoll/internal/edge/httpapi/agent"
	"github.com/atoll-run/atoll/internal/edge/httpapi/approval"
	"github.com/atoll-run/atoll/internal/edge/httpapi/environment"
	"github.com/atoll-run/atoll/internal/edge/httpapi/file"
	"github.com/atoll-run/atoll/internal/edge/httpapi/model"
	"github.com/atoll-run/atoll/internal/edge/httpapi/openaiwire"
	"github.com/atoll-run/atoll/internal/edge/httpapi/response"
	"github.com/atoll-run/atoll/internal/edge/httpapi/sandbox"
	"github.com/atoll-run/atoll/internal/edge/httpapi/session"
	"github.com/atoll-run/atoll/internal/edge/httpapi/skill"
	"github.com/atoll-run/atoll/internal/edge/httpapi/thread"
	"github.com/atoll-run/atoll/internal/edge/httpapi/token"
	"github.com/atoll-run/atoll/internal/edge/httpapi/tool"
	"github.com/atoll-run/atoll/internal/edge/httpapi/vault"
	"github.com/atoll-run/atoll/internal/edge/httpapi/web"
	"github.com/atoll-run/atoll/test/httpapitest"
)

func TestDocumentIsCommitted(t *testing.T) {
	text, err := openapi.Document(routes.Documented(), "../..")
	if err != nil {
		t.Fatal(err)
	}
	committed, err := os.ReadFile("../openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(committed, text) || !bytes.Equal(committed, api.OpenAPI) {
		t.Error("api/openapi.json is not what the table says now: run make generate")
	}
}

// document is what the tests read of the committed OpenAPI document.
type document struct {
	Paths map[string]map[string]struct {
		OperationID string `json:"operationId"`
		Summary     string
		Description string
		Tags        []string
		Security    []any
		Parameters  []struct{ Name, In, Description string }
		RequestBody *struct {
			Content map[string]struct{ Example json.RawMessage }
		}
		Responses map[string]struct{ Description string }
	}
}

func readDocument(t *testing.T) (doc document) {
	t.Helper()
	if err := json.Unmarshal(api.OpenAPI, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// undocumented are the paths that are served and not documented: the documentation itself,
// and the refusal of tools that there are not.
var undocumented = []string{"GET /{$}", "GET /openapi.json", "GET /docs", "GET /docs/page.js", "GET /docs/scalar-1.72.1.js", "GET /help", "GET /help/{path}", "POST /v1/sessions/{session}/tools/{tool}"}

var part = regexp.MustCompile(`\{[a-z_]+\}`)

// TestEveryRouteIsDocumented walks the table and the document: what one has, the other has.
func TestEveryRouteIsDocumented(t *testing.T) {
	documented := map[string]string{}
	for path, methods := range readDocument(t).Paths {
		for method, op := range methods {
			documented[strings.ToUpper(method)+" "+path] = op.OperationID
		}
	}
	var none []string
	for _, op := range routes.Documented() {
		name := op.Method + " " + strings.ReplaceAll(op.Path, "...}", "}")
		if op.Compat != nil && op.ID == "" { // another vendor documents it
			continue
		}
		switch id, ok := documented[name]; {
		case !ok && op.ID == "":
			none = append(none, name)
		case !ok || id != op.ID:
			t.Errorf("%s is %s in the table, %q in the document", name, op.ID, id)
		}
		delete(documented, name)
	}
	slices.Sort(none)
	slices.Sort(undocumented)
	if !slices.Equal(none, undocumented) {
		t.Errorf("undocumented are %q, want %q", none, undocumented)
	}
	for name := range documented {
		t.Errorf("%s is in the document and not in the table", name)
	}
}

// TestEveryDocumentedRouteIsServed asks a server for every operation of the document: it
// answers something that only an operation there is does.
func TestEveryDocumentedRouteIsServed(t *testing.T) {
	s := httpapitest.New(t, func(c *httpapitest.Setup) {
		c.Sandboxes, c.Threads, c.Tools, c.Admin, c.Environments, c.Models, c.Responses, c.Web = &sandbox.Handlers{}, &thread.Handlers{}, &tool.Handlers{}, &admin.Handlers{}, &environment.Handlers{}, &model.Handlers{}, &response.Handlers{}, &web.Handlers{}
		c.Containers, c.Agents, c.Sessions, c.Skills, c.Vaults, c.Files, c.Handlers.Tokens, c.Approvals = &openai.Handlers{}, &agent.Handlers{}, &session.Handlers{}, &skill.Handlers{}, &vault.Handlers{}, &file.Handlers{}, &token.Handlers{}, &approval.Handlers{}
	})
	count := 0
	for path, methods := range readDocument(t).Paths {
		path = part.ReplaceAllString(path, "x")
		for method, op := range methods {
			count++
			method = strings.ToUpper(method)
			if len(op.Security) == 0 {
				if w := httpapitest.Get(s, path); w.Code != http.StatusOK {
					t.Errorf("%s: %d %s", op.OperationID, w.Code, w.Body)
				}
				continue
			}
			w := httpapitest.Ask(s, method, path, "", "Authorization", "Bearer sk-atoll-unknown")
			if path == "/mcp" { // JSON-RPC
				var body struct {
					Error struct{ Data json.RawMessage }
				}
				if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
					t.Errorf("%s: %s %v", op.OperationID, w.Body, err)
				}
				w.Body = bytes.NewBuffer(body.Error.Data)
			}
			if strings.HasPrefix(path, "/v1/responses") || path == "/v1/agent" || strings.HasPrefix(path, "/v1/agent/") || strings.HasPrefix(path, "/v1/containers") { // OpenAI's form
				var body openaiwire.ResponseRefusal
				if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || body.Error.Message != body.Message {
					t.Errorf("%s: %s %v", op.OperationID, w.Body, err)
				}
				w.Body = bytes.NewBufferString(fmt.Sprintf(`{"error": %q, "message": %q}`, body.Error.Code, body.Message))
			}
			httpapitest.Refused(t, w, http.StatusUnauthorized, "unauthorized", "invalid API key")
			// Other methods are refused for themselves.
			if w := httpapitest.Ask(s, "BREW", path, ""); w.Code != http.StatusMethodNotAllowed || !strings.Contains(w.Header().Get("Allow"), method) {
				t.Errorf("BREW %s: %d, Allow is %q", path, w.Code, w.Header().Get("Allow"))
			}
		}
	}
	if count < 142 {
		t.Errorf("the document has %d operations", count)
	}
}

// TestEveryOperationIsDescribed: a summary, a tag, a description of each answer, and an
// example of each JSON body that is its own.
func TestEveryOperationIsDescribed(t *testing.T) {
	examples := map[string][]string{}
	for path, methods := range readDocument(t).Paths {
		for _, op := range methods {
			if op.Summary == "" || op.Description == "" || len(op.Tags) != 1 {
				t.Errorf("%s has the summary %q, the description %q and the tags %q", op.OperationID, op.Summary, op.Description, op.Tags)
			}
			for status, r := range op.Responses {
				if r.Description == "" {
					t.Errorf("%s does not describe its answer %s", op.OperationID, status)
				}
			}
			for _, p := range op.Parameters {
				if p.Description == "" {
					t.Errorf("%s does not describe %s", op.OperationID, p.Name)
				}
			}
			if op.RequestBody == nil || op.RequestBody.Content["application/json"].Example == nil {
				continue
			}
			example := string(op.RequestBody.Content["application/json"].Example)
			if example == "{}" && op.OperationID != "tool_sandbox_list" {
				t.Errorf("%s has no example", op.OperationID)
			}
			if !strings.HasPrefix(path, "/default") { // which has environments and agents again
				examples[example] = append(examples[example], op.OperationID)
			}
		}
	}
	for example, ids := range examples {
		if len(ids) > 1 {
			t.Errorf("%q share the example %s", ids, example)
		}
	}
}

// TestExamplesAreAccepted decodes every example as its operation does.
func TestExamplesAreAccepted(t *testing.T) {
	for _, op := range routes.Documented() {
		if err := httpapi.CheckExample(op); err != nil {
			t.Errorf("%s: %v", op.ID, err)
		}
	}
}

func TestATableThatContradictsItself(t *testing.T) {
	type body struct {
		Name string `json:"name"`
	}
	get := func(*httpapi.Call) (body, error) { return body{}, nil }
	put := func(*httpapi.Call, *body) (body, error) { return body{}, nil }
	ok := []httpapi.Answer{httpapi.OK(body{}, "OK")}
	good := httpapi.Operation{Method: "GET", Path: "/x", ID: "x", Access: httpapi.Public, Answers: ok, Serve: httpapi.Returns(get)}
	for says, table := range map[string][]httpapi.Operation{
		"twice":                        {good, good},
		"has no endpoint":              {{Method: "GET", Path: "/x", ID: "x", Access: httpapi.Public, Answers: ok}},
		"documents no answer":          {{Method: "GET", Path: "/x", ID: "x", Access: httpapi.Public, Serve: httpapi.Returns(get)}},
		"and documents string":         {{Method: "GET", Path: "/x", ID: "x", Access: httpapi.Public, Answers: []httpapi.Answer{httpapi.OK("", "OK")}, Serve: httpapi.Returns(get)}},
		"and documents <nil>":          {{Method: "PUT", Path: "/x", ID: "x", Access: httpapi.Public, Answers: ok, Serve: httpapi.Takes(put)}},
		"documents the path parameter": {{Method: "GET", Path: "/x", ID: "x", Access: httpapi.Public, Answers: ok, Serve: httpapi.Returns(get), Params: []httpapi.Param{{Name: "a", In: httpapi.InPath}}}},
		"names no scope":               {{Method: "GET", Path: "/x", ID: "x", Answers: ok, Serve: httpapi.Returns(get)}},
		"leaves no audit row":          {{Method: "PUT", Path: "/x", ID: "x", Access: httpapi.Public, Answers: ok, Watched: true, Body: httpapi.JSON(body{}), Serve: httpapi.Takes(put)}},
	} {
		_, err := httpapi.New(httpapi.Config{Operations: table, Metrics: httpapitest.Registry(), Log: httpapitest.NoLog})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}
