package sandbox

import (
	"encoding/base64"
	"fmt"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/core/file"
)

// SandboxFile is what stands at a path in a sandbox.
type SandboxFile struct {
	Name       string    `json:"name"`
	Path       string    `json:"path" doc:"Bytes that are not UTF-8 are replaced by U+FFFD."`
	PathBase64 string    `json:"path_base64,omitzero" doc:"Of a path that is not UTF-8."`
	Kind       string    `json:"kind" enum:"file,directory,symlink,other" doc:"Kind of the entry."`
	Size       int64     `json:"size" doc:"Size in bytes."`
	Mode       string    `json:"mode" doc:"Permissions, octal, such as 0644."`
	UID        uint32    `json:"uid" doc:"The user that owns it, as programs see it."`
	GID        uint32    `json:"gid" doc:"The group that owns it, as programs see it."`
	Modified   time.Time `json:"modified" doc:"When its content was last changed."`
	Target     string    `json:"target,omitzero" doc:"Of a symlink."`
}

// SandboxFiles is what a folder has, by path.
type SandboxFiles struct {
	Data      []SandboxFile `json:"data"`
	Truncated bool          `json:"truncated" doc:"There are more."`
}

// SandboxWritten says how large a file is that was written.
type SandboxWritten struct {
	Size int64 `json:"size" doc:"Size in bytes."`
}

// SandboxUnpacked says what an archive had.
type SandboxUnpacked struct {
	Files int64 `json:"files" doc:"Entries of all kinds."`
	Bytes int64 `json:"bytes" doc:"Of the files' content."`
}

// SandboxChange is one line of a watch.
type SandboxChange struct {
	Type        string `json:"type" enum:"created,modified,removed,lost,keepalive" doc:"lost: events are missing, look anew."`
	Path        string `json:"path,omitzero" doc:"The path that changed."`
	PathBase64  string `json:"path_base64,omitzero" doc:"Of a path that is not UTF-8."`
	IsDirectory bool   `json:"is_directory,omitzero" doc:"Whether it is a folder."`
}

var kindNames = map[file.Kind]string{file.Regular: "file", file.Folder: "directory", file.Link: "symlink", file.Other: "other"}

func fileOf(f file.Info) SandboxFile {
	name, raw := pathOf(f.Path)
	return SandboxFile{
		Name: path.Base(name), Path: name, PathBase64: raw, Kind: kindNames[f.Kind], Size: f.Size, Mode: fmt.Sprintf("%04o", f.Mode.Perm()),
		UID: f.UID, GID: f.GID, Modified: f.Modified.UTC(), Target: strings.ToValidUTF8(f.Target, "\ufffd"),
	}
}

// pathOf is a path as JSON can have it, and all of it if that is not enough.
func pathOf(p string) (shown, raw string) {
	if utf8.ValidString(p) {
		return p, ""
	}
	return strings.ToValidUTF8(p, "\ufffd"), base64.StdEncoding.EncodeToString([]byte(p))
}
