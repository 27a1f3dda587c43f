package service

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/scriptedmodel"
)

// nodePackages are other people's clients on npm. Those for Python are among pythonPackages.
var nodePackages = []string{
	"openai@7.57.0", "@perplexity-ai/perplexity_ai@0.38.5", "ai@7.0.173", "@ai-sdk/openai@4.0.118", "zod@4.6.7",
	anthropicClient, mcpClient, e2bPackage,
}

// TestPublishedClientsOnResponses drives each client as it is published through all that it
// knows of responses. What is sent and answered is held against the open specification.
func TestPublishedClientsOnResponses(t *testing.T) {
	s := shared(t)
	key := s.Tenant(t, "clients", "enterprise")
	lendModel(t, s, "clever", clever(t).URL, model.Capabilities...)
	t.Cleanup(func() { endContainers(t, s, key) })
	for _, client := range []struct {
		script string
		said   string
		did    []string
	}{
		{"openai_client.py", "text create stream background functions custom conversation structured parts reasoning files refused async", []string{
			"GET/files", "download", "create", "stream", "background", "GET", "resume", "POST/cancel", "DELETE", "GET/input_items", "previous_response_id", "tool function", "tool sandbox", "input function_call_output",
		}},
		{"perplexity_client.py", "create stream background functions conversation files refused async", []string{
			"GET/files", "download", "create", "stream", "background", "GET", "POST/cancel", "previous_response_id", "tool function", "tool sandbox", "input function_call_output",
		}},
		{"agents_client.py", "run stream custom conversation sandbox files hosted structured background", []string{"create", "stream", "background", "GET", "POST/cancel", "previous_response_id", "GET/files", "download", "tool sandbox", "tool code_interpreter", "tool web_search", "tool function", "input function_call_output"}},
		{"langchain_client.py", "invoke stream tools conversation files hosted structured background async", []string{"create", "stream", "background", "GET", "POST/cancel", "previous_response_id", "GET/files", "download", "tool sandbox", "tool code_interpreter", "tool web_search", "tool function", "input function_call_output"}},
		{"openai.mjs", "text create stream background poll files functions conversation structured", []string{
			"GET/files", "download", "create", "stream", "background", "GET", "resume", "POST/cancel", "DELETE", "GET/input_items", "previous_response_id", "tool function", "tool sandbox", "input function_call_output",
		}},
		{"ai.mjs", "text stream tools hosted files conversation background structured", []string{"create", "stream", "background", "GET", "POST/cancel", "previous_response_id", "tool code_interpreter", "tool web_search", "tool function", "input function_call_output"}},
		{"perplexity.mjs", "create stream background functions conversation files refused", []string{
			"GET/files", "download", "create", "stream", "background", "GET", "POST/cancel", "previous_response_id", "tool function", "tool sandbox", "input function_call_output",
		}},
	} {
		t.Run(client.script, func(t *testing.T) {
			t.Parallel()
			r, at := recorded(t, s.URL)
			env := []string{"ATOLL_URL=" + at, "ATOLL_KEY=" + key}
			name := filepath.Join("clients", client.script)
			var out string
			if strings.HasSuffix(name, ".py") {
				out = python(t, name, env...)
			} else {
				out = program(t, name, env...)
			}
			if said := strings.Join(strings.Fields(out), " "); said != client.said {
				t.Errorf("it said %q, want %q", said, client.said)
			}
			r.wants(client.did...)
		})
	}
	t.Run("compliance", func(t *testing.T) { compliant(t, s, key) })
}

// endContainers removes the containers that conversations have left.
func endContainers(t *testing.T, s *atolltest.Server, key string) {
	ctx := context.WithoutCancel(t.Context())
	a, err := s.Call(ctx, key, http.MethodGet, "/v1/containers?limit=100", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Data []struct{ ID string } }
	a.Into(t, http.StatusOK, &list)
	for _, c := range list.Data {
		if a, err := s.Call(ctx, key, http.MethodDelete, "/v1/containers/"+c.ID, nil, nil); err != nil || a.Status != http.StatusOK {
			t.Errorf("remove a container: %v, %v", a, err)
		}
	}
}

// program runs a program of testdata under Node.js with nodePackages.
func program(t *testing.T, name string, env ...string) string {
	t.Helper()
	packages, err := nodeFolder()
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(packages, "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "program.mjs")
	if err := os.WriteFile(file, source, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", file)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}, env...)
	return said(t, cmd)
}

// nodeFolder returns the folder that nodePackages are in, installed once for all tests.
var nodeFolder = installed("node", nodePackages, npmInstall(nodePackages))

// npmInstall returns a function that returns the command that installs packages of npm in a folder.
func npmInstall(packages []string) func(dir string) *exec.Cmd {
	return func(dir string) *exec.Cmd {
		cmd := exec.Command("npm", append([]string{"install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", "--prefix", dir}, packages...)...)
		cmd.Dir = dir
		return cmd
	}
}

// clever is a provider whose model does more than an obedient one. It gives an answer in
// JSON after "json", makes and shares a file after "share", calls get_weather for two cities after "both", tells what it sees
// after "see", cites a page after "cite" and tells what was said before after "recall", thinks after "think", runs what
// follows "compute" with code_interpreter, and searches for what follows "search".
func clever(t *testing.T) *httptest.Server {
	p := httptest.NewServer(&scriptedmodel.Provider{Next: func(r scriptedmodel.Request) (scriptedmodel.Turn, bool) {
		said, result := conversation(r.Body)
		word, rest, _ := strings.Cut(said, " ")
		if result != "" && word == "share" && strings.Count(result, "Exit code") == 1 && !strings.Contains(result, "Shared") {
			return scriptedmodel.Ask("call_2", "share_file", `{"file_path": "made.csv"}`), true
		}
		if result != "" {
			return obey(said, result)
		}
		switch word {
		case "share":
			arguments, err := json.Marshal(map[string]string{"language": "python", "code": "open('made.csv', 'w').write('a,b\\n')"})
			return scriptedmodel.Ask("call_1", "run_code", string(arguments)), err == nil
		case "compute":
			arguments, err := json.Marshal(map[string]string{"code": rest})
			return scriptedmodel.Ask("call_1", "code_interpreter", string(arguments)), err == nil
		case "search":
			arguments, err := json.Marshal(map[string][]string{"queries": {rest}})
			return scriptedmodel.Ask("call_1", "web_search", string(arguments)), err == nil
		case "json":
			return scriptedmodel.Say(formatted(r.Body)), true
		case "patch":
			return scriptedmodel.Turn{
				Blocks: []scriptedmodel.Block{{Call: &scriptedmodel.Call{ID: "call_1", Name: "apply_patch", Arguments: []string{"+", rest}, Custom: true}}},
				Usage:  &model.Usage{Input: 10, CacheWrite: 3, Output: 5},
			}, true
		case "both":
			call := func(id, city string) scriptedmodel.Block {
				return scriptedmodel.Block{Call: &scriptedmodel.Call{ID: id, Name: "get_weather", Arguments: []string{`{"ci`, `ty": "`, city + `"}`}}}
			}
			return scriptedmodel.Turn{Blocks: []scriptedmodel.Block{call("call_1", "Oslo"), call("call_2", "Rome")}, Usage: &model.Usage{Input: 10, Output: 5}, Interleave: true}, true
		case "cite":
			return scriptedmodel.Turn{
				Blocks: []scriptedmodel.Block{{Text: []string{"See ", rest}, Cites: []model.Citation{{URL: "https://example.org/atolls", Title: "Atolls", End: 4 + len(rest)}}}},
				Usage:  &model.Usage{Input: 10, Output: 5},
			}, true
		case "see":
			return scriptedmodel.Say(seen(r.Body)), true
		case "recall":
			return scriptedmodel.Say(recalled(r.Body)), true
		case "think":
			return scriptedmodel.Turn{
				Blocks: []scriptedmodel.Block{{Summary: []string{"It is about " + rest}, State: "state"}, {Text: []string{"I thought ", "about ", rest}}},
				Usage:  &model.Usage{Input: 10, Output: 5, Reasoning: 2},
			}, true
		}
		turn, ok := obey(said, result)
		if !ok {
			t.Errorf("the model was asked %q", said)
		}
		return turn, ok
	}})
	t.Cleanup(p.Close)
	return p
}

// formatted is an answer by the schema of a request, which every case has the same of.
func formatted(body map[string]any) string {
	text, _ := body["text"].(map[string]any)
	format, _ := text["format"].(map[string]any)
	schema, _ := format["schema"].(map[string]any)
	members, _ := schema["properties"].(map[string]any)
	if members["city"] == nil || members["celsius"] == nil {
		return fmt.Sprintf("there is no schema: %v", body["text"])
	}
	return `{"city": "Oslo", "celsius": 7}`
}

// seen are the parts of the last message of a request that are no text.
func seen(body map[string]any) string {
	items, _ := body["input"].([]any)
	last, _ := items[len(items)-1].(map[string]any)
	parts, _ := last["content"].([]any)
	var out []string
	for _, p := range parts {
		part, _ := p.(map[string]any)
		for _, member := range []string{"image_url", "file_data", "file_url"} {
			if text, ok := part[member].(string); ok {
				out = append(out, fmt.Sprintf("%s %.22s", part["type"], text))
			}
		}
	}
	return strings.Join(out, ", ")
}

// recalled is what was said in a request, and by which roles.
func recalled(body map[string]any) string {
	var out []string
	if text, ok := body["instructions"].(string); ok {
		out = append(out, "instructions: "+text)
	}
	items, _ := body["input"].([]any)
	for _, it := range items {
		item, _ := it.(map[string]any)
		switch item["type"] {
		case "function_call":
			out = append(out, fmt.Sprintf("call: %s", item["name"]))
		case "function_call_output", "custom_tool_call_output":
			out = append(out, fmt.Sprintf("result: %s", item["output"]))
		case "reasoning":
			out = append(out, fmt.Sprintf("reasoning: %s", item["encrypted_content"]))
		default:
			if text, ok := item["content"].(string); ok {
				out = append(out, fmt.Sprintf("%s: %s", item["role"], text))
			}
			parts, _ := item["content"].([]any)
			for _, p := range parts {
				part, _ := p.(map[string]any)
				if text, ok := part["text"].(string); ok {
					out = append(out, fmt.Sprintf("%s: %s", item["role"], text))
				}
			}
		}
	}
	return strings.Join(out, "; ")
}

// compliant sends the cases of the specification's public compliance suite: what it asks,
// and that the answer is valid and has ended well.
func compliant(t *testing.T, s *atolltest.Server, key string) {
	tool := json.RawMessage(`[{"type":"function","name":"get_weather","description":"Get the current weather for a location","parameters":{"type":"object","properties":{"city":{"type":"string","description":"The city"}},"required":["city"]}}]`)
	message := func(role, text string) map[string]any {
		return map[string]any{"type": "message", "role": role, "content": text}
	}
	for name, test := range map[string]struct {
		request map[string]any
		want    string // of the output
	}{
		"message":                 {map[string]any{"input": []any{message("user", "say hello")}}, "hello"},
		"stream":                  {map[string]any{"input": []any{message("user", "say count")}, "stream": true}, "count"},
		"system message":          {map[string]any{"input": []any{message("system", "You are a pirate."), message("user", "recall")}}, "system: You are a pirate.; user: recall"},
		"function call":           {map[string]any{"input": []any{message("user", "weather")}, "tools": tool}, `get_weather({"city": "Oslo"})`},
		"function call, streamed": {map[string]any{"input": []any{message("user", "weather")}, "tools": tool, "stream": true}, `get_weather({"city": "Oslo"})`},
		"image": {map[string]any{"input": []any{map[string]any{"type": "message", "role": "user", "content": []any{
			map[string]any{"type": "input_text", "text": "see"}, map[string]any{"type": "input_image", "image_url": "data:image/png;base64," + pixel},
		}}}}, "input_image data:image/png;base64,"},
		"conversation": {map[string]any{"input": []any{message("user", "My name is Alice."), message("assistant", "Hello Alice!"), message("user", "recall")}}, "user: My name is Alice.; assistant: Hello Alice!; user: recall"},
	} {
		t.Run(name, func(t *testing.T) {
			r, at := recorded(t, s.URL)
			test.request["model"] = "clever"
			answer := ask(t, at, key, test.request)
			if answer["status"] != "completed" {
				t.Errorf("the status is %v", answer["status"])
			}
			if got := spoken(answer); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			r.wants("create")
		})
	}
}

// pixel is a PNG of one pixel.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// ask asks for a response and returns it, also from the last event of a stream.
func ask(t *testing.T, server, key string, request map[string]any) (answer map[string]any) {
	t.Helper()
	raw, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	in, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server+"/v1/responses", strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	in.Header.Set("Authorization", "Bearer "+key)
	in.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(in)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	last := string(text)
	if request["stream"] == true {
		lines := strings.Split(strings.TrimSpace(last), "\n")
		last = strings.TrimPrefix(lines[len(lines)-1], "data: ")
	}
	if err := json.Unmarshal([]byte(last), &answer); err != nil {
		t.Fatalf("%v: %s", err, last)
	}
	if r, ok := answer["response"].(map[string]any); ok {
		return r
	}
	return answer
}

// spoken is what the messages and calls of a response say.
func spoken(r map[string]any) string {
	output, _ := r["output"].([]any)
	var out []string
	for _, it := range output {
		item, _ := it.(map[string]any)
		if item["type"] == "function_call" {
			out = append(out, fmt.Sprintf("%s(%s)", item["name"], item["arguments"]))
			continue
		}
		parts, _ := item["content"].([]any)
		for _, p := range parts {
			part, _ := p.(map[string]any)
			out = append(out, fmt.Sprint(part["text"]))
		}
	}
	return strings.Join(slices.Compact(out), "; ")
}
