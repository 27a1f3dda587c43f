// Package agent is agents as versioned resources: a model, what it is told, and the tools
// that it may call. Each change makes another version; versions do not change. The package
// knows no HTTP, SQL or provider.
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

// NewID returns an ID that no other agent has.
func NewID() ID { return ID(id.New("agt")) }

// Valid reports whether i is one that an agent can have.
func (i ID) Valid() bool { return id.Is("agt", string(i)) }

// Visibility is who may read an agent.
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
	ArchivedAt time.Time // zero for one that is in use
}

// Shared is what others than the owner of a template see and copy of it: neither headers nor
// what else may be secret or has a meaning for the owner alone, which are the queries of URLs,
// metadata, the slug, and the tenant's skills and other agents.
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

// Copy is the first version of another agent of a tenant, private and without headers.
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

// Archived reports whether a takes no new sessions and no changes.
func (a *Agent) Archived() bool { return !a.ArchivedAt.IsZero() }

// Definition is what an agent is made of. A list that says what is allowed has a meaning when
// it is empty: it allows nothing, and only nil allows all. Hence omitzero, which keeps the two
// apart, and never omitempty.
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
	Multiagent  *Multiagent `json:",omitzero"` // nil for what holds by itself
	Compaction  *Compaction `json:",omitzero"` // nil for one at the size that the model reads
	MaxSteps    int         `json:",omitzero"` // of a turn; 0 for DefaultSteps
	// RetryFor is how long, in milliseconds, a model in trouble is asked again; nil for the
	// server's setting.
	RetryFor *int64 `json:",omitzero"`
	// Metadata is the caller's own, as it was given.
	Metadata map[string]json.RawMessage `json:",omitzero"`
}

// Server returns a server by its name, nil if there is none.
func (d *Definition) Server(name string) *Server {
	for i := range d.Servers {
		if d.Servers[i].Name == name {
			return &d.Servers[i]
		}
	}
	return nil
}

// Compaction says when a conversation is summarized.
type Compaction struct {
	Off bool  `json:",omitzero"` // its beginning is left out instead
	At  int64 `json:",omitzero"` // tokens; 0 for what the model reads
}

// Model says which model is asked, and how.
type Model struct {
	Name        string
	MaxTokens   int64    `json:",omitzero"` // of one answer; 0 for the model's own bound
	Temperature *float64 `json:",omitzero"`
	TopP        *float64 `json:",omitzero"`
	Stop        []string `json:",omitzero"`
	Effort      string   `json:",omitzero"` // of reasoning; "" for the model's own
}

// ToolType is a kind of tool.
type ToolType string

// Kinds of tools.
const (
	MCP       ToolType = "mcp"        // all tools of Tool.Server
	Custom    ToolType = "custom"     // its calls are answered by the client
	Sandbox   ToolType = "sandbox"    // the tools of a sandbox
	Sandboxes ToolType = "sandboxes"  // the tools of the session's named sandboxes
	WebSearch ToolType = "web_search" // a search of the web
	FetchURL  ToolType = "fetch_url"  // the text of pages
)

// Tool is something that an agent may call.
type Tool struct {
	Type        ToolType
	Server      string          `json:",omitzero"` // of MCP: the name of a Server, or of a tool of ours
	Name        string          `json:",omitzero"` // of Custom
	Description string          `json:",omitzero"` // of Custom
	Schema      json.RawMessage `json:",omitzero"` // of Custom
}

// Server is an MCP server that an agent may use: one at a URL, or a program in the sandbox of the
// session. Headers and Env are secret: nothing shows them.
type Server struct {
	Name         string
	URL          string
	Command      string            `json:",omitzero"` // instead of URL: a name in the PATH, or a path
	Args         []string          `json:",omitempty"`
	Env          map[string]string `json:",omitzero"`
	Description  string            `json:",omitzero"`
	Headers      map[string]string `json:",omitzero"`
	AllowedTools []string          `json:",omitzero"` // nil for all, empty for none
}

// Policy says which tools may be called, by their names or those of their servers.
type Policy struct {
	Allow   []string `json:",omitzero"` // nil for all, empty for none
	Deny    []string `json:",omitzero"`
	Confirm []string `json:",omitzero"` // after the client has approved the call
	Within  int64    `json:",omitzero"` // seconds that calls wait for the client; 0 for the server's setting
}
