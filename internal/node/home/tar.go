package home

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/thread"
)

// xattrRecord is how tar archives name extended attributes.
const xattrRecord = "SCHILY.xattr."

// Export writes a tree as a tar archive (PAX, with nanoseconds and extended
// attributes). Holes of files are written as zeros.
func (s *Store) Export(ctx context.Context, tenant string, t *Tree, w io.Writer) error {
	out := tar.NewWriter(w)
	names := map[*node]string{}
	var entries func(n *node, path string) error
	entries = func(n *node, path string) error {
		h := n.header(path, names)
		if err := out.WriteHeader(h); err != nil {
			return fmt.Errorf("export %q: %w", path, err)
		}
		if h.Typeflag == tar.TypeReg && n.size > 0 {
			ts, err := s.tenant(ctx, tenant)
			if err != nil {
				return err
			}
			if _, err := io.Copy(out, &fileReader{ctx: ctx, s: s, t: ts, n: n, end: n.size}); err != nil {
				return err
			}
		}
		for _, c := range n.children {
			below := path + c.name
			if c.kind == kindDir {
				below += "/"
			}
			if err := entries(c, below); err != nil {
				return err
			}
		}
		return nil
	}
	if err := entries(t.root, "./"); err != nil {
		return err
	}
	return out.Close()
}

func (n *node) header(path string, names map[*node]string) *tar.Header {
	f := n.file()
	h := &tar.Header{Format: tar.FormatPAX, Name: path, Mode: int64(f.mode), Uid: int(f.uid), Gid: int(f.gid),
		ModTime: time.Unix(f.mtime.sec, int64(f.mtime.nsec)), AccessTime: time.Unix(f.atime.sec, int64(f.atime.nsec))}
	switch f.kind {
	case kindDir:
		h.Typeflag = tar.TypeDir
	case kindSymlink:
		h.Typeflag, h.Linkname = tar.TypeSymlink, f.target
	case kindFIFO:
		h.Typeflag = tar.TypeFifo
	default:
		h.Typeflag, h.Size = tar.TypeReg, f.size
		if n.link != nil {
			h.Typeflag, h.Size, h.Linkname = tar.TypeLink, 0, names[f]
			return h
		}
		names[f] = path
	}
	for _, x := range f.xattrs {
		if !strings.Contains(x.name, "=") && !strings.Contains(x.value, "\x00") { // what an archive cannot say
			if h.PAXRecords == nil {
				h.PAXRecords = map[string]string{}
			}
			h.PAXRecords[xattrRecord+x.name] = x.value
		}
	}
	return h
}

// Import returns a state that holds what a tar archive does, and nothing else.
// Devices are left out; a path that leads out of the home, or through a link, is
// an Invalid fault.
func (s *Store) Import(ctx context.Context, tenant string, r io.Reader, limit thread.Quota) (*Tree, error) {
	src := &importSource{r: r}
	empty := &Tree{root: newRoot()}
	return s.edit(ctx, tenant, empty, limit, minIndexed, func(p *packer, root *node) error {
		in := tar.NewReader(src)
		im := importer{p: p, root: root, limit: limit}
		for {
			h, err := in.Next()
			if err == io.EOF {
				return nil
			}
			if err == nil {
				err = im.add(h, in)
			}
			if src.err != nil {
				return src.err
			}
			if err != nil {
				if _, ok := errors.AsType[*fault.Error](err); ok || ctx.Err() != nil {
					return err
				}
				return fault.Wrap(fault.Invalid, err, "the archive cannot be read; it must be an uncompressed tar")
			}
			if err := context.Cause(ctx); err != nil {
				return err
			}
		}
	})
}

// importSource remembers a reader's error, to tell it from the archive's.
type importSource struct {
	r   io.Reader
	err error
}

func (s *importSource) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// importer builds a tree.
type importer struct {
	p            *packer
	root         *node
	limit        thread.Quota
	bytes, files int64
}

func (im *importer) add(h *tar.Header, content io.Reader) error {
	path, _ := strings.CutPrefix(h.Name, "./")
	path = strings.TrimSuffix(path, "/")
	if path == "" || path == "." {
		if h.Typeflag == tar.TypeDir {
			im.dress(im.root, h)
		}
		return nil
	}
	im.files++
	if err := im.limit.Check(im.bytes+max(h.Size, 0), im.files); err != nil {
		return err
	}
	n := newFile("", h.ModTime)
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
	case tar.TypeDir:
		n.kind = kindDir
	case tar.TypeSymlink:
		n.kind, n.target = kindSymlink, h.Linkname
		if n.target == "" || len(n.target) > maxTarget || strings.Contains(n.target, "\x00") {
			return fault.New(fault.Invalid, "the archive has a symbolic link with a target that is not possible: %q", path)
		}
	case tar.TypeFifo:
		n.kind = kindFIFO
	case tar.TypeLink:
		to, _ := strings.CutPrefix(h.Linkname, "./")
		first, err := (&Tree{root: im.root}).find(to)
		if err != nil || first.file().kind != kindFile {
			return fault.New(fault.Invalid, "the archive has a hard link to a file that does not come before it: %q", path)
		}
		first.file().linked = true
		n = &node{kind: kindFile, link: first.file()}
	default:
		return nil
	}
	in, name, err := makeWay(im.root, path, h.ModTime)
	if err != nil {
		return err
	}
	n.name = name
	at, there := in.child(name)
	switch {
	case !there:
		in.children = slices.Insert(in.children, at, n)
	case n.kind == kindDir && in.children[at].kind == kindDir:
		n = in.children[at]
	case n.kind == kindDir || in.children[at].kind == kindDir || in.children[at].inSet():
		return fault.New(fault.Invalid, "the archive has %q twice, as different things", path)
	default:
		in.children[at] = n
	}
	if n.link != nil {
		return nil
	}
	im.dress(n, h)
	if n.kind != kindFile {
		return nil
	}
	err = fill(im.p, n, content, im.limit, im.bytes)
	im.bytes += n.size
	return err
}

func (im *importer) dress(n *node, h *tar.Header) {
	n.mode = uint32(h.Mode) & 0o7777
	n.uid, n.gid = uint32(h.Uid), uint32(h.Gid)
	n.mtime, n.atime = instantAt(h.ModTime), instantAt(h.ModTime)
	if (n.kind == kindFile || n.kind == kindFIFO) && !h.AccessTime.IsZero() {
		n.atime = instantAt(h.AccessTime)
	}
	if n.kind == kindSymlink || n.kind == kindFIFO {
		return
	}
	sum := 0
	n.xattrs = nil
	for key, value := range h.PAXRecords {
		name, ok := strings.CutPrefix(key, xattrRecord)
		if sum += len(name) + len(value); ok && validXattr(name) && sum <= maxXattrs {
			n.xattrs = append(n.xattrs, xattr{name, value})
		}
	}
	slices.SortFunc(n.xattrs, func(a, b xattr) int { return strings.Compare(a.name, b.name) })
}
