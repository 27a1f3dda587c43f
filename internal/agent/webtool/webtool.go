// Package webtool gives runs the tools that search the web, search for people and read pages.
//
// Calls change nothing, so Atoll repeats a call whose outcome is unknown. Pages are untrusted
// data; the results tell the model so.
package webtool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/web"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// Handler is the run.Tool.Handler of the tools here.
const Handler = "web"

// Options are the run.Tool.Options of the tools here.
type Options struct {
	// Shown is the run.ToolUse.Tool of its calls.
	Shown string
	// Query narrows searches; each call of the model replaces its texts.
	Query web.Query
	// MaxURLs limits the pages that one call fetches.
	MaxURLs int
}

func init() {
	for _, name := range []string{web.SearchName, web.PeopleName, web.FetchName} {
		agent.RegisterTool(name, agent.Network)
	}
}

// Search returns the tool that searches. location is the user's approximate location; it may
// be empty.
func Search(o Options, location string) (run.Tool, error) {
	name, finds := web.SearchName, "Searches the web and returns pages with their titles, URLs and what they say. "
	if o.Query.Kind == web.People {
		name, finds = web.PeopleName, "Searches for people by what they do, where they work and live, and returns pages about them. "
	}
	about := finds + "Give one question in each query, in words that a page would have."
	if location != "" {
		about += " The user is about here: " + location + "."
	}
	return tool(name, about, fmt.Sprintf(
		`{"type":"object","additionalProperties":false,"required":["queries"],"properties":{"queries":{"type":"array","minItems":1,"maxItems":%d,"items":{"type":"string"}}}}`, web.MaxQueries), o)
}

// Fetch returns the tool that reads pages.
func Fetch(o Options) (run.Tool, error) {
	return tool(web.FetchName, "Reads pages of the web and returns their text.", fmt.Sprintf(
		`{"type":"object","additionalProperties":false,"required":["urls"],"properties":{"urls":{"type":"array","minItems":1,"maxItems":%d,"items":{"type":"string","description":"A URL with http or https."}}}}`, o.MaxURLs), o)
}

func tool(name, about, schema string, o Options) (run.Tool, error) {
	options, err := json.Marshal(o)
	return run.Tool{Tool: model.Tool{Name: name, Description: about, Parameters: []byte(schema)}, Handler: Handler, Counted: name, Idempotent: true, Options: options}, err
}

// Callers returns the principal that started a run; *tenant.Authority implements it.
type Callers interface {
	Entrant(ctx context.Context, t tenant.ID, key, environment string) (tenant.Principal, error)
}

// Web implements loop.Handler for the tools here.
type Web struct {
	Service *web.Service
	Callers Callers
}

var _ loop.Handler = (*Web)(nil)

// Show implements loop.Handler.
func (w *Web) Show(c *loop.Call) (*run.Item, error) {
	a, o, err := read(c)
	if err != nil {
		return nil, err
	}
	input, err := json.Marshal(a)
	return &run.Item{Status: run.ItemInProgress, Use: &run.ToolUse{CallID: c.Call.ID, Tool: o.Shown, Input: input}}, err
}

// Arguments are the arguments of a call, which run.ToolUse.Input also has.
type Arguments struct {
	Queries []string `json:"queries,omitzero"`
	URLs    []string `json:"urls,omitzero"`
}

// read decodes the arguments and options of a call.
func read(c *loop.Call) (a Arguments, o Options, err error) {
	if err := json.Unmarshal(c.Tool.Options, &o); err != nil {
		return a, o, err
	}
	if c.Tool.Name == web.FetchName {
		var in struct {
			URLs []string `json:"urls"`
		}
		if err := wire.Arguments.Decode([]byte(c.Call.Arguments), &in); err != nil {
			return a, o, err
		}
		if len(in.URLs) == 0 || len(in.URLs) > o.MaxURLs {
			return a, o, fault.New(fault.Invalid, "urls must have 1 to %d", o.MaxURLs)
		}
		return Arguments{URLs: in.URLs}, o, nil
	}
	var in struct {
		Queries []string `json:"queries"`
	}
	if err := wire.Arguments.Decode([]byte(c.Call.Arguments), &in); err != nil {
		return a, o, err
	}
	if len(in.Queries) == 0 || len(in.Queries) > web.MaxQueries {
		return a, o, fault.New(fault.Invalid, "queries must have 1 to %d", web.MaxQueries)
	}
	return Arguments{Queries: in.Queries}, o, nil
}

// Do implements loop.Handler.
func (w *Web) Do(ctx context.Context, c *loop.Call) (*loop.Outcome, error) {
	a, o, err := read(c)
	if err != nil {
		return nil, err // Show has read them
	}
	p, err := w.Callers.Entrant(ctx, c.Run.Tenant, c.Run.Key, c.Run.Environment)
	if err != nil {
		return refused(ctx, c, err)
	}
	by := web.Caller{Principal: &p, TraceID: execution.NewTraceID(), Session: c.Run.Sandbox, By: c.Run.Origin(c.Request, c.Tool.Name), Held: c.Run.Session != ""}
	if c.Tool.Name == web.FetchName {
		return w.fetch(ctx, c, by, a.URLs)
	}
	o.Query.Texts = slices.Clone(a.Queries)
	found, err := w.Service.Search(ctx, by, o.Query)
	if err != nil {
		return refused(ctx, c, err)
	}
	return outcome(c, Found{Results: results(found)}, toldResults(found), false)
}

// refused converts a failure to an outcome for the model. It returns internal errors, and the
// cause of an ended context, as errors.
func refused(ctx context.Context, c *loop.Call, err error) (*loop.Outcome, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Kind == fault.Internal {
		return nil, err
	}
	use := *c.Item.Use
	use.Error = f.Msg
	return &loop.Outcome{
		Refused: true, // one that fails costs nothing
		Result:  model.Result{Failed: true, Parts: []model.Part{{Kind: model.PartText, Text: f.Msg}}},
		Item:    &run.Item{Status: run.ItemFailed, Use: &use},
	}, nil
}

func outcome(c *loop.Call, output any, told string, failed bool) (*loop.Outcome, error) {
	use := *c.Item.Use
	var err error
	if use.Output, err = json.Marshal(output); err != nil {
		return nil, err
	}
	return &loop.Outcome{
		Result: model.Result{Failed: failed, Parts: []model.Part{{Kind: model.PartText, Text: told}}},
		Item:   &run.Item{Status: run.ItemCompleted, Use: &use},
	}, nil
}

func toldResults(found []web.Result) string {
	if len(found) == 0 {
		return "Nothing was found."
	}
	var b strings.Builder
	b.WriteString(web.Strangers)
	for i, r := range found {
		fmt.Fprintf(&b, "\n%d. %s\n%s\n", i+1, r.Title, r.URL)
		if d := day(r.Date); d != "" {
			fmt.Fprintf(&b, "Published: %s\n", d)
		}
		if r.Snippet != "" {
			fmt.Fprintf(&b, "%s\n", r.Snippet)
		}
	}
	return b.String()
}
