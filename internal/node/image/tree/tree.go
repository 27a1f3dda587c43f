// Package tree follows paths through a tree of image nodes.
//
// Every path and every symbolic link is resolved inside the tree, whatever it
// says: an absolute target starts at the tree's root, and ".." stops there. So
// nothing in an image can name a file of the host.
package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/atoll-run/atoll/internal/node/image/erofs"
)

// ErrLoop says that a path leads through more than maxLinks symbolic links, or
// that following them takes more than maxSteps steps.
var ErrLoop = errors.New("too many symbolic links")

// ErrNotDir says that a path leads through a file that is no folder.
var ErrNotDir = errors.New("not a folder")

// ErrDeep says that a path leads too many folders down.
var ErrDeep = errors.New("folders nested too deep")

const (
	maxLinks = 40   // as in Linux
	maxSteps = 2048 // components walked, those of links included
)

// Lookup returns the node at p and its path without symbolic links. It follows
// every link, the last one too. Errors wrap fs.ErrNotExist, ErrLoop or ErrNotDir.
func Lookup(root *erofs.Node, p string) (*erofs.Node, string, error) {
	w := NewWalk(root)
	if err := w.Follow(p); err != nil {
		return nil, "", fmt.Errorf("%s: %w", p, err)
	}
	return w.Node(), w.Path(), nil
}

// ReadFile returns the content of the regular file at p, at most limit bytes
// of it.
func ReadFile(root *erofs.Node, p string, limit int64) ([]byte, error) {
	n, _, err := Lookup(root, p)
	if err != nil {
		return nil, err
	}
	if !n.IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", p)
	}
	data := make([]byte, min(n.Size, limit))
	if len(data) == 0 {
		return nil, nil
	}
	if got, err := n.Data.ReadAt(data, 0); got < len(data) {
		return nil, fmt.Errorf("%s: %w", p, err)
	}
	return data, nil
}

// MkdirAll returns the folder at p, making what is missing with mode perm,
// owned by root. A file in the way is an error.
func MkdirAll(root *erofs.Node, p string, perm uint16) (*erofs.Node, error) {
	w := NewWalk(root)
	w.Missing = func(*erofs.Node, string) *erofs.Node { return erofs.NewDir(perm) }
	if err := w.Follow(p); err != nil {
		return nil, fmt.Errorf("%s: %w", p, err)
	}
	if !w.Node().IsDir() {
		return nil, fmt.Errorf("%s: %w", p, ErrNotDir)
	}
	return w.Node(), nil
}

// Put places n at p, in place of what is there, making folders above it that
// are missing. The last component is not followed.
func Put(root *erofs.Node, p string, n *erofs.Node) error {
	dir, err := MkdirAll(root, path.Dir(p), 0o755)
	if err != nil {
		return err
	}
	name := path.Base(p)
	if err := erofs.CheckName(name); err != nil {
		return err
	}
	dir.Children[name] = n
	return nil
}

// Remove takes the node at p away, if there is one. The last component is not
// followed.
func Remove(root *erofs.Node, p string) {
	if dir, _, err := Lookup(root, path.Dir(p)); err == nil && dir.IsDir() {
		delete(dir.Children, path.Base(p))
	}
}

// Walk is a place in a tree, reached step by step.
type Walk struct {
	// Missing makes the node for an absent entry of a folder; the walk adds it.
	// Without it, or when it returns nil, an absent entry is fs.ErrNotExist.
	Missing func(dir *erofs.Node, name string) *erofs.Node
	// Visit sees every folder entry that the walk passes, links included.
	Visit func(dir *erofs.Node, name string)
	// MaxDepth bounds how many folders the walk may be below the root; 0 means
	// no bound.
	MaxDepth int

	nodes []*erofs.Node // from the root to here; all but the last are folders
	names []string      // names[i] leads from nodes[i] to nodes[i+1]
}

// NewWalk returns a walk that starts at root.
func NewWalk(root *erofs.Node) *Walk { return &Walk{nodes: []*erofs.Node{root}} }

// Node is where the walk is.
func (w *Walk) Node() *erofs.Node { return w.nodes[len(w.nodes)-1] }

// Path is where the walk is, absolute and without symbolic links.
func (w *Walk) Path() string { return "/" + strings.Join(w.names, "/") }

// Follow moves along p, which is taken from the walk's place, or from the root
// when it begins with a slash.
func (w *Walk) Follow(p string) error {
	todo := w.steps(nil, p)
	for links, steps := 0, 0; len(todo) > 0; {
		if steps++; steps > maxSteps {
			return ErrLoop
		}
		name := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if name == "" || name == "." {
			continue
		}
		dir := w.Node()
		if !dir.IsDir() {
			return ErrNotDir
		}
		if name == ".." {
			if n := len(w.names); n > 0 {
				w.nodes, w.names = w.nodes[:n], w.names[:n-1]
			}
			continue
		}
		next, err := w.entry(dir, name)
		if err != nil {
			return err
		}
		if next.IsSymlink() {
			if links++; links > maxLinks {
				return ErrLoop
			}
			todo = w.steps(todo, next.Target)
			continue
		}
		w.nodes, w.names = append(w.nodes, next), append(w.names, name)
		if w.MaxDepth > 0 && len(w.names) > w.MaxDepth {
			return ErrDeep
		}
	}
	return nil
}

// steps puts p's components on the stack todo, the first on top, and goes to
// the root when p says so.
func (w *Walk) steps(todo []string, p string) []string {
	if strings.HasPrefix(p, "/") {
		w.nodes, w.names = w.nodes[:1], w.names[:0]
	}
	for p != "" {
		i := strings.LastIndexByte(p, '/')
		todo = append(todo, p[i+1:])
		p = p[:max(i, 0)]
	}
	return todo
}

func (w *Walk) entry(dir *erofs.Node, name string) (*erofs.Node, error) {
	next := dir.Children[name]
	if next == nil && w.Missing != nil {
		if err := erofs.CheckName(name); err != nil {
			return nil, err
		}
		if next = w.Missing(dir, name); next != nil {
			dir.Children[name] = next
		}
	}
	if next == nil {
		return nil, fs.ErrNotExist
	}
	if w.Visit != nil {
		w.Visit(dir, name)
	}
	return next, nil
}
