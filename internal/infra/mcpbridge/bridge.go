// Package mcpbridge lets a client that starts a program and speaks the Model
// Context Protocol with it over stdin and stdout use a server that speaks it over
// HTTP.
//
// It passes on the server's tools, calls, progress and cancellation, and knows
// nothing of what they are.
package mcpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Config names the server and the streams of the client. All of it is required.
type Config struct {
	Endpoint string // of the server, such as http://127.0.0.1:8080/mcp
	Key      string
	Version  string // of this program
	In       io.ReadCloser
	Out      io.WriteCloser
	Log      *slog.Logger
}

// sessions is the newest version of the protocol that has sessions. With one, the
// server tells this program's sandboxes from others', and when they are not
// needed any more.
const sessions = "2025-11-25"

// Bridge joins the two.
type Bridge struct {
	cfg    Config
	client *mcp.Client

	mu       sync.Mutex
	remote   *remote         // guarded by mu
	calls    int64           // guarded by mu; how many wanted to be told of progress
	progress map[string]told // guarded by mu; by the token that the server has
}

// remote is a session on the server.
type remote struct {
	*mcp.ClientSession
	over chan struct{} // closed when it has ended
}

// told is who is told of a call's progress.
type told struct {
	ctx     context.Context
	session *mcp.ServerSession
	token   any
}

// Run passes on messages until the input or ctx ends.
func Run(ctx context.Context, cfg Config) (err error) {
	b := &Bridge{cfg: cfg, progress: map[string]told{}}
	b.client = mcp.NewClient(&mcp.Implementation{Name: "atoll-mcp", Version: cfg.Version}, &mcp.ClientOptions{
		Capabilities:                &mcp.ClientCapabilities{},
		ProgressNotificationHandler: b.report,
	})
	if b.remote, err = b.connect(ctx); err != nil {
		return err
	}
	server, err := b.server(ctx, b.remote)
	if err != nil {
		return errors.Join(err, b.remote.Close())
	}
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		// With the session go its sandboxes, unless the endpoint names their session. A
		// server that cannot be told lets it expire.
		if closed := b.remote.Close(); closed != nil {
			cfg.Log.WarnContext(ctx, "cannot end the session on the server", "error", closed)
		}
	}()
	err = server.Run(ctx, &mcp.IOTransport{Reader: cfg.In, Writer: cfg.Out})
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil // the program that started this one ended it
	}
	return err
}

// connect opens a session on the server.
func (b *Bridge) connect(ctx context.Context) (*remote, error) {
	s, err := b.client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: b.cfg.Endpoint, HTTPClient: &http.Client{Transport: bearer(b.cfg.Key)}, DisableStandaloneSSE: true,
		MaxEventSize: -1, // what the server lets a tool return is ours to pass on
	}, &mcp.ClientSessionOptions{ProtocolVersion: sessions})
	if err != nil {
		return nil, fmt.Errorf("open a session at %s: %w", b.cfg.Endpoint, err)
	}
	r := &remote{s, make(chan struct{})}
	go func() { // ends with the session, which Run or again close
		_ = s.Wait() // calls say why
		close(r.over)
	}()
	return r, nil
}

// server is the remote server's like.
func (b *Bridge) server(ctx context.Context, from *remote) (*mcp.Server, error) {
	like := from.InitializeResult()
	server := mcp.NewServer(like.ServerInfo, &mcp.ServerOptions{
		Instructions: like.Instructions, Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	for tool, err := range from.Tools(ctx, nil) {
		if err != nil {
			return nil, fmt.Errorf("list the server's tools: %w", err)
		}
		server.AddTool(tool, b.call)
	}
	return server, nil
}

// call passes on a call. A session that is over, as after a restart of the server,
// is opened anew.
func (b *Bridge) call(ctx context.Context, in *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	params := &mcp.CallToolParams{Name: in.Params.Name, Arguments: json.RawMessage("{}")}
	if len(in.Params.Arguments) > 0 {
		params.Arguments = in.Params.Arguments
	}
	defer b.follow(ctx, in, params)()
	out, err := b.try(ctx, params)
	if errors.Is(err, mcp.ErrSessionMissing) { // which is found out before anything is begun
		out, err = b.try(ctx, params)
	}
	if err == nil || ctx.Err() != nil {
		return out, err
	}
	// The SDK's own errors have codes that no server of ours answers with.
	if said, ok := errors.AsType[*jsonrpc.Error](err); ok && said.Code >= jsonrpc.CodeInternalError && said.Code <= jsonrpc.CodeInvalidRequest {
		return nil, said
	}
	b.cfg.Log.WarnContext(ctx, "the server has not answered a call", "tool", in.Params.Name, "error", err)
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: outcome(err)}}}, nil
}

// outcome tells a model what became of a call that has no answer.
func outcome(err error) string {
	u, ok := errors.AsType[*undone](err)
	switch {
	case !ok:
		return "the connection to the server broke, so whether the call was done is not known: " + err.Error()
	case u.refused:
		return "the server refused the call, which was not done: " + u.Error()
	}
	return "the server could not be reached, so the call was not done: " + u.Error()
}

// try calls once, in a session that is not over as far as is known.
func (b *Bridge) try(ctx context.Context, params *mcp.CallToolParams) (*mcp.CallToolResult, error) {
	to, err := b.living(ctx)
	if err != nil {
		return nil, &undone{error: err} // whatever became of the session, the call was not sent
	}
	out, err := to.CallTool(ctx, params)
	if errors.Is(err, mcp.ErrSessionMissing) {
		_ = to.Close() // as far as it is not
		<-to.over
	}
	return out, err
}

// living returns the session, or another when that is over.
func (b *Bridge) living(ctx context.Context) (*remote, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.remote.over:
	default:
		return b.remote, nil
	}
	next, err := b.connect(ctx)
	if err != nil {
		return nil, err
	}
	b.remote = next
	return next, nil
}

// follow has the server tell of a call's progress, if the client wants to know,
// until the function that it returns is called.
func (b *Bridge) follow(ctx context.Context, in *mcp.CallToolRequest, params *mcp.CallToolParams) (done func()) {
	token := in.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	own := strconv.FormatInt(b.calls, 10)
	b.progress[own] = told{ctx, in.Session, token}
	params.SetProgressToken(own)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.progress, own)
	}
}

// report passes on what the server tells of a call's progress.
func (b *Bridge) report(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
	own, _ := r.Params.ProgressToken.(string)
	b.mu.Lock()
	to, ok := b.progress[own]
	b.mu.Unlock()
	if !ok {
		return
	}
	params := *r.Params
	params.ProgressToken = to.token
	if err := to.session.NotifyProgress(to.ctx, &params); err != nil && to.ctx.Err() == nil {
		b.cfg.Log.Debug("cannot report progress", "error", err)
	}
}

// Endpoint is where a server is asked, of the URL that its clients have.
func Endpoint(base string) string { return strings.TrimRight(base, "/") + "/mcp" }
