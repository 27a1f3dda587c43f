package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/web"
)

// Bounds of what a server has.
const (
	MaxTools       = 256 // that are kept of a server
	maxPages       = 100
	maxListed      = 10_000 // tools, also those that are not kept
	maxList        = 1 << 20
	maxSchema      = 64 << 10
	maxName        = 128
	maxDescription = 4096 // characters
	listTime       = 20 * time.Second
)

// List returns the tools of a server that keep lets through. The session is kept for calls
// under its name.
func (c *Client) List(ctx context.Context, name string, t Target, keep func(name string, readOnly bool) bool) ([]run.RemoteTool, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, listTime, errSlow)
	defer cancel()
	s, err := c.open(ctx, name, t)
	if err != nil {
		return nil, err
	}
	ctx, seen := watch(ctx)
	found, err := s.list(ctx, keep)
	c.release(s, err == nil)
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return nil, f
	}
	if err != nil {
		return nil, s.peer.failure(ctx, err, seen)
	}
	return found, nil
}

func (s *session) list(ctx context.Context, keep func(string, bool) bool) ([]run.RemoteTool, error) {
	found, names := []run.RemoteTool{}, map[string]bool{}
	bytes, cursor := 0, ""
	for range maxPages {
		page, err := s.mcp.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, err
		}
		for _, t := range page.Tools {
			if t == nil || names[t.Name] || len(names) == maxListed {
				return nil, fault.New(fault.Unavailable, "its list of tools has a duplicate, or more than %d entries", maxListed)
			}
			names[t.Name] = true
			if !keep(t.Name, t.Annotations != nil && t.Annotations.ReadOnlyHint) {
				continue
			}
			tool, err := s.tool(t)
			if err != nil {
				return nil, err
			}
			bytes += len(tool.Name) + len(tool.Description) + len(tool.Schema)
			if len(found) == MaxTools || bytes > maxList {
				return nil, fault.New(fault.Unavailable, "it has more than %d tools, or their descriptions exceed %d bytes: list the ones you need in allowed_tools", MaxTools, maxList)
			}
			found = append(found, tool)
		}
		if page.NextCursor == "" || page.NextCursor == cursor {
			return found, nil
		}
		cursor = page.NextCursor
	}
	return nil, fault.New(fault.Unavailable, "its list of tools has more than %d pages", maxPages)
}

// tool is a tool as it is kept.
func (s *session) tool(t *mcp.Tool) (run.RemoteTool, error) {
	cover := s.peer.target.cover()
	about := t.Description
	if about == "" {
		about = t.Title
	}
	schema, err := json.Marshal(t.InputSchema)
	if err != nil {
		return run.RemoteTool{}, err
	}
	var annotations []byte
	if t.Annotations != nil {
		if annotations, err = json.Marshal(t.Annotations); err != nil {
			return run.RemoteTool{}, err
		}
	}
	return Tool(t.Name, cover.Replace(about), schema, annotations)
}

// Tool is a tool by its name, what it is about, and the JSON of its schema and annotations,
// of which the last may be nil. The error is Unavailable.
func Tool(name, about string, schema, annotations []byte) (out run.RemoteTool, err error) {
	if name == "" || len(name) > maxName || name != web.Line(name, maxName) {
		return out, fault.New(fault.Unavailable, "it has a tool whose name is not a single line of 1 to %d bytes", maxName)
	}
	out = run.RemoteTool{Name: name, Description: web.Cut(web.Lines(about), maxDescription)}
	var object map[string]json.RawMessage
	if json.Unmarshal(schema, &object) != nil {
		return out, fault.New(fault.Unavailable, "the schema of its tool %q is not an object", name)
	}
	if object == nil { // it has none
		object = map[string]json.RawMessage{}
	}
	object["type"] = json.RawMessage(`"object"`)
	if _, ok := object["properties"]; !ok {
		object["properties"] = json.RawMessage("{}") // which providers want
	}
	if out.Schema, err = json.Marshal(object); err != nil || len(out.Schema) > maxSchema || len(annotations) > maxSchema {
		return out, fault.New(fault.Unavailable, "the schema of its tool %q has more than %d bytes", name, maxSchema)
	}
	if len(annotations) > 0 {
		out.Annotations = annotations
	}
	return out, nil
}

// Hints are what a tool says of itself, which may be a lie.
type Hints struct {
	ReadOnly   bool `json:"readOnlyHint"`
	Idempotent bool `json:"idempotentHint"`
}

// HintsOf reads the annotations of a tool.
func HintsOf(t *run.RemoteTool) (h Hints) {
	_ = json.Unmarshal(t.Annotations, &h) // none are none
	return h
}

// Missing is a name that none of the tools has, "" for none.
func Missing(tools []run.RemoteTool, names []string) string {
	for _, name := range names {
		if !slices.ContainsFunc(tools, func(t run.RemoteTool) bool { return t.Name == name }) {
			return name
		}
	}
	return ""
}
