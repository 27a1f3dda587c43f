package search_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atoll-run/atoll/internal/agent/search"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/web"
)

// serveTool is an MCP server with a tool that answers with some content.
func serveTool(t *testing.T, name, schema string, answer func(arguments string) *mcp.CallToolResult) string {
	s := mcp.NewServer(&mcp.Implementation{Name: "searcher", Version: "1"}, nil)
	for _, n := range []string{"about", name} {
		s.AddTool(&mcp.Tool{Name: n, InputSchema: json.RawMessage(schema)}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return answer(string(r.Params.Arguments)), nil
		})
	}
	srv := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		if r.Header.Get("Authorization") != "Bearer the-key-of-it" {
			return nil
		}
		return s
	}, nil))
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	return srv.URL
}

func said(format string, args ...any) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}
}

func TestMCP(t *testing.T) {
	const one = `{"type":"object","properties":{"query":{"type":"string"},"max_results":{"type":"integer"}}}`
	const list = `{"type":"object","properties":{"queries":{"type":"array"}}}`
	page := `{"title":"T","link":"https://example.org/","content":"S","publishedDate":"2026-03-01"}`
	for name, tt := range map[string]struct {
		tool, schema string
		answer       func(string) *mcp.CallToolResult
		want         string
	}{
		"a list in a text": {"web_search", one, func(a string) *mcp.CallToolResult {
			return said("[%s,%s,7]", page, strings.Replace(page, "T", "with max", 1))
		}, "T with max"},
		"an object": {"web_search", one, func(string) *mcp.CallToolResult { return said(`{"web":{"results":[%s]}}`, page) }, "T"},
		"for programs": {"web_search", list, func(string) *mcp.CallToolResult {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "One page."}}, StructuredContent: json.RawMessage(`{"results":[` + page + `]}`)}
		}, "T"},
		"the query": {"web_search", one, func(a string) *mcp.CallToolResult {
			return said("[%s]", strings.Replace(page, `"T"`, fmt.Sprintf("%q", a), 1))
		}, `{"max_results":3,"query":"atolls site:example.org"}`},
		"a list of queries": {"web_search", list, func(a string) *mcp.CallToolResult {
			return said("[%s]", strings.Replace(page, `"T"`, fmt.Sprintf("%q", a), 1))
		}, `{"queries":["atolls site:example.org"]}`},
		"nothing":     {"web_search", one, func(string) *mcp.CallToolResult { return said(`{"results":[]}`) }, ""},
		"prose":       {"web_search", one, func(string) *mcp.CallToolResult { return said("I found a page about atolls.") }, "! cannot be read"},
		"a failure":   {"web_search", one, func(string) *mcp.CallToolResult { r := said("no credit"); r.IsError = true; return r }, "! reported a failure"},
		"no tool":     {"lookup", one, func(string) *mcp.CallToolResult { return said("[]") }, "! cannot search"},
		"no argument": {"web_search", `{"type":"object"}`, func(string) *mcp.CallToolResult { return said("[]") }, "! cannot search"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := search.OpenMCP(search.Config{URL: serveTool(t, tt.tool, tt.schema, tt.answer), Key: "the-key-of-it", Setting: "search"}, "", "test")
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			for range 2 {
				found, err := e.Search(t.Context(), web.Request{Kind: web.Web, Text: "atolls", Max: 3, Filter: web.Filter{Domains: []string{"example.org"}}})
				if words, fails := strings.CutPrefix(tt.want, "! "); fails {
					if fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), words) {
						t.Errorf("%v, want %s", err, words)
					}
					continue
				}
				var titles []string
				for _, r := range found {
					titles = append(titles, r.Title)
					if r.URL != "https://example.org/" || r.Snippet != "S" || r.Date.IsZero() {
						t.Errorf("found %+v", r)
					}
				}
				if err != nil || strings.Join(titles, " ") != tt.want {
					t.Errorf("found %q, %v", titles, err)
				}
			}
		})
	}
	e, err := search.OpenMCP(search.Config{URL: serveTool(t, "other", one, func(string) *mcp.CallToolResult { return said("[%s]", page) }), Key: "the-key-of-it", Setting: "search"}, "other", "test")
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if found, err := e.Search(t.Context(), web.Request{Text: "atolls", Max: 3}); err != nil || len(found) != 1 {
		t.Errorf("%v, %v", found, err)
	}
	if _, err := search.OpenMCP(search.Config{URL: "", Setting: "search"}, "", "test"); err == nil || !strings.Contains(err.Error(), "search_url") {
		t.Errorf("%v", err)
	}
}
