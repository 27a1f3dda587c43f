package redteam

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// mcpCases attack the endpoint of the Model Context Protocol.
func mcpCases() []Case {
	return []Case{
		{"mcp/foreign-session", Critical, "uses the victim's session by its id, and ends it", "each answer is the same as for an unknown session, and the victim's session continues", foreignMCP},
		{"mcp/messages", High, "sends messages that are broken, in batches, without a method, and with ids of every kind", "each is answered as the client's mistake", hostileMCP},
		{"mcp/arguments", High, "calls tools with sessions, variables, environments and keys in their arguments", "a call cannot say what only its key and URL may", mcpArguments},
		{"mcp/origin", High, "calls as a page of another origin does", "the server answers 403", mcpOrigin},
	}
}

const mcpAccept = "application/json, text/event-stream"

func (a *arena) mcp(ctx context.Context, c caller, session string, message any) (*answer, error) {
	headers := []string{"Accept", mcpAccept, "Content-Type", "application/json", "MCP-Protocol-Version", "2025-06-18"}
	if session != "" {
		headers = append(headers, "Mcp-Session-Id", session)
	}
	return c.do(ctx, http.MethodPost, "/mcp", message, headers...)
}

func rpc(method string, params any) map[string]any {
	return map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
}

func foreignMCP(ctx context.Context, a *arena) error {
	hello := rpc("initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "redteam", "version": "1"}})
	got, err := a.mcp(ctx, a.victim, "", hello)
	if err != nil {
		return err
	}
	session := got.Header.Get("Mcp-Session-Id")
	if got.Status != http.StatusOK || session == "" {
		return fmt.Errorf("the victim's session: %s", got)
	}
	none := never(session)
	calls := []func(string) (*answer, error){
		func(id string) (*answer, error) { return a.mcp(ctx, a.plain, id, rpc("tools/list", nil)) },
		func(id string) (*answer, error) {
			return a.mcp(ctx, a.plain, id, rpc("tools/call", map[string]any{"name": "sandbox_list", "arguments": map[string]any{}}))
		},
		func(id string) (*answer, error) {
			return a.plain.do(ctx, http.MethodGet, "/mcp", nil, "Accept", "text/event-stream", "Mcp-Session-Id", id, "Last-Event-ID", "0")
		},
		func(id string) (*answer, error) {
			return a.plain.do(ctx, http.MethodDelete, "/mcp", nil, "Mcp-Session-Id", id)
		},
	}
	for i, call := range calls {
		real, err := call(session)
		if err != nil {
			return err
		}
		unknown, err := call(none)
		if err != nil {
			return err
		}
		if err := alike(fmt.Sprintf("call %d with the victim's session", i+1), real, unknown, session, none); err != nil {
			return err
		}
	}
	if got, err = a.mcp(ctx, a.victim, session, rpc("ping", nil)); err != nil {
		return err
	}
	if got.Status != http.StatusOK {
		return found("the victim's session is no more: %s", got)
	}
	_, err = a.victim.do(ctx, http.MethodDelete, "/mcp", nil, "Mcp-Session-Id", session)
	return err
}

func hostileMCP(ctx context.Context, a *arena) error {
	for _, body := range []string{
		"", "{", "null", "[]", "[[]]", "[" + strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"ping"},`, 500) + "{}]", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":{},"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1}`, `{"jsonrpc":"2.0","id":1,"method":"x"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"none"}}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"shell","arguments":"x"}}`, `{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1e400}}`, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"` + strings.Repeat("x", 100_000) + `"}}`, strings.Repeat("[", 100_000),
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"9999-99-99"}}`,
	} {
		got, err := a.mcp(ctx, a.plain, "", []byte(body))
		if err != nil {
			return err
		}
		if got.Status >= 500 || strings.Contains(string(got.Body), "goroutine ") || strings.Contains(body, `"none"`) && strings.Contains(string(got.Body), `"stdout"`) {
			return found("the message %.100q: %s", body, got)
		}
	}
	return nil
}

func mcpArguments(ctx context.Context, a *arena) error {
	a.names.Lock()
	defer a.names.Unlock()
	if _, err := a.thePrey(ctx); err != nil {
		return err
	}
	for name, value := range map[string]any{
		"session": preySession, "env_vars": map[string]string{"LD_PRELOAD": "x"}, "environment": envNet, "tenant": victimTenant, "sub_paths": []string{"/data/x"}, "api_key": "x", "secrets": map[string]string{}, "template": "default",
	} {
		got, err := a.mcp(ctx, a.plain, "", rpc("tools/call", map[string]any{"name": "sandbox_list", "arguments": map[string]any{name: value}}))
		if err != nil {
			return err
		}
		text := string(got.Body)
		if got.Status >= 500 || strings.Contains(text, preySandbox) {
			return found("a call with the argument %s: %s", name, got)
		}
		if got.Status == http.StatusOK && !strings.Contains(text, `"error"`) && !strings.Contains(text, `"isError":true`) {
			return found("the argument %s is taken: %s", name, got)
		}
	}
	return nil
}

func mcpOrigin(ctx context.Context, a *arena) error {
	var errs []error
	for _, origin := range []string{"https://evil.example", "http://localhost.evil.example"} {
		got, err := a.plain.do(ctx, http.MethodPost, "/mcp", rpc("tools/list", nil), "Accept", mcpAccept, "Origin", origin)
		switch {
		case err != nil:
			errs = append(errs, err)
		case got.Status != http.StatusForbidden:
			return found("a call from %s: %s", origin, got)
		}
	}
	return errors.Join(errs...)
}
