// Package upload is files that tenants upload, for the messages and sandboxes of their
// sessions: what is recorded of them, how their bytes are kept, and their life between the
// two. The package knows no HTTP or SQL.
package upload

import (
	"mime"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/id"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// ID names a file: "file_" and 32 hexadecimal digits. Those of files that a session's agent has
// shared are longer.
type ID string

// NewID returns an ID that no other file has.
func NewID() ID { return ID(id.New("file")) }

// Valid reports whether i is one that an uploaded file can have.
func (i ID) Valid() bool { return id.Is("file", string(i)) }

// File is an uploaded file of a tenant. It does not change.
type File struct {
	ID        ID
	Tenant    tenant.ID
	Name      string // without folders
	MediaType string
	Size      int64 // bytes
	CreatedAt time.Time
	ExpiresAt time.Time // zero for one that stays until it is deleted
}

// Bounds of files.
const (
	MaxName = 255 // bytes

	MinLife, MaxLife = time.Hour, 90 * 24 * time.Hour // of one that expires
)

const maxMediaType = 255 // bytes

// OctetStream is the media type of a file whose own is not known.
const OctetStream = "application/octet-stream"

// Describe gives f the last part of a name, and a media type: the one that is given, or
// otherwise that of the name.
func (f *File) Describe(name, mediaType string, byName func(name string) string) error {
	name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	if _, _, err := mime.ParseMediaType(mediaType); err != nil || mediaType == OctetStream || len(mediaType) > maxMediaType {
		mediaType = byName(name)
	}
	if name == "." || name == "/" {
		name = "unnamed"
		if all, err := mime.ExtensionsByType(mediaType); err == nil && len(all) > 0 && mediaType != OctetStream {
			name += all[0]
		}
	}
	if len(name) > MaxName || name == ".." || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fault.New(fault.Invalid, "file must have a name of at most %d bytes of UTF-8 without control characters", MaxName)
	}
	f.Name, f.MediaType = name, mediaType
	return nil
}

// ErrNotFound says that a tenant has no such file.
var ErrNotFound = fault.New(fault.NotFound, "file not found: it was deleted, has expired, or was never uploaded")

// Limits bound what a tenant has; 0 for any number.
type Limits struct {
	Files int
	Bytes int64 // of all files together
	Size  int64 // bytes of one file
}

// Dimensions of the limits.
const (
	DimensionFiles = "files"
	DimensionBytes = "file_bytes"
)

// Room refuses another file of a size where a tenant has others.
func (l Limits) Room(files int, bytes, size int64) error {
	switch {
	case l.Files > 0 && files >= l.Files:
		return fault.Limit(DimensionFiles, time.Time{}, "this tenant has reached its limit of %d files; delete some first", files)
	case l.Bytes > 0 && bytes+size > l.Bytes:
		return fault.Limit(DimensionBytes, time.Time{}, "the files of this tenant use %d of %d bytes, and this one does not fit: delete some first", bytes, l.Bytes)
	}
	return nil
}

// Fits refuses a file that is too large.
func (l Limits) Fits(size int64) error {
	if l.Size > 0 && size > l.Size {
		return fault.New(fault.TooLarge, "file must have at most %d bytes", l.Size)
	}
	return nil
}
