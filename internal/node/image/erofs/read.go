package erofs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	goerofs "github.com/erofs/go-erofs"
)

// Read returns the tree of an image, as Write takes one. The contents of files are read
// from r when they are asked for. What the subset does not have, such as devices and
// compressed files, is an error.
func Read(r io.ReaderAt) (*Node, error) {
	fsys, err := goerofs.Open(r)
	if err != nil {
		return nil, fmt.Errorf("erofs: %w", err)
	}
	in := &reader{fsys: fsys, image: r, files: map[int64]*Node{}}
	info, err := fs.Stat(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("erofs: %w", err)
	}
	root, err := in.node(".", info)
	if err != nil {
		return nil, err
	}
	type dir struct {
		path string
		node *Node
	}
	for todo := []dir{{".", root}}; len(todo) > 0; {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		entries, err := fs.ReadDir(fsys, at.path)
		if err != nil {
			return nil, fmt.Errorf("erofs: %w", err)
		}
		for _, e := range entries {
			info, err := e.Info()
			if err != nil {
				return nil, fmt.Errorf("erofs: %w", err)
			}
			name := path.Join(at.path, e.Name())
			n, err := in.node(name, info)
			if err != nil {
				return nil, err
			}
			at.node.Children[e.Name()] = n
			if n.IsDir() {
				todo = append(todo, dir{name, n})
			}
		}
	}
	return root, nil
}

type reader struct {
	fsys  fs.FS
	image io.ReaderAt
	files map[int64]*Node // with several names, by inode
}

func (in *reader) node(name string, info fs.FileInfo) (*Node, error) {
	st, ok := info.Sys().(*goerofs.Stat)
	if !ok {
		return nil, errors.New("erofs: the image's inodes cannot be read")
	}
	if n := in.files[st.Ino]; n != nil {
		return n, nil
	}
	mode := info.Mode()
	n := &Node{Mode: uint16(mode & 0o1777), UID: st.UID, GID: st.GID, Mtime: int64(st.Mtime), MtimeNsec: st.MtimeNs}
	if mode&fs.ModeSticky != 0 { // or as the image has it, which is kept above
		n.Mode |= 0o1000
	}
	var err error
	switch mode.Type() {
	case fs.ModeDir:
		n.Mode |= TypeDir
		n.Children = map[string]*Node{}
		return n, nil
	case fs.ModeSymlink:
		n.Mode |= TypeSymlink
		n.Target, err = fs.ReadLink(in.fsys, name)
	case 0:
		n.Mode |= TypeRegular
		n.Size = info.Size()
		n.Data, err = in.content(info)
	default:
		err = errors.New("it is neither a file, a folder nor a link")
	}
	if err != nil {
		return nil, fmt.Errorf("erofs: %q: %w", name, err)
	}
	if st.Nlink > 1 {
		in.files[st.Ino] = n
	}
	return n, nil
}

// content is where a file's bytes are: in one piece, as Write lays them.
func (in *reader) content(info fs.FileInfo) (io.ReaderAt, error) {
	if info.Size() == 0 {
		return nil, nil
	}
	laid, ok := info.(interface{ DataRange() []goerofs.DataRange })
	if !ok {
		return nil, errors.New("its data is not in one piece")
	}
	ranges := laid.DataRange()
	if len(ranges) != 1 || ranges[0].Device != 0 || ranges[0].Offset < 0 || ranges[0].Size != info.Size() {
		return nil, errors.New("its data is not in one piece")
	}
	return io.NewSectionReader(in.image, ranges[0].Offset, ranges[0].Size), nil
}
