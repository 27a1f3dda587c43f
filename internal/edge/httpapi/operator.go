package httpapi

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// maxOperatorText is the maximum number of characters of a query parameter under /v1/admin.
const maxOperatorText = 512

// operatorParts are the parts of paths under /v1/admin that name an object.
var operatorParts = []string{"tenant", "environment", "key", "connection", "grant", "template", "plan", "model"}

// ForOperators completes operations under /v1/admin: they require the scope admin, document the
// parts of their path and the refusals that they share, and their bodies are optional.
func ForOperators(ops ...Operation) []Operation {
	for i := range ops {
		op := &ops[i]
		op.Tag, op.Scope = "admin", tenant.ScopeAdmin
		op.Answers = append(slices.Clone(op.Answers), Refusal(http.StatusNotFound, "not_found: the object does not exist."))
		op.Params = slices.Clone(op.Params)
		for k, p := range op.Params {
			if p.Type == Text && p.Max == 0 {
				op.Params[k].Max = maxOperatorText
			}
		}
		for _, part := range operatorParts {
			if strings.Contains(op.Path, "{"+part+"}") {
				op.Params = append(op.Params, Param{Name: part, In: InPath, Doc: "Id or name."})
			}
		}
		if op.Body != nil {
			op.Body.Optional = true
			op.Answers = append(op.Answers,
				Refusal(http.StatusConflict, "conflict: the name is taken, or the present state forbids it."),
				Refusal(http.StatusTooManyRequests, "rate_limited: above the tenant's plan."))
		}
	}
	return ops
}

// NameIn returns the name in a part of the path. A value that cannot be a name returns
// a NotFound fault, as an unknown name does.
func (c *Call) NameIn(part string) (string, error) {
	name := c.Path(part)
	if !tenant.Name.MatchString(name) {
		return "", fault.New(fault.NotFound, "%s %.80q not found", part, name)
	}
	return name, nil
}

// Tenant returns the tenant in the path, which find looks up by its id or name.
func (c *Call) Tenant(find func(ctx context.Context, idOrName string) (tenant.Tenant, error)) (tenant.Tenant, error) {
	name, err := c.NameIn("tenant")
	if err != nil {
		return tenant.Tenant{}, err
	}
	return find(c.Context(), name)
}
