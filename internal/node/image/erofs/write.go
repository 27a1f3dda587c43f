package erofs

import (
	"context"
	"fmt"
	"io"
	"os"
)

// Write writes an image of the tree below root to f, which must be empty; it
// leaves f's offset anywhere and does not sync. Runs of zeros become holes. On
// an error f holds nothing of use.
func Write(ctx context.Context, f *os.File, root *Node) error {
	l, err := plan(root)
	if err != nil {
		return err
	}
	out := newOutput(f)
	if err := out.write(encodeMeta(l)); err != nil {
		return err
	}
	for _, dir := range l.dirs {
		if err := out.write(encodeDir(dir)); err != nil {
			return err
		}
	}
	for _, link := range l.links {
		if err := out.write([]byte(link.node.Target)); err != nil {
			return err
		}
	}
	for _, file := range l.files {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err := out.copy(ctx, file.node.Data, file.node.Size); err != nil {
			return fmt.Errorf("erofs: write %q: %w", l.name(file), err)
		}
	}
	return out.finish(int64(l.blocks) * blockSize)
}

// output writes blocks one after the other, gathering small pieces and leaving
// holes for zeros.
type output struct {
	f    *os.File
	buf  []byte // not yet written; starts at offset off
	off  int64
	read []byte // buffer for file data
}

const (
	gather = 1 << 20   // bytes gathered before a write
	piece  = 256 << 10 // bytes read from a file at once
)

func newOutput(f *os.File) *output {
	return &output{f: f, buf: make([]byte, 0, gather+piece), read: make([]byte, piece)}
}

// write appends p, filled up to a whole block.
func (o *output) write(p []byte) error {
	if whole := len(p) / blockSize * blockSize; whole >= gather {
		if err := o.flush(); err != nil {
			return err
		}
		if _, err := o.f.WriteAt(p[:whole], o.off); err != nil {
			return fmt.Errorf("erofs: %w", err)
		}
		o.off += int64(whole)
		p = p[whole:]
	}
	o.buf = append(o.buf, p...)
	return o.pad()
}

// pad fills the last block with zeros and flushes a full buffer.
func (o *output) pad() error {
	if tail := len(o.buf) % blockSize; tail != 0 {
		o.buf = append(o.buf, zeros[:blockSize-tail]...)
	}
	if len(o.buf) >= gather {
		return o.flush()
	}
	return nil
}

func (o *output) flush() error {
	if len(o.buf) == 0 {
		return nil
	}
	if _, err := o.f.WriteAt(o.buf, o.off); err != nil {
		return fmt.Errorf("erofs: %w", err)
	}
	o.off += int64(len(o.buf))
	o.buf = o.buf[:0]
	return nil
}

// copy appends the size bytes of src, filled up to a whole block.
func (o *output) copy(ctx context.Context, src io.ReaderAt, size int64) error {
	for at := int64(0); at < size; {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		p := o.read[:min(piece, size-at)]
		if n, err := src.ReadAt(p, at); n < len(p) {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		at += int64(len(p))
		if len(p) == piece && allZero(p) {
			if err := o.flush(); err != nil {
				return err
			}
			o.off += piece
			continue
		}
		o.buf = append(o.buf, p...)
		if len(o.buf) >= gather && len(o.buf)%blockSize == 0 {
			if err := o.flush(); err != nil {
				return err
			}
		}
	}
	return o.pad()
}

// finish writes what is left and gives the file its size, so that a hole at
// the end counts.
func (o *output) finish(size int64) error {
	if err := o.flush(); err != nil {
		return err
	}
	if o.off != size {
		return fmt.Errorf("erofs: wrote %d bytes where %d were planned", o.off, size)
	}
	if err := o.f.Truncate(size); err != nil {
		return fmt.Errorf("erofs: %w", err)
	}
	return nil
}

var zeros [piece]byte

// allZero reports whether p, at most piece bytes, is all zeros.
func allZero(p []byte) bool { return string(p) == string(zeros[:len(p)]) }
