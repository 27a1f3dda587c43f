package file

import (
	"io"
	"os"
)

// Seekable is content that is opened where it is first read after each seek. It is not
// safe for concurrent use. Close it.
type Seekable struct {
	size int64
	open func(at int64) (io.ReadCloser, error)

	at   int64         // what is read next
	body io.ReadCloser // nil until it is read
	pos  int64         // where body goes on
}

// NewSeekable returns content of a size in bytes, which open opens at an offset. body is
// what is open at its beginning already, or nil.
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

// Close implements io.Closer. The content can be read again.
func (f *Seekable) Close() error {
	if f.body == nil {
		return nil
	}
	body := f.body
	f.body = nil
	return body.Close()
}
