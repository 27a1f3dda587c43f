package daemon

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"math"
	"os"
	"path"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/proto"
)

// open opens a file as the user. One that is a pipe does not block.
func open(name string, flags int, mode uint32) (fd int, st unix.Stat_t, err error) {
	err = asUser(func() (err error) {
		fd, err = openAt(unix.AT_FDCWD, name, flags|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, mode)
		if err == unix.ENXIO { // a socket, a pipe without a reader, a terminal that there is none of
			return noFile(name)
		}
		if err != nil {
			return step("open", name, err)
		}
		return nil
	})
	if err != nil {
		return -1, st, err
	}
	if err := unix.Fstat(fd, &st); err != nil {
		closeRead(fd)
		return -1, st, step("stat", name, err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return fd, st, nil
	case unix.S_IFDIR:
		err = step("open", name, unix.EISDIR)
	default:
		err = noFile(name)
	}
	closeRead(fd)
	return -1, st, err
}

// noFile says that what stands at a path has no content.
func noFile(name string) error {
	return refuse(proto.Mistaken, "%q is no file but a pipe, a socket or a device", name)
}

// readFile sends a file's content.
func (c *peer) readFile(q *proto.Read) bool {
	name, err := place(q.Path)
	if err == nil && q.Offset < 0 {
		err = refuse(proto.Invalid, "a file begins at 0")
	}
	if err != nil {
		return c.reply(proto.Reply{}, err)
	}
	fd, st, err := open(name, unix.O_RDONLY, 0)
	if err != nil {
		return c.reply(proto.Reply{}, err)
	}
	defer closeRead(fd)
	is := describe(name, &st)
	if c.Encode(proto.Answer, proto.Reply{File: &is}) != nil {
		return false
	}
	if q.Limit < 0 {
		q.Limit = math.MaxInt64
	}
	e := proto.Closing{}
	for at, over := q.Offset, false; !over && q.Limit > 0; {
		// A byte more than there is shows the end without another look.
		size := max(min(st.Size-at+1, q.Limit, proto.Piece), min(q.Limit, 4<<10))
		n, err := retry(func() (int, error) { return unix.Pread(fd, c.Space(int(size)), at) })
		if err != nil {
			e.Error = refusal(step("read", name, err))
			break
		}
		at += int64(n)
		e.Bytes += int64(n)
		q.Limit -= int64(n)
		over = n == 0 || int64(n) < size && at == st.Size // what /proc has is longer than it says
		if n > 0 {
			c.Commit(proto.Data, n)
		}
		if c.Pending() >= proto.Piece/2 && c.Flush() != nil {
			return false
		}
	}
	return c.last(e)
}

// create writes a file.
func (c *peer) create(q *proto.Create) bool {
	b := c.body()
	name, err := place(q.Path)
	if err != nil {
		return c.concluded(b, proto.Reply{}, err)
	}
	var size int64
	if q.Append {
		size, err = appendTo(name, q.Mode, b)
	} else {
		size, err = replace(name, q.Mode, b)
	}
	return c.concluded(b, proto.Reply{Size: size}, err)
}

func appendTo(name string, mode uint32, b *proto.Content) (int64, error) {
	if mode == 0 {
		mode = 0o644
	}
	fd, _, err := open(name, unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT, mode)
	if errors.Is(err, fs.ErrNotExist) {
		if err = asUser(func() error { return makeFolders(path.Dir(name)) }); err == nil {
			fd, _, err = open(name, unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT, mode)
		}
	}
	if err != nil {
		return 0, err
	}
	_, err = writeAll(fd, b)
	var st unix.Stat_t
	if err == nil {
		err = unix.Fstat(fd, &st)
	}
	if e := unix.Close(fd); err == nil {
		err = e
	}
	return st.Size, step("write", name, err)
}

// replace puts a new file in the place of what there is, when it is whole. Where
// only the file can be written, not its folder, it is written in place.
func replace(name string, mode uint32, b *proto.Content) (size int64, err error) {
	fd := -1
	var t target
	err = asUser(func() (err error) {
		if t, err = settle(name, mode); err != nil {
			return err
		}
		fd, err = t.open()
		return err
	})
	if err != nil {
		return 0, err
	}
	size, err = writeAll(fd, b)
	if err == nil && !t.inPlace() && t.mode&0o777&^umasked != 0 {
		err = unix.Fchmod(fd, t.mode&0o777)
	}
	if e := unix.Close(fd); err == nil {
		err = e
	}
	if t.inPlace() {
		return size, step("write", name, err)
	}
	err = asUser(func() error {
		if err == nil {
			err = unix.Rename(t.temporary, t.name)
		}
		if err != nil {
			unix.Unlink(t.temporary) //nolint:errcheck // it may never have been made
		}
		return err
	})
	return size, step("write", name, err)
}

// target is where a file goes.
type target struct {
	name      string // links followed
	temporary string // "" where it has to be written in place
	mode      uint32
}

func (t *target) inPlace() bool { return t.temporary == "" }

// settle finds where a file goes. It is called as the user.
func settle(name string, mode uint32) (t target, err error) {
	t = target{name: name, mode: mode}
	for range 40 {
		var st unix.Stat_t
		err := unix.Lstat(t.name, &st)
		switch {
		case err == unix.ENOENT:
			if err := makeFolders(path.Dir(t.name)); err != nil {
				return t, err
			}
		case err != nil:
			return t, step("write", name, err)
		case st.Mode&unix.S_IFMT == unix.S_IFLNK:
			to, err := os.Readlink(t.name)
			if err != nil {
				return t, step("write", name, err)
			}
			if !path.IsAbs(to) {
				to = path.Dir(t.name) + "/" + to
			}
			t.name = to
			continue
		case st.Mode&unix.S_IFMT == unix.S_IFDIR:
			return t, step("write", name, unix.EISDIR)
		case st.Mode&unix.S_IFMT != unix.S_IFREG:
			return t, noFile(name)
		case t.mode == 0:
			t.mode = st.Mode & 0o7777
		}
		if t.mode == 0 {
			t.mode = 0o644
		}
		t.temporary = path.Dir(t.name) + "/" + temporaryName()
		return t, nil
	}
	return t, step("write", name, unix.ELOOP)
}

func temporaryName() string {
	random := make([]byte, 6)
	rand.Read(random)
	return ".atoll-" + hex.EncodeToString(random)
}

// open makes the file. It is called as the user.
func (t *target) open() (int, error) {
	const make = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := openAt(unix.AT_FDCWD, t.temporary, make, t.mode&umasked)
	if err == unix.EACCES || err == unix.EROFS || err == unix.EPERM {
		if here, e := openAt(unix.AT_FDCWD, t.name, unix.O_WRONLY|unix.O_TRUNC|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); e == nil {
			t.temporary = ""
			fd, err = here, nil
		}
	}
	if err != nil {
		return -1, step("write", t.name, err)
	}
	return fd, nil
}

// umasked are the permissions that a new file gets at once: the guest daemon's umask
// leaves them.
const umasked = 0o755

// pieces are buffers for what passes through.
var pieces = sync.Pool{New: func() any { return new(buffer) }}

type buffer [proto.Piece]byte
