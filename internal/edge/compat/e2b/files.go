package e2b

import (
	"compress/gzip"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"strings"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Written is a file that was written.
type Written struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Path string `json:"path"`
}

func (d *Handlers) files() []httpapi.Operation {
	params := []httpapi.Param{{Name: "path", Type: httpapi.Bytes}, {Name: "username"}, {Name: signatureParam}, {Name: expiryParam}}
	return []httpapi.Operation{
		{Method: http.MethodGet, Path: "/health", Serve: httpapi.Does(d.health)},
		{Method: http.MethodGet, Path: "/files", Audit: "file_read", Params: params, Serve: httpapi.Writes(d.readFile)},
		{Method: http.MethodPost, Path: "/files", Audit: "file_write", Params: params, Body: &httpapi.Body{Media: httpapi.OctetStream}, Serve: httpapi.Returns(d.writeFiles)},
	}
}

// health says whether the sandbox runs. It wakes nothing.
func (d *Handlers) health(c *httpapi.Call) error {
	claim, err := d.claimOf(c.R)
	if err != nil {
		return err
	}
	return d.sandboxes.CheckRunning(c.Context(), refTo(c, claim.Sandbox))
}

func (d *Handlers) readFile(c *httpapi.Call) error {
	if !c.Has("path") {
		return httpapi.Invalid("path is required")
	}
	return d.onPath(c.Context(), c, c.Text("path"), func(u *sandboxes.Use, at string) error {
		found, err := u.ReadFile(c.Context(), at)
		if err != nil {
			return err
		}
		defer found.Body.Close()
		return c.ServeContent(path.Base(at), found)
	})
}

// maxParts is how many files one request can write.
const maxParts = 10_000

func (d *Handlers) writeFiles(c *httpapi.Call) (out []Written, err error) {
	for name := range c.R.Header {
		if strings.HasPrefix(name, "X-Metadata-") {
			return nil, unsupported("metadata of files is not supported by this server")
		}
	}
	media, params, err := mime.ParseMediaType(c.R.Header.Get("Content-Type"))
	if err != nil || media != "multipart/form-data" && media != httpapi.OctetStream {
		return nil, fault.New(fault.Unsupported, "Content-Type must be multipart/form-data or application/octet-stream")
	}
	content := c.Content()
	switch c.R.Header.Get("Content-Encoding") {
	case "", "identity":
	case "gzip":
		const notGzip = "the body is not gzip"
		if content, err = gzip.NewReader(c.Upload()); err != nil {
			return nil, httpapi.BadBody(err, notGzip)
		}
		content = c.Room(body{content, notGzip}, -1)
	default:
		return nil, fault.New(fault.Unsupported, "Content-Encoding must be gzip, or none")
	}
	first := sandboxes.Home(c.Text("path"))
	err = d.onPath(c.Context(), c, first, func(u *sandboxes.Use, _ string) error {
		write := func(at string, from io.Reader) error {
			if at == "" {
				return httpapi.Invalid("path is required: in the query, or as the file's name")
			}
			info, err := u.WriteFile(c.Context(), at, file.CreateOptions{}, from)
			if err == nil {
				shown := strings.ToValidUTF8(info.Path, "\ufffd")
				out = append(out, Written{Name: path.Base(shown), Type: "file", Path: shown})
			}
			return err
		}
		if media == httpapi.OctetStream {
			return write(first, content)
		}
		return eachFile(multipart.NewReader(content, params["boundary"]), func(name string, from io.Reader) error {
			if first != "" {
				name = first
			}
			return write(sandboxes.Home(name), from)
		})
	})
	return out, err
}

// body is a body that ends as httpapi.BadBody says.
type body struct {
	io.Reader
	otherwise string
}

func (b body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = httpapi.BadBody(err, b.otherwise)
	}
	return n, err
}

// eachFile calls write for each file of a form. Its name is a path.
func eachFile(form *multipart.Reader, write func(name string, from io.Reader) error) error {
	for n := 0; ; {
		part, err := form.NextRawPart()
		if err == io.EOF && n > 0 {
			return nil
		}
		if err != nil {
			return httpapi.BadForm(err)
		}
		// Part.FileName cuts a path off.
		_, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
		if err != nil {
			return httpapi.BadForm(err)
		}
		if params["name"] != "file" {
			continue
		}
		if n++; n > maxParts {
			return httpapi.Invalid("one request can write at most %d files", maxParts)
		}
		if err := write(params["filename"], httpapi.FormContent{Reader: part}); err != nil {
			return err
		}
	}
}
