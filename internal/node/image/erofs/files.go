package erofs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// File is one file of WriteFiles.
type File struct {
	Mode uint16 // permission bits
	Data []byte
}

// WriteFiles writes a small image at path: regular files, owned by root, by
// their slash-separated paths; the folders between have mode 0755. The image
// appears whole or not at all, replacing one that is there; a crash can leave a
// file beside it whose name begins with ".erofs-".
func WriteFiles(name string, files map[string]File) (err error) {
	root := NewDir(0o755)
	for p, file := range files {
		if err := put(root, p, NewFile(file.Mode, string(file.Data))); err != nil {
			return err
		}
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".erofs-*")
	if err != nil {
		return fmt.Errorf("erofs: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
	}()
	if err := Write(context.Background(), f, root); err != nil {
		return err
	}
	if err := errors.Join(f.Chmod(0o644), f.Sync()); err != nil {
		return fmt.Errorf("erofs: %w", err)
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return fmt.Errorf("erofs: %w", err)
	}
	return f.Close()
}

// put places n at a path below root, making the folders between.
func put(root *Node, p string, n *Node) error {
	if clean := path.Clean("/" + p); clean != "/"+strings.TrimPrefix(p, "/") || clean == "/" {
		return fmt.Errorf("erofs: %q is not a clean path", p)
	}
	parts := strings.Split(strings.TrimPrefix(p, "/"), "/")
	dir := root
	for _, part := range parts[:len(parts)-1] {
		next := dir.Children[part]
		if next == nil {
			next = NewDir(0o755)
			dir.Children[part] = next
		}
		if !next.IsDir() {
			return fmt.Errorf("erofs: %q is a file and a folder", part)
		}
		dir = next
	}
	last := parts[len(parts)-1]
	if dir.Children[last] != nil {
		return fmt.Errorf("erofs: %q is a file and a folder", p)
	}
	dir.Children[last] = n
	return nil
}
