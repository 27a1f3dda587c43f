package conversation

import (
	"context"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/upload"
)

// Uploads are the uploaded files of tenants; *upload.Service implements it.
type Uploads interface {
	Get(ctx context.Context, t tenant.ID, id string) (*upload.File, error)
	Open(ctx context.Context, f *upload.File) io.ReadSeekCloser
}

// Attachments reads the uploaded files that the messages of a request name, as far as a message has room for
// them. All files of a request have at most Max bytes.
type Attachments struct {
	Files  Uploads // nil without uploaded files
	Tenant tenant.ID
	Max    int

	read int
}

// Read returns a file that a request names at a path, and its bytes.
func (a *Attachments) Read(ctx context.Context, path, id string) (*upload.File, []byte, error) {
	if a.Files == nil {
		return nil, nil, invalid("%s.type must not be file: this server has no files", path)
	}
	f, err := a.Files.Get(ctx, a.Tenant, id)
	if fault.KindOf(err) == fault.NotFound {
		return nil, nil, invalid("%s.file_id: %s", path, upload.ErrNotFound.Msg)
	}
	if err != nil {
		return nil, nil, err
	}
	if f.Size > session.MaxMessage {
		return nil, nil, invalid("%s.file_id: the file has %d bytes, and a message has at most %d: mount it as one of the session's resources", path, f.Size, session.MaxMessage)
	}
	body := a.Files.Open(ctx, f)
	defer body.Close()
	data, err := io.ReadAll(body)
	if a.read += len(data); err == nil && a.read > a.Max {
		return nil, nil, invalid("%s.file_id: the files of a request must have at most %d bytes together: mount them as the session's resources", path, a.Max)
	}
	return f, data, err
}

// Rubric returns the text of a file by which an outcome is graded, as it is now: later the file may be gone,
// or another one's.
func (a *Attachments) Rubric(ctx context.Context, path, id string) (string, error) {
	_, data, err := a.Read(ctx, path, id)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(data) || strings.TrimSpace(string(data)) == "" {
		return "", invalid("%s.file_id must be a file of text, in UTF-8", path)
	}
	return string(data), nil
}
