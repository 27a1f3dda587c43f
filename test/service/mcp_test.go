package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atoll-run/atoll/test/atolltest"
)

// Versions of what is installed from npm for the tests: the official clients for
// TypeScript of the Model Context Protocol and of Anthropic's Messages API.
const (
	mcpClient       = "@modelcontextprotocol/sdk@1.32.2"
	anthropicClient = "@anthropic-ai/sdk@1.12.0"
)

// pythonMCPClients are what is installed for Python: the official client of the protocol,
// and the other one that is used much.
var pythonMCPClients = []string{"mcp==2.3.0", "fastmcp-slim[client]==4.1.2"}

// pythonMCPFolder returns the folder that pythonMCPClients are in, which ask for other versions than
// pythonPackages have.
var pythonMCPFolder = installed("python-mcp", pythonMCPClients, func(dir string) *exec.Cmd {
	return exec.Command("python3", append([]string{"-m", "pip", "install", "-q", "--no-input", "--disable-pip-version-check", "--no-compile", "--only-binary", ":all:", "--target", dir}, pythonMCPClients...)...)
})

// install brings packages from npm, and returns the folder that they are in.
func install(t *testing.T, packages ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type":"module"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "npm", append([]string{"install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"}, packages...)...)
	cmd.Dir = dir
	said(t, cmd)
	return dir
}

// TestMCPWithAnIndependentClient has a whole conversation over HTTP, on stdin and
// stdout with a server, and without one beside it.
func TestMCPWithAnIndependentClient(t *testing.T) {
	s := shared(t)
	binary, err := atolltest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	out := program(t, "mcp.mjs", "ATOLL_URL="+s.URL, "ATOLL_API_KEY="+atolltest.Key, "ATOLL_BINARY="+binary, "ATOLL_DATA_DIR="+s.Data, "ATOLL_IMAGE="+atolltest.Image)
	if out != "http\nstdio, on a server\nstdio, by itself\n" {
		t.Errorf("got %s", out)
	}
	if left, err := os.ReadDir(filepath.Join(s.Data, "mcp")); err != nil || len(left) != 0 {
		t.Errorf("left %v (%v)", left, err)
	}
}

// TestMCPWithPythonClients has conversations in each version of the protocol, with results
// that are larger than these clients read at once.
func TestMCPWithPythonClients(t *testing.T) {
	s := shared(t)
	packages, err := pythonMCPFolder()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "python3", filepath.Join("testdata", "mcp_clients.py"))
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "PYTHONPATH=" + packages, "ATOLL_URL=" + s.URL, "ATOLL_API_KEY=" + atolltest.Key}
	const want = "mcp legacy 2025-11-25\nmcp auto 2026-07-28\nfastmcp legacy 2025-11-25\nfastmcp auto 2026-07-28\n"
	if out, err := atolltest.Output(cmd); err != nil || string(out) != want {
		t.Errorf("%v: got %s", err, out)
	}
}

// keyed sends the key of every test.
type keyed struct{}

func (keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+atolltest.Key)
	return http.DefaultTransport.RoundTrip(r)
}

// TestMCPWithTheOfficialClient talks in the protocol's versions with sessions and
// without.
func TestMCPWithTheOfficialClient(t *testing.T) {
	s := shared(t)
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{
				Endpoint: s.URL + "/mcp?session=official-" + version, HTTPClient: &http.Client{Transport: keyed{}},
			}, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			call := func(ctx context.Context, command string) (map[string]any, error) {
				r, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "shell", Arguments: map[string]any{"command": command, "timeout_ms": 600000}})
				if err != nil {
					return nil, err
				}
				out, ok := r.StructuredContent.(map[string]any)
				if !ok {
					return nil, fmt.Errorf("got %+v", r.Content[0])
				}
				return out, nil
			}
			if out, err := call(t.Context(), "mkfifo begun && echo first"); err != nil || out["stdout"] != "first\n" {
				t.Fatalf("got %v %v", out, err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancelled := make(chan error, 1)
			go func() {
				_, err := call(ctx, "sh -c 'echo $$ > begun; exec sleep 1000'")
				cancelled <- err
			}()
			out, err := call(t.Context(), "read pid < begun; kill -0 $pid && echo $pid > pid && echo runs")
			if err != nil || out["stdout"] != "runs\n" {
				t.Fatalf("got %v %v", out, err)
			}
			cancel()
			if err := atolltest.Heard(t, cancelled, "the cancelled call ends"); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			if out, err := call(t.Context(), "for i in $(seq 100); do kill -0 $(cat pid) 2>/dev/null || { echo gone; exit; }; sleep 0.1; done"); err != nil || out["stdout"] != "gone\n" {
				t.Errorf("a cancelled command continues: %v %v", out, err)
			}
		})
	}
}

// turn is what the scripted model does with the results of its last calls.
type turn struct {
	text  string
	tools []map[string]any // of name and input
	check func(results string)
}

// TestAgentLoop runs the contract's loop by the official SDK against a server that
// speaks Anthropic's protocol and plays the model by script.
func TestAgentLoop(t *testing.T) {
	s := shared(t)
	use := func(name string, input map[string]any) map[string]any {
		return map[string]any{"name": name, "input": input}
	}
	has := func(want ...string) func(string) {
		return func(results string) {
			for _, w := range want {
				if !strings.Contains(results, w) {
					t.Errorf("the model was told %s, and not %s", results, w)
				}
			}
		}
	}
	play := []turn{
		{tools: []map[string]any{use("sandbox_create", map[string]any{"sandbox": "builder"}), use("write_file", map[string]any{"sandbox": "builder", "path": "src/main.py", "content": "print('built')\n"})}},
		{check: has(`created\":true`, `size\":15`), tools: []map[string]any{use("shell", map[string]any{"sandbox": "builder", "command": "python3 src/main.py > out.txt; ls missing"})}},
		{check: has(`exit_code\":2`, `"is_error":true`), tools: []map[string]any{use("transfer", map[string]any{"from_sandbox": "builder", "from_path": "/home/user/out.txt", "to_sandbox": "default", "to_path": "/home/user/in.txt"})}},
		{check: has(`bytes\":6`), tools: []map[string]any{use("read_file", map[string]any{"path": "in.txt"}), use("shell", map[string]any{"commando": 1})}},
		{check: has(`built\\n`, "unknown field"), text: "It is built."},
	}
	var mu sync.Mutex
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var body struct {
			Tools    []struct{ Name string }
			Messages []struct {
				Role    string
				Content json.RawMessage
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.URL.Path != "/v1/messages" || len(body.Tools) != 9 {
			t.Errorf("the model was asked %s with %d tools (%v)", r.URL.Path, len(body.Tools), err)
		}
		number := len(body.Messages) / 2
		if number >= len(play) {
			t.Errorf("the model was asked %d times", number+1)
			http.Error(w, "too often", http.StatusBadRequest)
			return
		}
		now := play[number]
		if now.check != nil {
			now.check(string(body.Messages[len(body.Messages)-1].Content))
		}
		answer := map[string]any{
			"id": fmt.Sprint("msg_", number), "type": "message", "role": "assistant", "model": "scripted", "stop_reason": "end_turn", "stop_sequence": nil,
			"content": []map[string]any{{"type": "text", "text": now.text}}, "usage": map[string]any{"input_tokens": 1, "output_tokens": 1},
		}
		if len(now.tools) > 0 {
			answer["stop_reason"] = "tool_use"
			var content []map[string]any
			for i, tool := range now.tools {
				content = append(content, map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_%d_%d", number, i), "name": tool["name"], "input": tool["input"]})
			}
			answer["content"] = content
		}
		var out bytes.Buffer
		_ = json.NewEncoder(&out).Encode(answer)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(out.Bytes())
	}))
	defer model.Close()
	if out := program(t, "agent.mjs", "ATOLL_URL="+s.URL, "ATOLL_API_KEY="+atolltest.Key, "ANTHROPIC_BASE_URL="+model.URL); out != "It is built.\n" {
		t.Errorf("the loop ended with %q", out)
	}
}
