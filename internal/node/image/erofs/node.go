package erofs

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// File types of Node.Mode, as in Linux's st_mode. Images hold nothing else:
// devices, pipes and sockets are made at run time or not at all.
const (
	TypeMask    uint16 = 0o170000
	TypeDir     uint16 = 0o040000
	TypeRegular uint16 = 0o100000
	TypeSymlink uint16 = 0o120000
)

const (
	maxName   = 255  // bytes of one path component
	maxTarget = 4095 // bytes of a symbolic link's target; Linux and gVisor cut longer ones
)

// Node is a file of an image. One regular file under several names (hard
// links) is one *Node found in several Children.
type Node struct {
	Mode      uint16 // type and permission bits
	UID, GID  uint32
	Mtime     int64  // seconds since 1970
	MtimeNsec uint32 // 0 to 999,999,999

	Target   string           // symbolic links
	Size     int64            // regular files, bytes
	Data     io.ReaderAt      // regular files; read once, while the image is written; may be nil when Size is 0
	Children map[string]*Node // folders, by name
}

// NewDir returns an empty folder owned by root.
func NewDir(perm uint16) *Node {
	return &Node{Mode: TypeDir | perm&^TypeMask, Children: map[string]*Node{}}
}

// NewFile returns a regular file owned by root, holding data.
func NewFile(perm uint16, data string) *Node {
	return &Node{Mode: TypeRegular | perm&^TypeMask, Size: int64(len(data)), Data: strings.NewReader(data)}
}

// NewSymlink returns a symbolic link owned by root.
func NewSymlink(target string) *Node {
	return &Node{Mode: TypeSymlink | 0o777, Target: target}
}

// Type is Mode's file type.
func (n *Node) Type() uint16 { return n.Mode & TypeMask }

// IsDir reports whether n is a folder.
func (n *Node) IsDir() bool { return n.Type() == TypeDir }

// IsRegular reports whether n is a regular file.
func (n *Node) IsRegular() bool { return n.Type() == TypeRegular }

// IsSymlink reports whether n is a symbolic link.
func (n *Node) IsSymlink() bool { return n.Type() == TypeSymlink }

// Names returns the names of a folder's entries, in byte order.
func (n *Node) Names() []string { return slices.Sorted(maps.Keys(n.Children)) }

// CheckName reports why name cannot be a folder's entry.
func CheckName(name string) error {
	switch {
	case name == "", name == ".", name == "..":
		return fmt.Errorf("the name %q is not allowed", name)
	case len(name) > maxName:
		return fmt.Errorf("the name %.40q… is longer than %d bytes", name, maxName)
	case strings.ContainsAny(name, "/\x00"):
		return fmt.Errorf("the name %q holds a slash or NUL", name)
	}
	return nil
}

// CheckTarget reports why target cannot be a symbolic link's.
func CheckTarget(target string) error {
	switch {
	case target == "":
		return fmt.Errorf("the link's target is empty")
	case len(target) > maxTarget:
		return fmt.Errorf("the link's target is longer than %d bytes", maxTarget)
	case strings.Contains(target, "\x00"):
		return fmt.Errorf("the link's target holds NUL")
	}
	return nil
}

// check reports why n cannot be stored.
func (n *Node) check() error {
	switch n.Type() {
	case TypeDir:
	case TypeSymlink:
		return CheckTarget(n.Target)
	case TypeRegular:
		if n.Size < 0 || n.Size > 0 && n.Data == nil {
			return fmt.Errorf("a file of %d bytes has no data", n.Size)
		}
	default:
		return fmt.Errorf("file type %#o cannot be stored", n.Type())
	}
	return nil
}
