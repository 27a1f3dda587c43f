package file

import (
	"io"
	"mime"
	"mime/multipart"
	"strconv"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/upload"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Bounds of a form beside its file.
const (
	maxAround = 64 << 10 // bytes
	maxField  = 32       // bytes
	// maxDiscarded is how many bytes of a file that is too large are read for nothing: many
	// clients read no answer before they have sent everything.
	maxDiscarded = 64 << 20
)

// upload keeps the file of a form, whose other field may come before it or after it.
func (h *Handlers) upload(c *httpapi.Call) (out UploadedFile, err error) {
	media, params, err := mime.ParseMediaType(c.R.Header.Get("Content-Type"))
	if err != nil || media != "multipart/form-data" || params["boundary"] == "" {
		return out, fault.New(fault.Unsupported, "Content-Type must be multipart/form-data")
	}
	body := c.Content()
	defer func() {
		if fault.KindOf(err) == fault.TooLarge && c.R.Header.Get("Expect") == "" {
			_, _ = io.CopyN(io.Discard, body, maxDiscarded)
		}
	}()
	size := max(0, c.R.ContentLength-maxAround) // at least
	if err := h.Files.Limits.Fits(size); err != nil {
		return out, err
	}
	u := &form{parts: multipart.NewReader(body, params["boundary"])}
	part, err := u.next()
	if err != nil {
		return out, err
	}
	if part == nil {
		return out, httpapi.Invalid("the form must have the field file")
	}
	f := &upload.File{Size: size}
	if err := f.Describe(part.FileName(), part.Header.Get("Content-Type")); err != nil {
		return out, err
	}
	err = h.Files.Upload(c.Context(), c.Caller, f, httpapi.FormContent{Reader: part}, func() (time.Duration, error) {
		if again, err := u.next(); err != nil || again == nil {
			return u.life, err
		}
		return 0, httpapi.Invalid("the form must have the field file once")
	})
	if err != nil {
		return out, err
	}
	return fileOf(f), nil
}

// form is the rest of a form.
type form struct {
	parts *multipart.Reader
	seen  bool // expires_in_seconds was there
	life  time.Duration
}

// next reads the fields before the next file; it returns nil at the end.
func (f *form) next() (*multipart.Part, error) {
	for {
		part, err := f.parts.NextRawPart()
		if err == io.EOF {
			return nil, nil
		}
		if err != nil {
			return nil, httpapi.BadForm(err)
		}
		switch name := part.FormName(); {
		case name == "file":
			return part, nil
		case name != "expires_in_seconds" || f.seen:
			return nil, httpapi.Invalid("the form must have the fields file and expires_in_seconds alone, each once; %.40q is not supported", name)
		}
		f.seen = true
		text, err := io.ReadAll(io.LimitReader(part, maxField))
		if err != nil {
			return nil, httpapi.BadForm(err)
		}
		seconds, err := strconv.ParseInt(string(text), 10, 32)
		if f.life = time.Duration(seconds) * time.Second; err != nil || f.life < upload.MinLife || f.life > upload.MaxLife {
			return nil, httpapi.Invalid("expires_in_seconds must be a whole number from %d to %d", int64(upload.MinLife.Seconds()), int64(upload.MaxLife.Seconds()))
		}
	}
}
