// Package mcp offers the tools to clients of the Model Context Protocol,
// over Streamable HTTP: with sessions that the client opens, and without any.
//
// The protocol itself is the official SDK's. What is here is who may call what,
// which pool of sandboxes a call means, how long a session is kept, and how an
// output, a refusal and a call that takes long are told.
package mcp

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/google/jsonschema-go/jsonschema" // the MCP SDK takes its type without parsing the schema for each session
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/control/mcpsession"
	"github.com/atoll-run/atoll/internal/control/tools"
	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Tools are what is offered; a tools.Set is.
type Tools interface {
	Definitions() []tools.Definition
	Call(ctx context.Context, name string, c *tools.Caller, input []byte) (any, error)
	Apart() tools.Definition
	CallApart(ctx context.Context, c *tools.Caller, input []byte) (any, error)
}

// Config is what a Server is made of. All but Proxied and Origins is required.
type Config struct {
	Tools   Tools
	Pool    mcpsession.Pool
	Version string // of this program
	// Cancel ends an execution.
	Cancel func(ctx context.Context, tenantID, traceID string) error
	// Proxied reports whether a request came by a proxy that is trusted to have
	// checked which host was asked for.
	Proxied func(*http.Request) bool
	Origins []string // of web pages that may call, such as "https://console.example"
	// OpenStream counts an answer that waits for news, until end is called; it refuses callers that
	// have too many.
	OpenStream func(p *tenant.Principal) (end func(), err error)
	Idle       time.Duration // after which a session that is not used ends
	Log        *slog.Logger
	Metrics    prometheus.Registerer
}

// maxBody is the most bytes of a request, which the caller has read; never less than what may come.
const maxBody = 8 << 20

// Server answers at /mcp. Close it when no request is left.
type Server struct {
	cfg       Config
	remote    tools.Remote
	offered   []offer
	stateless http.Handler
	stateful  http.Handler
	shared    map[access]map[bool]*mcp.Server // without a session; whether the URL names the sandboxes' session

	drain context.Context // over when idle streams are to end
	stop  context.CancelFunc

	sessions *mcpsession.Sessions
}

// access is which tools a key may use.
type access struct{ tools, execute bool }

// offer is a tool as the SDK has it.
type offer struct {
	tool *mcp.Tool
	may  func(access) bool
}

// New returns a Server.
func New(cfg Config) (*Server, error) {
	if cfg.Proxied == nil {
		cfg.Proxied = func(*http.Request) bool { return false }
	}
	s := &Server{cfg: cfg, remote: tools.Remote{Tools: cfg.Tools, Cancel: cfg.Cancel, Log: cfg.Log}, sessions: mcpsession.New(cfg.Pool), shared: map[access]map[bool]*mcp.Server{}}
	s.drain, s.stop = context.WithCancel(context.Background())
	for _, d := range cfg.Tools.Definitions() {
		s.offered = append(s.offered, offer{toolOf(d), func(a access) bool { return a.tools }})
	}
	s.offered = append(s.offered, offer{toolOf(cfg.Tools.Apart()), func(a access) bool { return a.execute }})
	for _, a := range []access{{true, true}, {true, false}, {false, true}} {
		s.shared[a] = map[bool]*mcp.Server{
			true:  s.newServer(a, &mcp.ServerOptions{Instructions: instructions("")}),
			false: s.newServer(a, &mcp.ServerOptions{Instructions: instructions("") + sharedWarning}),
		}
	}
	options := mcp.StreamableHTTPOptions{
		Logger: slog.New(quiet{cfg.Log.Handler()}), MaxRequestBodyBytes: maxBody,
		DisableLocalhostProtection: true, // checkHost is it, and knows of proxies
	}
	without := options
	without.Stateless, without.PropagateRequestCancellation = true, true
	s.stateless = authenticated(mcp.NewStreamableHTTPHandler(s.serverOf, &without))
	with := options
	with.EventStore, with.SessionTimeout = s.sessions.Events(replayed), cfg.Idle
	s.stateful = authenticated(mcp.NewStreamableHTTPHandler(s.serverOf, &with))
	return s, cfg.Metrics.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "atoll_mcp_sessions", Help: "Open sessions of MCP clients.",
	}, func() float64 { return float64(s.sessions.Count()) }))
}

// Drain ends the streams on which nothing is being answered, so that a shutdown
// does not wait for them.
func (s *Server) Drain() { s.stop() }

// Close ends every session and the calls in it.
func (s *Server) Close() {
	s.stop()
	s.sessions.Close()
}

// replayed sends the head of a stream that a client asks for again: it waits for an event, or continues
// with those that were kept.
func replayed(ctx context.Context) {
	if r := requestOf(ctx); r != nil && r.out != nil {
		r.out.hold()
	}
}

// serverFor makes the server of a session.
func (s *Server) serverFor(one *mcpsession.Session) *mcp.Server {
	return s.newServer(accessOf(one.Caller), &mcp.ServerOptions{Instructions: instructions(one.Pool), GetSessionID: func() string { return one.ID }})
}

// newServer makes an SDK server with the tools that a key may use.
func (s *Server) newServer(a access, o *mcp.ServerOptions) *mcp.Server {
	o.Logger = slog.New(quiet{s.cfg.Log.Handler()})
	o.Capabilities = &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}} // the list never changes
	server := mcp.NewServer(&mcp.Implementation{Name: "atoll", Title: "Atoll sandboxes", Version: s.cfg.Version}, o)
	for _, one := range s.offered {
		if one.may(a) {
			server.AddTool(one.tool, s.call)
		}
	}
	return server
}

// instructions tell a model what the tools have in common, and which pool of sandboxes they
// work in.
func instructions(pool string) string {
	text := "Every tool works in sandboxes: Linux machines with " + language.Titles("and") + " whose files and processes stay from call to call. " +
		"\"sandbox\" names one, and is \"default\" if omitted; one that is named for the first time is made. " +
		"Long commands belong in the background, with their output in a file."
	if pool != "" {
		text += " The sandboxes of this connection are those of the session \"" + pool + "\"."
	}
	return text
}

// sharedWarning tells a client that keeps no session what that means.
const sharedWarning = " The sandboxes of this connection are shared with every other client of this API key that keeps no session: " +
	"take names of your own for them, or have ?session=NAME added to the URL of this server."

// toolOf writes a definition as the SDK wants it.
func toolOf(d tools.Definition) *mcp.Tool {
	return &mcp.Tool{
		Name: d.Name, Title: d.Title, Description: d.Description, InputSchema: schema(d.Input), OutputSchema: schema(d.Output),
		Annotations: &mcp.ToolAnnotations{
			Title: d.Title, ReadOnlyHint: d.Annotations.ReadOnly, IdempotentHint: d.Annotations.Idempotent,
			DestructiveHint: &d.Annotations.Destructive, OpenWorldHint: &d.Annotations.OpenWorld,
		},
	}
}

// schema reads a tool's own schema once, which each server would otherwise.
func schema(text []byte) *jsonschema.Schema {
	out := new(jsonschema.Schema)
	if err := out.UnmarshalJSON(text); err != nil {
		panic("mcpserver: " + err.Error()) // it is ours
	}
	return out
}

// authenticated hands what is known of a request to the SDK, where calls find
// it. Who calls was found out before.
func authenticated(h http.Handler) http.Handler {
	return auth.RequireBearerToken(func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		r := requestOf(ctx)
		return &auth.TokenInfo{UserID: r.Caller.Key.ID, Extra: map[string]any{requestKey: r}}, nil
	}, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(h)
}

// quiet is a log that takes all of the SDK's messages for details: to it, what
// clients do wrong is an error.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, _ slog.Level) bool {
	return q.Handler.Enabled(ctx, slog.LevelDebug)
}

func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	r.Level = slog.LevelDebug
	return q.Handler.Handle(ctx, r)
}

func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }
func (q quiet) WithGroup(name string) slog.Handler       { return quiet{q.Handler.WithGroup(name)} }
