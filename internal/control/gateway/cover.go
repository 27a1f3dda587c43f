package gateway

import "github.com/atoll-run/atoll/internal/core/tenant"

// Cover covers in a text of others, such as pages of the web, what would be covered in the
// output of a caller's programs: the caller's secrets, and what the tenant's rules find.
func (g *Gateway) Cover(p *tenant.Principal, text string) (string, error) {
	set, err := g.sets.Get(p.Secrets(), g.rules(&p.Tenant))
	if err != nil {
		return "", err
	}
	return string(set.Bytes([]byte(text))), nil
}
