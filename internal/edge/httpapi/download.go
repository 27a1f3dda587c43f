package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
	"unicode/utf8"
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

// mediaTypes are those of files by their names, the same on every machine. Answers with
// them are attachments, and browsers are told to guess nothing.
var mediaTypes = map[string]string{
	".csv": "text/csv; charset=utf-8", ".txt": "text/plain; charset=utf-8", ".log": "text/plain; charset=utf-8", ".md": "text/markdown; charset=utf-8",
	".html": "text/html; charset=utf-8", ".htm": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".json": "application/json", ".jsonl": "application/jsonl", ".xml": "application/xml", ".yaml": "application/yaml", ".yml": "application/yaml",
	".tsv": "text/tab-separated-values; charset=utf-8", ".ics": "text/calendar; charset=utf-8",
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".svg": "image/svg+xml", ".bmp": "image/bmp",
	".tif": "image/tiff", ".tiff": "image/tiff", ".mp3": "audio/mpeg", ".wav": "audio/wav", ".mp4": "video/mp4", ".webm": "video/webm",
	".pdf": "application/pdf", ".rtf": "application/rtf", ".zip": "application/zip", ".gz": "application/gzip", ".tar": "application/x-tar",
	".docx":    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	".xlsx":    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	".pptx":    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	".parquet": "application/vnd.apache.parquet", ".sqlite": "application/vnd.sqlite3", ".ipynb": "application/x-ipynb+json",
}

// MediaTypeOf is the media type of a file by its name.
func MediaTypeOf(name string) string {
	if t, ok := mediaTypes[strings.ToLower(path.Ext(name))]; ok {
		return t
	}
	return OctetStream
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
