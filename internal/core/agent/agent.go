// Package agent defines agents as versioned resources: a model, its instructions, and the tools
// that it may call. Each change creates a new version; versions are immutable. The package does not
// depend on HTTP, SQL or a model provider.
package agent

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/id"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// ID names an agent: "agt_" and 32 hexadecimal digits.
type ID string

// NewID returns a unique ID.
func NewID() ID { return ID(id.New("agt")) }

// Valid reports whether i is well-formed.
func (i ID) Valid() bool { return id.Is("agt", string(i)) }

// Visibility says which tenants may read an agent.
type Visibility string

// Visibilities.
const (
	Private  Visibility = "private"
	Template Visibility = "template" // other tenants may read and copy it, without its secrets
)

// Agent is one version of an agent.
type Agent struct {
	ID         ID
	Tenant     tenant.ID
	Slug       string // unique in the tenant; "" for none
	Visibility Visibility
	Version    int // from 1
	Definition Definition
	CreatedAt  time.Time // of the first version
	UpdatedAt  time.Time // when this version was made
	ArchivedAt time.Time // zero while the agent is in use
}

// Shared returns the part of a template that other tenants may read and copy. It omits secrets and
// owner-only data: headers, environment variables, URL queries, metadata, the slug, the tenant's
// own skills, and handoffs.
func (a *Agent) Shared() *Agent {
	out := *a
	out.Slug, out.Definition.Metadata, out.Definition.Servers = "", nil, nil
	out.Definition.Skills = a.Definition.own()
	out.Definition.Handoffs, out.Definition.Multiagent = nil, nil
	for _, s := range a.Definition.Servers {
		s.Headers, s.Env = nil, nil
		s.URL, _, _ = strings.Cut(s.URL, "?")
		out.Definition.Servers = append(out.Definition.Servers, s)
	}
	return &out
}

// Copy returns version 1 of a new private agent for a tenant, without headers or server variables.
func (a *Agent) Copy(to tenant.ID) *Agent {
	from := a
	if a.Tenant != to {
		from = a.Shared()
	}
	out := &Agent{ID: NewID(), Tenant: to, Visibility: Private, Definition: from.Definition}
	out.Definition.Servers = slices.Clone(from.Definition.Servers)
	for i := range out.Definition.Servers {
		out.Definition.Servers[i].Headers, out.Definition.Servers[i].Env = nil, nil
	}
	return out
}

// Archived reports whether a rejects new sessions and changes.
func (a *Agent) Archived() bool { return !a.ArchivedAt.IsZero() }

// Definition is the content of an agent version. An empty list allows nothing and a nil list allows
// everything, so these fields use omitzero, which keeps the two apart, and never omitempty.
type Definition struct {
	Name        string
	Description string `json:",omitzero"`
	System      string `json:",omitzero"`
	Model       Model
	Tools       []Tool      `json:",omitzero"`
	Servers     []Server    `json:",omitzero"`
	Skills      []Skill     `json:",omitzero"`
	Policy      Policy      `json:",omitzero"`
	Handoffs    []Handoff   `json:",omitzero"`
	Multiagent  *Multiagent `json:",omitzero"` // nil for the defaults
	Compaction  *Compaction `json:",omitzero"` // nil to compact at the model's context limit
	MaxSteps    int         `json:",omitzero"` // per turn; 0 for DefaultSteps
	// RetryFor is how long, in milliseconds, Atoll retries a failing model; nil for the server's
	// setting.
	RetryFor *int64 `json:",omitzero"`
	// Metadata is stored exactly as the caller sent it.
	Metadata map[string]json.RawMessage `json:",omitzero"`
}

// Server returns the server with a name, or nil.
func (d *Definition) Server(name string) *Server {
	for i := range d.Servers {
		if d.Servers[i].Name == name {
			return &d.Servers[i]
		}
	}
	return nil
}

// Canonical returns JSON in the form in which definitions keep it, so that equal values compare as equal;
// nil for no JSON.
func Canonical(text json.RawMessage) json.RawMessage {
	if len(text) == 0 {
		return nil
	}
	out, err := json.Marshal(text)
	if err != nil { // only if text is not JSON
		return text
	}
	return out
}

// Compaction says when a conversation is summarized.
type Compaction struct {
	Off bool  `json:",omitzero"` // drop the oldest messages instead
	At  int64 `json:",omitzero"` // tokens; 0 for the model's context limit
}

// Model selects the model and its parameters.
type Model struct {
	Name        string
	MaxTokens   int64    `json:",omitzero"` // per answer; 0 for the model's limit
	Temperature *float64 `json:",omitzero"`
	TopP        *float64 `json:",omitzero"`
	Stop        []string `json:",omitzero"`
	Effort      string   `json:",omitzero"` // reasoning effort; "" for the model's default
}

// ToolType is a kind of tool.
type ToolType string

// Kinds of tools.
const (
	MCP       ToolType = "mcp"        // all tools of Tool.Server
	Custom    ToolType = "custom"     // the client answers its calls
	Sandbox   ToolType = "sandbox"    // the tools of a sandbox
	Sandboxes ToolType = "sandboxes"  // the tools of the session's named sandboxes
	WebSearch ToolType = "web_search" // searches the web
	FetchURL  ToolType = "fetch_url"  // returns the text of pages
)

// Tool is something that an agent may call.
type Tool struct {
	Type        ToolType
	Server      string          `json:",omitzero"` // for MCP: the name of a Server or of a built-in tool
	Name        string          `json:",omitzero"` // of Custom
	Description string          `json:",omitzero"` // of Custom
	Schema      json.RawMessage `json:",omitzero"` // of Custom
}

// Server is an MCP server that an agent may use: a URL, or a program in the session's sandbox.
// Headers and Env are secret; no API returns them.
type Server struct {
	Name         string
	URL          string
	Command      string            `json:",omitzero"` // instead of URL: a name in PATH, or a path
	Args         []string          `json:",omitempty"`
	Env          map[string]string `json:",omitzero"`
	Description  string            `json:",omitzero"`
	Headers      map[string]string `json:",omitzero"`
	AllowedTools []string          `json:",omitzero"` // nil for all, empty for none
}

// Policy says which tools the agent may call, by tool or server name.
type Policy struct {
	Allow   []string `json:",omitzero"` // nil for all, empty for none
	Deny    []string `json:",omitzero"`
	Confirm []string `json:",omitzero"` // the client must approve each call
	Within  int64    `json:",omitzero"` // seconds to wait for the client's approval; 0 for the server's setting
}
