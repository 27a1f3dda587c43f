package daemon

import (
	"archive/tar"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/proto"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// unpack writes what a tar stream has.
func (c *peer) unpack(q *proto.Path) bool {
	b := c.body()
	name, err := place(q.Path)
	if err != nil {
		return c.concluded(b, proto.Reply{}, err)
	}
	u := newUnpacker(name)
	err = asUser(func() error {
		if err := u.all(b); err != nil {
			return err
		}
		_, err := io.Copy(io.Discard, b) // what stands behind the archive's end
		return err
	})
	return c.concluded(b, proto.Reply{Count: u.files, Size: u.bytes}, err)
}

// skills writes what a tar stream has below the folder of skills, where process 1 alone can write
// otherwise. The files stay root's.
func (c *peer) skills() bool {
	b := c.body()
	u := newUnpacker(wire.Skills)
	u.base = skillsFD
	err := u.all(b)
	if err == nil {
		_, err = io.Copy(io.Discard, b)
	}
	return c.concluded(b, proto.Reply{Count: u.files, Size: u.bytes}, err)
}

// unpacker writes files below a path, which its root is. It works as the user, and
// goes by descriptors of folders that are links nowhere on the way.
type unpacker struct {
	root  string
	base  int // a descriptor of the root; -1 where the path leads to it
	files int64
	bytes int64
	dir   int    // the folder that the last entry was in, -1 for none
	name  string // its name
	later []folderEnd
	whole bool // the root is no folder: nothing follows
}

// folderEnd is what a folder gets when all that is in it was written.
type folderEnd struct {
	name string
	mode uint32
	time unix.Timespec
}

func newUnpacker(root string) *unpacker {
	return &unpacker{root: strings.TrimRight(root, "/"), base: -1, dir: -1}
}

// all unpacks a stream.
func (u *unpacker) all(r io.Reader) (err error) {
	if u.root == "" {
		u.root = "/"
	}
	defer u.leave()
	if u.base < 0 {
		if err := makeFolders(path.Dir(u.root)); err != nil {
			return err
		}
	}
	t := tar.NewReader(r)
	for {
		h, err := t.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return archiveError(err)
		}
		if err := u.entry(h, t); err != nil {
			return err
		}
	}
	u.leave()
	for _, f := range slices.Backward(u.later) {
		if err := u.finish(f); err != nil {
			return err
		}
	}
	return nil
}

// archiveError tells what is no archive from what could not be read.
func archiveError(err error) error {
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) {
		return refuse(proto.Invalid, "this is no tar archive, or it is cut off: %v", err)
	}
	return err
}

// inside is an entry's name as a clean path below the root, "." for the root.
func inside(name string) (string, error) {
	if strings.IndexByte(name, 0) >= 0 || slices.Contains(strings.Split(name, "/"), "..") {
		return "", refuse(proto.Denied, "the archive has an entry %q, which leads out of it", name)
	}
	clean := strings.TrimPrefix(path.Clean("/"+name), "/")
	if clean == "" {
		return ".", nil
	}
	return clean, nil
}

// at is where an entry goes, for errors.
func (u *unpacker) at(name string) string { return path.Join(u.root, name) }

func (u *unpacker) entry(h *tar.Header, content io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name, err := inside(h.Name)
	if err != nil {
		return err
	}
	if u.whole { // of a link it would stand where that leads
		return refuse(proto.Denied, "the archive has an entry %q behind one that is all of it and no folder", name)
	}
	u.whole = name == "." && h.Typeflag != tar.TypeDir
	folder, base := path.Split(name)
	if err := u.enter(strings.TrimSuffix(folder, "/"), name == "."); err != nil {
		return step("unpack", u.at(name), err)
	}
	if name == "." {
		base = path.Base(u.root)
		if u.root == "/" {
			base = "."
		}
	}
	u.files++
	at := unix.NsecToTimespec(h.ModTime.UnixNano())
	mode := uint32(h.Mode) & 0o7777
	switch h.Typeflag {
	case tar.TypeDir:
		u.later = append(u.later, folderEnd{name, mode, at})
		err = u.folder(base)
	case tar.TypeReg, tar.TypeGNUSparse, tar.TypeCont:
		err = u.file(base, mode, at, h.Size, content)
	case tar.TypeSymlink:
		if err = u.clear(base); err == nil {
			err = unix.Symlinkat(h.Linkname, u.dir, base)
		}
		if err == nil {
			unix.UtimesNanoAt(u.dir, base, []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW) //nolint:errcheck // not every file system keeps it
		}
	case tar.TypeLink:
		err = u.link(h.Linkname, base)
	case tar.TypeFifo:
		if err = u.clear(base); err == nil {
			err = unix.Mknodat(u.dir, base, unix.S_IFIFO|mode, 0)
		}
	default:
		return refuse(proto.Mistaken, "the archive has an entry %q that is a device", h.Name)
	}
	if _, ok := errors.AsType[*proto.Error](err); ok {
		return err
	}
	return step("unpack", u.at(name), err)
}

// enter opens the folder of an entry, and makes those that no entry was for. The
// root's own entry is in the folder above it.
func (u *unpacker) enter(folder string, root bool) error {
	if root {
		folder = ".."
	}
	if u.dir >= 0 && u.name == folder {
		return nil
	}
	u.leave()
	fd, err := u.open(folder)
	if err != nil {
		return err
	}
	u.dir, u.name = fd, folder
	return nil
}

func (u *unpacker) leave() {
	if u.dir >= 0 {
		unix.Close(u.dir)
		u.dir = -1
	}
}

const folderFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC

// open opens a folder below the root by its clean name; ".." is that of the root.
func (u *unpacker) open(folder string) (int, error) {
	above, dir, names := unix.AT_FDCWD, path.Dir(u.root), []string{path.Base(u.root)}
	if u.root == "/" {
		names[0] = "."
	}
	if u.base >= 0 {
		above, dir, names[0] = u.base, ".", "."
	}
	fd, err := unix.Openat(above, dir, folderFlags, 0)
	if folder == ".." || err != nil {
		return fd, err
	}
	if folder != "" && folder != "." {
		names = append(names, strings.Split(folder, "/")...)
	}
	for i, name := range names {
		err := unix.Mkdirat(fd, name, 0o755)
		if err != nil && err != unix.EEXIST {
			unix.Close(fd)
			return -1, err
		}
		var next int
		if i == 0 { // the caller's own choice, which may be a link
			next, err = unix.Openat(fd, name, folderFlags, 0)
		} else {
			next, err = openFolder(fd, name)
		}
		unix.Close(fd)
		if err != nil {
			return -1, err
		}
		fd = next
	}
	return fd, nil
}

// openFolder opens a folder that is no link. gVisor follows one where a folder is
// asked for, so it is compared with what stands there.
func openFolder(dir int, name string) (int, error) {
	fd, err := unix.Openat(dir, name, folderFlags|unix.O_NOFOLLOW, 0)
	if err != nil {
		return -1, err
	}
	var is, stands unix.Stat_t
	if err = unix.Fstat(fd, &is); err == nil {
		err = unix.Fstatat(dir, name, &stands, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err == nil && (is.Dev != stands.Dev || is.Ino != stands.Ino) {
		err = unix.ENOTDIR
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// folder makes a folder, which its content can be written to until finish.
func (u *unpacker) folder(name string) error {
	err := unix.Mkdirat(u.dir, name, 0o700)
	if err != unix.EEXIST {
		return err
	}
	var st unix.Stat_t
	flags := unix.AT_SYMLINK_NOFOLLOW
	if u.name == ".." {
		flags = 0
	}
	if err := unix.Fstatat(u.dir, name, &st, flags); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return nil
	}
	if err := unix.Unlinkat(u.dir, name, 0); err != nil {
		return err
	}
	return unix.Mkdirat(u.dir, name, 0o700)
}

// clear removes what has a name, unless it is a folder.
func (u *unpacker) clear(name string) error {
	err := unix.Unlinkat(u.dir, name, 0)
	if err == unix.ENOENT {
		return nil
	}
	return err
}

func (u *unpacker) file(name string, mode uint32, at unix.Timespec, size int64, content io.Reader) error {
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := openAt(u.dir, name, flags, mode&0o777)
	if err == unix.EEXIST {
		if err = u.clear(name); err == nil {
			fd, err = openAt(u.dir, name, flags, mode&0o777)
		}
	}
	if err != nil {
		return err
	}
	n, err := writeAll(fd, content)
	u.bytes += n
	if err == nil && n != size {
		err = io.ErrUnexpectedEOF
	}
	if err == nil && mode&^umasked != 0 {
		err = unix.Fchmod(fd, mode) // the umask took bits away
	}
	if err == nil {
		err = setTime(fd, at)
	}
	if e := unix.Close(fd); err == nil {
		err = e
	}
	return archiveError(err)
}

// writeAll writes a file's content.
func writeAll(fd int, content io.Reader) (total int64, err error) {
	b := pieces.Get().(*buffer)
	defer pieces.Put(b)
	for {
		n, err := content.Read(b[:])
		for p := b[:n]; len(p) > 0; {
			m, err := write(fd, p)
			if err != nil {
				return total, err
			}
			total += int64(m)
			p = p[m:]
		}
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// link makes another name of a file that was unpacked before.
func (u *unpacker) link(to, name string) error {
	first, err := inside(to)
	if err != nil {
		return err
	}
	folder, base := path.Split(first)
	from, err := u.open(strings.TrimSuffix(folder, "/"))
	if err != nil {
		return err
	}
	defer unix.Close(from)
	if err := u.clear(name); err != nil {
		return err
	}
	return unix.Linkat(from, base, u.dir, name, 0)
}

// finish gives a folder its mode and time.
func (u *unpacker) finish(f folderEnd) error {
	name := f.name
	fd, err := u.open(name)
	if err != nil {
		return step("unpack", u.at(f.name), err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return step("unpack", u.at(f.name), err)
	}
	if st.Mode&0o7777 != f.mode {
		if err := unix.Fchmod(fd, f.mode); err != nil && (rootPrograms || st.Uid == wire.UID) {
			return step("unpack", u.at(f.name), err)
		}
	}
	setTime(fd, f.time) //nolint:errcheck // not every file system keeps it
	return nil
}
