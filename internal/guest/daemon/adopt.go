package daemon

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/proto"
)

// adopt has the host make a folder or a file, and gives it its name when it is whole. Until
// then it is in a folder that no program of the sandbox can look into: the kernel
// remembers what it was asked of, and would miss what comes later. So that is not
// listed here either before the host is done.
func (c *peer) adopt(q *proto.Path) bool {
	var a adoption
	name, err := place(q.Path)
	if err == nil {
		err = a.begin(name)
	}
	if err != nil {
		return c.reply(proto.Reply{}, errors.Join(err, a.end()))
	}
	var e proto.Closing
	if !c.reply(proto.Reply{Paths: [][]byte{[]byte(a.nursery)}}, nil) || !c.ending(&e) {
		_ = a.end() // the host has gone
		return false
	}
	if e.Error == nil {
		err = a.keep()
	}
	e = proto.Closing{}
	if err = errors.Join(err, a.end()); err != nil {
		e.Error = refusal(err)
	}
	return c.last(e)
}

// ending reads how the host is done.
func (c *peer) ending(e *proto.Closing) bool {
	t, err := c.Next()
	return err == nil && t == proto.End && c.Decode(e) == nil
}

// adoption is what is being adopted.
type adoption struct {
	name    string // what it will be called
	folder  *os.File
	nursery string // the whole path of the folder in folder where it grows up
}

// begin makes the nursery beside where the new folder will be, if the user could
// have made that.
func (a *adoption) begin(name string) error {
	clean := strings.TrimRight(name, "/")
	a.name = path.Base(clean)
	if a.name == "." || a.name == ".." || a.name == "/" {
		return refuse(proto.Exists, "%q is there already", name)
	}
	fd := -1
	err := asUser(func() (err error) {
		if _, err := look(clean); err == nil {
			return refuse(proto.Exists, "%q is there already", name)
		}
		folder := path.Dir(clean)
		if err := makeFolders(folder); err != nil {
			return err
		}
		if fd, err = unix.Open(folder, folderFlags, 0); err != nil {
			return step("open", folder, err)
		}
		return step("write to", folder, unix.Faccessat2(fd, ".", unix.W_OK|unix.X_OK, unix.AT_EACCESS))
	})
	if fd >= 0 {
		a.folder = os.NewFile(uintptr(fd), name)
	}
	if err != nil {
		return err
	}
	real, err := os.Readlink(a.path())
	if err != nil {
		return err
	}
	nursery := temporaryName()
	if err := unix.Mkdirat(fd, nursery, 0o700); err != nil {
		return step("make a folder in", real, err)
	}
	a.nursery = path.Join(real, nursery)
	return nil
}

// path leads to the folder, wherever that is by now.
func (a *adoption) path() string { return "/proc/self/fd/" + strconv.Itoa(int(a.folder.Fd())) }

func (a *adoption) keep() error {
	at := int(a.folder.Fd())
	from, err := unix.Openat(at, path.Base(a.nursery), folderFlags|unix.O_NOFOLLOW, 0)
	if err != nil {
		return step("open", a.nursery, err)
	}
	defer unix.Close(from)
	return step("make", a.name, unix.Renameat2(from, proto.Adopted, at, a.name, unix.RENAME_NOREPLACE))
}

// end removes what is left of the nursery.
func (a *adoption) end() (err error) {
	if a.folder == nil {
		return nil
	}
	if a.nursery != "" {
		name := path.Base(a.nursery)
		if err = unix.Unlinkat(int(a.folder.Fd()), name, unix.AT_REMOVEDIR); err != nil && err != unix.ENOENT {
			err = os.RemoveAll(a.path() + "/" + name)
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	return errors.Join(err, a.folder.Close())
}
