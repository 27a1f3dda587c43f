package home

import (
	"context"

	"golang.org/x/sys/unix"
)

// remove removes what the tree that a folder had calls n, with all that is in it.
func remove(fd int, n *node) error { return removeName(fd, n.name, n.kind == kindDir) }

func removeName(fd int, name string, isFolder bool) error {
	if !isFolder {
		if err := unix.Unlinkat(fd, name, 0); err != nil {
			return hostError("remove", name, err)
		}
		return nil
	}
	sub, err := unix.Openat(fd, name, openFolder, 0)
	if err != nil {
		return hostError("open folder", name, err)
	}
	defer unix.Close(sub)
	if err := clearFolder(sub); err != nil {
		return err
	}
	if err := unix.Unlinkat(fd, name, unix.AT_REMOVEDIR); err != nil {
		return hostError("remove", name, err)
	}
	return nil
}

// clearFolder removes all that is in an open folder.
func clearFolder(fd int) error {
	names, err := readNames(fd)
	if err != nil {
		return hostError("list", ".", err)
	}
	for _, name := range names {
		switch err := unix.Unlinkat(fd, name, 0); err {
		case nil:
		case unix.EISDIR:
			if err := removeName(fd, name, true); err != nil {
				return err
			}
		default:
			return hostError("remove", name, err)
		}
	}
	return nil
}

// stampTree notes how the kernel sees what was just made.
func stampTree(ctx context.Context, fd int, root *node) error {
	now, err := kernelNow()
	if err != nil {
		return err
	}
	sc := &scanner{ctx: ctx}
	var folder func(fd int, n *node) error
	folder = func(fd int, n *node) error {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		names := make([]string, len(n.children))
		for i, c := range n.children {
			names[i] = c.name
		}
		stats, err := sc.stat(fd, names)
		if err != nil {
			return err
		}
		for i, c := range n.children {
			c.file().stamped(&stats[i], now)
			if c.kind != kindDir {
				continue
			}
			sub, err := unix.Openat(fd, c.name, openFolder, 0)
			if err != nil {
				return hostError("open folder", c.name, err)
			}
			err = folder(sub, c)
			unix.Close(sub)
			if err != nil {
				return err
			}
		}
		return nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return hostError("look at", ".", err)
	}
	root.stamped(&st, now)
	return folder(fd, root)
}

func (n *node) stamped(st *unix.Stat_t, now instant) {
	n.stamp = stamp{ino: st.Ino, ctime: instantOf(st.Ctim)}
	n.stamp.sure = n.stamp.ctime.before(now)
	n.foreign = nil
}
