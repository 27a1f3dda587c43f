// Package upload manages the files that tenants upload for the messages and sandboxes of their
// sessions: records, bytes and lifecycle. The package does not depend on HTTP or SQL.
package upload

import (
	"mime"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/id"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// ID names a file: "file_" and 32 hexadecimal digits. Ids of files that a session's agent has
// shared are longer.
type ID string

// NewID returns a unique ID.
func NewID() ID { return ID(id.New("file")) }

// Valid reports whether i is the well-formed id of an uploaded file.
func (i ID) Valid() bool { return id.Is("file", string(i)) }

// File is an immutable file that a tenant uploaded.
type File struct {
	ID        ID
	Tenant    tenant.ID
	Name      string // without directories
	MediaType string
	Size      int64 // bytes
	CreatedAt time.Time
	ExpiresAt time.Time // zero for no expiry
}

// Limits of files.
const (
	MaxName = 255 // bytes

	MinLife, MaxLife = time.Hour, 90 * 24 * time.Hour // of files with an expiry
)

const maxMediaType = 255 // bytes

// Describe sets the name, without directories, and the media type. It uses mediaType if it is valid
// and specific, and otherwise derives the type from the name.
func (f *File) Describe(name, mediaType string) error {
	name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	if _, _, err := mime.ParseMediaType(mediaType); err != nil || mediaType == file.OctetStream || len(mediaType) > maxMediaType {
		mediaType = file.MediaType(name)
	}
	if name == "." || name == "/" {
		name = "unnamed"
		if all, err := mime.ExtensionsByType(mediaType); err == nil && len(all) > 0 && mediaType != file.OctetStream {
			name += all[0]
		}
	}
	if len(name) > MaxName || name == ".." || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fault.New(fault.Invalid, "file must have a name of at most %d bytes of UTF-8 without control characters", MaxName)
	}
	f.Name, f.MediaType = name, mediaType
	return nil
}

// ErrNotFound is returned if the tenant has no such file.
var ErrNotFound = fault.New(fault.NotFound, "file not found: it was deleted, has expired, or was never uploaded")

// ErrTooSlow rejects an upload that did not end in time.
var ErrTooSlow = fault.New(fault.Conflict, "the upload took too long, and what there was of it is removed")

// Limits bounds a tenant's files; 0 means unlimited.
type Limits struct {
	Files int
	Bytes int64 // total
	Size  int64 // per file
}

// Dimensions of Limits in Exhausted faults.
const (
	DimensionFiles = "files"
	DimensionBytes = "file_bytes"
)

// Room rejects another file of size bytes if the tenant would exceed its limits.
func (l Limits) Room(files int, bytes, size int64) error {
	switch {
	case l.Files > 0 && files >= l.Files:
		return fault.Limit(DimensionFiles, time.Time{}, "this tenant has reached its limit of %d files; delete some first", files)
	case l.Bytes > 0 && bytes+size > l.Bytes:
		return fault.Limit(DimensionBytes, time.Time{}, "the files of this tenant use %d of %d bytes, and this one does not fit: delete some first", bytes, l.Bytes)
	}
	return nil
}

// Fits rejects a file that is too large.
func (l Limits) Fits(size int64) error {
	if l.Size > 0 && size > l.Size {
		return fault.New(fault.TooLarge, "file must have at most %d bytes", l.Size)
	}
	return nil
}
