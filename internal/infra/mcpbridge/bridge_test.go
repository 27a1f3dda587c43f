package mcpbridge_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atoll-run/atoll/internal/infra/mcpbridge"
)

// TestRun talks through a bridge with a server that forgets its sessions, and
// then goes away.
func TestRun(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "far", Version: "1"}, &mcp.ServerOptions{Instructions: "read me"})
	var calls atomic.Int64
	heard := make(chan struct{}) // what is told at the very end may come too late to be passed on
	server.AddTool(&mcp.Tool{Name: "greet", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, in *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		calls.Add(1)
		if token := in.Params.GetProgressToken(); token != nil {
			if err := in.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: 1, Message: "half"}); err != nil {
				return nil, err
			}
			<-heard
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hello " + string(in.Params.Arguments)}}}, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	var instead atomic.Pointer[http.HandlerFunc]
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" || r.URL.Path != "/mcp" || r.Header.Get("X-Atoll-Max-Event") != "0" {
			t.Errorf("asked %s with %v", r.URL, r.Header)
		}
		if answer := instead.Load(); answer != nil {
			(*answer)(w, r)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	defer far.Close()

	fromClient, toBridge := io.Pipe()
	fromBridge, toClient := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- mcpbridge.Run(t.Context(), mcpbridge.Config{
			Endpoint: mcpbridge.Endpoint(far.URL + "/"), Key: "secret", Version: "1", In: fromClient, Out: toClient, Log: slog.New(slog.DiscardHandler),
		})
	}()
	told := make(chan *mcp.ProgressNotificationParams, 1)
	c, err := mcp.NewClient(&mcp.Implementation{Name: "near", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			told <- r.Params
			heard <- struct{}{}
		},
	}).Connect(t.Context(), &mcp.IOTransport{Reader: fromBridge, Writer: toBridge}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.InitializeResult(); got.ServerInfo.Name != "far" || got.Instructions != "read me" {
		t.Errorf("got %+v", got)
	}
	greet := func() *mcp.CallToolResult {
		t.Helper()
		got, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "greet", Arguments: map[string]any{"a": 1}, Meta: mcp.Meta{"progressToken": "mine"}})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for range 3 {
		if text := greet().Content[0].(*mcp.TextContent).Text; text != `hello {"a":1}` {
			t.Errorf("got %q", text)
		}
		if p := <-told; p.ProgressToken != "mine" || p.Message != "half" {
			t.Errorf("told %+v", p)
		}
		for s := range server.Sessions() { // as after a restart
			s.Close()
		}
	}
	if n := calls.Load(); n != 3 {
		t.Errorf("3 calls were made %d times", n)
	}
	// What was refused is told from what may have been done.
	for _, answer := range []struct {
		does http.HandlerFunc
		says string
	}{
		{
			says(http.StatusTooManyRequests, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"one at a time"}}`),
			"refused the call, which was not done: one at a time (Retry-After: 7)",
		},
		{says(http.StatusUnauthorized, "who?"), "refused the call, which was not done: 401"},
		{
			says(http.StatusServiceUnavailable, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"shutting down"}}`),
			"refused the call, which was not done: shutting down",
		},
		{says(http.StatusBadGateway, "<html>"), "whether the call was done is not known"},
		{says(http.StatusServiceUnavailable, `{"error":"x"}`), "whether the call was done is not known"},
		{func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "whether the call was done is not known"},
	} {
		instead.Store(&answer.does)
		if got := greet(); !got.IsError || !strings.Contains(got.Content[0].(*mcp.TextContent).Text, answer.says) {
			t.Errorf("got %s, want %q", got.Content[0].(*mcp.TextContent).Text, answer.says)
		}
	}
	instead.Store(nil)
	go func() { <-told }()
	if text := greet().Content[0].(*mcp.TextContent).Text; text != `hello {"a":1}` {
		t.Errorf("after refusals: %q", text)
	}
	far.Close()
	if got := greet(); !got.IsError || !strings.Contains(got.Content[0].(*mcp.TextContent).Text, "could not be reached, so the call was not done") {
		t.Errorf("got %s", got.Content[0].(*mcp.TextContent).Text)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the end of the input: %v", err)
	}
}

// says answers with a status and a text.
func says(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}
