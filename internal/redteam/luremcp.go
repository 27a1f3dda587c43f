package redteam

import (
	"encoding/json"
	"net/http"
)

// shop is an MCP server that the lure plays.
type shop struct {
	tools []string
	// says returns the text of a call's result. If it is nil, the text is "sold".
	says func(tool string, h http.Header) string
	// elsewhere, if not empty, is the URL to which the shop redirects each request.
	elsewhere string
	// fails, if not empty, is the error message that the shop returns for each request.
	fails string

	calls []string // names of the called tools, in order
}

// open registers an MCP server, and returns its URL.
func (l *lure) open(name string, s *shop) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shops[name] = s
	return "http://" + l.addr + "/mcp/" + name
}

// sold returns the tools that the attacked server has called at a shop, in order.
func (l *lure) sold(s *shop) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), s.calls...)
}

// mcp answers requests of MCP's Streamable HTTP transport.
func (l *lure) mcp(w http.ResponseWriter, r *http.Request, name string, body []byte) {
	l.mu.Lock()
	s := l.shops[name]
	l.mu.Unlock()
	if s == nil {
		http.NotFound(w, r)
		return
	}
	if s.elsewhere != "" {
		w.Header().Set("Location", s.elsewhere)
		w.WriteHeader(http.StatusTemporaryRedirect)
		return
	}
	var in struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Name string `json:"name"`
		} `json:"params"`
	}
	switch {
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
		return
	case r.Method != http.MethodPost || json.Unmarshal(body, &in) != nil:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	case in.ID == nil:
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if s.fails != "" {
		_, _ = w.Write([]byte(asJSON(map[string]any{"jsonrpc": "2.0", "id": in.ID, "error": map[string]any{"code": -32000, "message": s.fails}})))
		return
	}
	_, _ = w.Write([]byte(asJSON(map[string]any{"jsonrpc": "2.0", "id": in.ID, "result": l.result(s, in.Method, in.Params.Name, r.Header)})))
}

// result returns the result of one MCP request.
func (l *lure) result(s *shop, method, tool string, h http.Header) any {
	switch method {
	case "initialize":
		return map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{"tools": map[string]any{}}, "serverInfo": map[string]any{"name": "redteam", "version": "1"}}
	case "tools/list":
		list := []any{}
		for _, name := range s.tools {
			list = append(list, map[string]any{"name": name, "description": "sells", "inputSchema": map[string]any{"type": "object"}})
		}
		return map[string]any{"tools": list}
	case "tools/call":
		l.mu.Lock()
		s.calls = append(s.calls, tool)
		l.mu.Unlock()
		text := "sold"
		if s.says != nil {
			text = s.says(tool, h)
		}
		return map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}}
	}
	return map[string]any{}
}
