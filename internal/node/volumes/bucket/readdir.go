package bucket

import (
	"context"
	"errors"
	"io"
	"strings"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"gocloud.dev/blob"
)

// Readdir implements fs.NodeReaddirer.
func (n *node) Readdir(context.Context) (fs.DirStream, syscall.Errno) {
	l := &listing{m: n.m, below: n.below()}
	return l, l.begin() // at once, if the bucket cannot be listed at all
}

// listing is a folder that is being listed, a page at a time: how much is in a
// bucket is for its owner to say, and is not to fill this process's memory.
type listing struct {
	m     *Mount
	below string

	first []fuse.DirEntry // files that are open, or not stored yet
	open  map[string]bool // the same by name
	all   *blob.ListIterator
	files []string // names of files that the names to come may begin with

	next   fuse.DirEntry
	at     uint64 // how many were there before next
	more   bool
	failed syscall.Errno
}

var _ fs.FileSeekdirer = (*listing)(nil)

func (l *listing) begin() syscall.Errno {
	*l = listing{m: l.m, below: l.below, open: map[string]bool{}}
	l.m.mu.Lock()
	for key := range l.m.files {
		if rest, ok := strings.CutPrefix(key, l.below); ok && entryName(rest) {
			l.open[rest] = true
			l.first = append(l.first, fuse.DirEntry{Name: rest, Mode: syscall.S_IFREG})
		}
	}
	l.m.mu.Unlock()
	l.all = l.m.cfg.Objects.List(&blob.ListOptions{Prefix: l.below, Delimiter: "/"})
	l.advance()
	return l.failed
}

// Seekdir implements fs.FileSeekdirer: a reader that goes back begins anew.
func (l *listing) Seekdir(_ context.Context, off uint64) syscall.Errno {
	if off < l.at {
		if no := l.begin(); no != 0 {
			return no
		}
	}
	for l.at < off && l.HasNext() {
		if _, no := l.Next(); no != 0 {
			return no
		}
	}
	return 0
}

// HasNext implements fs.DirStream.
func (l *listing) HasNext() bool { return l.more || l.failed != 0 }

// Next implements fs.DirStream.
func (l *listing) Next() (fuse.DirEntry, syscall.Errno) {
	if l.failed != 0 {
		return fuse.DirEntry{}, l.failed
	}
	e := l.next
	l.at++
	e.Off = l.at
	l.advance()
	return e, 0
}

// Close implements fs.DirStream.
func (l *listing) Close() {}

func (l *listing) advance() {
	if l.more = len(l.first) > 0; l.more {
		l.next, l.first = l.first[0], l.first[1:]
		return
	}
	for {
		o, err := l.all.Next(l.m.ctx)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				l.failed = errno(err)
			}
			return
		}
		key := strings.TrimPrefix(o.Key, l.below)
		name, mode := strings.TrimSuffix(key, "/"), uint32(syscall.S_IFDIR)
		if !o.IsDir {
			name, mode = key, syscall.S_IFREG
		}
		if entryName(name) && !l.seen(name, o.IsDir) {
			l.next, l.more = fuse.DirEntry{Name: name, Mode: mode}, true
			return
		}
	}
}

// seen reports whether a name has been listed: as an open file, or as a file whose
// name a folder has too. Names come in order, so that a file is followed at once
// by what begins with its name.
func (l *listing) seen(name string, folder bool) bool {
	for len(l.files) > 0 && !strings.HasPrefix(name, l.files[len(l.files)-1]) {
		l.files = l.files[:len(l.files)-1]
	}
	for _, file := range l.files {
		if folder && file == name {
			return true
		}
	}
	if !folder {
		l.files = append(l.files, name)
	}
	return l.open[name]
}

// entryName reports whether something can be a name in a folder; what cannot is
// left out.
func entryName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00") && len(name) <= 255
}
