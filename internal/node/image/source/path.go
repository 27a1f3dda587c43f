package source

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/node/image/layer"
)

// files are the named files of a layout or tarball.
type files interface {
	// open returns a file's content and size; the error wraps fs.ErrNotExist
	// when there is none.
	open(name string) (io.ReadCloser, int64, error)
	Close() error
}

func openPath(ctx context.Context, p string, opts Options) (_ *Image, err error) {
	f, err := openFiles(ctx, p, opts)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fault.Wrap(fault.NotFound, err, fmt.Sprintf("there is no image at %s", p))
		}
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	var img *Image
	switch {
	case has(f, "index.json"):
		img, err = openLayout(f)
	case has(f, "manifest.json"):
		img, err = openDocker(f)
	default:
		err = fault.New(fault.Invalid, "%s is neither an OCI layout nor a docker save tarball", p)
	}
	if err != nil {
		return nil, err
	}
	img.close = f.Close
	return img, nil
}

func openFiles(ctx context.Context, p string, opts Options) (files, error) {
	info, err := os.Stat(p)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		root, err := os.OpenRoot(p)
		if err != nil {
			return nil, err
		}
		return folder{root}, nil
	}
	f, err := os.Open(p)
	if err != nil {
		return nil, err
	}
	if f, err = unpacked(ctx, f, opts.Temp); err != nil {
		return nil, err
	}
	t := &tarball{f: f, index: map[string]member{}}
	if err := t.read(ctx); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return t, nil
}

func has(f files, name string) bool {
	r, _, err := f.open(name)
	if err != nil {
		return false
	}
	r.Close()
	return true
}

// readFile reads a manifest or configuration.
func readFile(f files, name string) ([]byte, error) {
	r, _, err := f.open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(fault.Invalid, err, fmt.Sprintf("the image lacks its file %s", name))
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return readMeta(r, path.Base(name))
}

// folder is a layout on disk; nothing outside of it can be reached.
type folder struct{ root *os.Root }

func (d folder) open(name string) (io.ReadCloser, int64, error) {
	f, err := d.root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, 0, errors.Join(fmt.Errorf("%s: not a regular file", name), err, f.Close())
	}
	return f, info.Size(), nil
}

func (d folder) Close() error { return d.root.Close() }

// maxMembers bounds the files of a tarball: a few for each layer.
const maxMembers = 10_000

// maxUnpacked bounds a compressed tarball, bytes uncompressed.
const maxUnpacked = 64 << 30

// tarball is a layout or docker save in a tar file.
type tarball struct {
	f     *os.File
	index map[string]member
}

type member struct {
	at, size int64
	link     string // another member, when not ""
}

// unpacked returns f itself, or, when it is compressed, a nameless file with
// its content. It closes f in every other case.
func unpacked(ctx context.Context, f *os.File, temp string) (_ *os.File, err error) {
	head := make([]byte, 4)
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return nil, errors.Join(err, f.Close())
	}
	if head = head[:n]; !bytes.HasPrefix(head, []byte{0x1f, 0x8b}) && !bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}) {
		return f, nil
	}
	defer f.Close()
	z, err := layer.Decompress(f)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	out, err := os.CreateTemp(temp, "image-*.tar")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, out.Close())
		}
	}()
	if err := os.Remove(out.Name()); err != nil {
		return nil, err
	}
	in := readerFunc(func(p []byte) (int, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return z.Read(p)
	})
	size, err := io.Copy(out, io.LimitReader(in, maxUnpacked+1))
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the tarball cannot be unpacked")
	}
	if size > maxUnpacked {
		return nil, fault.New(fault.Invalid, "the tarball is larger than %d bytes uncompressed", int64(maxUnpacked))
	}
	_, err = out.Seek(0, io.SeekStart)
	return out, err
}

// read notes where every member lies.
func (t *tarball) read(ctx context.Context) error {
	tr := tar.NewReader(t.f)
	for {
		h, err := tr.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return fault.Wrap(fault.Invalid, err, "the file is not a readable tarball")
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if len(t.index) >= maxMembers {
			return fault.New(fault.Invalid, "the tarball has more than %d files; is it an image?", maxMembers)
		}
		name := path.Clean("/" + h.Name)[1:]
		switch h.Typeflag {
		case tar.TypeReg:
			at, err := t.f.Seek(0, io.SeekCurrent)
			if err != nil {
				return err
			}
			t.index[name] = member{at: at, size: h.Size}
		case tar.TypeSymlink:
			t.index[name] = member{link: path.Join("/", path.Dir(name), h.Linkname)[1:]}
		case tar.TypeLink:
			t.index[name] = member{link: path.Clean("/" + h.Linkname)[1:]}
		}
	}
}

func (t *tarball) open(name string) (io.ReadCloser, int64, error) {
	name = path.Clean("/" + name)[1:]
	m, ok := t.index[name]
	if ok && m.link != "" {
		m, ok = t.index[m.link]
	}
	if !ok || m.link != "" {
		return nil, 0, fmt.Errorf("%s in the tarball: %w", name, fs.ErrNotExist)
	}
	return io.NopCloser(&exactly{r: io.NewSectionReader(t.f, m.at, m.size), left: m.size}), m.size, nil
}

func (t *tarball) Close() error { return t.f.Close() }

// exactly turns an early end, of a tarball that was cut, into an error.
type exactly struct {
	r    io.Reader
	left int64
}

func (e *exactly) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if e.left -= int64(n); err == io.EOF && e.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
