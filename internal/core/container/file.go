package container

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"path"
	"strings"

	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/runtime"
)

// Dir is the directory of a container's files.
const Dir = runtime.Home

// FileID names a file by a digest of container and path, plus the path. Atoll thus stores no state
// for files, which code creates and deletes at will.
type FileID string

const filePrefix = "cfile_"

// digestSize is how many bytes of the digest an id contains, to tell apart files of different
// containers.
const digestSize = 4

// FileIDOf returns the id of the file at a path.
func FileIDOf(c ID, at string) FileID {
	sum := sha256.Sum256([]byte(string(c) + "\x00" + at))
	return FileID(filePrefix + hex.EncodeToString(sum[:digestSize]) + base64.RawURLEncoding.EncodeToString([]byte(strings.TrimPrefix(at, Dir+"/"))))
}

// Path returns the path of a file; ok is false if id does not belong to the container.
func (id FileID) Path(c ID) (at string, ok bool) {
	text, ok := strings.CutPrefix(string(id), filePrefix)
	if !ok || len(text) <= 2*digestSize {
		return "", false
	}
	raw, err := base64.RawURLEncoding.DecodeString(text[2*digestSize:])
	if err != nil {
		return "", false
	}
	at = path.Join(Dir, string(raw))
	return at, strings.HasPrefix(at, Dir+"/") && FileIDOf(c, at) == id
}

// maxDepth limits how deep Files searches.
const maxDepth = 100

// lister is what Files needs of a sandbox.
type lister interface {
	List(ctx context.Context, path string, o file.ListOptions) (file.Listing, error)
}

// Files lists up to file.MaxEntries regular files of a container below Dir. It skips paths with a
// part that begins with a dot, where interpreters and package managers keep their caches.
func Files(ctx context.Context, g lister) ([]file.Info, error) {
	top, err := g.List(ctx, Dir, file.ListOptions{})
	if err != nil {
		return nil, err
	}
	var out []file.Info
	take := func(entries []file.Info) {
		for _, e := range entries {
			if e.Kind == file.Regular && !hidden(e.Path) && len(out) < file.MaxEntries {
				out = append(out, e)
			}
		}
	}
	take(top.Entries)
	for _, e := range top.Entries {
		if e.Kind != file.Folder || hidden(e.Path) {
			continue
		}
		below, err := g.List(ctx, e.Path, file.ListOptions{Depth: maxDepth})
		if err != nil {
			return nil, err
		}
		take(below.Entries)
	}
	return out, nil
}

func hidden(at string) bool { return strings.Contains(strings.TrimPrefix(at, Dir), "/.") }
