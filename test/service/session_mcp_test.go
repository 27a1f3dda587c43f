package service

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// servers has an agent call the tools of an MCP server, one of them with a confirmation, and
// one not at all.
func servers(t *testing.T, k *talker) {
	var orders, refunds atomic.Int64
	shop := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	tool := func(name string, calls *atomic.Int64) {
		mcp.AddTool(shop, &mcp.Tool{Name: name}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			calls.Add(1)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name + " is on its way"}}}, nil, nil
		})
	}
	tool("order", &orders)
	tool("refund", &refunds)
	door := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return shop }, nil)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Shop-Key") != "sesame-and-more" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		door.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	k = k.begin(map[string]any{
		"tools":       []any{map[string]string{"type": "mcp", "server": "shop"}},
		"mcp_servers": []any{map[string]any{"name": "shop", "url": srv.URL, "headers": map[string]string{"X-Shop-Key": "sesame-and-more"}}},
		"tool_policy": map[string]any{"require_confirmation": []string{"shop/order"}, "deny_list": []string{"shop/refund"}},
	})
	waits := k.send(message("call shop__order"), "requires_action", "").RequiresAction
	if len(waits) != 1 || waits[0].Name != "shop__order" || orders.Load() != 0 {
		t.Fatalf("%+v, %d orders", waits, orders.Load())
	}
	k.send(confirm(waits[0].ToolUseID, true), "completed", "order is on its way")
	k.send(message("call shop__refund"), "completed", "The result is")
	if orders.Load() != 1 || refunds.Load() != 0 {
		t.Errorf("%d orders and %d refunds", orders.Load(), refunds.Load())
	}
	for _, e := range k.events("") {
		if strings.Contains(e.raw, "sesame") {
			t.Errorf("the server's key is in %s", e.raw)
		}
	}
}
