package daemon

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/proto"
)

// pack sends a tar stream of a file or folder.
func (c *peer) pack(q *proto.Path) bool {
	name, err := place(q.Path)
	if err == nil {
		err = asUser(func() error { _, err := look(name); return err })
	}
	if err != nil {
		return c.reply(proto.Reply{}, err)
	}
	if c.Encode(proto.Answer, proto.Reply{}) != nil {
		return false
	}
	p := newPacker(&framer{c.Conn})
	err = asUser(func() error { return p.all(name) })
	if c.broken(err) {
		return false
	}
	e := proto.Closing{Files: p.files, Bytes: p.bytes}
	if err != nil {
		e.Error = refusal(err)
	}
	return c.last(e)
}

// broken reports whether an error is that of the connection.
func (c *peer) broken(err error) bool {
	_, ok := errors.AsType[sendError](err)
	return ok
}

type sendError struct{ error }

// framer makes frames of what is written.
type framer struct{ *proto.Conn }

func (f *framer) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := copy(f.Space(min(len(rest), proto.Piece)), rest)
		f.Commit(proto.Data, n)
		rest = rest[n:]
		if f.Pending() >= proto.Piece {
			if err := f.Flush(); err != nil {
				return 0, sendError{err}
			}
		}
	}
	return len(p), nil
}

// packer writes files to a tar stream. It works as the user.
type packer struct {
	w     *tar.Writer
	buf   *gathered
	links map[inode]string // the first name of a file that has several
	files int64
	bytes int64
}

type inode struct{ dev, ino uint64 }

func inodeOf(st *unix.Stat_t) inode {
	return inode{uint64(st.Dev), st.Ino} //nolint:unconvert // fields differ by machine
}

func newPacker(w io.Writer) *packer {
	g := &gathered{w: w}
	return &packer{w: tar.NewWriter(g), buf: g, links: make(map[inode]string)}
}

// gathered puts small writes together.
type gathered struct {
	w io.Writer
	b []byte
}

func (g *gathered) Write(p []byte) (int, error) {
	if len(p) < proto.Piece/2 {
		g.b = append(g.b, p...)
		if len(g.b) < proto.Piece/2 {
			return len(p), nil
		}
		return len(p), g.flush()
	}
	if err := g.flush(); err != nil {
		return 0, err
	}
	return g.w.Write(p)
}

func (g *gathered) flush() error {
	if len(g.b) == 0 {
		return nil
	}
	_, err := g.w.Write(g.b)
	g.b = g.b[:0]
	return err
}

// all packs what stands at a path.
func (p *packer) all(name string) error {
	fd, err := unix.Open(path.Dir(strings.TrimRight(name, "/")), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return step("open the folder of", name, err)
	}
	defer unix.Close(fd)
	base := path.Base(strings.TrimRight(name, "/"))
	if base == "/" || base == "." {
		base = "."
	}
	if err := p.entry(fd, base, ".", name); err != nil {
		return err
	}
	if err := p.w.Close(); err != nil {
		return err
	}
	return p.buf.flush()
}

// entry packs what a folder has under a name, as the entry as. The path is for errors.
func (p *packer) entry(dir int, name, as, at string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		if err == unix.ENOENT && as != "." {
			return nil // it has gone meanwhile
		}
		return step("pack", at, err)
	}
	h := header(as, &st)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return p.folder(dir, name, as, at, h)
	case unix.S_IFREG:
		fd, err := openAt(dir, name, fileFlags, 0)
		if err != nil {
			return step("pack", at, err)
		}
		return p.file(fd, at, h, &st)
	case unix.S_IFLNK:
		b := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(dir, name, b)
		if err != nil {
			return step("pack", at, err)
		}
		h.Typeflag, h.Linkname = tar.TypeSymlink, string(b[:n])
	case unix.S_IFIFO:
		h.Typeflag = tar.TypeFifo
	default:
		if as == "." {
			return noFile(at)
		}
		return nil // sockets and devices mean nothing elsewhere
	}
	p.files++
	return p.w.WriteHeader(h)
}

// file packs a file, which it closes.
func (p *packer) file(fd int, at string, h *tar.Header, st *unix.Stat_t) error {
	defer closeRead(fd)
	if st.Nlink > 1 {
		id := inodeOf(st)
		if first, ok := p.links[id]; ok {
			h.Typeflag, h.Linkname = tar.TypeLink, first
			p.files++
			return p.w.WriteHeader(h)
		}
		p.links[id] = h.Name
	}
	h.Typeflag, h.Size = tar.TypeReg, st.Size
	p.files++
	p.bytes += st.Size
	if err := p.w.WriteHeader(h); err != nil {
		return err
	}
	b := pieces.Get().(*buffer)
	defer pieces.Put(b)
	for left := st.Size; left > 0; {
		n, err := read(fd, b[:min(left, int64(len(b)))])
		switch {
		case err != nil:
			return step("pack", at, err)
		case n == 0:
			return refuse(proto.Failed, "%q became shorter while it was packed", at)
		}
		if _, err := p.w.Write(b[:n]); err != nil {
			return err
		}
		left -= int64(n)
	}
	return nil
}

func (p *packer) folder(dir int, name, as, at string, h *tar.Header) error {
	h.Typeflag, h.Name = tar.TypeDir, as+"/"
	p.files++
	if err := p.w.WriteHeader(h); err != nil {
		return err
	}
	fd, err := openFolder(dir, name)
	if err != nil {
		return step("pack", at, err)
	}
	f := os.NewFile(uintptr(fd), at)
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return step("pack", at, err)
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		below := e.Name()
		if as != "." {
			below = as + "/" + below
		}
		pack := p.entry
		if e.Type().IsRegular() {
			pack = p.regular
		}
		if err := pack(fd, e.Name(), below, at+"/"+e.Name()); err != nil {
			return err
		}
	}
	return nil
}

// regular packs what a folder was said to have a file as. Each look at a name is a
// question to the file server beside the sandbox, so it is opened at once.
func (p *packer) regular(dir int, name, as, at string) error {
	fd, err := openAt(dir, name, fileFlags, 0)
	if err != nil {
		return p.entry(dir, name, as, at) // it is something else meanwhile, or closed
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		closeRead(fd)
		return p.entry(dir, name, as, at)
	}
	return p.file(fd, at, header(as, &st), &st)
}

const fileFlags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC

// header begins an entry.
func header(name string, st *unix.Stat_t) *tar.Header {
	h := &tar.Header{
		Name: name, Mode: int64(st.Mode & 0o7777), Uid: int(st.Uid), Gid: int(st.Gid),
		ModTime: time.Unix(int64(st.Mtim.Sec), int64(st.Mtim.Nsec)), //nolint:unconvert // fields differ by machine
	}
	if st.Mtim.Nsec != 0 {
		h.Format = tar.FormatPAX // the other formats round times to seconds
	}
	return h
}

// moveAcross moves between file systems: by a copy, which takes the new name when
// it is whole. It is called as the user.
func moveAcross(from, to string, replace bool) error {
	to = strings.TrimRight(to, "/")
	if _, err := look(to); err == nil && !replace {
		return unix.EEXIST
	}
	copied := path.Dir(to) + "/" + temporaryName()
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := asUser(func() error { return newPacker(w).all(from) })
		w.CloseWithError(err)
		done <- err
	}()
	u := newUnpacker(copied)
	err := u.all(r)
	r.CloseWithError(fs.ErrClosed)
	if e := <-done; err == nil {
		err = e
	}
	if err == nil {
		err = rename(copied, to, replace)
	}
	if err != nil {
		os.RemoveAll(copied)
		return err
	}
	return os.RemoveAll(from)
}
