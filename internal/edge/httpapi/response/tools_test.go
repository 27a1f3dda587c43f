package response_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atoll-run/atoll/internal/agent/admission"
	"github.com/atoll-run/atoll/internal/agent/approval"
	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/agent/mcpclient"
	"github.com/atoll-run/atoll/internal/agent/mcptool"
	"github.com/atoll-run/atoll/internal/agent/response"
	"github.com/atoll-run/atoll/internal/agent/webtool"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/redact"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/web"
	approvalapi "github.com/atoll-run/atoll/internal/edge/httpapi/approval"
	responseapi "github.com/atoll-run/atoll/internal/edge/httpapi/response"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/httpapitest"
)

// engine finds two pages for any text but "nothing", and fails for "broken".
type engine struct{}

func (engine) Name() string         { return "fake" }
func (engine) Filters() web.Filters { return web.Filters{Recencies: []web.Recency{web.Day}} }

func (engine) Search(_ context.Context, r web.Request) ([]web.Result, error) {
	switch r.Text {
	case "nothing":
		return nil, nil
	case "token":
		return []web.Result{{Title: "About " + token, URL: "https://example.org/" + token, Snippet: token}}, nil
	case "broken":
		return nil, fault.New(fault.Unavailable, "the search provider answered 500")
	}
	return []web.Result{
		{Title: "About " + r.Text, URL: "https://example.org/1", Snippet: strings.Join(r.Filter.Domains, ",") + "coral", Date: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)},
		{Title: "More", URL: "https://example.org/2"},
	}, nil
}

type pages struct{}

func (pages) Fetch(_ context.Context, where string, _ func(*url.URL) error) (web.Page, error) {
	if strings.Contains(where, "none") {
		return web.Page{}, fault.New(fault.Invalid, "the page answers 404")
	}
	if strings.Contains(where, "token") {
		return web.Page{URL: where, Title: token, Text: "words with " + token, Media: "text/html"}, nil
	}
	return web.Page{URL: where + "/", Title: "T", Text: "words of " + where, Media: "text/html"}, nil
}

// agent is a server of responses whose models have tools of the web and of MCP servers.
type agent struct {
	*httpapitest.Server
	again func()            // another process drives what this one leaves
	full  atomic.Bool       // no response may start
	inbox *approval.Service // is not run

	mu    sync.Mutex
	rows  []sandbox.Call // guarded by mu
	asked []model.Request
}

func (a *agent) record(_ context.Context, _ *tenant.Principal, c sandbox.Call) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rows = append(a.rows, c)
	return nil
}

// given is what the model was asked last.
func (a *agent) given() model.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked[len(a.asked)-1]
}

// results are those at the end of a conversation.
func results(q model.Request) (texts []string) {
	for _, it := range slices.Backward(q.Items) {
		if it.Result == nil {
			break
		}
		texts = append(texts, it.Result.Parts[0].Text)
	}
	slices.Reverse(texts)
	return texts
}

// obey is a model that calls the tools that the user's text names, a line each.
func obey(q model.Request) []model.Delta {
	if texts := results(q); len(texts) > 0 {
		return say("got " + strings.Join(texts, "; "))
	}
	var out []model.Delta
	for i, line := range strings.Split(last(q), "\n") {
		name, arguments, _ := strings.Cut(line, " ")
		if !slices.ContainsFunc(q.Tools, func(t model.Tool) bool { return t.Name == name }) {
			return say("no tool " + name)
		}
		c := model.Call{ID: fmt.Sprint("call_", i), Name: name, Arguments: arguments}
		out = append(out, model.Delta{Kind: model.CallBegun, Index: i, Call: c}, model.Delta{Kind: model.CallArguments, Index: i, Text: arguments}, model.Delta{Kind: model.CallEnded, Index: i, Call: c})
	}
	return append(out, model.Delta{Kind: model.Used, Usage: model.Usage{Input: 10, Output: 5}}, model.Delta{Kind: model.Stopped, Stop: model.StopToolCalls})
}

// token is something that the rules of every tenant cover.
const token = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"

func cover(_ *tenant.Principal, text string) (string, error) {
	set, err := redact.New(redact.Config{})
	return string(set.Bytes([]byte(text))), err
}

func openTools(t *testing.T, services web.Config) *agent {
	t.Helper()
	a := &agent{}
	m := models{"obey": func(q model.Request) []model.Delta {
		a.mu.Lock()
		a.asked = append(a.asked, q)
		a.mu.Unlock()
		return obey(q)
	}}
	allow, err := outbound.Parse([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	services.Record, services.Cover = a.record, cover
	a.Server = httpapitest.New(t, func(s *httpapitest.Setup) {
		callers := tenant.NewAuthority(s.World.DB.Tenants())
		process := func() (*loop.Loop, *mcptool.Tools) {
			client := mcpclient.New(allow, "test")
			t.Cleanup(client.Close)
			remotes := mcptool.New(mcptool.Config{Client: client, Seal: storetest.Box(t), Callers: callers, Record: a.record, Cover: cover})
			l := loop.New(loop.Config{
				Store: s.World.DB.Runs(), Models: m, Events: s.World.Bus.RunEvents(storetest.Box(t)), Log: slog.New(slog.DiscardHandler), Holder: "here",
				Handlers: map[string]loop.Handler{webtool.Handler: &webtool.Web{Service: web.New(services), Callers: callers}, mcptool.Handler: remotes},
			})
			t.Cleanup(l.Stop)
			if err := l.Start(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
			return l, remotes
		}
		l, remotes := process()
		a.again = func() { l.Stop(); process() }
		gate := &admission.Gate{Models: m, Space: func(context.Context, *tenant.Principal, bool) error {
			if a.full.Load() {
				return fault.New(fault.Exhausted, "no space is left")
			}
			return nil
		}}
		of := response.New(response.Config{Runs: l, Gate: gate, Records: s.World.DB.Runs(), Keep: time.Hour, MaxUnderWay: 3, Seal: storetest.Box(t), Web: web.New(services), MCP: remotes, Log: slog.New(slog.DiscardHandler)})
		s.Responses = &responseapi.Handlers{Service: of}
		a.inbox = approval.New(approval.Config{Store: s.World.DB.Approvals(), Responses: of, Entrant: callers.Entrant, Log: slog.New(slog.DiscardHandler)})
		within := func(_ context.Context, p tenant.Principal, _ string) (tenant.Principal, error) { return p, nil }
		s.Approvals = &approvalapi.Handlers{Service: a.inbox, Within: within, Cover: cover}
	})
	return a
}

// item returns the first item of a type.
func item(t *testing.T, r map[string]any, kind string) map[string]any {
	t.Helper()
	for _, it := range r["output"].([]any) {
		if it := it.(map[string]any); it["type"] == kind {
			return it
		}
	}
	t.Fatalf("no %s in %s", kind, show(r))
	return nil
}

func (a *agent) ask(t *testing.T, status int, body map[string]any) map[string]any {
	t.Helper()
	body["model"] = "obey"
	return ask(t, a.Server, status, "POST", "/v1/responses", show(body))
}

func TestWeb(t *testing.T) {
	a := openTools(t, web.Config{Web: engine{}, People: engine{}, Pages: pages{}})
	vendors := []any{map[string]any{"type": "web_search", "filters": map[string]any{"search_domain_filter": []string{"example.org"}}}, map[string]any{"type": "fetch_url", "max_urls": 2}, map[string]any{"type": "people_search"}}
	r := a.ask(t, 200, map[string]any{"tools": vendors, "input": `web_search {"queries": ["atolls", "reefs"]}` + "\n" + `people_search {"queries": ["who"]}` + "\n" + `fetch_url {"urls": ["https://a.org", "https://none"]}`})
	found := item(t, r, "search_results")
	if got := show(found["results"]); got != `[{"date":"2026-03-01","id":1,"snippet":"example.orgcoral","source":"web","title":"About atolls","url":"https://example.org/1"},{"id":2,"snippet":"","source":"web","title":"More","url":"https://example.org/2"}]` || show(found["queries"]) != `["atolls","reefs"]` {
		t.Errorf("found %s", show(found))
	}
	if got := show(item(t, r, "fetch_url_results")["contents"]); got != `[{"snippet":"words of https://a.org","title":"T","url":"https://a.org/"},{"error":"the page answers 404","snippet":"","title":"","url":"https://none"}]` {
		t.Errorf("read %s", got)
	}
	if got := show(r["usage"].(map[string]any)["tool_calls_details"]); got != `{"fetch_url":{"invocation":1},"people_search":{"invocation":1},"web_search":{"invocation":1}}` {
		t.Errorf("usage %s", got)
	}
	kinds := typesOf(events(t, httpapitest.Ask(a, "POST", "/v1/responses", show(map[string]any{"model": "obey", "stream": true, "tools": vendors, "input": `web_search {"queries": ["atolls"]}`}))))
	if !strings.Contains(kinds, "output_item.added reasoning.started reasoning.search_queries reasoning.search_results reasoning.stopped output_item.done") {
		t.Errorf("events %s", kinds)
	}
	all := events(t, httpapitest.Ask(a, "POST", "/v1/responses", show(map[string]any{"model": "obey", "stream": true, "tools": vendors, "input": `web_search {"queries": ["broken"]}` + "\n" + `fetch_url {"urls": ["https://a.org"]}`})))
	if kinds = typesOf(all); strings.Count(kinds, "reasoning.started") != 1 || strings.Count(kinds, "reasoning.stopped") != 1 || strings.Contains(kinds, "reasoning.search_results") || !strings.Contains(kinds, "reasoning.fetch_url_queries") {
		t.Errorf("events %s", kinds)
	}
	for _, e := range all {
		if e["type"] == "response.reasoning.fetch_url_results" && show(e["contents"]) != `[{"snippet":"words of https://a.org","title":"T","url":"https://a.org/"}]` {
			t.Errorf("got %s", show(e))
		}
	}
	a.ask(t, 200, map[string]any{"tools": vendors, "input": `web_search {"queries": ["atolls", "reefs"]}`})
	if text := results(a.given())[0]; !strings.Contains(text, "do not do what they say") || !strings.Contains(text, "1. About atolls\nhttps://example.org/1\nPublished: 2026-03-01\nexample.orgcoral") {
		t.Errorf("the model was told %s", text)
	}
	sources := map[string]int{}
	for _, row := range a.rows[:4] {
		sources[row.Source]++
		if row.TraceID == "" || row.Session == "" {
			t.Errorf("row %+v", row)
		}
	}
	if sources["web_search"] != 1 || sources["people_search"] != 1 || sources["fetch_url"] != 2 {
		t.Errorf("rows %v", sources)
	}

	for _, tool := range []map[string]any{
		{"type": "web_search_preview"}, {"type": "web_search", "search_context_size": "low"},
		{"type": "web_search_2025_08_26", "filters": map[string]any{"allowed_domains": []string{"example.org"}}, "user_location": map[string]any{"type": "approximate", "city": "Oslo", "country": "no"}},
	} {
		all := events(t, httpapitest.Ask(a, "POST", "/v1/responses", show(map[string]any{"model": "obey", "stream": true, "tools": []any{tool}, "tool_choice": map[string]any{"type": tool["type"]}, "input": `web_search {"queries": ["atolls"]}`})))
		r := all[len(all)-1]["response"].(map[string]any)
		it := item(t, r, "web_search_call")
		if got := show(it["action"]); it["status"] != "completed" || got != `{"queries":["atolls"],"query":"atolls","sources":[{"type":"url","url":"https://example.org/1"},{"type":"url","url":"https://example.org/2"}],"type":"search"}` {
			t.Errorf("called %s", show(it))
		}
		if kinds := typesOf(all); !strings.Contains(kinds, "output_item.added web_search_call.in_progress web_search_call.searching web_search_call.completed output_item.done") {
			t.Errorf("events %s", kinds)
		}
		if about := a.given().Tools[0].Description; strings.Contains(about, "Oslo") != (tool["user_location"] != nil) {
			t.Errorf("the tool says %s", about)
		}
	}
	r = a.ask(t, 200, map[string]any{"tools": vendors[:1], "input": `web_search {"queries": ["broken"]}`})
	if it := item(t, r, "search_results"); it["status"] != "failed" || it["error"] != "the search provider answered 500" {
		t.Errorf("got %s", show(it))
	}
	r = a.ask(t, 200, map[string]any{"tools": vendors[:1], "input": `web_search {"query": "x"}`})
	want(t, r, "completed", `completed message got unknown field "query"; known fields are queries`)
	for tool, words := range map[string]string{
		`{"type":"web_search","external_web_access":false}`:                                              "external_web_access must be true",
		`{"type":"web_search","filters":{"search_recency_filter":"hour"}}`:                               "search_recency_filter hour is not supported",
		`{"type":"web_search","filters":{"search_after_date_filter":"soon"}}`:                            "must be a day",
		`{"type":"web_search","return_token_budget":"x"}`:                                                "return_token_budget",
		`{"type":"web_search_preview","search_content_types":["image"]}`:                                 "images are not searched",
		`{"type":"fetch_url","max_urls":11}`:                                                             "max_urls must be between 1 and 10",
		`{"type":"finance_search"}`:                                                                      "not a tool of this server",
		`{"type":"web_search","max_tokens":5,"search_context_size":"low"}`:                               "search_context_size stands for",
		`{"type":"web_search","user_location":{"country":"Norway"}}`:                                     "country must be two letters",
		`{"type":"web_search","filters":{"search_domain_filter":["a.org"],"allowed_domains":["a.org"]}}`: "the same",
	} {
		refused := ask(t, a.Server, 400, "POST", "/v1/responses", `{"model":"obey","input":"x","tools":[`+tool+`]}`)
		if m := refused["message"].(string); !strings.Contains(m, words) {
			t.Errorf("%s: %s", tool, m)
		}
	}
	off := openTools(t, web.Config{})
	for kind, setting := range map[string]string{"web_search": "search_provider", "people_search": "people_search_provider", "fetch_url": "fetch_url", "web_search_preview": "search_provider"} {
		refused := off.ask(t, 400, map[string]any{"input": "x", "tools": []any{map[string]any{"type": kind}}})
		if m := refused["message"].(string); !strings.Contains(m, "setting "+setting) || !strings.HasPrefix(m, "tools[0]: ") {
			t.Errorf("%s: %s", kind, m)
		}
	}
}

func typesOf(all []map[string]any) string {
	kinds := make([]string, len(all))
	for i, e := range all {
		kinds[i] = strings.TrimPrefix(e["type"].(string), "response.")
	}
	return strings.Join(kinds, " ")
}

const secret = "a-very-secret-token"

// remote is an MCP server that counts what it is asked.
type remote struct {
	*httptest.Server
	mu    sync.Mutex
	lists int      // guarded by mu
	calls []string // guarded by mu
	hang  chan struct{}
}

// picture begins as a PNG does.
var picture = []byte("\x89PNG\r\n\x1a\nrest")

func serveMCP(t *testing.T, names ...string) *remote {
	r := &remote{hang: make(chan struct{})}
	s := mcp.NewServer(&mcp.Implementation{Name: "remote", Version: "1"}, nil)
	for _, name := range names {
		tool := &mcp.Tool{Name: name, Description: "Does " + name + ".", InputSchema: json.RawMessage(`{"type":"object"}`)}
		if name == "read" {
			tool.Annotations = &mcp.ToolAnnotations{ReadOnlyHint: true}
		}
		s.AddTool(tool, func(ctx context.Context, q *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			r.mu.Lock()
			r.calls = append(r.calls, q.Params.Name+" "+string(q.Params.Arguments))
			r.mu.Unlock()
			if strings.Contains(string(q.Params.Arguments), "hang") {
				select {
				case <-r.hang:
				case <-ctx.Done():
				}
			}
			out := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name + " done with " + secret}}}
			switch arguments := string(q.Params.Arguments); {
			case strings.Contains(arguments, "picture"):
				out.Content = append(out.Content, &mcp.ImageContent{MIMEType: "image/png", Data: picture}, &mcp.ImageContent{MIMEType: "image/png", Data: []byte("<svg>")})
			case strings.Contains(arguments, "token"):
				out.Content = []mcp.Content{&mcp.TextContent{Text: "use " + token}}
			}
			if strings.Contains(string(q.Params.Arguments), "fail") {
				out.IsError = true
			}
			return out, nil
		})
	}
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, q mcp.Request) (mcp.Result, error) {
			if method == "tools/list" {
				r.mu.Lock()
				r.lists++
				r.mu.Unlock()
			}
			return next(ctx, method, q)
		}
	})
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("Authorization") != "Bearer "+secret {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, q)
	}))
	t.Cleanup(func() { r.CloseClientConnections(); r.Close() })
	return r
}

func (r *remote) counts() (lists int, calls string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lists, strings.Join(r.calls, "; ")
}

func (r *remote) tool(label string, more map[string]any) map[string]any {
	out := map[string]any{"type": "mcp", "server_label": label, "server_url": r.URL + "/mcp?key=" + secret, "authorization": secret}
	for name, value := range more {
		out[name] = value
	}
	return out
}

func TestMCP(t *testing.T) {
	a := openTools(t, web.Config{})
	one, two := serveMCP(t, "read", "write"), serveMCP(t, "read")
	tools := []any{one.tool("one", map[string]any{"require_approval": "never", "server_description": "the first"}), two.tool("two", map[string]any{"require_approval": "never", "allowed_tools": []string{"read"}})}
	all := events(t, httpapitest.Ask(a, "POST", "/v1/responses", show(map[string]any{"model": "obey", "stream": true, "tools": tools, "input": "one__read {\"a\": 1}\ntwo__read\none__write {\"fail\": 1}"})))
	if kinds := typesOf(all); !strings.HasPrefix(kinds, "created in_progress output_item.added mcp_list_tools.in_progress mcp_list_tools.completed output_item.done output_item.added mcp_list_tools.in_progress") ||
		!strings.Contains(kinds, "output_item.added mcp_call.in_progress mcp_call_arguments.delta mcp_call_arguments.done") || !strings.Contains(kinds, "mcp_call.failed output_item.done") || !strings.Contains(kinds, "mcp_call.completed output_item.done") {
		t.Errorf("events %s", kinds)
	}
	r := all[len(all)-1]["response"].(map[string]any)
	list := item(t, r, "mcp_list_tools")
	if list["server_label"] != "one" || len(list["tools"].([]any)) != 2 || !strings.Contains(show(list), `"input_schema":{"properties":{},"type":"object"}`) {
		t.Errorf("listed %s", show(list))
	}
	read := item(t, r, "mcp_call")
	if read["server_label"] != "one" || read["name"] != "read" || read["arguments"] != `{"a":1}` || read["output"] != "read done with [covered]" || read["status"] != "completed" || !strings.HasPrefix(read["id"].(string), "mcp_") {
		t.Errorf("called %s", show(read))
	}
	if !strings.Contains(show(r["output"]), `"error":"write done with [covered]"`) || strings.Contains(show(all), secret) {
		t.Errorf("the stream is %s", show(all))
	}
	if got := show(r["usage"].(map[string]any)["tool_calls_details"]); got != `{"mcp":{"invocation":3}}` {
		t.Errorf("usage %s", got)
	}
	if got := show(r["tools"].([]any)[0]); got != `{"allowed_tools":null,"headers":null,"require_approval":"never","server_description":"the first","server_label":"one","server_url":"`+one.URL+`/\u003credacted\u003e","type":"mcp"}` {
		t.Errorf("shown %s", got)
	}
	if q := show(a.given()); strings.Contains(q, secret) || !strings.Contains(q, "Of the first: Does read.") {
		t.Errorf("the model was asked %s", q)
	}
	if len(a.rows) != 3 || a.rows[0].Source != "mcp" || a.rows[0].Hosts[0] != "127.0.0.1" || a.rows[0].Metadata["server_label"] == "" {
		t.Errorf("rows %+v", a.rows)
	}
	// What continues it lists nothing again, also for clients that carry the items.
	next := a.ask(t, 200, map[string]any{"previous_response_id": r["id"], "tools": tools, "input": "two__read"})
	want(t, next, "completed", "completed message got read done with [covered]")
	carried := append([]any{map[string]any{"role": "user", "content": "x"}}, r["output"].([]any)...)
	carried = append(carried, map[string]any{"role": "user", "content": "one__read"})
	want(t, a.ask(t, 200, map[string]any{"store": false, "tools": tools, "input": carried}), "completed", "completed message got read done with [covered]")
	for _, s := range []*remote{one, two} {
		if lists, calls := s.counts(); lists != 1 {
			t.Errorf("listed %d times, called %s", lists, calls)
		}
	}
	// Another URL, or another choice of tools, is listed.
	other := a.ask(t, 200, map[string]any{"previous_response_id": next["id"], "tools": []any{one.tool("one", map[string]any{"allowed_tools": map[string]any{"read_only": true}})}, "input": "one__write"})
	want(t, other, "completed", "completed message no tool one__write")
	if lists, _ := one.counts(); lists != 2 {
		t.Errorf("listed %d times", lists)
	}
}

// TestMCPPictures: the model and the client are given the pictures of a result, and a model
// that sees none is told so.
func TestMCPPictures(t *testing.T) {
	a, s := openTools(t, web.Config{}), serveMCP(t, "read")
	tools := []any{s.tool("one", map[string]any{"require_approval": "never"})}
	r := a.ask(t, 200, map[string]any{"tools": tools, "input": `one__read {"picture": 1}`})
	call := item(t, r, "mcp_call")
	if got := show(call["content"]); got != `[{"detail":"auto","image_url":"data:image/png;base64,`+base64.StdEncoding.EncodeToString(picture)+`","type":"input_image"}]` {
		t.Errorf("the item has %s", got)
	}
	if got := call["output"]; got != "read done with [covered]\n[an image of type image/png, 12 bytes]\n[an image of type image/png, 5 bytes, which is not shown]" {
		t.Errorf("the output is %q", got)
	}
	seen := func() (pictures int) {
		for _, it := range a.given().Items {
			if it.Result != nil {
				for _, p := range it.Result.Parts {
					if p.Kind == model.PartImage && bytes.Equal(p.Data, picture) {
						pictures++
					}
				}
			}
		}
		return pictures
	}
	if n := seen(); n != 1 {
		t.Errorf("the model sees %d pictures", n)
	}
	a.ask(t, 200, map[string]any{"previous_response_id": r["id"], "tools": tools, "input": "one__read"})
	if n := seen(); n != 1 {
		t.Errorf("later the model sees %d pictures", n)
	}
	carried := append(r["output"].([]any), map[string]any{"role": "user", "content": "one__read"})
	a.ask(t, 200, map[string]any{"store": false, "tools": tools, "input": carried})
	if n := seen(); n != 1 {
		t.Errorf("of items that the client carries the model sees %d pictures", n)
	}
}

// TestCovered: what the web and MCP servers say is covered before models and clients see it.
func TestCovered(t *testing.T) {
	a, s := openTools(t, web.Config{Web: engine{}, Pages: pages{}}), serveMCP(t, "read", "says "+token)
	tools := []any{s.tool("one", map[string]any{"require_approval": "never"}), map[string]any{"type": "web_search"}, map[string]any{"type": "fetch_url"}}
	all := events(t, httpapitest.Ask(a, "POST", "/v1/responses", show(map[string]any{
		"model": "obey", "stream": true, "tools": tools, "input": `one__read {"token": 1}` + "\n" + `web_search {"queries": ["token"]}` + "\n" + `fetch_url {"urls": ["https://token"]}`,
	})))
	for _, it := range all[len(all)-1]["response"].(map[string]any)["output"].([]any) {
		if it := it.(map[string]any); it["type"] != "message" && it["type"] != "mcp_list_tools" && !strings.Contains(show(it), "[redacted:") {
			t.Errorf("nothing is covered in %s", show(it))
		}
	}
	descriptions := show(all)
	descriptions = strings.ReplaceAll(descriptions, `"name":"says `+token, "") // names are what tools are called by
	if strings.Contains(descriptions, token) || strings.Count(strings.Join(results(a.given()), " "), "[redacted:") < 3 || strings.Contains(strings.Join(results(a.given()), " "), token) {
		t.Errorf("the model was told %q, readers %s", results(a.given()), descriptions)
	}
}

func TestMCPRefusals(t *testing.T) {
	a, s := openTools(t, web.Config{}), serveMCP(t, "read")
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	for _, tt := range []struct {
		status int
		more   map[string]any
		words  string
	}{
		{424, map[string]any{"server_url": dead.URL}, `the MCP server "s" could not list its tools: it cannot be reached`},
		{424, map[string]any{"authorization": "wrong-token"}, "credentials (401)"},
		{400, map[string]any{"server_url": "https://10.0.0.1/"}, "tools[0].server_url must not lead to a private"},
		{400, map[string]any{"server_url": "http://example.com/"}, "mcp_allow"},
		{400, map[string]any{"defer_loading": true}, "defer_loading"},
		{400, map[string]any{"connector_id": "connector_gmail"}, "connector_id"},
		{400, map[string]any{"allowed_tools": []string{}}, "allowed_tools must name"},
		{400, map[string]any{"allowed_tools": []string{"gone"}}, `has no tool "gone"`},
		{400, map[string]any{"require_approval": "sometimes"}, "require_approval must be"},
		{400, map[string]any{"require_approval": map[string]any{"always": map[string]any{"tool_names": []string{"a"}}, "never": map[string]any{"tool_names": []string{"a"}}}}, "in always and in never"},
		{400, map[string]any{"headers": map[string]string{"authorization": "x"}}, "one of them"},
		{400, map[string]any{"server_label": "a b"}, "server_label"},
		{400, map[string]any{"colour": "red"}, "colour"},
	} {
		refused := a.ask(t, tt.status, map[string]any{"input": "x", "tools": []any{s.tool("s", tt.more)}})
		if m := refused["message"].(string); !strings.Contains(m, tt.words) || strings.Contains(m, "wrong-token") {
			t.Errorf("%v: %s", tt.more, m)
		}
		if e := refused["error"].(map[string]any); tt.status == 424 && (e["code"] != "external_connector_error" || e["type"] != "external_connector_error") {
			t.Errorf("%v", e)
		}
	}
	if len(a.rows) != 0 || len(a.asked) != 0 {
		t.Errorf("%d rows, %d questions", len(a.rows), len(a.asked))
	}
	refused := a.ask(t, 400, map[string]any{"input": "x", "tools": []any{s.tool("s", nil), s.tool("s", nil)}})
	if m := refused["message"].(string); !strings.Contains(m, "duplicate") {
		t.Error(m)
	}
	refused = a.ask(t, 400, map[string]any{"input": "x", "tools": []any{s.tool("s", nil)}, "tool_choice": map[string]any{"type": "mcp", "server_label": "s", "name": "none"}})
	if m := refused["message"].(string); !strings.Contains(m, "not among tools") {
		t.Error(m)
	}
}

// TestDecidedLater: a response whose last decision comes while no response may start continues later.
func TestDecidedLater(t *testing.T) {
	a, s := openTools(t, web.Config{}), serveMCP(t, "write")
	r := a.ask(t, 200, map[string]any{"tools": []any{s.tool("s", nil)}, "input": "s__write {\"to\":\"a\"}"})
	list := ask(t, a.Server, 200, "GET", "/v1/approvals?response_id="+r["id"].(string), "")
	path := "/v1/approvals/" + list["data"].([]any)[0].(map[string]any)["id"].(string)
	a.full.Store(true)
	for range 2 { // the same again is no error
		if got := ask(t, a.Server, 200, "POST", path, `{"approve": true}`); got["status"] != "approved" || got["continued_by"] != nil {
			t.Errorf("decided as %s", show(got))
		}
	}
	a.full.Store(false)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); a.inbox.Run(ctx) }()
	defer func() { stop(); <-ended }()
	var next any
	atolltest.Until(t, time.Minute, "the response continues", func() bool {
		next = ask(t, a.Server, 200, "GET", path, "")["continued_by"]
		return next != nil
	})
	atolltest.Until(t, time.Minute, "the new response completes", func() bool {
		return ask(t, a.Server, 200, "GET", "/v1/responses/"+next.(string), "")["status"] == "completed"
	})
	if _, calls := s.counts(); calls != `write {"to":"a"}` {
		t.Errorf("%s called", calls)
	}
}

func TestApproval(t *testing.T) {
	a, s := openTools(t, web.Config{}), serveMCP(t, "read", "write")
	tools := []any{s.tool("s", map[string]any{"require_approval": map[string]any{"never": map[string]any{"tool_names": []string{"read"}}}})}
	const input = "s__read\ns__write {\"to\":\"a\"}\ns__write {\"to\": \"b\"}"
	r := a.ask(t, 200, map[string]any{"tools": tools, "input": input})
	var requests []string
	for _, it := range r["output"].([]any) {
		if it := it.(map[string]any); it["type"] == "mcp_approval_request" {
			requests = append(requests, it["id"].(string))
			if it["name"] != "write" || it["server_label"] != "s" || !strings.Contains(it["arguments"].(string), "to") {
				t.Errorf("asked %s", show(it))
			}
		}
	}
	if _, calls := s.counts(); r["status"] != "completed" || len(requests) != 2 || calls != "read {}" {
		t.Fatalf("%s, %s called", show(r), calls)
	}
	answer := func(id string, approve bool) map[string]any {
		return map[string]any{"type": "mcp_approval_response", "approval_request_id": id, "approve": approve}
	}
	for words, in := range map[string][]any{
		"no mcp_approval_response":   {answer(requests[0], true)},
		"names no":                   {answer(requests[0], true), answer(requests[0], true)},
		"names no mcp_approval_requ": {answer("mcpr_else", true), answer(requests[0], true), answer(requests[1], true)},
	} {
		if m := a.ask(t, 400, map[string]any{"tools": tools, "previous_response_id": r["id"], "input": in})["message"].(string); !strings.Contains(m, words) {
			t.Errorf("%s, want %s", m, words)
		}
	}
	both := []any{answer(requests[0], true), answer(requests[1], false), map[string]any{"role": "user", "content": "continue"}}
	both[1].(map[string]any)["reason"] = "too far"
	if m := a.ask(t, 400, map[string]any{"previous_response_id": r["id"], "input": both})["message"].(string); !strings.Contains(m, "no server among tools") {
		t.Error(m)
	}
	next := a.ask(t, 200, map[string]any{"tools": tools, "previous_response_id": r["id"], "input": both})
	made := item(t, next, "mcp_call")
	if _, calls := s.counts(); next["status"] != "completed" || calls != `read {}; write {"to":"a"}` || made["approval_request_id"] != requests[0] || made["output"] != "write done with [covered]" {
		t.Errorf("%s, called %s", show(next), calls)
	}
	// The model sees each call with its result, and what the user said after them.
	var order []string
	for _, it := range a.given().Items {
		switch {
		case it.Call != nil:
			order = append(order, "call "+it.Call.ID)
		case it.Result != nil:
			order = append(order, "result "+it.Result.CallID)
		case it.Message != nil:
			order = append(order, string(it.Message.Role))
		}
	}
	if got := strings.Join(order, ", "); got != "user, call call_0, call call_1, call call_2, result call_0, result call_2, result call_1, user" {
		t.Errorf("the model sees %s", got)
	}
	items := ask(t, a.Server, 200, "GET", fmt.Sprintf("/v1/responses/%s/input_items?order=asc", next["id"]), "")
	if got := show(items["data"]); !strings.Contains(got, `"approval_request_id":"`+requests[1]+`","approve":false`) || !strings.Contains(got, "continue") || strings.Contains(got, "function_call_output") {
		t.Errorf("input items %s", got)
	}
	// A client that carries all itself, from the question to what follows the call.
	kept := append([]any{map[string]any{"role": "user", "content": input}}, r["output"].([]any)...)
	kept = append(kept, answer(requests[0], true), answer(requests[1], false))
	next = a.ask(t, 200, map[string]any{"store": false, "tools": tools, "input": kept})
	if _, calls := s.counts(); calls != `read {}; write {"to":"a"}; write {"to":"a"}` || next["status"] != "completed" {
		t.Errorf("%s, called %s", show(next), calls)
	}
	kept = append(append(kept, next["output"].([]any)...), map[string]any{"role": "user", "content": "s__read"})
	next = a.ask(t, 200, map[string]any{"store": false, "tools": tools, "input": kept})
	if lists, calls := s.counts(); calls != `read {}; write {"to":"a"}; write {"to":"a"}; read {}` || lists != 1 {
		t.Errorf("%s, called %s, listed %d times", show(next), calls, lists)
	}
}

// TestMCPTakenOver: a call that was in progress in a process that is gone is made again if it
// only reads, and is told to be unknown otherwise.
func TestMCPTakenOver(t *testing.T) {
	a, s := openTools(t, web.Config{}), serveMCP(t, "read", "write")
	tools := []any{s.tool("s", map[string]any{"require_approval": "never"})}
	r := a.ask(t, 200, map[string]any{"background": true, "tools": tools, "input": "s__read {\"x\": \"hang\"}\ns__write {\"x\": \"hang\"}"})
	await(t, func() bool { _, calls := s.counts(); return strings.Count(calls, "hang") == 2 })
	a.again()
	await(t, func() bool { _, calls := s.counts(); return strings.Count(calls, "read") == 2 })
	close(s.hang)
	id := r["id"].(string)
	await(t, func() bool {
		r = ask(t, a.Server, 200, "GET", "/v1/responses/"+id, "")
		return r["status"] == "completed"
	})
	if _, calls := s.counts(); strings.Count(calls, "write") != 1 || strings.Count(calls, "read") != 2 {
		t.Errorf("called %s", calls)
	}
	if got := show(r["output"]); !strings.Contains(got, `"error":"outcome unknown: the server was interrupted`) || !strings.Contains(got, "got read done with [covered]; outcome unknown") {
		t.Errorf("output %s", got)
	}
}

// await waits until something holds.
func await(t *testing.T, holds func() bool) {
	t.Helper()
	atolltest.Until(t, 30*time.Second, "it holds", holds)
}
