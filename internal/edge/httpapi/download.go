package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
)

// Attachment has a browser save the answer as a file. A name is any bytes; one that ASCII
// does not have is there as RFC 6266 writes it, too.
func (c *Call) Attachment(name string) {
	plain := make([]byte, 0, len(name))
	for i := range len(name) {
		if ch := name[i]; ch >= ' ' && ch < 0x7f && ch != '"' && ch != '\\' {
			plain = append(plain, ch)
		} else {
			plain = append(plain, '_')
		}
	}
	header := fmt.Sprintf("attachment; filename=%q", plain)
	if string(plain) != name && utf8.ValidString(name) {
		header += "; filename*=UTF-8''" + strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
	}
	c.W.Header().Set("Content-Disposition", header)
}

// ServeFile answers with a file, or the range of it that the request asks for. modified
// may be zero. A request for several ranges gets the whole file.
func (c *Call) ServeFile(name string, modified time.Time, body io.ReadSeeker) error {
	return c.ServeTyped(name, OctetStream, modified, body)
}

// ServeTyped is ServeFile for a file of a media type.
func (c *Call) ServeTyped(name, mediaType string, modified time.Time, body io.ReadSeeker) error {
	h := c.W.Header()
	h.Set("Content-Type", mediaType)
	c.Attachment(name)
	h.Set("Cache-Control", "no-store")
	r := c.R
	if strings.Contains(r.Header.Get("Range"), ",") {
		// http.ServeContent would read several ranges in a goroutine that outlives it. A
		// server may answer with the whole file (RFC 9110, 14.2).
		r = r.Clone(r.Context())
		r.Header.Del("Range")
	}
	out, from := &ranged{ResponseWriter: c.W}, &source{ReadSeeker: body}
	http.ServeContent(out, r, "", modified, from)
	if out.refused {
		h.Del("Content-Disposition")
		return &ProtocolError{http.StatusRequestedRangeNotSatisfiable, "range_not_satisfiable", "Range is beyond the end: Content-Range has the length"}
	}
	return from.err
}

// ServeContent answers with a file of a sandbox, or the range of it that the request asks for.
func (c *Call) ServeContent(name string, f *sandboxes.Content) error {
	if f.Size > 0 {
		return c.ServeFile(name, f.Modified, f.Body)
	}
	// A file of /proc is larger than it says.
	c.Start(OctetStream)
	if c.R.Method == http.MethodHead {
		return nil
	}
	_, err := io.Copy(c.W, f.Begun)
	return err
}

// source remembers what broke a download off, which http.ServeContent does not tell.
type source struct {
	io.ReadSeeker
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.ReadSeeker.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// ranged holds back what http.ServeContent says of a range that there is not, so that it
// can be said as every other refusal.
type ranged struct {
	http.ResponseWriter
	refused bool
}

func (w *ranged) WriteHeader(status int) {
	if w.refused = status == http.StatusRequestedRangeNotSatisfiable; !w.refused {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *ranged) Write(p []byte) (int, error) {
	if w.refused {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}
