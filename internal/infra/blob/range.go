package blob

import (
	"context"
	"errors"
	"io"
	"iter"
	"strings"

	"gocloud.dev/blob"

	"github.com/atoll-run/atoll/internal/core/storage"
)

// ErrShort says that a name has fewer bytes than were asked for.
var ErrShort = storage.ErrBlobShort

// Range reads exactly size bytes from an offset on, in one request: the reader
// gives them all or an error, ErrShort when there are fewer.
func (s *Store) Range(ctx context.Context, name string, offset, size int64) (io.ReadCloser, error) {
	if err := check(name); err != nil {
		return nil, err
	}
	r, err := s.bucket.NewRangeReader(ctx, name, offset, size, nil)
	if err == nil {
		return &exact{ReadCloser: r, name: name, left: size}, nil
	}
	if !s.ends(ctx, name, offset, err) {
		return nil, fail("read", name, err)
	}
	if size > 0 {
		return nil, ErrShort
	}
	return io.NopCloser(strings.NewReader("")), nil
}

// exact gives as many bytes as were asked for.
type exact struct {
	io.ReadCloser
	name string
	left int64
}

func (e *exact) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	e.left -= int64(n)
	switch {
	case err == io.EOF && e.left > 0:
		err = ErrShort
	case err != nil && err != io.EOF:
		err = fail("read", e.name, err)
	}
	return n, err
}

// Info describes what there is under a name.
type Info = storage.BlobInfo

// List goes through every name below a folder, in order.
func (s *Store) List(ctx context.Context, folder string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := check(folder); err != nil {
			yield(Info{}, err)
			return
		}
		list := s.bucket.List(&blob.ListOptions{Prefix: folder + "/"})
		for {
			o, err := list.Next(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Info{}, fail("list", folder, err))
				return
			}
			if !yield(Info{Name: o.Key, Size: o.Size, Modified: o.ModTime}, nil) {
				return
			}
		}
	}
}
