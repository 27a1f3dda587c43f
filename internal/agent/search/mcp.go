package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/atoll-run/atoll/internal/agent/mcpclient"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/web"
)

// MCP is the name of the provider that uses the search tool of any MCP server.
const MCP = "mcp"

// MCPEngine is a web.Engine that calls a tool of an MCP server.
type MCPEngine struct {
	client  *mcpclient.Client
	target  mcpclient.Target
	setting string
	name    string // of the tool; "" to choose the one that searches

	mu   sync.Mutex
	tool *run.RemoteTool // guarded by mu; nil until Search finds it, and when it may have changed
}

var _ web.Engine = (*MCPEngine)(nil)

// OpenMCP returns the engine of a configuration; the caller must call Close. tool names the
// server's search tool; if it is empty, the engine chooses one. Errors name the invalid setting.
func OpenMCP(cfg Config, tool, version string) (*MCPEngine, error) {
	base, err := url.Parse(cfg.URL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Hostname() == "" || base.User != nil || base.Fragment != "" {
		return nil, fmt.Errorf("%s_url: must be the http or https URL of an MCP server, without user name and fragment", cfg.Setting)
	}
	allow, err := outbound.Parse([]string{base.Hostname()}) // the operator has named it
	if err != nil {
		return nil, fmt.Errorf("%s_url: %w", cfg.Setting, err)
	}
	e := &MCPEngine{client: mcpclient.New(allow, version), target: mcpclient.Target{URL: cfg.URL}, setting: cfg.Setting, name: tool}
	if cfg.Key != "" {
		e.target.Headers = map[string]string{"Authorization": "Bearer " + cfg.Key}
	}
	return e, nil
}

// Close ends the session with the server.
func (e *MCPEngine) Close() { e.client.Close() }

// Name implements web.Engine.
func (e *MCPEngine) Name() string { return MCP }

// Filters implements web.Engine. It is empty because search tools share no filter; the engine
// writes domains into the query text.
func (e *MCPEngine) Filters() web.Filters { return web.Filters{} }

// queries lists the usual names of a search tool's argument for the text, and counts those for
// the number of results.
var (
	queries = []string{"query", "q", "search_query", "queries", "text", "question", "input"}
	counts  = []string{"max_results", "count", "num_results", "numResults", "maxResults", "limit"}
)

// Search implements web.Engine. It retries a broken call once, which is safe because a search
// changes nothing.
func (e *MCPEngine) Search(ctx context.Context, r web.Request) ([]web.Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, fault.New(fault.Unavailable, "the search provider did not answer in time"))
	defer cancel()
	tool, err := e.find(ctx)
	if err != nil {
		return nil, err
	}
	arguments, err := argumentsFor(tool, r)
	if err != nil {
		return nil, err
	}
	answer, err := e.client.Call(ctx, e.setting, e.target, tool, arguments)
	if errors.Is(err, mcpclient.ErrUnknown) && ctx.Err() == nil {
		answer, err = e.client.Call(ctx, e.setting, e.target, tool, arguments)
	}
	if err != nil || answer.Changed {
		e.mu.Lock()
		e.tool = nil
		e.mu.Unlock()
	}
	if err != nil {
		return nil, failed(ctx, err)
	}
	if answer.Failed {
		return nil, fault.Wrap(fault.Unavailable, errors.New(web.Line(answer.Text, 500)), "the search provider reported a failure")
	}
	return readTexts(answer)
}

// find returns the tool that searches.
func (e *MCPEngine) find(ctx context.Context) (*run.RemoteTool, error) {
	e.mu.Lock()
	tool := e.tool
	e.mu.Unlock()
	if tool != nil {
		return tool, nil
	}
	tools, err := e.client.List(ctx, e.setting, e.target, func(string, bool) bool { return true })
	if err != nil {
		return nil, failed(ctx, err)
	}
	if tool, err = e.choose(tools); err != nil {
		return nil, err
	}
	e.mu.Lock()
	e.tool = tool
	e.mu.Unlock()
	return tool, nil
}

// failed returns the error of a server that did not answer. Its own message is for the operator.
func failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if why, ok := outbound.Untrusted(err, outbound.System); ok {
		return fault.Wrap(fault.Unavailable, err, "the search provider cannot be reached: "+why)
	}
	return fault.Wrap(fault.Unavailable, err, "the search provider cannot be reached, or rejects this server")
}

// choose returns the tool that searches: the configured one, the only one, or the first whose
// name contains search.
func (e *MCPEngine) choose(tools []run.RemoteTool) (*run.RemoteTool, error) {
	for _, fits := range []func(name string) bool{
		func(name string) bool { return name == e.name },
		func(string) bool { return e.name == "" && len(tools) == 1 },
		func(name string) bool { return e.name == "" && strings.Contains(strings.ToLower(name), "search") },
	} {
		if i := slices.IndexFunc(tools, func(t run.RemoteTool) bool { return fits(t.Name) }); i >= 0 {
			return &tools[i], nil
		}
	}
	return nil, fault.Wrap(fault.Unavailable, fmt.Errorf("it has no search tool: set %s_tool to the tool's name", e.setting), "the search provider cannot search")
}

// argumentsFor converts a request to the arguments of a tool's schema.
func argumentsFor(t *run.RemoteTool, r web.Request) (json.RawMessage, error) {
	var schema struct {
		Properties map[string]struct {
			Type json.RawMessage `json:"type"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(t.Schema, &schema); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the search provider cannot search")
	}
	named := func(all []string) string {
		for _, name := range all {
			if _, ok := schema.Properties[name]; ok {
				return name
			}
		}
		return ""
	}
	name := named(queries)
	if name == "" {
		return nil, fault.Wrap(fault.Unavailable, fmt.Errorf("its tool %q accepts none of the parameters %s", t.Name, strings.Join(queries, ", ")), "the search provider cannot search")
	}
	arguments := map[string]any{name: sites(r.Text, &r.Filter)}
	if string(schema.Properties[name].Type) == `"array"` {
		arguments[name] = []string{sites(r.Text, &r.Filter)}
	}
	if count := named(counts); count != "" {
		arguments[count] = r.Max
	}
	return json.Marshal(arguments)
}

// found is a page in the field names that search tools use.
type found struct {
	Title, Name                   *string
	URL, Link, Href               *string
	Snippet, Content, Description *string
	Text, Body, Summary           *string
	Date, Published               *string
	PublishedDate                 *string `json:"published_date"`
	PublishedAt                   *string `json:"publishedDate"`
	LastUpdated                   *string `json:"last_updated"`
}

// readTexts extracts the pages from an answer: JSON with a list of them in at most maxLevels objects.
func readTexts(r *mcpclient.Result) ([]web.Result, error) {
	for _, text := range append(r.Texts, r.Structured) {
		if pages, ok := pagesIn([]byte(text), 0); ok {
			return pages, nil
		}
	}
	return nil, fault.Wrap(fault.Unavailable, errors.New("its answer is not JSON with a list of pages that each have a url"), "the search provider's answer cannot be read")
}

// maxLevels limits the objects around a list of pages.
const maxLevels = 3

func pagesIn(text []byte, level int) (pages []web.Result, ok bool) {
	var list []json.RawMessage
	if json.Unmarshal(text, &list) == nil {
		for _, one := range list {
			var f found
			if json.Unmarshal(one, &f) != nil {
				continue
			}
			if r := f.result(); r.URL != "" {
				pages = append(pages, r)
			}
		}
		return pages, len(list) == 0 || len(pages) > 0
	}
	var object map[string]json.RawMessage
	if level == maxLevels || json.Unmarshal(text, &object) != nil {
		return nil, false
	}
	for _, name := range []string{"results", "web", "organic", "items", "data", "result", "structuredContent"} {
		if inner, has := object[name]; has {
			if pages, ok := pagesIn(inner, level+1); ok {
				return pages, true
			}
		}
	}
	return nil, false
}

func (f *found) result() web.Result {
	first := func(all ...*string) string {
		for _, s := range all {
			if s != nil && *s != "" {
				return *s
			}
		}
		return ""
	}
	return web.Result{
		Title: first(f.Title, f.Name), URL: first(f.URL, f.Link, f.Href), Snippet: first(f.Snippet, f.Content, f.Description, f.Text, f.Body, f.Summary),
		Date: when(first(f.Date, f.PublishedDate, f.PublishedAt, f.Published)), Updated: when(first(f.LastUpdated)),
	}
}
