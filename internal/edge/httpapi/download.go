package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// Attachment has a browser save the answer as a file. A name is any bytes.
func (c *Call) Attachment(name string) {
	plain := make([]byte, 0, len(name))
	for i := range len(name) {
		if ch := name[i]; ch >= ' ' && ch < 0x7f && ch != '"' && ch != '\\' {
			plain = append(plain, ch)
		} else {
			plain = append(plain, '_')
		}
	}
	c.W.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", plain))
}

// ServeFile answers with a file, or the range of it that the request asks for. modified
// may be zero.
func (c *Call) ServeFile(name string, modified time.Time, body io.ReadSeeker) error {
	h := c.W.Header()
	h.Set("Content-Type", OctetStream)
	c.Attachment(name)
	h.Set("Cache-Control", "no-store")
	out := &ranged{ResponseWriter: c.W}
	http.ServeContent(out, c.R, "", modified, body)
	if out.refused {
		h.Del("Content-Disposition")
		return &ProtocolError{http.StatusRequestedRangeNotSatisfiable, "range_not_satisfiable", "Range is beyond the end: Content-Range has the length"}
	}
	if f, ok := body.(*Seekable); ok {
		return f.err
	}
	return nil
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

// Seekable is a file that is opened where it is first read after each seek. Close it.
type Seekable struct {
	size int64
	open func(at int64) (io.ReadCloser, error)

	at   int64
	body io.ReadCloser // at at; nil until it is read
	err  error         // what broke a download off
}

// NewSeekable returns a file of a size, which open opens at an offset. body is what is
// open at its beginning already, or nil.
func NewSeekable(size int64, body io.ReadCloser, open func(at int64) (io.ReadCloser, error)) *Seekable {
	return &Seekable{size: size, open: open, body: body}
}

// Seek implements io.Seeker.
func (f *Seekable) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.at
	case io.SeekEnd:
		offset += f.size
	}
	if offset < 0 {
		return 0, os.ErrInvalid
	}
	if offset != f.at {
		f.Close()
	}
	f.at = offset
	return offset, nil
}

// Read implements io.Reader.
func (f *Seekable) Read(p []byte) (n int, err error) {
	if f.at >= f.size {
		return 0, io.EOF
	}
	if f.body == nil {
		if f.body, err = f.open(f.at); err != nil {
			f.err = err
			return 0, err
		}
	}
	n, err = f.body.Read(p)
	f.at += int64(n)
	if err != nil && err != io.EOF {
		f.err = err
	}
	return n, err
}

// Close implements io.Closer. The file can be read again.
func (f *Seekable) Close() error {
	if f.body == nil {
		return nil
	}
	body := f.body
	f.body = nil
	return body.Close()
}
