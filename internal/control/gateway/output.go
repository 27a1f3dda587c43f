package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/file"
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
	return g.blob(ctx, name, 0, size), nil
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
	return g.blob(ctx, blob, offset, f.Bytes), nil
}

func kept(e *execution.Execution, s execution.Stream) []byte {
	if s == execution.Stderr {
		return e.Stderr
	}
	return e.Stdout
}

type nopCloser struct{ io.ReadSeeker }

func (nopCloser) Close() error { return nil }

// blob is a part of a blob of size bytes from base, which is read from any place.
func (g *Gateway) blob(ctx context.Context, name string, base, size int64) *file.Seekable {
	return file.NewSeekable(size, nil, func(at int64) (io.ReadCloser, error) {
		return g.cfg.Outputs.Open(ctx, name, base+at, size-at)
	})
}
