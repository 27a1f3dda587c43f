package upload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Blobs keep bytes by name; a *blob.Store does.
type Blobs interface {
	Put(ctx context.Context, name string, r io.Reader) error
	Open(ctx context.Context, name string, offset, limit int64) (io.ReadCloser, error)
	Delete(ctx context.Context, name string) error
}

// Seal encrypts with the key of a tenant; a *seal.Box does.
type Seal interface {
	SealFor(tenant string, plain []byte, place string) []byte
	OpenFor(tenant string, sealed []byte, place string) ([]byte, error)
}

// Contents are the bytes of files, encrypted with their tenants' keys piece by piece, so that a
// part is read without all before it and no file is in memory as a whole.
type Contents struct {
	Blobs Blobs
	Seal  Seal
}

// piece is how many bytes of a file are sealed at a time; the last piece of a file has fewer.
const piece = 256 << 10

// blobName is where the bytes of a file are.
func blobName(t tenant.ID, id ID) string { return "files/" + t + "/" + string(id) }

// place is what a piece is sealed for.
func place(id ID, n int64) string { return fmt.Sprintf("files/content/%s/%d", id, n) }

// overhead is how many bytes sealing adds to a piece.
func (c *Contents) overhead(t tenant.ID) int64 { return int64(len(c.Seal.SealFor(t, nil, ""))) }

// put stores what r has as the bytes of f, and sets its size.
func (c *Contents) put(ctx context.Context, f *File, r io.Reader) error {
	s := &sealer{c: c, f: f, r: r}
	err := c.Blobs.Put(ctx, blobName(f.Tenant, f.ID), s)
	f.Size = s.size
	return err
}

// sealer reads the sealed pieces of a file.
type sealer struct {
	c    *Contents
	f    *File
	r    io.Reader
	left bytes.Reader // of the last piece
	buf  []byte
	n    int64
	size int64
	err  error
}

func (s *sealer) Read(p []byte) (int, error) {
	for s.left.Len() == 0 {
		if s.err != nil {
			return 0, s.err
		}
		if s.buf == nil {
			s.buf = make([]byte, piece)
		}
		var got int
		for got < piece && s.err == nil { // io.ReadFull would not tell a body that broke off from its end
			var n int
			n, s.err = s.r.Read(s.buf[got:])
			got += n
		}
		if got > 0 && (s.err == nil || s.err == io.EOF) {
			s.left.Reset(s.c.Seal.SealFor(s.f.Tenant, s.buf[:got], place(s.f.ID, s.n)))
			s.size += int64(got)
			s.n++
		}
	}
	return s.left.Read(p)
}

// open returns the bytes of a file.
func (c *Contents) open(ctx context.Context, f *File) io.ReadSeekCloser {
	return file.NewSeekable(f.Size, nil, func(at int64) (io.ReadCloser, error) {
		n, sealed := at/piece, piece+c.overhead(f.Tenant)
		body, err := c.Blobs.Open(ctx, blobName(f.Tenant, f.ID), n*sealed, -1)
		if err != nil {
			return nil, err
		}
		o := &opener{c: c, f: f, body: body, n: n, buf: make([]byte, sealed), skip: at % piece}
		return o, nil
	})
}

// opener reads a file from the beginning of a piece.
type opener struct {
	c    *Contents
	f    *File
	body io.ReadCloser
	n    int64 // the next piece
	buf  []byte
	left bytes.Reader
	skip int64 // bytes of the next piece that were not asked for
}

func (o *opener) Read(p []byte) (int, error) {
	for o.left.Len() == 0 {
		rest := o.f.Size - o.n*piece
		if rest <= 0 {
			return 0, io.EOF
		}
		buf := o.buf[:min(rest, piece)+int64(len(o.buf)-piece)]
		if _, err := io.ReadFull(o.body, buf); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				err = storage.ErrBlobShort
			}
			return 0, fmt.Errorf("read file %s: %w", o.f.ID, err)
		}
		plain, err := o.c.Seal.OpenFor(o.f.Tenant, buf, place(o.f.ID, o.n))
		if err != nil {
			return 0, fmt.Errorf("read file %s: %w", o.f.ID, err)
		}
		o.left.Reset(plain[min(o.skip, int64(len(plain))):])
		o.n, o.skip = o.n+1, 0
	}
	return o.left.Read(p)
}

func (o *opener) Close() error { return o.body.Close() }

func (c *Contents) remove(ctx context.Context, f *File) error {
	return c.Blobs.Delete(ctx, blobName(f.Tenant, f.ID))
}
