package gateway

import (
	"github.com/atoll-run/atoll/internal/core/activity"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Cover covers in a text of others, such as pages of the web, what would be covered in the
// output of a caller's programs: the caller's secrets, and what the tenant's rules find.
func (g *Gateway) Cover(p *tenant.Principal, text string) (string, error) {
	set, err := g.sets.Get(p.Secrets(), g.rules(&p.Tenant))
	if err != nil {
		return "", err
	}
	return string(set.Bytes([]byte(text))), nil
}

// Text returns the activity's text for code or a command: its beginning, redacted like program output,
// if the tenant keeps texts, otherwise "".
func (g *Gateway) Text(p *tenant.Principal, code string) (string, error) {
	if !p.Tenant.AuditText || code == "" {
		return "", nil
	}
	covered, err := g.Cover(p, code)
	if err != nil {
		return "", err
	}
	return activity.Shorten(covered), nil
}
