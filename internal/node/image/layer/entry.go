package layer

import (
	"archive/tar"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/node/image/erofs"
	"github.com/atoll-run/atoll/internal/node/image/tree"
)

const (
	whiteout = ".wh."
	opaque   = ".wh..wh..opq"
	aufs     = ".wh..wh." // other bookkeeping of an old storage driver
)

const (
	setID = 0o6000
)

// apply merges one entry.
func (m *Merger) apply(h *tar.Header, content io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	parts, err := m.split(h.Name)
	if err != nil {
		return err
	}
	if len(parts) == 0 {
		if h.Typeflag != tar.TypeDir {
			return fault.New(fault.Invalid, "a layer's entry %q is not a folder", h.Name)
		}
		return m.describe(m.root, h)
	}
	if m.upper != nil {
		return m.applyUpper(h, parts, content)
	}
	for _, part := range parts {
		if strings.HasPrefix(part, aufs) && part != opaque {
			return nil
		}
	}
	name := parts[len(parts)-1]
	if strings.HasPrefix(name, whiteout) {
		return m.hide(parts[:len(parts)-1], name)
	}
	return m.put(h, parts, content)
}

// opaqueAttribute is the attribute of a folder of an overlay that hides all of the one
// below.
const opaqueAttribute = "SCHILY.xattr.trusted.overlay.opaque"

// applyUpper merges one entry of an overlay. Its whiteouts are devices; names that are
// whiteouts in layers of images mean nothing.
func (m *Merger) applyUpper(h *tar.Header, parts []string, content io.Reader) error {
	full := "/" + strings.Join(parts, "/")
	gone := h.Typeflag == tar.TypeChar && h.Devmajor == 0 && h.Devminor == 0
	if h.Typeflag == tar.TypeLink {
		target, err := m.split(h.Linkname)
		if err != nil {
			return err
		}
		of := "/" + strings.Join(target, "/")
		if gone = m.gone[of]; !gone && !m.upper(of) {
			return nil // to what does not count
		}
	}
	if gone {
		m.gone[full] = true // whiteouts are names of one device
	}
	switch {
	case !m.upper(full):
		return nil
	case gone:
		return m.hide(parts[:len(parts)-1], whiteout+parts[len(parts)-1])
	}
	if err := m.put(h, parts, content); err != nil {
		return err
	}
	if h.Typeflag == tar.TypeDir && h.PAXRecords[opaqueAttribute] != "" {
		if dir, _, err := tree.Lookup(m.root, "/"+strings.Join(parts, "/")); err == nil && dir.IsDir() {
			m.prune(dir)
		}
	}
	return nil
}

// put places what an entry stands for.
func (m *Merger) put(h *tar.Header, parts []string, content io.Reader) error {
	name := parts[len(parts)-1]
	dir, err := m.folder(parts[:len(parts)-1])
	if err != nil {
		return fmt.Errorf("%q: %w", h.Name, err)
	}
	n, err := m.node(h, dir.Children[name], content)
	if err != nil {
		return err
	}
	if n == nil {
		delete(dir.Children, name)
		return nil
	}
	dir.Children[name] = n
	m.touched[place{dir, name}] = struct{}{}
	return nil
}

// node makes what entry h stands for; nil when it is left out.
func (m *Merger) node(h *tar.Header, old *erofs.Node, content io.Reader) (*erofs.Node, error) {
	var n *erofs.Node
	switch h.Typeflag {
	case tar.TypeDir:
		n = erofs.NewDir(0)
		if old != nil && old.IsDir() {
			n = old
		}
	case tar.TypeReg, tar.TypeCont, tar.TypeGNUSparse:
		n = &erofs.Node{Mode: erofs.TypeRegular}
		if err := m.content(n, h, content); err != nil {
			return nil, err
		}
	case tar.TypeSymlink:
		if err := erofs.CheckTarget(h.Linkname); err != nil {
			return nil, fault.New(fault.Invalid, "a layer's entry %q: %v", h.Name, err)
		}
		n = erofs.NewSymlink(h.Linkname)
	case tar.TypeLink:
		return m.link(h)
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		m.stats.Devices++
		return nil, nil
	default:
		return nil, fault.New(fault.Invalid, "a layer's entry %q has the unknown type %q", h.Name, h.Typeflag)
	}
	return n, m.describe(n, h)
}

// content spools a file's bytes.
func (m *Merger) content(n *erofs.Node, h *tar.Header, r io.Reader) (err error) {
	if m.limits.FileSize > 0 && h.Size > m.limits.FileSize {
		return fault.New(fault.Invalid, "the file %q in a layer is larger than %d bytes", h.Name, m.limits.FileSize)
	}
	if m.limits.Bytes > 0 && h.Size > m.limits.Bytes-m.stats.Bytes { // a sparse file is small in the stream
		return tooBig(m.limits)
	}
	m.stats.Bytes += h.Size
	n.Size = h.Size
	n.Data, err = m.spool.add(r, h.Size)
	return err
}

// link finds the file that a hard link names.
func (m *Merger) link(h *tar.Header) (*erofs.Node, error) {
	parts, err := m.split(h.Linkname)
	if err != nil {
		return nil, err
	}
	if len(parts) > 0 {
		dir, _, err := tree.Lookup(m.root, "/"+strings.Join(parts[:len(parts)-1], "/"))
		if err == nil && dir.IsDir() {
			if n := dir.Children[parts[len(parts)-1]]; n != nil && !n.IsDir() {
				return n, nil
			}
		}
	}
	return nil, fault.New(fault.Invalid, "a layer's entry %q is a hard link to %q, which is no file of the image", h.Name, h.Linkname)
}

// describe takes over owner, permissions and time.
func (m *Merger) describe(n *erofs.Node, h *tar.Header) error {
	const max = 1<<32 - 1
	if h.Uid < 0 || h.Gid < 0 || h.Uid > max || h.Gid > max {
		return fault.New(fault.Invalid, "a layer's entry %q has the owner %d:%d", h.Name, h.Uid, h.Gid)
	}
	mode := uint16(h.Mode & 0o7777)
	if n.IsSymlink() {
		mode = 0o777
	}
	if mode&setID != 0 {
		m.stats.SetID++
		mode &^= setID
	}
	n.Mode = n.Type() | mode
	n.UID, n.GID = uint32(h.Uid), uint32(h.Gid)
	n.Mtime, n.MtimeNsec = 0, 0
	if !h.ModTime.IsZero() {
		n.Mtime, n.MtimeNsec = h.ModTime.Unix(), uint32(h.ModTime.Nanosecond())
	}
	return nil
}

// split cuts an entry's name into components. A leading slash is dropped; ".."
// is refused.
func (m *Merger) split(name string) ([]string, error) {
	if m.limits.Path > 0 && len(name) > m.limits.Path {
		return nil, fault.New(fault.Invalid, "a layer's entry has a name longer than %d bytes", m.limits.Path)
	}
	var parts []string
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." {
			continue
		}
		if err := erofs.CheckName(part); err != nil {
			return nil, fault.New(fault.Invalid, "a layer's entry %q: %v", name, err)
		}
		parts = append(parts, part)
	}
	if m.limits.Depth > 0 && len(parts) > m.limits.Depth {
		return nil, fault.New(fault.Invalid, "a layer's entry lies more than %d folders deep", m.limits.Depth)
	}
	return parts, nil
}

// folder returns the folder at parts, making what is missing. It and those
// above it count as part of the layer.
func (m *Merger) folder(parts []string) (*erofs.Node, error) {
	w := tree.NewWalk(m.root)
	w.MaxDepth = m.limits.Depth
	w.Missing = func(*erofs.Node, string) *erofs.Node {
		m.implied++
		return erofs.NewDir(0o755)
	}
	w.Visit = func(dir *erofs.Node, name string) {
		if dir.Children[name].IsDir() {
			m.touched[place{dir, name}] = struct{}{}
		}
	}
	if err := w.Follow(path.Join(parts...)); err != nil {
		return nil, err
	}
	if m.limits.Entries > 0 && m.stats.Entries+m.implied > m.limits.Entries {
		return nil, tooMany(m.limits)
	}
	if !w.Node().IsDir() {
		return nil, tree.ErrNotDir
	}
	return w.Node(), nil
}

// hide applies a whiteout: earlier layers' files vanish, this layer's stay.
func (m *Merger) hide(parent []string, name string) error {
	dir, _, err := tree.Lookup(m.root, "/"+path.Join(parent...))
	if err != nil || !dir.IsDir() {
		return nil // nothing there to hide
	}
	if name == opaque {
		m.prune(dir)
		return nil
	}
	name = strings.TrimPrefix(name, whiteout)
	if err := erofs.CheckName(name); err != nil {
		return fault.New(fault.Invalid, "a layer's whiteout: %v", err)
	}
	if _, ours := m.touched[place{dir, name}]; !ours {
		delete(dir.Children, name)
	} else if n := dir.Children[name]; n != nil && n.IsDir() {
		m.prune(n)
	}
	return nil
}

// prune takes away everything below dir that the current layer does not hold.
func (m *Merger) prune(dir *erofs.Node) {
	for stack := []*erofs.Node{dir}; len(stack) > 0; {
		dir := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for name, n := range dir.Children {
			if _, ours := m.touched[place{dir, name}]; !ours {
				delete(dir.Children, name)
			} else if n.IsDir() {
				stack = append(stack, n)
			}
		}
	}
}
