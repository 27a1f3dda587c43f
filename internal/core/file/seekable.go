package file

import (
	"io"
	"os"
)

// Seekable is content that opens lazily on the first read after each seek. It is not safe for
// concurrent use. Callers must close it.
type Seekable struct {
	size int64
	open func(at int64) (io.ReadCloser, error)

	at   int64         // offset of the next read
	body io.ReadCloser // nil until the first read
	pos  int64         // offset of body
}

// NewSeekable returns content of size bytes that open opens at an offset. body is the content
// already open at offset 0, or nil.
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
	f.at = offset
	return offset, nil
}

// Read implements io.Reader.
func (f *Seekable) Read(p []byte) (n int, err error) {
	if f.at >= f.size {
		return 0, io.EOF
	}
	if f.body != nil && f.pos != f.at {
		if err := f.Close(); err != nil {
			return 0, err
		}
	}
	if f.body == nil {
		if f.body, err = f.open(f.at); err != nil {
			return 0, err
		}
	}
	n, err = f.body.Read(p)
	f.at += int64(n)
	f.pos = f.at
	return n, err
}

// Close implements io.Closer. A later Read opens the content again.
func (f *Seekable) Close() error {
	if f.body == nil {
		return nil
	}
	body := f.body
	f.body = nil
	return body.Close()
}
