package skill

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// maxEntries bounds the entries of an archive: files, and the folders that they are in.
const maxEntries = 4 * MaxFiles

// broken says that an archive cannot be read.
func broken(err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f
	}
	return fault.Wrap(fault.Invalid, err, "files: the archive cannot be read: it must be a zip, a tar or a tar.gz")
}

// odd refuses entries that are neither files nor folders: a link could lead anywhere.
func odd(name string) error {
	return invalid("files: the archive has %.80q, which is neither a file nor a folder", name)
}

// entry is the path of an entry of an archive; "" for one that is left out.
func entry(name string, folder bool) (string, error) {
	for strings.HasPrefix(name, "./") {
		name = name[2:]
	}
	clean := strings.TrimSuffix(name, "/")
	switch {
	case folder && (clean == "" || clean == "."):
		return "", nil
	case strings.HasPrefix(clean, "__MACOSX/"), strings.HasSuffix(clean, "/.DS_Store"):
		return "", nil
	}
	if err := checkPath(clean); err != nil || folder {
		return "", err
	}
	return clean, nil
}

func unzip(archive []byte) (out []File, err error) {
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, broken(err)
	}
	if len(r.File) > maxEntries {
		return nil, invalid("files must have at most %d entries", MaxFiles)
	}
	left := MaxBytes
	for _, e := range r.File {
		mode := e.Mode()
		if !mode.IsRegular() && !mode.IsDir() {
			return nil, odd(e.Name)
		}
		name, err := entry(e.Name, mode.IsDir())
		if err != nil {
			return nil, err
		}
		if name == "" {
			continue
		}
		f, err := unzipOne(e, name, &left)
		if err != nil {
			return nil, broken(err)
		}
		out = append(out, f)
	}
	return out, nil
}

func unzipOne(e *zip.File, name string, left *int) (f File, err error) {
	in, err := e.Open()
	if err != nil {
		return f, err
	}
	defer in.Close()
	data, err := within(in, left)
	return File{Path: name, Exec: e.Mode()&0o111 != 0 || Program(data), Data: data}, err
}

func untar(archive []byte) (out []File, err error) {
	var in io.Reader = bytes.NewReader(archive)
	if bytes.HasPrefix(archive, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, broken(err)
		}
		in = io.LimitReader(z, 2*MaxBytes+maxEntries*4096)
	}
	left := MaxBytes
	r := tar.NewReader(in)
	for n := 0; ; n++ {
		h, err := r.Next()
		switch {
		case err == io.EOF && n > 0:
			return out, nil
		case err != nil && !errors.Is(err, tar.ErrInsecurePath):
			return nil, broken(err)
		case n >= maxEntries:
			return nil, invalid("files must have at most %d entries", MaxFiles)
		case h.Typeflag == tar.TypeXGlobalHeader:
			continue
		case h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir:
			return nil, odd(h.Name)
		}
		name, err := entry(h.Name, h.Typeflag == tar.TypeDir)
		if err != nil {
			return nil, err
		}
		if name == "" {
			continue
		}
		data, err := within(r, &left)
		if err != nil {
			return nil, broken(err)
		}
		out = append(out, File{Path: name, Exec: fs.FileMode(h.Mode)&0o111 != 0 || Program(data), Data: data})
	}
}
