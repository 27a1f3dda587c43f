package image

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/node/image/layer"
)

// An image archive is one image of a store as a file: a tar stream, compressed
// with zstd, of the manifest and the EROFS file, in this order.
const (
	manifestFile    = "atoll-image.json"
	manifestVersion = 1
	maxManifest     = 1 << 20 // bytes
)

// manifest is atoll-image.json.
type manifest struct {
	Version      int    `json:"version"`
	Architecture string `json:"architecture"` // as Go names it
	Rootfs       string `json:"rootfs"`       // "sha256:…" of the EROFS file
	Image        record `json:"image"`
}

// ArchiveName is the usual name of the file that holds an image for this machine's
// architecture.
func ArchiveName(name string) string {
	return "atoll-image-" + name + "-" + runtime.GOARCH + ".tar.zst"
}

// Export writes an image as an archive. The same image gives the same bytes. The
// host image is an Invalid fault.Error: its files are not in the store.
func (s *Store) Export(ctx context.Context, name string, w io.Writer, progress Progress) (err error) {
	img, release, err := s.Use(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if img.Rootfs.Image == "" {
		return fault.New(fault.Invalid, "the image %q is this machine's own files and cannot be exported", name)
	}
	f, err := os.Open(img.Rootfs.Image)
	if err != nil {
		return err
	}
	defer f.Close()

	progress.say("summing up the image")
	sum := sha256.New()
	size, err := io.Copy(sum, &interruptible{ctx, f})
	if err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	head, err := json.MarshalIndent(manifest{
		Version: manifestVersion, Architecture: runtime.GOARCH, Rootfs: digestOf(sum), Image: recordOf(img),
	}, "", "  ")
	if err != nil {
		return err
	}
	z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedDefault))
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	add := func(name string, size int64, r io.Reader) error {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: size, ModTime: img.Created, Format: tar.FormatPAX}
		if err := t.WriteHeader(header); err != nil {
			return err
		}
		_, err := io.Copy(t, r)
		return err
	}
	err = add(manifestFile, int64(len(head)), bytes.NewReader(head))
	if err == nil {
		err = add(rootfsFile, size, &counted{r: &interruptible{ctx, f}, total: size, step: "writing the archive", progress: progress})
	}
	if err != nil {
		return errors.Join(err, z.Close())
	}
	return errors.Join(t.Close(), z.Close())
}

// IsArchive reports whether a file is an image archive.
func IsArchive(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return false
	}
	plain, err := layer.Decompress(f)
	if err != nil {
		return false
	}
	defer plain.Close()
	header, err := tar.NewReader(plain).Next()
	return err == nil && header.Name == manifestFile
}

// ImportArchive adds the image in an archive to the store, under its recorded name
// if opts.Name is empty. opts.Source is a file, or the URL of one; "#sha256=" and 64
// hexadecimal digits after either is the checksum of the whole file. The EROFS file
// is checked against the sum in the archive in any case.
//
// Nothing else of the EROFS file is checked and no program of the image is run:
// import archives of those you would take programs from.
func (s *Store) ImportArchive(ctx context.Context, opts ImportOptions) (_ *Image, err error) {
	if opts.Name != "" {
		if err := s.admit(opts.Name, nil, opts.Replace); err != nil {
			return nil, err
		}
	}
	src, err := openArchive(ctx, opts.Source)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	temp, undo, err := s.temp()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, undo()) }()

	whole := sha256.New()
	stream := io.TeeReader(&counted{r: &interruptible{ctx, src}, total: src.size, step: "reading the archive", progress: opts.Progress}, whole)
	img, err := readArchive(stream, temp, opts.Name, func(name string) error { return s.admit(name, nil, opts.Replace) })
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(io.Discard, stream); err != nil { // what follows the last entry
		return nil, err
	}
	if got := digestOf(whole); src.sum != "" && got != src.sum {
		return nil, fault.New(fault.Invalid, "the image archive %s is not the one that was asked for: its checksum is %s", src.name, got)
	}
	if err := os.Chmod(temp, 0o755); err != nil {
		return nil, err
	}
	if err := syncDir(temp); err != nil {
		return nil, err
	}
	if err := s.publish(temp, img.Name, opts.Replace); err != nil {
		return nil, err
	}
	return s.Get(img.Name)
}

// readArchive unpacks an archive into a folder. The image is named name, or as
// recorded; admit says why that name cannot be used. What is wrong with the archive
// is an Invalid fault.Error.
func readArchive(r io.Reader, dir, name string, admit func(name string) error) (*Image, error) {
	plain, err := layer.Decompress(r)
	if err != nil {
		return nil, err
	}
	defer plain.Close()
	t := tar.NewReader(plain)
	head, err := entry(t, manifestFile)
	if err != nil {
		return nil, err
	}
	if head.Size > maxManifest {
		return nil, fault.New(fault.Invalid, "the image archive's record is larger than %d bytes", maxManifest)
	}
	data, err := io.ReadAll(t)
	if err != nil {
		return nil, damaged(err)
	}
	var m manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the image archive's record cannot be read")
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	if name != "" {
		m.Image.Name = name
	}
	if err := admit(m.Image.Name); err != nil {
		return nil, err
	}

	head, err = entry(t, rootfsFile)
	if err != nil {
		return nil, err
	}
	if head.Size != m.Image.Size || head.Size > layer.DefaultLimits().Bytes {
		return nil, fault.New(fault.Invalid, "the image archive's files have %d bytes; its record says %d", head.Size, m.Image.Size)
	}
	sum, err := writeSparse(filepath.Join(dir, rootfsFile), t, head.Size)
	if err != nil {
		return nil, err
	}
	if sum != m.Rootfs {
		return nil, fault.New(fault.Invalid, "the image archive is damaged: its files do not match their checksum")
	}
	if _, err := t.Next(); !errors.Is(err, io.EOF) {
		return nil, damaged(err)
	}
	img := m.Image.image()
	img.Rootfs.Image = filepath.Join(dir, rootfsFile)
	return img, writeRecord(dir, img)
}

// entry reads the header of the next entry, which must be a file of that name.
func entry(t *tar.Reader, name string) (*tar.Header, error) {
	h, err := t.Next()
	if err != nil {
		return nil, damaged(err)
	}
	if h.Name != name || h.Typeflag != tar.TypeReg {
		return nil, fault.New(fault.Invalid, "this is not an image archive: it has %.80q where %q is expected", h.Name, name)
	}
	return h, nil
}

// damaged is the error for an archive whose reading failed. A fault and the end of
// a context stay what they are.
func damaged(err error) error {
	if _, told := errors.AsType[*fault.Error](err); told || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if err == nil {
		err = errors.New("there is more in it than an image")
	}
	return fault.Wrap(fault.Invalid, err, "the image archive is damaged or not one")
}

var digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// check reports, as an Invalid fault.Error, what is wrong with a manifest.
func (m *manifest) check() error {
	r := &m.Image
	switch {
	case m.Version != manifestVersion || r.Version != recordVersion:
		return fault.New(fault.Invalid, "the image archive was written by another version of Atoll")
	case m.Architecture != runtime.GOARCH:
		return fault.New(fault.Invalid, "the image archive is for %.40q; this machine is %s", m.Architecture, runtime.GOARCH)
	case !digestPattern.MatchString(m.Rootfs) || !digestPattern.MatchString(r.Digest):
		return fault.New(fault.Invalid, "the image archive's record has no valid checksum")
	case len(r.Binds) > 0 || r.Size <= 0 || len(r.Source) > 1024 || strings.ContainsFunc(r.Source, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return fault.New(fault.Invalid, "the image archive's record is not valid")
	case r.Name == HostName:
		return errReserved
	}
	if err := errors.Join(CheckName(r.Name), checkPreloads(r.Preloads)); err != nil {
		return err
	}
	for name, value := range r.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			return fault.New(fault.Invalid, "the image archive's record has a variable that cannot be one")
		}
	}
	for _, in := range r.Interpreters {
		if !language.Known(language.Name(in.Language)) || !path.IsAbs(in.Path) || path.Clean(in.Path) != in.Path ||
			in.Version != "" && !versionPattern.MatchString(in.Version) || in.SiteDir != "" && !sitePattern.MatchString(in.SiteDir) {
			return fault.New(fault.Invalid, "the image archive's record has an interpreter that is not understood")
		}
	}
	return nil
}

// writeSparse writes size bytes of r to a new file, with holes for zeros, and
// returns their digest.
func writeSparse(name string, r io.Reader, size int64) (digest string, err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := sha256.New()
	buf := make([]byte, 1<<20)
	zeros := make([]byte, len(buf))
	for off := int64(0); off < size; {
		p := buf[:min(int64(len(buf)), size-off)]
		if _, err := io.ReadFull(r, p); err != nil {
			return "", damaged(err)
		}
		sum.Write(p)
		if !bytes.Equal(p, zeros[:len(p)]) {
			if _, err := f.WriteAt(p, off); err != nil {
				return "", err
			}
		}
		off += int64(len(p))
	}
	if err := f.Truncate(size); err != nil {
		return "", err
	}
	return digestOf(sum), f.Sync()
}

func digestOf(h hash.Hash) string { return "sha256:" + hex.EncodeToString(h.Sum(nil)) }

// interruptible is a reader that fails when its context ends.
type interruptible struct {
	ctx context.Context
	r   io.Reader
}

func (i *interruptible) Read(p []byte) (int, error) {
	if i.ctx.Err() != nil {
		return 0, context.Cause(i.ctx)
	}
	return i.r.Read(p)
}

// counted is a reader that reports how far it is.
type counted struct {
	r           io.Reader
	done, total int64
	step        string
	progress    Progress
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.done += int64(n)
	if c.progress != nil {
		c.progress(Report{Step: c.step, Done: c.done, Total: c.total})
	}
	return n, err
}
