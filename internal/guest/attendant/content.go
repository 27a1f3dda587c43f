package attendant

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/proto"
)

// open opens a file as the user. One that is a pipe does not block.
func open(name string, flags int, mode uint32) (f *os.File, st unix.Stat_t, err error) {
	err = asUser(func() error {
		fd, err := unix.Open(name, flags|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, mode)
		if err != nil {
			return step("open", name, err)
		}
		if err := unix.Fstat(fd, &st); err != nil {
			unix.Close(fd)
			return step("stat", name, err)
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
		case unix.S_IFDIR:
			unix.Close(fd)
			return step("open", name, unix.EISDIR)
		default:
			unix.Close(fd)
			return refuse(proto.Mistaken, "%q is no file but a pipe, a socket or a device", name)
		}
		f = os.NewFile(uintptr(fd), name)
		return nil
	})
	return f, st, err
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
	f, st, err := open(name, unix.O_RDONLY, 0)
	if err != nil {
		return c.reply(proto.Reply{}, err)
	}
	defer f.Close()
	is := describe(name, &st)
	if c.Encode(proto.Answer, proto.Reply{File: &is}) != nil {
		return false
	}
	var r io.Reader = &at{f, q.Offset}
	if q.Limit >= 0 {
		r = io.LimitReader(r, q.Limit)
	}
	return c.send(r)
}

// at reads a file from a place on.
type at struct {
	f  *os.File
	at int64
}

func (a *at) Read(p []byte) (int, error) {
	n, err := a.f.ReadAt(p, a.at)
	a.at += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// send sends what r has, and the end.
func (c *peer) send(r io.Reader) bool {
	n, err := c.Copy(r)
	e := proto.Closing{Bytes: n}
	if failed, ok := errors.AsType[*proto.ReadError](err); ok {
		e.Error = refusal(failed.Err)
	} else if err != nil {
		return false
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
	f, _, err := open(name, unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT, mode)
	if errors.Is(err, fs.ErrNotExist) {
		if err = asUser(func() error { return makeFolders(path.Dir(name)) }); err == nil {
			f, _, err = open(name, unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT, mode)
		}
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if err := fill(f, b); err != nil {
		return 0, step("write", name, err)
	}
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), step("write", name, f.Close())
}

// fill writes all that comes.
func fill(f *os.File, b *proto.Content) error {
	p := pieces.Get().(*[proto.Piece]byte)
	defer pieces.Put(p)
	_, err := io.CopyBuffer(struct{ io.Writer }{f}, struct{ io.Reader }{b}, p[:])
	return err
}

// replace puts a new file in the place of what there is, when it is whole. Where
// only the file can be written, not its folder, it is written in place.
func replace(name string, mode uint32, b *proto.Content) (size int64, err error) {
	var f *os.File
	var t target
	err = asUser(func() (err error) {
		if t, err = settle(name, mode); err != nil {
			return err
		}
		f, err = t.open()
		return err
	})
	if err != nil {
		return 0, err
	}
	err = fill(f, b)
	if err == nil && !t.inPlace() {
		err = f.Chmod(fs.FileMode(t.mode & 0o777)) // the umask took bits away
	}
	if err == nil {
		size, err = f.Seek(0, io.SeekCurrent)
	}
	if e := f.Close(); err == nil {
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
			return t, refuse(proto.Mistaken, "%q is no file but a pipe, a socket or a device", name)
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
func (t *target) open() (*os.File, error) {
	const make = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Open(t.temporary, make, 0o600)
	if err == unix.EACCES || err == unix.EROFS || err == unix.EPERM {
		if here, e := unix.Open(t.name, unix.O_WRONLY|unix.O_TRUNC|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); e == nil {
			t.temporary = ""
			fd, err = here, nil
		}
	}
	if err != nil {
		return nil, step("write", t.name, err)
	}
	return os.NewFile(uintptr(fd), t.name), nil
}

// pieces are buffers for what passes through.
var pieces = sync.Pool{New: func() any { return new([proto.Piece]byte) }}
