package home

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/thread"
)

func (n *node) entry(path string) thread.Entry {
	f := n.file()
	return thread.Entry{Name: n.name, Path: path, Size: f.size, Modified: time.Unix(f.mtime.sec, int64(f.mtime.nsec)),
		Directory: f.kind == kindDir, Link: f.target}
}

// maxPath bounds a path that a caller names, in bytes.
const maxPath = 1 << 20

// parsePath cuts a path as callers write it. It is from the home on, with a slash
// in front or without.
func parsePath(path string) ([]string, error) {
	rest := strings.Trim(path, "/")
	if len(path) > maxPath {
		return nil, fault.New(fault.Invalid, "path must have at most %d bytes", maxPath)
	}
	if rest == "" {
		return nil, nil
	}
	parts := strings.Split(rest, "/")
	for _, p := range parts {
		if !validName(p) {
			return nil, fault.New(fault.Invalid, "path must have parts of 1 to 255 bytes, without NUL, none of them . or ..")
		}
	}
	return parts, nil
}

// child finds an entry of a folder.
func (n *node) child(name string) (int, bool) {
	return slices.BinarySearchFunc(n.children, name, func(c *node, name string) int { return cmp.Compare(c.name, name) })
}

func errNoFile(path string) error {
	return fault.New(fault.NotFound, "the thread has no file or folder %q", path)
}

// find looks a path up. Links on the way lead nowhere.
func (t *Tree) find(path string) (*node, error) {
	parts, err := parsePath(path)
	if err != nil {
		return nil, err
	}
	n := t.root
	for _, p := range parts {
		i, ok := n.child(p)
		if !ok {
			return nil, errNoFile(path)
		}
		n = n.children[i]
	}
	return n, nil
}

// Stat describes a file or folder; "" is the home itself.
func (t *Tree) Stat(path string) (thread.Entry, error) {
	n, err := t.find(path)
	if err != nil {
		return thread.Entry{}, err
	}
	return n.entry(strings.Trim(path, "/")), nil
}

// List describes what is in a folder, by name; "" is the home itself.
func (t *Tree) List(path string) ([]thread.Entry, error) {
	n, err := t.find(path)
	if err != nil {
		return nil, err
	}
	if n.kind != kindDir {
		return nil, fault.New(fault.Invalid, "%q is no folder", path)
	}
	prefix := ""
	if p := strings.Trim(path, "/"); p != "" {
		prefix = p + "/"
	}
	all := make([]thread.Entry, 0, len(n.children))
	for _, c := range n.children {
		all = append(all, c.entry(prefix+c.name))
	}
	return all, nil
}
