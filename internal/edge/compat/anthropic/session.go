package anthropic

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/agent/conversation"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/vault"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

func (d *Handlers) sessions() []httpapi.Operation {
	const all, one = "/v1/sessions", "/v1/sessions/{session_id}"
	list := slices.Concat(httpapi.PageParams(20, 100), spanParams(), many("statuses", slices.Sorted(maps.Keys(statuses))), []httpapi.Param{
		{Name: "agent_id", Max: 64}, {Name: "agent_version", Type: httpapi.Int, Min: 1, Max: 1 << 31}, {Name: "include_archived", Type: httpapi.Bool}, orderParam,
	})
	return []httpapi.Operation{
		{Method: http.MethodGet, Path: all, Scope: tenant.ScopeRead, Params: list, Serve: httpapi.Returns(d.listSessions)},
		{Method: http.MethodPost, Path: all, Scope: tenant.ScopeExecute, Body: httpapi.JSON(SessionFields{}), Serve: httpapi.Takes(d.createSession)},
		{Method: http.MethodGet, Path: one, Scope: tenant.ScopeRead, Serve: httpapi.Returns(d.session)},
		{Method: http.MethodPost, Path: one, Scope: tenant.ScopeExecute, Body: httpapi.JSON(SessionFields{}), Serve: httpapi.Takes(d.changeSession)},
		{Method: http.MethodDelete, Path: one, Scope: tenant.ScopeExecute, Serve: httpapi.Returns(d.deleteSession)},
		{Method: http.MethodPost, Path: one + "/archive", Scope: tenant.ScopeExecute, Serve: httpapi.Returns(d.archiveSession)},
	}
}

var orderParam = httpapi.Param{Name: "order", Enum: []string{"asc", "desc"}}

// many is a parameter that may have several values. The packages write [] behind its name.
func many(name string, values []string) []httpapi.Param {
	return []httpapi.Param{{Name: name + "[]", Many: true, Enum: values}, {Name: name, Many: true, Enum: values}}
}

// values are those that a parameter has, each once.
func values(c *httpapi.Call, name string) []string {
	all := slices.Concat(c.Query[name+"[]"], c.Query[name])
	slices.Sort(all)
	return slices.Compact(all)
}

func spanParams() (out []httpapi.Param) {
	for _, bound := range []string{"gt", "gte", "lt", "lte"} {
		out = append(out, httpapi.Param{Name: "created_at[" + bound + "]", Type: httpapi.Time})
	}
	return out
}

// spanOf is the time that a query speaks of.
func spanOf(c *httpapi.Call) session.Span {
	bound := func(name string) time.Time { return c.Time("created_at[" + name + "]") }
	return session.NewSpan(bound("gt"), bound("gte"), bound("lt"), bound("lte"))
}

// statuses are the states that this form knows. Sessions are not rescheduled here.
var statuses = map[string][]session.State{"idle": {session.Idle}, "running": {session.Running}, "terminated": {session.Ended}, "rescheduling": nil}

func (d *Handlers) listSessions(c *httpapi.Call) (out Sessions, err error) {
	cursor, err := c.Cursor()
	if err != nil {
		return out, err
	}
	f := session.Filter{
		Page: agent.Page{Cursor: cursor, Limit: int(c.Int("limit"))}, Agent: agent.ID(c.Text("agent_id")), Version: int(c.Int("agent_version")),
		Archived: c.Bool("include_archived"), Span: spanOf(c), First: c.Text("order") == "asc",
	}
	if f.Version > 0 && f.Agent == "" {
		return out, httpapi.Invalid("agent_version has a meaning with agent_id only")
	}
	if asked := values(c, "statuses"); len(asked) > 0 {
		f.States = []session.State{}
		for _, status := range asked {
			f.States = append(f.States, statuses[status]...)
		}
	}
	page, next, err := d.Conversations.Store.List(c.Context(), c.Caller.Tenant.ID, f)
	if err != nil {
		return out, err
	}
	out = Sessions{Data: []Session{}, NextPage: httpapi.OrNull(next)}
	r := renderer{d, c, map[string]*agent.Agent{}}
	for i := range page {
		shown, err := r.session(&page[i])
		if err != nil {
			return out, err
		}
		out.Data = append(out.Data, shown)
	}
	return out, nil
}

func (d *Handlers) shown(c *httpapi.Call, s *session.Session, err error) (Session, error) {
	if err != nil {
		return Session{}, err
	}
	return (&renderer{d, c, map[string]*agent.Agent{}}).session(s)
}

func (d *Handlers) find(c *httpapi.Call) (*session.Session, error) {
	return d.Conversations.Find(c.Context(), c.Caller.Tenant.ID, session.ID(c.Path("session_id")))
}

func (d *Handlers) session(c *httpapi.Call) (Session, error) {
	s, err := d.find(c)
	return d.shown(c, s, err)
}

func (d *Handlers) archiveSession(c *httpapi.Call) (Session, error) {
	s, err := d.Conversations.Archive(c.Context(), c.Caller, session.ID(c.Path("session_id")))
	return d.shown(c, s, err)
}

func (d *Handlers) deleteSession(c *httpapi.Call) (Deleted, error) {
	id := c.Path("session_id")
	return Deleted{id, "session_deleted"}, d.Conversations.Delete(c.Context(), c.Caller, session.ID(id))
}

func (d *Handlers) createSession(c *httpapi.Call, in *SessionFields) (out Session, err error) {
	made := &conversation.NewSession{Environment: in.EnvironmentID}
	if made.Agent, made.Version, err = in.agent(); err != nil {
		return out, err
	}
	if own := &c.Caller.Environment; in.EnvironmentID != nil && *in.EnvironmentID != own.ID && *in.EnvironmentID != own.Name && !c.Caller.May(tenant.ScopeEnvironments) {
		return out, fault.New(fault.NotFound, "environment_id must be the id or the name of the key's environment, %s: another one needs the scope environments", own.ID)
	}
	if made.Vaults, err = in.vaults(); err != nil {
		return out, err
	}
	if made.Budget, err = in.budget(); err != nil {
		return out, err
	}
	title, err := in.title()
	if err != nil {
		return out, err
	}
	if title != nil {
		made.About.Title = *title
	}
	if made.About.Metadata, err = in.metadata(nil); err != nil {
		return out, err
	}
	if made.About.Mounts, err = in.mounts(); err != nil {
		return out, err
	}
	first, err := d.contents(c).batch(in.InitialEvents, "initial_events", []string{userMessage, userOutcome}, 0)
	if err != nil {
		return out, err
	}
	if len(first.Messages) == 0 {
		s, err := d.Conversations.Create(c.Context(), c.Caller, made)
		return d.shown(c, s, ofResources(err))
	}
	s, err := d.Conversations.Start(c.Context(), c.Starter(), made, &first.Batch)
	return d.shown(c, s, ofResources(err))
}

func (d *Handlers) changeSession(c *httpapi.Call, in *SessionFields) (out Session, err error) {
	for _, f := range []struct {
		name  string
		given bool
	}{{"agent", len(in.Agent) > 0}, {"environment_id", in.EnvironmentID != nil}, {"initial_events", len(in.InitialEvents) > 0}, {"vault_ids", len(in.VaultIDs) > 0 && in.VaultIDs.Kind() != 'n'}, {"resources", len(in.Resources) > 0}} {
		if f.given {
			return out, httpapi.Invalid("%s of a session cannot be changed: leave it out", f.name)
		}
	}
	s, err := d.find(c)
	if err != nil {
		return out, err
	}
	change := &conversation.Change{}
	if change.Title, err = in.title(); err != nil {
		return out, err
	}
	if len(in.Metadata) > 0 && in.Metadata.Kind() != 'n' {
		all, err := in.metadata(s.About.Metadata)
		if err != nil {
			return out, err
		}
		change.Metadata = &all
	}
	if change.Budget, err = in.budget(); err != nil {
		return out, err
	}
	if change.Budget == (session.Budget{}) && in.Budget.Kind() == 'n' && s.Budget != (session.Budget{}) {
		return out, httpapi.Invalid("budget of a session cannot be removed: raise it")
	}
	s, err = d.Conversations.Update(c.Context(), c.Caller, s.ID, change)
	return d.shown(c, s, err)
}

// vaults reads which vaults a session has; null is none.
func (in *SessionFields) vaults() (ids []vault.ID, err error) {
	if len(in.VaultIDs) == 0 || in.VaultIDs.Kind() == 'n' {
		return nil, nil
	}
	var of struct {
		Vaults []wire.Text `json:"vault_ids"`
	}
	err = only("vault_ids", in.VaultIDs, &of)
	for _, id := range of.Vaults {
		ids = append(ids, vault.ID(id))
	}
	return ids, err
}

// agent reads which agent a session is with: a text, or an object with its id and version.
func (in *SessionFields) agent() (id string, version *int, err error) {
	switch {
	case len(in.Agent) == 0 || in.Agent.Kind() == 'n':
		return "", nil, httpapi.Invalid("agent is required: the id of an agent, or an object with its id and version")
	case in.Agent.Kind() == '"':
		err = json.Unmarshal(in.Agent, &id)
		return id, nil, err
	}
	var of struct {
		Agent *AgentReference `json:"agent" required:"true"`
	}
	if err := only("agent", in.Agent, &of); err != nil {
		return "", nil, err
	}
	switch a := of.Agent; *a.Type {
	case "agent":
		if len(a.Model)+len(a.System)+len(a.Tools)+len(a.MCPServers)+len(a.Skills) > 0 {
			return "", nil, httpapi.Invalid("agent must have id, type and version alone")
		}
		return *a.ID, a.Version, nil
	default:
		return "", nil, httpapi.Invalid("agent.type must be agent: other ones are not supported by this version")
	}
}

// budget reads what a session may cost; null is no change.
func (in *SessionFields) budget() (b session.Budget, err error) {
	if len(in.Budget) == 0 || in.Budget.Kind() == 'n' {
		return b, nil
	}
	var of struct {
		Budget *BudgetFields `json:"budget"`
	}
	if err := only("budget", in.Budget, &of); err != nil {
		return b, err
	}
	most := of.Budget.MaxListCost
	return conversation.NewBudget(*of.Budget.Type, *most.Currency, *most.Amount)
}

// title reads the title; null is an empty one.
func (in *SessionFields) title() (*string, error) {
	if len(in.Title) == 0 {
		return nil, nil
	}
	var title *string
	if err := json.Unmarshal(in.Title, &title); err != nil {
		return nil, httpapi.Invalid("title must be a string, or null")
	}
	if title == nil {
		title = new("")
	}
	return title, nil
}
