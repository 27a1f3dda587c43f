package erofs

import (
	"errors"
	"fmt"
	"slices"
)

const (
	blockBits = 12
	blockSize = 1 << blockBits

	superOffset = 1024
	superSize   = 128
	inodeSize   = 64
	nidShift    = 5 // an inode's number is its offset in 32-byte slots
	rootOffset  = superOffset + superSize
	direntSize  = 12

	maxBlocks = 1<<32 - 2 // block addresses are 32 bits wide
)

// inode is a Node's place in the image.
type inode struct {
	node  *Node
	nid   uint64
	links uint32
	block uint32 // first block of its data; 0 when it has none
	size  uint64 // bytes of data

	parent *inode   // folders; the root's parent is the root
	names  []string // folders: entries in byte order, without . and ..
	kids   []*inode // folders: in the order of names
}

// blocks is the number of blocks that hold the inode's data.
func (i *inode) blocks() uint64 { return (i.size + blockSize - 1) / blockSize }

// layout is the place of everything in an image.
type layout struct {
	inodes []*inode // in nid order, the root first
	blocks uint32   // of the whole image

	dirs, links, files []*inode // in the order of their blocks
}

// plan gives every node below root its place.
func plan(root *Node) (*layout, error) {
	if root == nil || !root.IsDir() {
		return nil, errors.New("erofs: the root must be a folder")
	}
	p := &planner{seen: map[*Node]*inode{}}
	r, err := p.add(root, "/")
	if err != nil {
		return nil, err
	}
	r.parent, r.links = r, 2
	if err := p.walk(r); err != nil {
		return nil, err
	}
	return &p.layout, p.place()
}

type planner struct {
	layout
	seen map[*Node]*inode
}

// add makes the inode of a node met for the first time.
func (p *planner) add(n *Node, name string) (*inode, error) {
	if err := n.check(); err != nil {
		return nil, fmt.Errorf("erofs: %q: %w", name, err)
	}
	i := &inode{node: n, nid: uint64(rootOffset+inodeSize*len(p.inodes)) >> nidShift, links: 1}
	p.inodes = append(p.inodes, i)
	p.seen[n] = i
	switch n.Type() {
	case TypeDir:
		p.dirs = append(p.dirs, i)
	case TypeSymlink:
		i.size = uint64(len(n.Target))
		p.layout.links = append(p.layout.links, i)
	case TypeRegular:
		i.size = uint64(n.Size)
		p.files = append(p.files, i)
	}
	return i, nil
}

// walk adds everything below root, a folder's entries side by side. It keeps
// its own stack: how deep a tree is, its maker decides.
func (p *planner) walk(root *inode) error {
	stack := []*inode{root}
	for len(stack) > 0 {
		dir := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		dir.names = dir.node.Names()
		dir.kids = make([]*inode, len(dir.names))
		first := len(stack)
		for k, name := range dir.names {
			child, err := p.child(dir, name)
			if err != nil {
				return err
			}
			dir.kids[k] = child
			if child.node.IsDir() {
				stack = append(stack, child)
			}
		}
		// The first folder by name is walked first.
		for a, b := first, len(stack)-1; a < b; a, b = a+1, b-1 {
			stack[a], stack[b] = stack[b], stack[a]
		}
		dir.size = dirSize(dir.names)
	}
	return nil
}

func (p *planner) child(dir *inode, name string) (*inode, error) {
	n := dir.node.Children[name]
	if err := CheckName(name); err != nil {
		return nil, fmt.Errorf("erofs: %w", err)
	}
	if n == nil {
		return nil, fmt.Errorf("erofs: %q has no node", name)
	}
	if i, ok := p.seen[n]; ok {
		if n.IsDir() {
			return nil, fmt.Errorf("erofs: the folder %q is in the tree twice", name)
		}
		i.links++
		return i, nil
	}
	i, err := p.add(n, name)
	if err != nil {
		return nil, err
	}
	if n.IsDir() {
		i.parent, i.links = dir, 2
		dir.links++
	}
	return i, nil
}

// place gives every inode its blocks.
func (p *planner) place() error {
	next := (uint64(rootOffset+inodeSize*len(p.inodes)) + blockSize - 1) / blockSize
	for _, group := range [][]*inode{p.dirs, p.layout.links, p.files} {
		for _, i := range group {
			n := i.blocks()
			if n == 0 {
				continue
			}
			i.block = uint32(next)
			if next += n; n > maxBlocks || next > maxBlocks {
				return fmt.Errorf("erofs: the image is larger than %d blocks", uint64(maxBlocks))
			}
		}
	}
	p.layout.blocks = uint32(next)
	return nil
}

// name returns i's path, for messages; one of them when it has several.
func (l *layout) name(i *inode) string {
	for _, dir := range l.dirs {
		k := slices.Index(dir.kids, i)
		if k < 0 {
			continue
		}
		if dir == dir.parent {
			return "/" + dir.names[k]
		}
		return l.name(dir) + "/" + dir.names[k]
	}
	return "/"
}
