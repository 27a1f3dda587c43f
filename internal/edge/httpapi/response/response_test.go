package response_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent/admission"
	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/agent/response"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/control/gateway/gatewaytest"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/model/modeltest"
	"github.com/atoll-run/atoll/internal/core/ratelimit"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/core/web"
	responseapi "github.com/atoll-run/atoll/internal/edge/httpapi/response"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/httpapitest"
	"github.com/atoll-run/atoll/test/openresponses"
)

type models map[string]modeltest.Script

func (m models) Use(_ context.Context, _ tenant.ID, name string) (model.Model, *model.Record, error) {
	if m[name] == nil {
		return nil, nil, fault.New(fault.NotFound, "no model %q", name)
	}
	spec := model.Spec{Capabilities: model.Capabilities, Prices: model.Prices{Input: 1_000_000, Output: 2_000_000}}
	return model.Guard(m[name], spec, model.DefaultBounds), &model.Record{Name: name, Spec: spec}, nil
}

func say(text string) []model.Delta {
	var out []model.Delta
	for word := range strings.SplitAfterSeq(text, " ") {
		out = append(out, model.Delta{Kind: model.Said, Text: word})
	}
	return append(out, model.Delta{Kind: model.Used, Usage: model.Usage{Input: 10, Output: 5}}, model.Delta{Kind: model.Stopped, Stop: model.StopEnd})
}

func call(name, arguments string) []model.Delta {
	c := model.Call{ID: "call_1", Name: name, Arguments: arguments}
	return []model.Delta{
		{Kind: model.CallBegun, Call: c}, {Kind: model.CallArguments, Text: arguments}, {Kind: model.CallEnded, Call: c},
		{Kind: model.Used, Usage: model.Usage{Input: 10, Output: 5}}, {Kind: model.Stopped, Stop: model.StopToolCalls},
	}
}

// last is the text of the last item of a request.
func last(q model.Request) string {
	switch it := q.Items[len(q.Items)-1]; {
	case it.Message != nil:
		return it.Message.Parts[0].Text
	case it.Result != nil:
		return "result: " + it.Result.Parts[0].Text
	}
	return ""
}

// conversation is what a request says, an item after the other.
func conversation(q model.Request) string {
	var out []string
	for _, it := range q.Items {
		switch {
		case it.Message != nil:
			out = append(out, it.Message.Parts[0].Text)
		case it.Call != nil:
			out = append(out, fmt.Sprintf("%s(%s)", it.Call.Name, it.Call.Arguments))
		case it.Result != nil:
			out = append(out, it.Result.Parts[0].Text)
		}
	}
	return strings.Join(out, " | ")
}

func open(t *testing.T, change ...func(*loop.Config)) *httpapitest.Server {
	t.Helper()
	m := models{
		"echo": func(q model.Request) []model.Delta { return say(last(q)) },
		"code": func(q model.Request) []model.Delta {
			if text := last(q); strings.HasPrefix(text, "result: ") {
				return say(text)
			}
			if last(q) == "bad arguments" {
				return call(sandboxtool.RunCode, `{"x": 1}`)
			}
			return call(sandboxtool.RunCode, fmt.Sprintf(`{"language": "python", "code": %q}`, last(q)))
		},
		"files": func(q model.Request) []model.Delta {
			if text := last(q); strings.HasPrefix(text, "result: ") {
				return say(text)
			}
			tool, arguments, _ := strings.Cut(last(q), " ")
			return call(tool, arguments)
		},
		"function": func(q model.Request) []model.Delta {
			if text := last(q); strings.HasPrefix(text, "result: ") {
				return say(text)
			}
			return call("add", `{"a": 1}`)
		},
		"patching": patching,
		"all":      func(q model.Request) []model.Delta { return say(conversation(q)) },
		"tools": func(q model.Request) []model.Delta {
			var names []string
			for _, tool := range q.Tools {
				names = append(names, tool.Name)
			}
			return say(strings.Join(names, " "))
		},
		"again": func(model.Request) []model.Delta {
			return call(sandboxtool.RunCode, `{"language": "python", "code": "x"}`)
		},
		"cites": func(model.Request) []model.Delta {
			c := func(url string) model.Delta {
				return model.Delta{Kind: model.Cited, Citation: &model.Citation{URL: url, Title: "A page", End: 5}}
			}
			text := say("Coral and atolls")
			return append([]model.Delta{text[0], c("https://a.org/"), c("https://b.org/")}, text[1:]...)
		},
		"hang": func(model.Request) []model.Delta { return []model.Delta{{Kind: model.Said, Text: "well"}, {}} },
	}
	begun := time.Now()
	rates := ratelimit.NewModels(func() time.Time { return begun }, nil) // nothing comes back while a test continues
	return httpapitest.New(t, func(s *httpapitest.Setup) {
		cfg := loop.Config{
			Store: s.World.DB.Runs(), Models: m, Events: s.World.Bus.RunEvents(storetest.Box(t)), Log: slog.New(slog.DiscardHandler), Holder: "here",
			Handlers: map[string]loop.Handler{sandboxtool.Handler: &sandboxtool.Sandbox{Runner: s.World.Gateway, Callers: tenant.NewAuthority(s.World.DB.Tenants())}},
			Prices:   loop.Prices{Tools: map[string]model.Money{"sandbox": usage.MoneyOf(0.001)}, Window: usage.MoneyOf(0.03)},
			Budget:   usage.NewBudget(s.World.DB.Usage().CheckCost),
			Room: func(ctx context.Context, r *run.Run) error {
				p, err := s.World.Holder(ctx, r.Tenant, r.Key)
				if err != nil {
					return err
				}
				return s.World.Room(ctx, &p, s.World.DB.Usage(), r.Keep > 0)
			},
			Forget: func(ctx context.Context, id run.ID) error { return s.World.Gateway.Forget(ctx, string(id)) },
			Used:   func(r *run.Run, model string, tokens int64) { rates.Use(r.Tenant, r.Key, model, tokens) },
		}
		for _, set := range change {
			set(&cfg)
		}
		l := loop.New(cfg)
		if err := l.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Stop)
		room := func(ctx context.Context, p *tenant.Principal, kept bool) error {
			return s.World.Room(ctx, p, s.World.DB.Usage(), kept)
		}
		s.Responses = &responseapi.Handlers{Files: s.World.Gateway, Service: response.New(response.Config{
			Seal: storetest.Box(t), Web: web.New(web.Config{}),
			Runs: l, Records: s.World.DB.Runs(), Keep: time.Hour, MaxUnderWay: 3, Log: slog.New(slog.DiscardHandler),
			Gate: &admission.Gate{Models: m, Rates: rates, Space: room, Budget: usage.NewBudget(s.World.DB.Usage().CheckCost).Check},
		})}
	})
}

// ask sends a request and reads the JSON of its answer, which must have a status.
func ask(t *testing.T, s http.Handler, status int, method, path, body string) map[string]any {
	t.Helper()
	w := httpapitest.Ask(s, method, path, body)
	var out map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != status {
		t.Fatalf("%s %s: %d %s, want %d", method, path, w.Code, w.Body, status)
	}
	if out["object"] == "response" {
		valid(t, openresponses.Response, out)
	}
	return out
}

// valid holds an event or a response against the open specification.
func valid(t *testing.T, check func(map[string]any) error, value map[string]any) {
	t.Helper()
	if err := check(value); err != nil {
		t.Error(err)
	}
}

// events reads a stream, and holds each event against the specification.
func events(t *testing.T, w *httptest.ResponseRecorder) (all []map[string]any) {
	t.Helper()
	if w.Code != 200 || w.Header().Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	in := bufio.NewScanner(w.Body)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		data, ok := strings.CutPrefix(in.Text(), "data: ")
		if !ok {
			continue
		}
		var e map[string]any
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
		valid(t, openresponses.Event, e)
	}
	return all
}

func show(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// output is the output of a response, an item a line.
func output(r map[string]any) string {
	var out []string
	for _, it := range r["output"].([]any) {
		switch it := it.(map[string]any); it["type"] {
		case "message":
			out = append(out, fmt.Sprintf("%s message %s", it["status"], it["content"].([]any)[0].(map[string]any)["text"]))
		case "function_call":
			out = append(out, fmt.Sprintf("%s call %s(%s)", it["status"], it["name"], it["arguments"]))
		case "sandbox_results":
			result := it["results"].([]any)[0].(map[string]any)
			out = append(out, fmt.Sprintf("%s %s %s -> %v %q %q", it["status"], it["language"], it["code"], result["exit_code"], result["stdout"], result["stderr"]))
		case "reasoning":
			out = append(out, fmt.Sprintf("%s reasoning %s", it["status"], show(it["summary"])))
		}
	}
	return strings.Join(out, "\n")
}

func want(t *testing.T, r map[string]any, status, out string) {
	t.Helper()
	if r["status"] != status || output(r) != out {
		t.Errorf("%s:\n%s\nwant %s:\n%s", r["status"], output(r), status, out)
	}
}

func TestAnswer(t *testing.T) {
	s := open(t)
	for _, root := range []string{"/v1/responses", "/v1/agent"} {
		r := ask(t, s, 200, "POST", root, `{"model": "echo", "input": "hello there", "metadata": {"a": "b"}, "instructions": "be brief", "reasoning": {"effort": "low"}}`)
		want(t, r, "completed", "completed message hello there")
		got := ask(t, s, 200, "GET", root+"/"+r["id"].(string), "")
		if show(got) != show(r) {
			t.Errorf("got %s\nwas %s", show(got), show(r))
		}
		gone := ask(t, s, 200, "DELETE", root+"/"+r["id"].(string), "")
		if gone["deleted"] != true {
			t.Errorf("got %v", gone)
		}
		ask(t, s, 404, "GET", root+"/"+r["id"].(string), "")
	}
}

func TestSandbox(t *testing.T) {
	s := open(t)
	const body = `{"model": "code", "input": "lines", "tools": [{"type": "sandbox"}]`
	r := ask(t, s, 200, "POST", "/v1/responses", body+"}")
	code := `completed python lines -> 0 "one\nno newline" "two\n"`
	said := "completed message result: Exit code 0\nstdout:\none\nno newline\nstderr:\ntwo\n\n"
	want(t, r, "completed", code+"\n"+said)
	if u := r["usage"].(map[string]any); u["total_tokens"] != 30. || show(u["tool_calls_details"]) != `{"sandbox":{"invocation":1}}` {
		t.Errorf("usage %s", show(u))
	}
	for name, program := range map[string]string{"err": `completed python err -> 3 "" "err\n"`, "oom": `failed python oom -> 137 "" "memory limit of 512 MiB exceeded"`} {
		r := ask(t, s, 200, "POST", "/v1/responses", strings.Replace(body, "lines", name, 1)+"}")
		if first, _, _ := strings.Cut(output(r), "\n"); first != program {
			t.Errorf("got %s, want %s", first, program)
		}
	}
	// What the model calls wrongly goes back to it.
	r = ask(t, s, 200, "POST", "/v1/responses", strings.Replace(body, "lines", "bad arguments", 1)+"}")
	want(t, r, "completed", `completed message result: unknown field "x"; known fields are language, code, timeout`)

	// A quota that is used up ends the response, which names it.
	s.World.Executor.Refuse(fault.Limit("monthly_credits", time.Time{}, "monthly budget used up"))
	r = ask(t, s, 200, "POST", "/v1/responses", body+"}")
	want(t, r, "failed", `failed python lines -> -1 "" "monthly budget used up"`)
	if e := r["error"].(map[string]any); e["code"] != "quota_exceeded" || e["type"] != "rate_limit_error" || e["message"] != "monthly budget used up" {
		t.Errorf("the error is %v", e)
	}
	s.World.Executor.Refuse(nil)

	all := events(t, httpapitest.Ask(s, "POST", "/v1/responses", body+`, "stream": true}`))
	var kinds []string
	for i, e := range all {
		if e["sequence_number"] != float64(i) {
			t.Errorf("event %d has number %v", i, e["sequence_number"])
		}
		kinds = append(kinds, strings.TrimPrefix(e["type"].(string), "response."))
	}
	if got := strings.Join(slices.Compact(kinds), " "); got != "created in_progress output_item.added output_item.done output_item.added content_part.added output_text.delta output_text.done content_part.done output_item.done completed" {
		t.Errorf("got %s", got)
	}
	last := all[len(all)-1]["response"].(map[string]any)
	want(t, last, "completed", code+"\n"+said)
}

func TestFunction(t *testing.T) {
	s := open(t)
	const tools = `"tools": [{"type": "function", "name": "add", "parameters": {"type": "object"}}]`
	r := ask(t, s, 200, "POST", "/v1/responses", `{"model": "function", "input": "1 and 2", `+tools+`}`)
	want(t, r, "completed", `completed call add({"a": 1})`)
	acting := ask(t, s, 200, "POST", "/v1/agent", `{"model": "function", "input": "1 and 2", `+tools+`}`)
	want(t, acting, "requires_action", `completed call add({"a": 1})`)
	if got := ask(t, s, 200, "GET", fmt.Sprintf("/v1/responses/%s", acting["id"]), ""); got["status"] != "completed" {
		t.Errorf("got %s", show(got))
	}
	id := r["id"]
	refused := ask(t, s, 400, "POST", "/v1/responses", fmt.Sprintf(`{"model": "function", "previous_response_id": %q, "input": "well?", %s}`, id, tools))
	if e := refused["error"].(map[string]any); e["type"] != "invalid_request_error" || !strings.Contains(e["message"].(string), `no function_call_output for call_id "call_1"`) || refused["message"] != e["message"] {
		t.Errorf("got %v", refused)
	}
	r = ask(t, s, 200, "POST", "/v1/responses", fmt.Sprintf(`{"model": "function", "previous_response_id": %q, "input": [{"type": "function_call_output", "call_id": "call_1", "output": "3"}], %s}`, id, tools))
	want(t, r, "completed", "completed message result: 3")
	items := ask(t, s, 200, "GET", fmt.Sprintf("/v1/responses/%s/input_items", r["id"]), "")
	if data := items["data"].([]any); len(data) != 1 || data[0].(map[string]any)["type"] != "function_call_output" || items["has_more"] != false {
		t.Errorf("got %s", show(items))
	}
	all := events(t, httpapitest.Ask(s, "POST", "/v1/responses", `{"model": "function", "input": "1 and 2", "stream": true, `+tools+`}`))
	if last := all[len(all)-1]; last["type"] != "response.completed" {
		t.Errorf("the last event is %s", show(last))
	}
}

// TestCancel: who cancels a response, or goes away from it, ends what the model says; what
// was said stays.
func TestCancel(t *testing.T) {
	s := open(t)
	r := ask(t, s, 200, "POST", "/v1/responses", `{"model": "hang", "input": "x", "background": true}`)
	id := r["id"].(string)
	if r["status"] != "in_progress" {
		t.Errorf("got %s", show(r))
	}
	foreign := stranger(t, s)
	for _, op := range []string{"GET %s", "GET %s?stream=true", "GET %s/input_items", "POST %s/cancel", "DELETE %s"} {
		method, path, _ := strings.Cut(op, " ")
		theirs := httpapitest.Ask(s, method, fmt.Sprintf(path, "/v1/responses/"+id), "", "Authorization", "Bearer "+foreign)
		none := httpapitest.Ask(s, method, fmt.Sprintf(path, "/v1/responses/resp_00000000000000000000000000000000"), "", "Authorization", "Bearer "+foreign)
		if theirs.Code != 404 || strings.ReplaceAll(theirs.Body.String(), id, "resp_"+strings.Repeat("0", 32)) != none.Body.String() {
			t.Errorf("%s: another tenant gets %d %s", op, theirs.Code, theirs.Body)
		}
	}
	const goOn = `{"model": "echo", "input": "x", "previous_response_id": %q}`
	if theirs := httpapitest.Ask(s, "POST", "/v1/responses", fmt.Sprintf(goOn, id), "Authorization", "Bearer "+foreign); theirs.Code != 404 {
		t.Errorf("another tenant continues it: %d %s", theirs.Code, theirs.Body)
	}
	atolltest.Until(t, 30*time.Second, "something was said", func() bool { return soFar(t, s, id) >= 5 })
	ask(t, s, 409, "DELETE", "/v1/responses/"+id, "")
	r = ask(t, s, 200, "POST", "/v1/responses/"+id+"/cancel", "")
	want(t, r, "cancelled", "incomplete message well")
	if r["response_id"] != id {
		t.Errorf("response_id is %v", r["response_id"])
	}
	ask(t, s, 400, "POST", "/v1/responses/"+id+"/cancel", "")
	all := events(t, httpapitest.Ask(s, "GET", "/v1/responses/"+id+"?stream=true&starting_after=3", ""))
	if all[0]["sequence_number"] != 4. || all[len(all)-1]["type"] != "response.cancelled" {
		t.Errorf("got %s", show(all))
	}

	underWay := func() (n int) {
		if err := s.DB.SQL().QueryRow(`SELECT count(*) FROM runs WHERE ended_at IS NULL`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		s.Server.ServeHTTP(httptest.NewRecorder(), request(ctx, "POST", "/v1/responses", `{"model": "hang", "input": "x"}`))
	}()
	atolltest.Until(t, 30*time.Second, "the run has begun", func() bool { return underWay() == 1 })
	cancel() // the caller goes away
	<-answered
	atolltest.Until(t, 30*time.Second, "the run has ended with its caller", func() bool { return underWay() == 0 })
}

// stranger is the key of another tenant.
func stranger(t *testing.T, s *httpapitest.Server) string {
	t.Helper()
	s.Principal(t, "stranger", "pro")
	return gatewaytest.Token("stranger")
}

func request(ctx context.Context, method, path, body string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+httpapitest.Key)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

// soFar is how many events a response has.
func soFar(t *testing.T, s *httpapitest.Server, id string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	w := httptest.NewRecorder()
	func() {
		defer func() { _ = recover() }() // the stream is cut
		s.Server.ServeHTTP(w, request(ctx, "GET", "/v1/responses/"+id+"?stream=true", ""))
	}()
	return strings.Count(w.Body.String(), "\ndata: ")
}

func TestNotStored(t *testing.T) {
	s := open(t)
	r := ask(t, s, 200, "POST", "/v1/responses", `{"model": "echo", "input": "secret", "store": false}`)
	want(t, r, "completed", "completed message secret")
	ask(t, s, 404, "GET", "/v1/responses/"+r["id"].(string), "")
	ask(t, s, 404, "POST", "/v1/responses", fmt.Sprintf(`{"model": "echo", "input": "x", "previous_response_id": %q}`, r["id"]))
	var n int
	if err := s.DB.SQL().QueryRow(`SELECT count(*) FROM run_entries`).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d entries are kept, %v", n, err)
	}
}

// deaf is a client that disconnects before it reads its answer.
type deaf struct{ *httptest.ResponseRecorder }

func (deaf) Write([]byte) (int, error) { return 0, errors.New("disconnected") }

// TestNotStoredUnread: a response with store false is deleted even if its client does not read it.
func TestNotStoredUnread(t *testing.T) {
	s := open(t)
	func() {
		defer func() { _ = recover() }() // the connection is cut
		s.Server.ServeHTTP(deaf{httptest.NewRecorder()}, request(t.Context(), "POST", "/v1/responses", `{"model": "echo", "input": "secret", "store": false}`))
	}()
	var n int
	if err := s.DB.SQL().QueryRow(`SELECT count(*) FROM run_entries`).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d entries are kept, %v", n, err)
	}
}

func TestRefusals(t *testing.T) {
	s := open(t)
	for body, message := range map[string]string{
		`{}`:                             "model is required",
		`{"model": "echo"}`:              "input is required",
		`{"model": "echo", "input": []}`: "input must have between 1",
		`{"model": "echo", "input": 1}`:  "input must be a text",
		`{"models": ["echo", "echo"], "input": "x"}`:                                                                       "twice",
		`{"model": "echo", "input": "x", "frequency_penalty": 1}`:                                                          `unknown field "frequency_penalty"`,
		`{"model": "echo", "input": [{"type": "x"}]}`:                                                                      "input[0].type must be one of",
		`{"model": "echo", "input": [{"role": "user", "content": [{"type": "output_text", "text": "x"}]}]}`:                "input[0].content[0].type",
		`{"model": "echo", "input": [{"role": "user", "content": [{"type": "input_image", "image_url": "file:///x"}]}]}`:   "input[0].content[0].image_url must be an https URL",
		`{"model": "echo", "input": [{"role": "user", "content": "x", "y": 1}]}`:                                           `input[0]: unknown field "y"`,
		`{"model": "echo", "input": [{"type": "reasoning", "encrypted_content": "AAAA"}]}`:                                 "was not made by this server",
		`{"model": "echo", "input": "x", "tools": [{"type": "web_search"}]}`:                                               "the setting search_provider",
		`{"model": "echo", "input": "x", "tools": [{"type": "sandbox", "x": 1}]}`:                                          `tools[0]: unknown field "x"`,
		`{"model": "echo", "input": "x", "tools": [{"type": "function", "name": "a b"}]}`:                                  "tools[0].name must have",
		`{"model": "echo", "input": "x", "tools": [{"type": "function", "name": "a"}, {"type": "function", "name": "a"}]}`: `two that are called "a"`,
		`{"model": "echo", "input": "x", "tool_choice": "required"}`:                                                       "there are no tools",
		`{"model": "echo", "input": "x", "tool_choice": {"type": "function", "name": "a"}}`:                                "not among tools",
		`{"model": "echo", "input": "x", "max_output_tokens": 1}`:                                                          "max_output_tokens must be between 16",
		`{"model": "echo", "input": "x", "temperature": 3}`:                                                                "temperature must be between 0 and 2",
		`{"model": "echo", "input": "x", "background": true, "store": false}`:                                              "must be stored",
		`{"model": "echo", "input": "x", "include": ["x"]}`:                                                                "include has",
		`{"model": "echo", "input": "x", "truncation": "x"}`:                                                               "truncation must be one of",
		`{"model": "echo", "input": "x", "text": {"format": {"type": "json_schema"}}}`:                                     "text.format.schema must be a JSON Schema",
	} {
		r := ask(t, s, 400, "POST", "/v1/responses", body)
		if got, _ := r["message"].(string); !strings.Contains(got, message) {
			t.Errorf("%s: %q, want %q", body, got, message)
		}
	}
	if r := ask(t, s, 404, "POST", "/v1/responses", `{"model": "none", "input": "x"}`); !strings.Contains(r["message"].(string), `there is no model "none"`) {
		t.Errorf("got %v", r)
	}
	for range 3 {
		ask(t, s, 200, "POST", "/v1/responses", `{"model": "hang", "input": "x", "background": true}`)
	}
	r := ask(t, s, 429, "POST", "/v1/responses", `{"model": "echo", "input": "x"}`)
	if e := r["error"].(map[string]any); e["type"] != "rate_limit_error" || e["code"] != "rate_limited" {
		t.Errorf("got %v", r)
	}
}

// TestCitations: what the provider cites reaches clients in the stream and in the response.
func TestCitations(t *testing.T) {
	s := open(t)
	all := events(t, httpapitest.Ask(s, "POST", "/v1/responses", `{"model": "cites", "input": "x", "stream": true}`))
	if kinds := typesOf(all); !strings.Contains(kinds, "content_part.added output_text.delta output_text.annotation.added output_text.annotation.added output_text.delta") {
		t.Errorf("events %s", kinds)
	}
	var told []any
	for _, e := range all {
		switch e["type"] {
		case "response.output_text.annotation.added":
			if e["annotation_index"] != float64(len(told)) || e["content_index"] != 0.0 {
				t.Errorf("got %s", show(e))
			}
			told = append(told, e["annotation"])
		case "response.content_part.done":
			if got := e["part"].(map[string]any)["annotations"]; show(got) != show(told) {
				t.Errorf("the part has %s, told was %s", show(got), show(told))
			}
		}
	}
	r := all[len(all)-1]["response"].(map[string]any)
	if part := item(t, r, "message")["content"].([]any)[0].(map[string]any); len(told) != 2 || show(part["annotations"]) != show(told) || !strings.Contains(show(told[1]), `"url":"https://b.org/"`) {
		t.Errorf("the response has %s", show(part))
	}
	// A client that sends the message back continues.
	ask(t, s, 200, "POST", "/v1/responses", show(map[string]any{"model": "all", "input": append(r["output"].([]any), map[string]any{"role": "user", "content": "more"})}))
}
