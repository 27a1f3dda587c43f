package service

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/scriptedmodel"
)

// providerKey is the key that the models here have for their provider.
const providerKey = "sk-of-the-provider-0123456789"

// watched is a provider whose requests are kept. Its model calls get_weather after
// "weather", after a thought; gives JSON after "json"; is busy the first time after "busy";
// and refuses after "refuse", with the key in its message.
type watched struct {
	*httptest.Server
	mu    sync.Mutex
	asked []scriptedmodel.Request // guarded by mu
}

func watch(t *testing.T) *watched {
	w := &watched{}
	w.Server = httptest.NewServer(&scriptedmodel.Provider{Next: func(r scriptedmodel.Request) (scriptedmodel.Turn, bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.asked = append(w.asked, r)
		body := text(r.Body)
		switch {
		case strings.Contains(body, "refuse") && r.Body["model"] == "bad":
			return scriptedmodel.Turn{Refuse: &scriptedmodel.Refusal{Status: 401, Type: "invalid_request_error", Message: "the key " + providerKey + " is wrong"}}, true
		case strings.Contains(body, "busy") && len(w.asked) == 1:
			return scriptedmodel.Turn{Header: http.Header{"Retry-After": {"0"}}, Refuse: &scriptedmodel.Refusal{Status: 429, Type: "rate_limit_error", Message: "later"}}, true
		case strings.Contains(body, "weather") && !strings.Contains(body, "rain"):
			return scriptedmodel.Turn{
				Blocks: []scriptedmodel.Block{{Thought: []string{"mulled over"}, State: "sealed-state"}, {Call: &scriptedmodel.Call{ID: "call_1", Name: "get_weather", Arguments: []string{"{}"}}}},
				Usage:  &model.Usage{Input: 2000, CacheRead: 1500, Output: 10, Reasoning: 4},
			}, true
		case strings.Contains(body, "json"):
			return scriptedmodel.Say(`{"n": 7}`), true
		}
		return scriptedmodel.Say("ready"), true
	}})
	t.Cleanup(w.Close)
	return w
}

func text(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// take returns what was asked since the last time.
func (w *watched) take() []scriptedmodel.Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := w.asked
	w.asked = nil
	return asked
}

// operator runs commands of an administrator.
func operator(t *testing.T, s *atolltest.Server, args ...string) string {
	t.Helper()
	binary, err := atolltest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "ATOLL_BASE_URL=" + s.URL, "ATOLL_DATA_DIR=" + s.Data}
	return said(t, cmd)
}

// TestModelsOfEachProvider makes a model for each protocol from the command line, and has
// responses use what the protocols have: images and files, JSON, thoughts that are carried
// on, caching, other models in place of one that fails, and tries again.
func TestModelsOfEachProvider(t *testing.T) {
	s := shared(t)
	key := s.Tenant(t, "modeller", "enterprise")
	keyFile := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(keyFile, []byte(providerKey), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, protocol := range []struct {
		provider model.Provider
		base     string
		image    string // what the provider gets of parts of a message
		file     string
		schema   string
		state    string // and of an earlier thought
		cache    string
		header   string // that has the key
	}{
		{"openai", "/v1", `"image_url":"data:image/png;base64,` + pixel, `"file_data":"data:application/pdf;base64,JVBERg=="`, `"json_schema"`, "sealed-state", `"prompt_cache_key":"sbx_`, "Authorization"},
		{"openai-chat", "/v1", `"url":"data:image/png;base64,` + pixel, `"file_data":"data:application/pdf;base64,JVBERg=="`, `"json_schema"`, "mulled over", "", "Authorization"},
		{"anthropic", "", `"data":"` + pixel, `"data":"JVBERg=="`, `"output_config"`, "sealed-state", `"cache_control"`, "X-Api-Key"},
	} {
		t.Run(string(protocol.provider), func(t *testing.T) {
			w := watch(t)
			good, bad := "good-"+string(protocol.provider), "bad-"+string(protocol.provider)
			for name, upstream := range map[string]string{good: "good", bad: "bad"} {
				operator(t, s, "model", "add", name, "--provider", string(protocol.provider), "--base-url", w.URL+protocol.base, "--upstream", upstream, "--key-file", keyFile,
					"--price-input", "2", "--price-output", "10", "--price-cache-read", "0.2", "--tenant", "modeller", "--can", "vision,files,tools,parallel_tools,reasoning,structured_output")
			}
			defer operator(t, s, "model", "remove", good, bad)
			if out := operator(t, s, "model", "list"); !strings.Contains(out, good) || strings.Contains(out, providerKey) {
				t.Errorf("the list is %s", out)
			}
			if out := operator(t, s, "model", "test", good); !strings.Contains(out, "ready") {
				t.Errorf("the test says %s", out)
			}
			if got := w.take()[0].Header.Get(protocol.header); !strings.HasSuffix(got, providerKey) {
				t.Errorf("the provider's key is %q", got)
			}
			send := func(status string, request map[string]any) map[string]any {
				t.Helper()
				r := ask(t, s.URL, key, request)
				if r["status"] != status || strings.Contains(text(r), providerKey) {
					t.Errorf("got %s, want %s", text(r), status)
				}
				return r
			}
			saw := func(asked scriptedmodel.Request, parts ...string) {
				t.Helper()
				for _, part := range parts {
					if part != "" && !strings.Contains(text(asked.Body), part) {
						t.Errorf("the provider did not get %s, but %s", part, text(asked.Body))
					}
				}
			}

			send("completed", map[string]any{"model": good, "input": []any{map[string]any{"role": "user", "content": []any{
				map[string]any{"type": "input_image", "image_url": "data:image/png;base64," + pixel},
				map[string]any{"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="},
			}}}})
			saw(w.take()[0], protocol.image, protocol.file)

			send("completed", map[string]any{"model": good, "input": "json", "text": map[string]any{"format": map[string]any{
				"type": "json_schema", "name": "n", "strict": true, "schema": map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{"type": "integer"}}, "required": []string{"n"}, "additionalProperties": false},
			}}})
			saw(w.take()[0], protocol.schema, `"integer"`)

			tools := []any{map[string]any{"type": "function", "name": "get_weather"}}
			r := send("completed", map[string]any{"model": good, "input": "weather", "tools": tools, "reasoning": map[string]any{"effort": "low"}})
			usage := r["usage"].(map[string]any)
			if cost := usage["cost"].(map[string]any); cost["cache_read_cost"] != 0.0003 || cost["total_cost"] != 0.0014 {
				t.Errorf("the usage is %s", text(usage))
			}
			saw(w.take()[0], protocol.cache)
			send("completed", map[string]any{"model": good, "previous_response_id": r["id"], "tools": tools, "reasoning": map[string]any{"effort": "low"}, "input": []any{
				map[string]any{"type": "function_call_output", "call_id": "call_1", "output": "rain"},
			}})
			saw(w.take()[0], protocol.state, protocol.cache, "rain")

			r = send("completed", map[string]any{"models": []string{bad, good}, "input": "refuse"})
			if r["model"] != good || len(w.take()) != 2 {
				t.Errorf("got %s", text(r))
			}
			r = send("failed", map[string]any{"model": bad, "input": "refuse"})
			if message := fmt.Sprint(r["error"].(map[string]any)["message"]); !strings.Contains(message, "rejects the key") {
				t.Errorf("the error says %q", message)
			}
			w.take()

			send("completed", map[string]any{"model": good, "input": "busy"})
			if n := len(w.take()); n != 2 {
				t.Errorf("the provider was asked %d times", n)
			}
			// To another tenant the model does not exist.
			var seen struct{ Data []struct{ ID string } }
			s.Must(t, atolltest.Key, http.MethodGet, "/v1/models", nil).Into(t, http.StatusOK, &seen)
			if slices.ContainsFunc(seen.Data, func(m struct{ ID string }) bool { return m.ID == good }) {
				t.Errorf("another tenant sees %v", seen.Data)
			}
			if log := s.Log(); bytes.Contains([]byte(log), []byte(providerKey)) {
				t.Error("the key is in the server's log")
			}
		})
	}
}
