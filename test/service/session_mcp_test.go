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

// shop is an MCP server that wants a key, and counts the calls of its tools.
type shop struct {
	URL             string
	orders, refunds atomic.Int64
}

// shopKey is the header of the shop's key and its value.
var shopKey = map[string]string{"X-Shop-Key": "sesame-and-more"}

func newShop(t *testing.T) *shop {
	s := &shop{}
	server := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	for name, calls := range map[string]*atomic.Int64{"order": &s.orders, "refund": &s.refunds} {
		mcp.AddTool(server, &mcp.Tool{Name: name}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			calls.Add(1)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name + " is on its way"}}}, nil, nil
		})
	}
	door := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Shop-Key") != shopKey["X-Shop-Key"] {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		door.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	s.URL = srv.URL
	return s
}

// servers has an agent call the tools of an MCP server, one of them with a confirmation, and
// one not at all.
func servers(t *testing.T, k *talker) {
	shop := newShop(t)
	k = k.begin(map[string]any{
		"tools":       []any{map[string]string{"type": "mcp", "server": "shop"}},
		"mcp_servers": []any{map[string]any{"name": "shop", "url": shop.URL, "headers": shopKey}},
		"tool_policy": map[string]any{"require_confirmation": []string{"shop/order"}, "deny_list": []string{"shop/refund"}},
	})
	waits := k.send(message("call shop__order"), "requires_action", "").RequiresAction
	if len(waits) != 1 || waits[0].Name != "shop__order" || shop.orders.Load() != 0 {
		t.Fatalf("%+v, %d orders", waits, shop.orders.Load())
	}
	k.send(confirm(waits[0].ToolUseID, true), "completed", "order is on its way")
	k.send(message("call shop__refund"), "completed", "The result is")
	if shop.orders.Load() != 1 || shop.refunds.Load() != 0 {
		t.Errorf("%d orders and %d refunds", shop.orders.Load(), shop.refunds.Load())
	}
	for _, e := range k.events("") {
		if strings.Contains(e.raw, "sesame") {
			t.Errorf("the server's key is in %s", e.raw)
		}
	}
}
