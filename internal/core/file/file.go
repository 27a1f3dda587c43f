// Package file describes the files of a sandbox, and is the contract by which they are
// read and written. Paths are those inside the sandbox: absolute, or from its home
// directory. They are bytes without a NUL, not necessarily UTF-8.
package file

import (
	"io/fs"
	"time"
)

// Kind is what stands at a path.
type Kind uint8

const (
	Other   Kind = iota // a pipe, a socket, a device
	Regular             //
	Folder              //
	Link                //
)

func (k Kind) String() string { return [...]string{"other", "file", "folder", "link"}[k&3] }

// Info describes a file.
type Info struct {
	Path     string
	Kind     Kind
	Size     int64
	Mode     fs.FileMode // permissions, and fs.ModeSetuid, ModeSetgid, ModeSticky
	UID, GID uint32      // inside the sandbox
	Modified time.Time
	Target   string // of a link
}

// ListOptions say how much of a folder List shows.
type ListOptions struct {
	Depth int // 1, or 0, is the folder alone
	Limit int // entries; 0 is MaxEntries
}

// MaxEntries bounds the answers of List and Glob.
const MaxEntries = 10_000

// Listing is what List and Glob found, sorted by path, byte by byte.
type Listing struct {
	Entries   []Info
	Truncated bool // there are more
}

// Paths are what Glob found, sorted byte by byte.
type Paths struct {
	Paths     []string
	Truncated bool // there are more
}

// CreateOptions say how Create writes.
type CreateOptions struct {
	Append bool        // to what is there, instead of replacing it
	Mode   fs.FileMode // of a new file; 0 is 0644, or what the replaced file has
}

// Counts say how much Pack or Unpack went over.
type Counts struct {
	Files int64 // entries of all kinds
	Bytes int64 // content of files
}

// Change is what happened to a path.
type Change uint8

const (
	Created  Change = iota
	Modified        // its content, or a file's attributes
	Removed         //
	Lost            // some events were lost; look anew
)

func (c Change) String() string { return [...]string{"created", "modified", "removed", "lost"}[c&3] }

// Event is a change below a watched path. A move is seen as Removed and Created.
type Event struct {
	Change Change
	Path   string
	Folder bool
}
