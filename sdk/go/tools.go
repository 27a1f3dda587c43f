package atoll

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// Tools returns the definitions of the tools in a format, such as openai, anthropic or mcp; ""
// means the server's default.
func (c *Client) Tools(ctx context.Context, format string) ([]json.RawMessage, error) {
	q := url.Values{}
	if format != "" {
		q.Set("format", format)
	}
	return call[[]json.RawMessage](ctx, c, http.MethodGet, "/v1/tools", q, nil)
}

// Tool calls a tool of a session by its name. in and out are JSON; a tool's own method, such as
// ToolShell, has types.
func (c *Client) Tool(ctx context.Context, session, name string, in json.RawMessage) (json.RawMessage, error) {
	return tool[json.RawMessage](ctx, c, session, name, nil, in)
}

func tool[T any](ctx context.Context, c *Client, session, name string, query url.Values, in any) (T, error) {
	path := under("/v1/sessions", session, "tools", name)
	if name == "shell" || name == "execute_code" {
		return perform[T](ctx, c, path, query, in)
	}
	return call[T](ctx, c, http.MethodPost, path, query, in)
}

// ToolShell runs a command in a sandbox of a session.
func (c *Client) ToolShell(ctx context.Context, session string, in ShellInput) (ShellOutput, error) {
	return tool[ShellOutput](ctx, c, session, "shell", nil, in)
}

// ToolReadFile reads a file, or a part of one.
func (c *Client) ToolReadFile(ctx context.Context, session string, in ReadFileInput) (ReadFileOutput, error) {
	return tool[ReadFileOutput](ctx, c, session, "read_file", nil, in)
}

// ToolWriteFile writes a file.
func (c *Client) ToolWriteFile(ctx context.Context, session string, in WriteFileInput) (WriteFileOutput, error) {
	return tool[WriteFileOutput](ctx, c, session, "write_file", nil, in)
}

// ToolGlob finds files by a pattern.
func (c *Client) ToolGlob(ctx context.Context, session string, in GlobInput) (GlobOutput, error) {
	return tool[GlobOutput](ctx, c, session, "glob", nil, in)
}

// ToolTransfer copies files from one sandbox of a session to another.
func (c *Client) ToolTransfer(ctx context.Context, session string, in TransferInput) (TransferOutput, error) {
	return tool[TransferOutput](ctx, c, session, "transfer", nil, in)
}

// ToolBrowse exposes a port of a sandbox at a URL.
func (c *Client) ToolBrowse(ctx context.Context, session string, in BrowseInput) (BrowseOutput, error) {
	return tool[BrowseOutput](ctx, c, session, "browse", nil, in)
}

// ToolSandboxCreate creates a sandbox in a session unless it exists.
func (c *Client) ToolSandboxCreate(ctx context.Context, session string, in SandboxCreateInput) (SandboxCreateOutput, error) {
	return tool[SandboxCreateOutput](ctx, c, session, "sandbox_create", nil, in)
}

// ToolSandboxList lists the sandboxes of a session.
func (c *Client) ToolSandboxList(ctx context.Context, session string) (SandboxListOutput, error) {
	return tool[SandboxListOutput](ctx, c, session, "sandbox_list", nil, struct{}{})
}

// ToolExecuteCode runs code in a fresh sandbox, as a tool: a program that fails, or that could
// not be run, is no error.
func (c *Client) ToolExecuteCode(ctx context.Context, session string, in CodeInput) (CodeOutput, error) {
	return tool[CodeOutput](ctx, c, session, "execute_code", nil, in)
}

// ExecuteCode runs code in the sandbox of an agent's turn. A program that fails, or that could
// not be run, is no error.
func (c *Client) ExecuteCode(ctx context.Context, in ExecuteCodeRequest) (CodeOutput, error) {
	return perform[CodeOutput](ctx, c, "/v1/tools/execute_code", nil, in)
}

// EndTurn ends a turn of an agent, with its sandbox.
func (c *Client) EndTurn(ctx context.Context, agent, turn string) error {
	return c.do(ctx, http.MethodDelete, under("/v1/tools/turns", turn), url.Values{"agent": {agent}})
}

// Search searches the web with the search engine that the operator configured.
func (c *Client) Search(ctx context.Context, in SearchRequest) (SearchAnswer, error) {
	return perform[SearchAnswer](ctx, c, "/v1/search", nil, in)
}

// Fetch reads pages of the web as text.
func (c *Client) Fetch(ctx context.Context, in FetchRequest) (FetchAnswer, error) {
	return perform[FetchAnswer](ctx, c, "/v1/fetch", nil, in)
}
