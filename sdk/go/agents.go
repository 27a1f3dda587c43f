package atoll

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

const agents = "/v1/agents"

// Agents returns the current versions of agents, newest first. archived adds those that are archived.
func (c *Client) Agents(archived bool) *Pager[Agent] {
	return &Pager[Agent]{c: c, path: agents, query: url.Values{"include_archived": {strconv.FormatBool(archived)}, "limit": {"100"}}}
}

// Agent returns the current version of an agent, by its id or slug.
func (c *Client) Agent(ctx context.Context, idOrSlug string) (Agent, error) {
	return call[Agent](ctx, c, http.MethodGet, under(agents, idOrSlug), nil, nil)
}

// AgentVersion returns a version of an agent.
func (c *Client) AgentVersion(ctx context.Context, idOrSlug string, version int64) (Agent, error) {
	return call[Agent](ctx, c, http.MethodGet, under(agents, idOrSlug, "versions", strconv.FormatInt(version, 10)), nil, nil)
}

// AgentVersions returns versions of an agent, newest first.
func (c *Client) AgentVersions(idOrSlug string) *Pager[Agent] {
	return &Pager[Agent]{c: c, path: under(agents, idOrSlug, "versions"), query: url.Values{"limit": {"100"}}}
}

// CreateAgent creates an agent.
func (c *Client) CreateAgent(ctx context.Context, in NewAgent) (Agent, error) {
	return create[Agent](ctx, c, agents, nil, in)
}

// ChangeAgent creates a new version of an agent.
func (c *Client) ChangeAgent(ctx context.Context, idOrSlug string, in AgentChange) (Agent, error) {
	return call[Agent](ctx, c, http.MethodPatch, under(agents, idOrSlug), nil, in)
}

// CopyAgent copies an agent, or the template of another tenant by its id.
func (c *Client) CopyAgent(ctx context.Context, idOrSlug string, in AgentCopy) (Agent, error) {
	return create[Agent](ctx, c, under(agents, idOrSlug, "copy"), nil, in)
}

// DeleteAgent deletes an agent with its versions. If the agent has sessions, the error is ErrConflict.
func (c *Client) DeleteAgent(ctx context.Context, idOrSlug string) error {
	return c.do(ctx, http.MethodDelete, under(agents, idOrSlug), nil)
}

// ArchiveAgent archives an agent. Repeating the call is not an error.
func (c *Client) ArchiveAgent(ctx context.Context, idOrSlug string) (Agent, error) {
	return call[Agent](ctx, c, http.MethodPost, under(agents, idOrSlug, "archive"), nil, nil)
}
