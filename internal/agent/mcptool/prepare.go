package mcptool

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/atoll-run/atoll/internal/agent/mcpclient"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/vault"
)

// Server is an MCP server in a caller's request.
type Server struct {
	Label, Description string
	Target             mcpclient.Target
	Allowed            Filter // the tools that the model gets
	// Never selects the tools that need no approval; nil selects none. All others need it.
	Never *Filter
	// Optional lets a run continue with a warning if the server does not answer.
	Optional bool
}

// Filter selects tools. The zero Filter selects all.
type Filter struct {
	Names    []string `json:",omitempty"` // nil for any
	ReadOnly *bool    `json:",omitempty"` // by the server's hint
}

func (f *Filter) holds(name string, readOnly bool) bool {
	return (f.Names == nil || slices.Contains(f.Names, name)) && (f.ReadOnly == nil || *f.ReadOnly == readOnly)
}

// Known is a server whose tools the conversation already has.
type Known struct {
	Label string
	Tools []run.RemoteTool
	// Sealed is the run.Remote.Sealed of the earlier run; nil if the caller sent the tools.
	Sealed []byte
}

// UnreachableError reports that a server did not list its tools.
type UnreachableError struct {
	Label string
	Err   error
}

// Error implements error.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the MCP server %q could not list its tools: %s", e.Label, message(e.Err))
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// Check rejects a server that Atoll may not call. field prefixes the names in errors.
func (t *Tools) Check(ctx context.Context, field string, s *Server) error {
	return t.cfg.Client.Check(ctx, field, s.Target)
}

// Prepare adds servers and their tools to a run's request. It lists the tools of unknown servers
// concurrently; the run's output begins with these lists. If a required server does not answer,
// the error is an *UnreachableError.
func (t *Tools) Prepare(ctx context.Context, r *run.Run, q *run.Request, servers []Server, known []Known) error {
	remotes, listed, down := make([]run.Remote, len(servers)), make([]bool, len(servers)), make([]error, len(servers))
	g, ctx := errgroup.WithContext(ctx)
	for i := range servers {
		s := &servers[i]
		g.Go(func() (err error) {
			remotes[i], listed[i], err = t.remote(ctx, r, q.Vaults, s, known)
			if u, ok := errors.AsType[*UnreachableError](err); ok && s.Optional {
				down[i], err = u, nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i := range remotes {
		if down[i] != nil {
			told := fmt.Sprintf("the MCP server %q could not list its tools: %s.", servers[i].Label, mcpclient.Kind(down[i]))
			q.Warn(run.Warning{Code: run.MCPUnavailable, Server: servers[i].Label, Message: down[i].Error() + ".", ForModel: told})
			continue
		}
		if listed[i] {
			q.Output = append(q.Output, run.Item{Status: run.ItemCompleted, Listing: &run.Listing{Server: remotes[i].Label, Tools: remotes[i].Tools}})
		}
		q.Remotes = append(q.Remotes, remotes[i])
		q.Tools = append(q.Tools, toolsOf(&servers[i], &remotes[i])...)
	}
	if len(q.Tools) > MaxTools {
		return fault.New(fault.Invalid, "tools has %d with those of the servers, and may have %d: name those that you want in allowed_tools", len(q.Tools), MaxTools)
	}
	return t.carry(r.Tenant, q, known)
}

// MaxTools limits the tools, of all kinds, in a run's request.
const MaxTools = 512

// remote returns a server with its tools, and whether it had to ask the server for them.
func (t *Tools) remote(ctx context.Context, r *run.Run, vaults []vault.ID, s *Server, known []Known) (out run.Remote, listed bool, err error) {
	ctx = outbound.For(ctx, r.Tenant)
	out.Label = s.Label
	if out.Sealed, err = t.seal(r.Tenant, sealed{s.Target, s.Allowed}); err != nil {
		return out, false, err
	}
	for i := range known {
		k := &known[i]
		if k.Label != s.Label || !t.same(r.Tenant, k, s) {
			continue
		}
		for _, tool := range k.Tools {
			if s.Allowed.holds(tool.Name, mcpclient.HintsOf(&tool).ReadOnly) {
				out.Tools = append(out.Tools, tool)
			}
		}
		return out, false, nil
	}
	err = t.authorized(ctx, r.Tenant, vaults, s.Target, func(to mcpclient.Target) (err error) {
		out.Tools, err = t.cfg.Client.List(ctx, session(r.ID, s.Label, &s.Target), to, s.Allowed.holds)
		return err
	})
	if storeFailed(err) {
		return out, false, err
	}
	if err == nil {
		err = t.coverTools(ctx, r, out.Tools)
	}
	if err != nil {
		if ctx.Err() != nil && fault.KindOf(err) == fault.Internal { // another one failed, or the caller has gone
			return out, false, err
		}
		return out, false, &UnreachableError{s.Label, err}
	}
	if name := missing(&s.Allowed, out.Tools); name != "" && !s.Optional {
		return out, false, fault.New(fault.Invalid, "allowed_tools: the MCP server %q has no tool %q", s.Label, name)
	}
	return out, true, nil
}

// coverTools redacts secrets in a server's descriptions of its tools.
func (t *Tools) coverTools(ctx context.Context, r *run.Run, tools []run.RemoteTool) error {
	if t.cfg.Cover == nil || len(tools) == 0 {
		return nil
	}
	p, err := t.cfg.Callers.Entrant(ctx, r.Tenant, r.Key, r.Environment)
	if err != nil {
		return err
	}
	for i := range tools {
		schema, annotations := string(tools[i].Schema), string(tools[i].Annotations)
		if err := t.cover(&p, &tools[i].Description, &schema, &annotations); err != nil {
			return err
		}
		if json.Valid([]byte(schema)) { // else a secret was across the ends of texts
			tools[i].Schema = json.RawMessage(schema)
		} else {
			tools[i].Schema = json.RawMessage(`{"type":"object"}`)
		}
		if tools[i].Annotations = json.RawMessage(annotations); !json.Valid(tools[i].Annotations) {
			tools[i].Annotations = nil
		}
	}
	return nil
}

// missing returns a tool that a filter names and the server lacks.
func missing(f *Filter, tools []run.RemoteTool) string {
	if f.ReadOnly != nil {
		return "" // it may be there and not be read-only
	}
	return mcpclient.Missing(tools, f.Names)
}

// same reports whether a known list came from this server with the same filter.
func (t *Tools) same(id tenant.ID, k *Known, s *Server) bool {
	if k.Sealed == nil {
		return true
	}
	was, err := t.open(id, &run.Remote{Sealed: k.Sealed})
	if err != nil || was.Target.URL != s.Target.URL || was.Target.Command != nil || s.Target.Command != nil {
		return false
	}
	before, err1 := json.Marshal(was.Allowed)
	now, err2 := json.Marshal(s.Allowed)
	return err1 == nil && err2 == nil && bytes.Equal(before, now)
}

// carry keeps known servers that this run does not name, for later runs: their addresses without
// the credentials.
func (t *Tools) carry(id tenant.ID, q *run.Request, known []Known) error {
	for _, k := range known {
		if k.Sealed == nil || q.Remote(k.Label) != nil {
			continue
		}
		was, err := t.open(id, &run.Remote{Sealed: k.Sealed})
		if err != nil {
			return err
		}
		was.Target.Headers = nil
		sealed, err := t.seal(id, was)
		if err != nil {
			return err
		}
		q.Remotes = append(q.Remotes, run.Remote{Label: k.Label, Sealed: sealed, Tools: k.Tools})
	}
	return nil
}

// toolsOf converts a server's tools for a model.
func toolsOf(s *Server, r *run.Remote) []run.Tool {
	out := make([]run.Tool, len(r.Tools))
	for i := range r.Tools {
		t := &r.Tools[i]
		hints := mcpclient.HintsOf(t)
		about := t.Description
		if s.Description != "" {
			about = strings.TrimSpace("Of " + s.Description + ": " + about)
		}
		out[i] = run.Tool{
			Tool:    model.Tool{Name: Name(s.Label, t.Name), Description: about, Parameters: t.Schema},
			Handler: Handler, Server: s.Label, RemoteName: t.Name, Shown: true,
			Idempotent: hints.ReadOnly || hints.Idempotent,
			Approve:    s.Never == nil || !s.Never.holds(t.Name, hints.ReadOnly),
		}
	}
	return out
}

var plain = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// Name returns the name of a server's tool for models. It is unique and stable for each pair of
// label and tool.
func Name(label, tool string) string {
	// A label without "__" ends at the first "__".
	if name := label + "__" + tool; plain.MatchString(name) && label != "mcp" && !strings.Contains(label+"_", "__") {
		return name
	}
	sum := sha256.Sum256([]byte(label + "\x00" + tool))
	readable := strings.Map(func(c rune) rune {
		if c < 128 && plain.MatchString(string(c)) {
			return c
		}
		return '_'
	}, tool)
	return "mcp__" + hex.EncodeToString(sum[:10]) + "_" + readable[:min(len(readable), 36)]
}
