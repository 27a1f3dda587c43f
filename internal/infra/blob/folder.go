package blob

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
)

// tempSuffix is what files end in that are being written.
const tempSuffix = ".tmp"

// openFolder opens a store that is a folder, of which one process may write.
// What an earlier process was writing when it ended is removed.
func openFolder(u *url.URL) (*blob.Bucket, error) {
	if u.Host != "" || !filepath.IsAbs(u.Path) || u.RawQuery != "" {
		return nil, errors.New("a file URL must have three slashes, an absolute path and nothing else")
	}
	if err := os.MkdirAll(u.Path, 0o700); err != nil {
		return nil, err
	}
	err := filepath.WalkDir(u.Path, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.HasSuffix(path, tempSuffix) {
			err = os.Remove(path)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return fileblob.OpenBucket(u.Path, &fileblob.Options{
		DirFileMode: 0o700,
		NoTempDir:   true, // a rename must stay within one file system
		Metadata:    fileblob.MetadataDontWrite,
	})
}

// prune removes the folders that a name was the last one in.
func (s *Store) prune(name string) {
	if s.dir == "" {
		return
	}
	s.folders.Lock()
	defer s.folders.Unlock()
	for i := strings.LastIndexByte(name, '/'); i > 0; i = strings.LastIndexByte(name[:i], '/') {
		if os.Remove(filepath.Join(s.dir, filepath.FromSlash(name[:i]))) != nil {
			return // it is not empty
		}
	}
}
