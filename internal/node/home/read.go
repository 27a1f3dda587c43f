package home

import (
	"context"
	"io"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// readAhead is how much of a file is fetched at a time.
const readAhead = 8

// ReadFile reads limit bytes of a file from an offset on, or to its end with a
// limit below 0; fewer when it ends earlier. Links are not followed.
func (s *Store) ReadFile(ctx context.Context, tenant string, t *Tree, path string, offset, limit int64) (io.ReadCloser, error) {
	ts, err := s.tenant(ctx, tenant)
	if err != nil {
		return nil, err
	}
	n, err := t.find(path)
	if err != nil {
		return nil, err
	}
	if n = n.file(); n.kind != kindFile {
		return nil, fault.New(fault.Invalid, "%q is no file", path)
	}
	if offset < 0 {
		return nil, fault.New(fault.Invalid, "offset must not be negative")
	}
	end := n.size
	if limit >= 0 && limit < end-offset {
		end = offset + limit
	}
	return &fileReader{ctx: ctx, s: s, t: ts, n: n, at: offset, end: end}, nil
}

// fileReader reads a file some blocks at a time.
type fileReader struct {
	ctx     context.Context
	s       *Store
	t       *tenantStore
	n       *node
	at, end int64

	from int64 // of buf in the file
	buf  []byte
}

func (r *fileReader) Read(p []byte) (int, error) {
	if r.at >= r.end {
		return 0, io.EOF
	}
	if r.at < r.from || r.at >= r.from+int64(len(r.buf)) {
		if err := r.load(); err != nil {
			return 0, err
		}
	}
	have := r.buf[r.at-r.from:]
	k := copy(p, have[:min(int64(len(have)), r.end-r.at)])
	r.at += int64(k)
	return k, nil
}

// load fetches the block at the reader's place, and some after it.
func (r *fileReader) load() error {
	r.from = r.at / blockSize * blockSize
	size := min(readAhead*blockSize, r.n.size-r.from)
	if r.end-r.from < blockSize {
		size = min(size, blockSize)
	}
	if int64(cap(r.buf)) < size {
		r.buf = make([]byte, size)
	}
	r.buf = r.buf[:size]
	clear(r.buf)
	var wants []want
	r.n.blocks(func(i int, off, length int64) {
		if off >= r.from && off < r.from+size {
			wants = append(wants, want{r.n.chunks[i], int(length), func(data []byte) error {
				copy(r.buf[off-r.from:], data)
				return nil
			}})
		}
	})
	err := r.s.fetch(r.ctx, r.t, wants)
	if err != nil {
		r.buf = nil
	}
	return err
}

func (r *fileReader) Close() error { return nil }
