package daemon

import (
	"bytes"
	"encoding/binary"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/proto"
)

// maxWatches bounds the folders of one watch.
const maxWatches = 8192

// watch tells of changes until the host hangs up.
func (c *peer) watch(q *proto.Watch) bool {
	name, err := place(q.Path)
	if err != nil {
		return c.reply(proto.Reply{}, err)
	}
	w, err := newWatcher(path.Clean(name), q.Recursive)
	if err != nil {
		return c.reply(proto.Reply{}, err)
	}
	defer w.Close()
	if !c.reply(proto.Reply{}, nil) {
		return false
	}
	// Closing the file ends the loop.
	stop := c.watchOut(func() { w.Close() })
	defer stop()
	b := make([]byte, 64<<10)
	for {
		n, err := w.Read(b)
		if err != nil {
			return false
		}
		changes := w.changes(b[:n])
		if len(changes) == 0 {
			continue
		}
		if c.Encode(proto.Change, changes) != nil || c.Flush() != nil {
			return false
		}
	}
}

// watcher is an inotify with what it watches.
type watcher struct {
	*os.File
	fd        int
	recursive bool
	paths     map[int32]string // by watch
	root      int32            // the watch of what was asked for
}

const watchedEvents = unix.IN_CREATE | unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
	unix.IN_DELETE_SELF | unix.IN_MOVE_SELF

func newWatcher(name string, recursive bool) (*watcher, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, step("watch", name, err)
	}
	w := &watcher{File: os.NewFile(uintptr(fd), "inotify"), fd: fd, recursive: recursive, paths: make(map[int32]string)}
	err = asUser(func() error {
		if err := w.add(name); err != nil {
			return step("watch", name, err)
		}
		for w.root = range w.paths {
			break
		}
		if recursive {
			w.below(name, nil)
		}
		return nil
	})
	if err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// add watches one path. It is called as the user.
func (w *watcher) add(name string) error {
	if len(w.paths) >= maxWatches {
		return refuse(proto.Limited, "there are more than %d folders to watch", maxWatches)
	}
	wd, err := unix.InotifyAddWatch(w.fd, name, watchedEvents)
	if err == nil {
		w.paths[int32(wd)] = name
	}
	return err
}

// below watches the folders of a folder, and calls found for all that is in them.
// What cannot be watched is left out. It is called as the user.
func (w *watcher) below(folder string, found func(name string, folder bool)) {
	entries, err := readDir(folder)
	if err != nil {
		return
	}
	for _, e := range entries {
		name := strings.TrimSuffix(folder, "/") + "/" + e.Name()
		if found != nil {
			found(name, e.IsDir())
		}
		if e.IsDir() && w.add(name) == nil {
			w.below(name, found)
		}
	}
}

// changes makes of what was read what the host is told.
func (w *watcher) changes(b []byte) (list []proto.Changed) {
	say := func(change, name string, folder bool) {
		list = append(list, proto.Changed{Change: change, Path: []byte(name), Folder: folder})
	}
	for len(b) >= unix.SizeofInotifyEvent {
		wd := int32(binary.NativeEndian.Uint32(b))
		mask := binary.NativeEndian.Uint32(b[4:])
		n := int(binary.NativeEndian.Uint32(b[12:]))
		text := b[unix.SizeofInotifyEvent:]
		if n > len(text) {
			break
		}
		b = text[n:]
		folder := mask&unix.IN_ISDIR != 0
		if mask&unix.IN_Q_OVERFLOW != 0 {
			say("lost", "", false)
			continue
		}
		name, ok := w.paths[wd]
		if !ok {
			continue
		}
		if own := bytes.TrimRight(text[:n], "\x00"); len(own) > 0 {
			name = strings.TrimSuffix(name, "/") + "/" + string(own)
		} else if wd != w.root && mask&unix.IN_IGNORED == 0 {
			continue // its folder tells of it
		}
		switch {
		case mask&unix.IN_IGNORED != 0:
			delete(w.paths, wd)
		case mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0:
			say("created", name, folder)
			if folder && w.recursive {
				// What was put into it before it was watched is told of here.
				asUser(func() error { //nolint:errcheck // what cannot be watched is left out
					if w.add(name) == nil {
						w.below(name, func(p string, f bool) { say("created", p, f) })
					}
					return nil
				})
			}
		case mask&(unix.IN_DELETE|unix.IN_MOVED_FROM|unix.IN_DELETE_SELF|unix.IN_MOVE_SELF) != 0:
			say("removed", name, folder)
			w.forget(name)
		case mask&(unix.IN_MODIFY|unix.IN_ATTRIB) != 0:
			say("modified", name, folder)
		}
	}
	return list
}

// forget ends the watches of what has gone, and all below it.
func (w *watcher) forget(name string) {
	for wd, p := range w.paths {
		if p == name || strings.HasPrefix(p, name+"/") {
			unix.InotifyRmWatch(w.fd, uint32(wd)) //nolint:errcheck // it may have gone with what it watched
			delete(w.paths, wd)
		}
	}
}
