package httpapi

import (
	"context"
	"errors"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/breaker"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// Admin is what the routes under /v1/admin administer. All of it is required.
type Admin struct {
	Tenants    *tenant.Admin
	Trail      AuditTrail
	Verifier   AuditVerifier
	Usage      UsageReader
	Caps       CapKeeper
	Executions ExecutionGetter
	Webhooks   Redeliverer
}

// AuditTrail reads the audit trail.
type AuditTrail interface {
	List(ctx context.Context, f audit.Filter) (page []audit.Row, next string, err error)
	Export(ctx context.Context, tenant string, since, before time.Time) iter.Seq2[audit.Row, error]
}

// AuditVerifier checks it.
type AuditVerifier interface {
	Verify(ctx context.Context, tenant string, known audit.Mark) (audit.Report, error)
}

// CapKeeper keeps the installation's caps of execute_code.
type CapKeeper interface {
	Caps(ctx context.Context) (breaker.Caps, error)
	Change(ctx context.Context, actor string, tenantDaily, agentHourly *int64) (breaker.Caps, error)
}

// ExecutionGetter finds executions.
type ExecutionGetter interface {
	Get(ctx context.Context, tenantID, traceID string) (*execution.Execution, error)
}

// Redeliverer has the webhook of an ended execution delivered again.
type Redeliverer interface {
	Redeliver(ctx context.Context, e *execution.Execution) error
}

// adminCall is one authenticated request.
type adminCall struct {
	*Admin
	w     http.ResponseWriter
	r     *http.Request
	actor string // id of the caller's key
	query url.Values
}

// adminRoute is one operation: how it is reached, what it is in the OpenAPI
// document, what it does.
type adminRoute struct {
	method, path string
	id, summary  string
	query        []string // the parameters it knows, out of adminQuery
	in, out      any      // bodies; nil for none
	status       int      // of success
	serve        func(*adminCall) (out any, err error)
}

// adminRoutes returns the routes under /v1/admin. Only keys with the scope
// admin get in.
func adminRoutes(a *Admin, authenticate func(*http.Request) (tenant.Principal, error)) []route {
	byPath := map[string]map[string]adminRoute{}
	for _, op := range adminTable() {
		if byPath[op.path] == nil {
			byPath[op.path] = map[string]adminRoute{}
		}
		byPath[op.path][op.method] = op
	}
	var out []route
	for path, ops := range byPath {
		methods := slices.Sorted(maps.Keys(ops))
		if slices.Contains(methods, http.MethodGet) {
			methods = append(methods, http.MethodHead)
			ops[http.MethodHead] = ops[http.MethodGet]
		}
		out = append(out, route{methods, path, func(w http.ResponseWriter, r *http.Request) error {
			caller, err := authenticate(r)
			if err != nil {
				return err
			}
			if !caller.May(tenant.ScopeAdmin) {
				return fault.New(fault.Forbidden, "this key may not administer: its scopes lack admin")
			}
			return a.answer(w, r, ops[r.Method], caller.Key.ID)
		}})
	}
	return out
}

func (a *Admin) answer(w http.ResponseWriter, r *http.Request, op adminRoute, actor string) error {
	q, err := parseQuery(r, op.query...)
	if err != nil {
		return err
	}
	for name, values := range q {
		if utf8.RuneCountInString(values[0]) > maxParameter || strings.ContainsFunc(values[0], unicode.IsControl) {
			return invalid("query parameter %s must be at most %d characters without control characters", wire.Quote(name), maxParameter)
		}
	}
	c := &adminCall{Admin: a, w: w, r: r, actor: actor, query: q}
	out, err := op.serve(c)
	switch {
	case err != nil || out == errAnswered:
		return err
	case op.status == http.StatusNoContent:
		w.WriteHeader(op.status)
		return nil
	default:
		return writeJSON(w, op.status, out)
	}
}

// errAnswered is what an operation returns that has written its answer itself.
var errAnswered = errors.New("answered")

// maxParameter is the longest value of a query's parameter, in characters.
const maxParameter = 512

// decode reads the body into a pointer to its wire type. No body at all is an
// object without fields; what a type requires is for its users to miss.
func (c *adminCall) decode(into any) error {
	body, err := readBody(c.w, c.r)
	if err != nil || len(body) == 0 {
		return err
	}
	if err := checkContentType(c.r.Header); err != nil {
		return err
	}
	return wire.Body.Decode(body, into)
}

// named returns the part of the path that names a thing. What can be no name is
// not looked for.
func (c *adminCall) named(part, thing string) (string, error) {
	name := c.r.PathValue(part)
	if !tenant.Name.MatchString(name) {
		return "", fault.New(fault.NotFound, "there is no such %s", thing)
	}
	return name, nil
}

// inTenant returns the tenant's name in the path and that of a thing in it.
func (c *adminCall) inTenant(part string) (tenantName, name string, err error) {
	if tenantName, err = c.named("tenant", "tenant"); err == nil && part != "" {
		name, err = c.named(part, part)
	}
	return tenantName, name, err
}

// parseTime reads a time in a body.
func parseTime(field, text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, invalid("%s must be a time as in RFC 3339, such as 2026-01-31T12:00:00Z", field)
	}
	return t.UTC(), nil
}

func (c *adminCall) redeliver() (any, error) {
	t, err := c.tenantOf()
	if err != nil {
		return nil, err
	}
	traceID, err := traceParamOf(c.r)
	if err != nil {
		return nil, err
	}
	e, err := c.Executions.Get(c.r.Context(), t.ID, traceID)
	if err != nil {
		return nil, alike(err)
	}
	if err := c.Webhooks.Redeliver(c.r.Context(), e); err != nil {
		return nil, err
	}
	return Redelivery{traceID, string(execution.WebhookPending)}, nil
}

func (c *adminCall) getCaps() (any, error) {
	caps, err := c.Caps.Caps(c.r.Context())
	return capsWire(caps), err
}

func (c *adminCall) changeCaps() (any, error) {
	var in CapsChange
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	for name, n := range map[string]*int64{"tenant_daily": in.TenantDaily, "agent_hourly": in.AgentHourly} {
		if n != nil && (*n < 0 || *n > tenant.MaxCap) {
			return nil, invalid("%s must be 0, which stops every call, to %d", name, tenant.MaxCap)
		}
	}
	caps, err := c.Caps.Change(c.r.Context(), c.actor, in.TenantDaily, in.AgentHourly)
	return capsWire(caps), err
}
