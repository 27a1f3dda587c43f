package anthropic

import (
	"context"
	"net/http"
	"strings"

	"github.com/atoll-run/atoll/internal/agent/conversation"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// filesBeta begins the beta of files. The packages name it or none.
const filesBeta = "files-api-"

// ofFiles reports whether the packages ask for files. Other paths below /v1/files are not of
// this API.
func ofFiles(r *http.Request) bool {
	of := r.URL.Path == "/v1/files" || strings.HasPrefix(r.URL.Path, "/v1/files/file_")
	return of && (r.Header.Get(versionHeader) != "" || asked(r, filesBeta))
}

// contents decodes what messages say, with the files that they name.
type contents struct {
	ctx   context.Context
	files *conversation.Attachments
}

// contents reads files of the caller's tenant. Those of a request are bounded like its body.
func (d *Handlers) contents(c *httpapi.Call) contents {
	files := &conversation.Attachments{Tenant: c.Caller.Tenant.ID, Max: httpapi.MaxBody}
	if d.Files != nil {
		files.Files = d.Files
	}
	return contents{c.Context(), files}
}
