package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/file"
)

// Shown opens a stream of an ended execution as far as answers show it. e has
// its output. An output that is no longer in the blob store reads as
// empty; see Gone.
func (g *Gateway) Shown(ctx context.Context, e *execution.Execution, s execution.Stream) (io.ReadCloser, error) {
	if !e.Stored {
		return io.NopCloser(bytes.NewReader(kept(e, s))), nil
	}
	r, err := g.cfg.Outputs.Open(ctx, execution.OutputName(e.Tenant, e.TraceID, s), 0, g.cfg.MaxOutput)
	switch {
	case isNotFound(err):
		return gone{bytes.NewReader(nil)}, nil
	case err != nil:
		return nil, fmt.Errorf("%w: open the output of %s: %w", ErrUnreadable, e.TraceID, err)
	}
	return r, nil
}

// ErrUnreadable says that an execution has ended, but its stored output cannot be read at
// the moment.
var ErrUnreadable = errors.New("the stored output cannot be read")

// gone is a stored output that the blob store no longer has.
type gone struct{ io.Reader }

func (gone) Close() error { return nil }

// HintGone explains an answer without the output that the program wrote.
const HintGone = "the output is not in the blob store: it has expired, or this server uses another blob store than the one that ran the program"

// Gone reports whether the blob store lacks a stream of e that Shown opened.
func Gone(e *execution.Execution, s execution.Stream, shown io.ReadCloser) bool {
	_, missing := shown.(gone)
	return missing && (s == execution.Stderr && e.StderrBytes > 0 || s == execution.Stdout && e.StdoutBytes > 0)
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
		return nil, fault.New(fault.NotFound, "the output of this execution has expired")
	case err != nil:
		return nil, fmt.Errorf("open the output of %s: %w", e.TraceID, err)
	}
	return g.blob(ctx, name, 0, size), nil
}

// File opens a file that an ended execution gave back, to be read from any place.
func (g *Gateway) File(ctx context.Context, e *execution.Execution, name string) (io.ReadSeekCloser, error) {
	f, offset, ok := e.Files.Find(name)
	if !ok {
		return nil, fault.New(fault.NotFound, "file %.80q not found: the execution returned no file with this path", name)
	}
	blob := execution.FilesName(e.Tenant, e.TraceID)
	_, err := g.cfg.Outputs.Size(ctx, blob)
	switch {
	case isNotFound(err):
		return nil, fault.New(fault.NotFound, "the files of this execution have expired")
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
