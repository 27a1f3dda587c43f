package anthropic

import (
	"io"
	"net/http"
	"strings"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/upload"
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

// contents reads the files that messages name.
type contents func(path, id string) (*upload.File, []byte, error)

// within refuses files that have more bytes together.
func (of contents) within(most int) contents {
	left := most
	return func(path, id string) (*upload.File, []byte, error) {
		f, data, err := of(path, id)
		if left -= len(data); err == nil && left < 0 {
			return nil, nil, httpapi.Invalid("%s.file_id: the files of a request must have at most %d bytes together: mount them as the session's resources", path, most)
		}
		return f, data, err
	}
}

// contents reads files of the caller's tenant, as far as a message has room for them. Those of a
// request are bounded like its body.
func (d *Handlers) contents(c *httpapi.Call) contents {
	var read contents = func(path, id string) (*upload.File, []byte, error) {
		if d.Files == nil {
			return nil, nil, httpapi.Invalid("%s.type must not be file: this server has no files", path)
		}
		f, err := d.Files.Get(c.Context(), c.Caller.Tenant.ID, id)
		if fault.KindOf(err) == fault.NotFound {
			return nil, nil, httpapi.Invalid("%s.file_id: %s", path, upload.ErrNotFound.Msg)
		}
		if err != nil {
			return nil, nil, err
		}
		if f.Size > session.MaxMessage {
			return nil, nil, httpapi.Invalid("%s.file_id: the file has %d bytes, and a message has at most %d: mount it as one of the session's resources", path, f.Size, session.MaxMessage)
		}
		body := d.Files.Open(c.Context(), f)
		defer body.Close()
		data, err := io.ReadAll(body)
		return f, data, err
	}
	return read.within(httpapi.MaxBody)
}
