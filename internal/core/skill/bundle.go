package skill

import (
	"archive/zip"
	"bytes"
	"io"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Bundle is the validated content of a version.
type Bundle struct {
	Head  Head
	Files []File // by path, relative to the skill's directory
}

// NewBundle validates the files of a skill. Their paths either all begin with the skill's directory
// or are relative to it.
func NewBundle(files []File) (*Bundle, error) {
	if len(files) == 0 {
		return nil, invalid("files must have %s", Main)
	}
	if len(files) > MaxFiles {
		return nil, invalid("files must have at most %d entries", MaxFiles)
	}
	size := 0
	for i := range files {
		if err := checkPath(files[i].Path); err != nil {
			return nil, err
		}
		size += len(files[i].Data)
	}
	if size > MaxBytes {
		return nil, errLarge()
	}
	folder, files := strip(files)
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	if err := apart(files); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(files, func(f File) bool { return f.Path == Main })
	if i < 0 {
		return nil, invalid("files must have %s at the root of the skill's only folder", Main)
	}
	head, _, err := ParseMain(files[i].Data)
	if err != nil {
		return nil, err
	}
	if folder != "" && folder != head.Name {
		return nil, invalid("%s: name is %s, but the folder is %.80q; they must be the same", Main, head.Name, folder)
	}
	return &Bundle{head, files}, nil
}

func errLarge() error { return invalid("files together must be at most %d bytes", MaxBytes) }

// checkPath rejects a path that could leave the skill's directory or is not portable.
func checkPath(name string) error {
	if len(name) > MaxPath || !utf8.ValidString(name) || strings.Count(name, "/") > maxDepth ||
		strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' }) {
		return invalid("files: the path %.80q must have at most %d bytes of UTF-8, %d folders, and neither control characters nor backslashes", name, MaxPath, maxDepth)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return invalid("files: the path %.80q must be relative, without empty parts, . and ..", name)
		}
	}
	return nil
}

// strip removes the directory that contains all files.
func strip(files []File) (folder string, out []File) {
	first, _, ok := strings.Cut(files[0].Path, "/")
	for _, f := range files {
		if !ok || !strings.HasPrefix(f.Path, first+"/") {
			return "", slices.Clone(files)
		}
	}
	for _, f := range files {
		f.Path = strings.TrimPrefix(f.Path, first+"/")
		out = append(out, f)
	}
	return first, out
}

// apart rejects files that cannot coexist. files must be sorted.
func apart(files []File) error {
	seen := map[string]bool{}
	for _, f := range files {
		if seen[f.Path] {
			return invalid("files: duplicate %.80q", f.Path)
		}
		seen[f.Path] = true
	}
	for _, f := range files {
		for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
			if seen[dir] {
				return invalid("files: %.80q is a file, but %.80q needs it as a folder", dir, f.Path)
			}
		}
	}
	return nil
}

// Infos returns the file list without contents.
func (b *Bundle) Infos() []FileInfo {
	out := make([]FileInfo, len(b.Files))
	for i, f := range b.Files {
		out[i] = FileInfo{f.Path, int64(len(f.Data)), f.Exec}
	}
	return out
}

// Pack returns the files as a reproducible zip archive.
func (b *Bundle) Pack() ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range b.Files {
		h := &zip.FileHeader{Name: b.Head.Name + "/" + f.Path, Method: zip.Deflate, Modified: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)}
		h.SetMode(0o644)
		if f.Exec {
			h.SetMode(0o755)
		}
		to, err := w.CreateHeader(h)
		if err == nil {
			_, err = to.Write(f.Data)
		}
		if err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// Unpack reads a caller's archive, a zip or a tar with or without gzip, within the limits of
// skills.
func Unpack(archive []byte) ([]File, error) {
	if bytes.HasPrefix(archive, []byte("PK")) {
		return unzip(archive)
	}
	return untar(archive)
}

// IsArchive reports whether Unpack can read a file, by name and content.
func IsArchive(name string, data []byte) bool {
	name = strings.ToLower(name)
	zipped := bytes.HasPrefix(data, []byte("PK\x03\x04")) && (strings.HasSuffix(name, ".zip") || strings.HasSuffix(name, ".skill"))
	return zipped || strings.HasSuffix(name, ".tar") || strings.HasSuffix(name, ".tar.gz") || strings.HasSuffix(name, ".tgz")
}

// Program reports whether a file without a known mode is a script, by its "#!".
func Program(data []byte) bool { return bytes.HasPrefix(data, []byte("#!")) }

// within reads at most left bytes and subtracts them.
func within(r io.Reader, left *int) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, int64(*left)+1))
	if len(data) > *left {
		return nil, errLarge()
	}
	*left -= len(data)
	return data, err
}
