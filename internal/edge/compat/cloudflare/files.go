package cloudflare

import (
	"io"
	"net/http"
	"path"
	"strings"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// workspace is what the protocol calls the home.
const workspace = "/workspace"

// maxBody bounds a file and an archive that a client sends.
const maxBody = 32 << 20

// Codes of the protocol about files.
const (
	codeNotFound = "workspace_read_not_found"
	codeRead     = "workspace_archive_read_error"
	codeWrite    = "workspace_archive_write_error"
)

// homeOf is where a path below the workspace is.
func homeOf(p string) (string, error) {
	p = path.Clean("/" + p)
	for _, root := range []string{workspace, runtime.Home} {
		if rest, ok := strings.CutPrefix(p, root); ok && (rest == "" || rest[0] == '/') {
			return runtime.Home + rest, nil
		}
	}
	return "", &failed{fault.New(fault.Forbidden, "the path is not below "+workspace), codes[http.StatusForbidden]}
}

func (d *Handlers) read(c *httpapi.Call) error {
	at, err := homeOf(c.Path("path"))
	if err != nil {
		return err
	}
	err = d.within(c.Context(), c, func(u *sandboxes.Use) error {
		c.Trail.Asks(at)
		_, content, err := u.Guest().Read(c.Context(), at, 0, -1)
		if err != nil {
			return err
		}
		defer content.Close()
		c.Start(httpapi.OctetStream)
		if c.R.Method != http.MethodHead {
			_, err = io.Copy(c.W, content)
		}
		return err
	})
	if fault.KindOf(err) == fault.NotFound {
		return &failed{err, codeNotFound}
	}
	return err
}

// Done is the answer to what was written.
type Done struct {
	OK bool `json:"ok"`
}

// upload is the body of a request, of maxBody bytes at most.
func upload(c *httpapi.Call) (io.Reader, error) {
	tooLarge := fault.New(fault.TooLarge, "the body must have at most %d bytes", int64(maxBody))
	if c.R.ContentLength > maxBody {
		return nil, &failed{tooLarge, codes[http.StatusBadRequest]}
	}
	return &sandboxes.Limited{From: c.Content(), Left: maxBody, Over: tooLarge}, nil
}

func (d *Handlers) write(c *httpapi.Call) (out Done, err error) {
	at, err := homeOf(c.Path("path"))
	if err != nil {
		return out, err
	}
	body, err := upload(c)
	if err != nil {
		return out, err
	}
	err = d.within(c.Context(), c, func(u *sandboxes.Use) error {
		c.Trail.Asks(at)
		_, err := u.Guest().Create(c.Context(), at, file.CreateOptions{}, body)
		return err
	})
	return Done{err == nil}, err
}

// persist sends the workspace as a tar archive, without what the client excludes.
func (d *Handlers) persist(c *httpapi.Call) error {
	return d.within(c.Context(), c, func(u *sandboxes.Use) error {
		archive, err := u.PackWithout(c.Context(), runtime.Home, c.Text("excludes"))
		if err != nil {
			return &failed{err, codeRead}
		}
		defer archive.Close()
		c.Start(httpapi.Tar)
		return archive.Copy(c.W)
	})
}

// hydrate unpacks an archive into the workspace.
func (d *Handlers) hydrate(c *httpapi.Call) (out Done, err error) {
	body, err := upload(c)
	if err != nil {
		return out, err
	}
	err = d.within(c.Context(), c, func(u *sandboxes.Use) error {
		if _, err := u.Guest().Unpack(c.Context(), runtime.Home, body); err != nil {
			return &failed{err, codeWrite}
		}
		return nil
	})
	return Done{err == nil}, err
}
