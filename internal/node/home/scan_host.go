package home

import (
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// readNames lists an open folder, sorted.
func readNames(fd int) (names []string, err error) {
	if _, err := unix.Seek(fd, 0, unix.SEEK_SET); err != nil {
		return nil, err
	}
	buf := direntBuffers.Get().(*[]byte)
	defer direntBuffers.Put(buf)
	for {
		n, err := unix.ReadDirent(fd, *buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		if n == 0 {
			slices.Sort(names)
			return names, nil
		}
		_, _, names = unix.ParseDirent((*buf)[:n], -1, names)
	}
}

var direntBuffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

// statShare is how many entries make it worth to look at them in parallel.
const statShare = 512

// stat looks at entries of a folder.
func (sc *scanner) stat(fd int, names []string) ([]unix.Stat_t, error) {
	stats := make([]unix.Stat_t, len(names))
	each := func(from, to int) error {
		for i := from; i < to; i++ {
			switch err := unix.Fstatat(fd, names[i], &stats[i], unix.AT_SYMLINK_NOFOLLOW); err {
			case nil:
			case unix.ENOENT:
				return ErrChanged
			default:
				return hostError("look at", names[i], err)
			}
		}
		return nil
	}
	if len(names) < 2*statShare {
		return stats, each(0, len(names))
	}
	share := max(len(names)/runtime.GOMAXPROCS(0), statShare)
	var wait sync.WaitGroup
	failed := make([]error, len(names)/share+1)
	for k := range failed {
		wait.Go(func() { failed[k] = each(k*share, min((k+1)*share, len(names))) })
	}
	wait.Wait()
	for _, err := range failed {
		if err != nil {
			return nil, err
		}
	}
	return stats, nil
}

func readLink(fd int, name string) (string, error) {
	buf := make([]byte, maxTarget+2)
	n, err := unix.Readlinkat(fd, name, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// readXattrs returns the attributes of an open file that programs gave it.
func readXattrs(fd int) ([]xattr, error) {
	n, err := unix.Flistxattr(fd, nil)
	if n == 0 || err == unix.ENOTSUP {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	buf := make([]byte, n)
	if n, err = unix.Flistxattr(fd, buf); err != nil {
		return nil, err
	}
	var all []xattr
	for name := range strings.SplitSeq(string(buf[:n]), "\x00") {
		if !validXattr(name) {
			continue
		}
		value := make([]byte, maxXattrs)
		n, err := unix.Fgetxattr(fd, name, value)
		if err != nil {
			return nil, err
		}
		all = append(all, xattr{name, string(value[:n])})
	}
	slices.SortFunc(all, func(a, b xattr) int { return strings.Compare(a.name, b.name) })
	return all, nil
}
