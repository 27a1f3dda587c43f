package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
)

// Shown opens a stream of an ended execution as far as answers show it. e has
// its output. An output whose time in the blob store has passed reads as
// empty.
func (g *Gateway) Shown(ctx context.Context, e *execution.Execution, s execution.Stream) (io.ReadCloser, error) {
	if !e.Stored {
		return io.NopCloser(bytes.NewReader(kept(e, s))), nil
	}
	r, err := g.cfg.Outputs.Open(ctx, execution.OutputName(e.Tenant, e.TraceID, s), 0, g.cfg.MaxOutput)
	switch {
	case isNotFound(err):
		return io.NopCloser(bytes.NewReader(nil)), nil
	case err != nil:
		return nil, fmt.Errorf("open the output of %s: %w", e.TraceID, err)
	}
	return r, nil
}

// Whole opens a stream of an ended execution as far as it was kept, to be read
// from any place.
func (g *Gateway) Whole(ctx context.Context, e *execution.Execution, s execution.Stream) (io.ReadSeekCloser, error) {
	if !e.Stored {
		return nopCloser{bytes.NewReader(kept(e, s))}, nil
	}
	name := execution.OutputName(e.Tenant, e.TraceID, s)
	size, err := g.cfg.Outputs.Size(ctx, name)
	switch {
	case isNotFound(err):
		return nil, fault.New(fault.NotFound, "the output of this execution is not kept any more")
	case err != nil:
		return nil, fmt.Errorf("open the output of %s: %w", e.TraceID, err)
	}
	return &blobSeeker{ctx: ctx, outputs: g.cfg.Outputs, name: name, size: size}, nil
}

// File opens a file that an ended execution gave back, to be read from any place.
func (g *Gateway) File(ctx context.Context, e *execution.Execution, name string) (io.ReadSeekCloser, error) {
	f, offset, ok := e.Files.Find(name)
	if !ok {
		return nil, fault.New(fault.NotFound, "the execution gave back no file of this path")
	}
	blob := execution.FilesName(e.Tenant, e.TraceID)
	_, err := g.cfg.Outputs.Size(ctx, blob)
	switch {
	case isNotFound(err):
		return nil, fault.New(fault.NotFound, "the files of this execution are not kept any more")
	case err != nil:
		return nil, fmt.Errorf("open a file of %s: %w", e.TraceID, err)
	}
	return &blobSeeker{ctx: ctx, outputs: g.cfg.Outputs, name: blob, base: offset, size: f.Bytes}, nil
}

func kept(e *execution.Execution, s execution.Stream) []byte {
	if s == execution.Stderr {
		return e.Stderr
	}
	return e.Stdout
}

type nopCloser struct{ io.ReadSeeker }

func (nopCloser) Close() error { return nil }

// blobSeeker reads a blob from any place; it opens it where it is first read
// after a seek.
type blobSeeker struct {
	ctx     context.Context
	outputs Outputs
	name    string
	base    int64 // where it begins in the blob
	size    int64
	at      int64
	open    io.ReadCloser // reads from at; may be nil
}

func (b *blobSeeker) Read(p []byte) (int, error) {
	if b.at >= b.size {
		return 0, io.EOF
	}
	if b.open == nil {
		r, err := b.outputs.Open(b.ctx, b.name, b.base+b.at, b.size-b.at)
		if err != nil {
			return 0, err
		}
		b.open = r
	}
	n, err := b.open.Read(p)
	b.at += int64(n)
	return n, err
}

func (b *blobSeeker) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += b.at
	case io.SeekEnd:
		offset += b.size
	}
	if offset < 0 {
		return 0, errors.New("seek before the start of an output")
	}
	if offset != b.at {
		if err := b.Close(); err != nil {
			return 0, err
		}
	}
	b.at = offset
	return offset, nil
}

func (b *blobSeeker) Close() error {
	if b.open == nil {
		return nil
	}
	err := b.open.Close()
	b.open = nil
	return err
}
