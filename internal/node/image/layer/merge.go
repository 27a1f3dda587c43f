// Package layer merges the layers of an OCI image into one tree.
//
// Layers are tar streams whose entries replace, complete or, as whiteouts,
// hide what earlier layers hold. Nothing is unpacked: folders and names live in
// memory, contents in one spool file, and every path is resolved inside the
// tree. So merging needs no privilege, and no entry can reach a file of the
// host. What cannot be honoured is an Invalid fault.Error; devices, pipes and
// sockets are left out, set-user-id and set-group-id bits and extended
// attributes dropped.
package layer

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/node/image/erofs"
	"github.com/atoll-run/atoll/internal/node/image/tree"
)

// Merger builds one tree from layers. It is not safe for concurrent use, and
// after an error it is of no more use.
type Merger struct {
	root    *erofs.Node
	spool   *spool
	limits  Limits
	stats   Stats
	read    int64                  // uncompressed bytes of all layers so far
	implied int                    // folders made because an entry below them wanted them
	touched map[place]struct{}     // what the layer being applied holds
	upper   func(path string) bool // nil, or the layer is an overlay's, and which of its paths count
	gone    map[string]bool        // the whiteouts of that layer so far, by path
}

// place is an entry of a folder.
type place struct {
	dir  *erofs.Node
	name string
}

// NewMerger returns a Merger that keeps files' contents in spool, an empty
// file that the caller owns and keeps open as long as the tree is in use.
func NewMerger(spool *os.File, limits Limits) *Merger {
	return &Merger{root: erofs.NewDir(0o755), spool: newSpool(spool), limits: limits}
}

// NewMergerOver is NewMerger with a tree that the first layer changes. Limits are of the
// layers alone.
func NewMergerOver(root *erofs.Node, spool *os.File, limits Limits) *Merger {
	return &Merger{root: root, spool: newSpool(spool), limits: limits}
}

// ApplyUpper is Apply for what an overlay holds above the tree: there a device 0:0 hides
// what has its name, and a folder may hide all of another. Of its paths, absolute ones, keep
// says which count.
func (m *Merger) ApplyUpper(ctx context.Context, layer io.Reader, keep func(path string) bool) error {
	m.upper, m.gone = keep, map[string]bool{}
	defer func() { m.upper = nil }()
	return m.Apply(ctx, layer)
}

// Root is the tree as merged so far.
func (m *Merger) Root() *erofs.Node { return m.root }

// Stats tells what was merged so far.
func (m *Merger) Stats() Stats { return m.stats }

// Apply merges the next layer, a tar stream, and reads it to its end.
func (m *Merger) Apply(ctx context.Context, layer io.Reader) error {
	m.touched = map[place]struct{}{}
	m.stats.Layers++
	in := &meter{ctx: ctx, m: m, r: layer}
	tr := tar.NewReader(in)
	for {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) { // judged by split
			return asFault(err)
		}
		if m.stats.Entries++; m.limits.Entries > 0 && m.stats.Entries > m.limits.Entries {
			return tooMany(m.limits)
		}
		if err := m.apply(h, tr); err != nil {
			return asFault(err)
		}
	}
	// What follows the last entry belongs to the layer's digest.
	_, err := io.Copy(io.Discard, in)
	return asFault(err)
}

// asFault gives an error of reading or resolving the kind it deserves.
func asFault(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	if _, ok := errors.AsType[spoolError](err); ok {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fault.Wrap(fault.Invalid, err, "a layer ends too early")
	case errors.Is(err, tree.ErrLoop), errors.Is(err, tree.ErrNotDir), errors.Is(err, tree.ErrDeep):
		return fault.Wrap(fault.Invalid, err, "a layer's entry leads nowhere")
	default:
		return fault.Wrap(fault.Invalid, err, "a layer cannot be read as a tar stream")
	}
}

// meter counts a layer's bytes against the limit and ends the reading when
// the context does.
type meter struct {
	ctx context.Context
	m   *Merger
	r   io.Reader
}

func (c *meter) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	n, err := c.r.Read(p)
	c.m.read += int64(n)
	if limit := c.m.limits.Bytes; limit > 0 && c.m.read > limit {
		return n, tooBig(c.m.limits)
	}
	return n, err
}
