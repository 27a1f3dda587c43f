package managed

import (
	"net/http"
	"strings"

	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// versionHeader is what the packages send with each request.
const versionHeader = "Anthropic-Version"

// ofSkills reports whether the packages ask for skills, which they do without a header of
// this face.
func ofSkills(r *http.Request) bool {
	return r.Header.Get(versionHeader) != "" && (r.URL.Path == "/v1/skills" || strings.HasPrefix(r.URL.Path, "/v1/skills/"))
}

// skills are served as they are: their form is the packages', with more fields.
func (d *Door) skills() []httpapi.Operation {
	if d.Skills == nil {
		return nil
	}
	ops := d.Skills.Operations()
	for i := range ops {
		ops[i].ID = "" // they are documented where they are ours
	}
	return ops
}
