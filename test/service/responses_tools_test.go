package service

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/scriptedmodel"
)

const shopToken = "the-token-of-the-shop"

// toolCaller is a provider whose model calls what the last message of the user says, a tool
// and its arguments a line, and ends with the results. It must never see the shop's token.
func toolCaller(t *testing.T) *httptest.Server {
	p := httptest.NewServer(&scriptedmodel.Provider{Next: func(r scriptedmodel.Request) (scriptedmodel.Turn, bool) {
		if body, err := json.Marshal(r.Body); err != nil || bytes.Contains(body, []byte(shopToken)) {
			t.Errorf("the provider was sent %s, %v", body, err)
		}
		said, result := conversation(r.Body)
		if result != "" {
			return scriptedmodel.Say("The result is " + result), true
		}
		turn := scriptedmodel.Turn{Usage: &model.Usage{Input: 10, Output: 5}}
		for i, line := range strings.Split(said, "\n") {
			name, arguments, _ := strings.Cut(line, " ")
			turn.Blocks = append(turn.Blocks, scriptedmodel.Ask(fmt.Sprint("call_", i), name, arguments).Blocks...)
		}
		return turn, true
	}})
	t.Cleanup(p.Close)
	return p
}

// pythonShop starts the MCP server of testdata, and returns its URL and what it was ordered.
func pythonShop(t *testing.T) (url string, ordered func() string) {
	t.Helper()
	packages, err := pythonFolder()
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var log bytes.Buffer
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "python3", "-W", "ignore", filepath.Join("testdata", "mcp_server.py"))
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "PYTHONPATH=" + packages, "PYTHONDONTWRITEBYTECODE=1", "TOKEN=" + shopToken}
	cmd.Stderr = writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return log.Write(p)
	})
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	port, err := bufio.NewReader(out).ReadString('\n')
	ordered = func() string { mu.Lock(); defer mu.Unlock(); return log.String() }
	if err != nil {
		t.Fatalf("the shop did not start: %v\n%s", err, ordered())
	}
	return "http://127.0.0.1:" + strings.TrimSpace(port) + "/mcp", ordered
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestPublishedClientsOfTools drives the clients that OpenAI and Perplexity publish through
// responses whose models search and call an MCP server that was made with its published
// package.
func TestPublishedClientsOfTools(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{Env: append([]string{noPool, "ATOLL_MODEL_ALLOW=127.0.0.1", "ATOLL_MCP_ALLOW=127.0.0.1"}, searchSettings...)})
	key := s.Tenant(t, "tools", "pro")
	addModel(t, s, "scripted", toolCaller(t).URL)
	shop, ordered := pythonShop(t)
	const want = "called\napproved\nrefused\nsearched\nperplexity\n"
	if out := python(t, "tools_client.py", "ATOLL_URL="+s.URL, "ATOLL_KEY="+key, "SHOP_URL="+shop, "SHOP_TOKEN="+shopToken, "PAGE_URL="+searches.URL+"/page"); out != want {
		t.Errorf("got %s", out)
	}
	if log := ordered(); strings.Count(log, "ordered ") != 2 || strings.Count(log, "ordered tea\n") != 1 || strings.Count(log, "ordered nothing\n") != 1 {
		t.Errorf("the shop has %s", log)
	}
	trail := string(s.Must(t, s.AdminKey(t), http.MethodGet, "/v1/admin/tenants/tools/audit?limit=100", nil).Body)
	if !strings.Contains(trail, `"source":"mcp"`) || !strings.Contains(trail, `"server_label":"shop"`) || regexp.MustCompile(`\btea\b`).MatchString(trail) || strings.Contains(trail, shopToken) {
		t.Errorf("the trail is %s", trail)
	}
	if strings.Contains(s.Log(), shopToken) {
		t.Error("the token is in the log")
	}
}

// TestToolsKilled kills a server between an approval and its call, and while a call is under
// way: the first is made once, the second is told to be unknown.
func TestToolsKilled(t *testing.T) {
	line := newSuccession(t, "ATOLL_MODEL_ALLOW=127.0.0.1", "ATOLL_MCP_ALLOW=127.0.0.1")
	key := line.now().Tenant(t, "killed", "pro")
	addModel(t, line.now(), "scripted", toolCaller(t).URL)
	var calls atomic.Int32
	begun, hang := make(chan struct{}), make(chan struct{})
	shop := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	mcp.AddTool(shop, &mcp.Tool{Name: "order"}, func(_ context.Context, _ *mcp.CallToolRequest, in struct {
		Item string `json:"item"`
	}) (*mcp.CallToolResult, any, error) {
		calls.Add(1)
		if in.Item == "slow" {
			close(begun)
			<-hang
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Item + " is on its way"}}}, nil, nil
	})
	srv := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return shop }, nil))
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	t.Cleanup(func() { close(hang) })
	type answer struct {
		ID, Status string
		Output     []struct{ ID, Type, Status, Error string }
	}
	create := func(body map[string]any) (r answer) {
		t.Helper()
		body["model"] = "scripted"
		line.now().Must(t, key, http.MethodPost, "/v1/responses", body).Into(t, http.StatusOK, &r)
		return r
	}
	tool := map[string]any{"type": "mcp", "server_label": "shop", "server_url": srv.URL, "headers": map[string]string{"X-Token": shopToken}}
	asked := create(map[string]any{"input": `shop__order {"item": "tea"}`, "tools": []any{tool}})
	if asked.Status != "completed" || calls.Load() != 0 {
		t.Fatalf("%+v, %d calls", asked, calls.Load())
	}
	line.next(syscall.SIGKILL)
	request := asked.Output[len(asked.Output)-1]
	approval := []any{map[string]any{"type": "mcp_approval_response", "approval_request_id": request.ID, "approve": true}}
	done := create(map[string]any{"input": approval, "tools": []any{tool}, "previous_response_id": asked.ID})
	if done.Status != "completed" || calls.Load() != 1 {
		t.Errorf("%+v, %d calls", done, calls.Load())
	}

	tool["require_approval"] = "never"
	slow := create(map[string]any{"input": `shop__order {"item": "slow"}`, "tools": []any{tool}, "background": true})
	select {
	case <-begun:
	case <-time.After(time.Minute):
		t.Fatal("the slow call was not made")
	}
	line.next(syscall.SIGKILL)
	line.now().Must(t, key, http.MethodGet, "/v1/responses/"+slow.ID+"?stream=true", nil) // until its end
	line.now().Must(t, key, http.MethodGet, "/v1/responses/"+slow.ID, nil).Into(t, http.StatusOK, &slow)
	call := slow.Output[1]
	if slow.Status != "completed" || call.Type != "mcp_call" || call.Status != "failed" || !strings.Contains(call.Error, "outcome unknown") || calls.Load() != 2 {
		t.Errorf("%+v, %d calls", slow, calls.Load())
	}
}
