package sandboxes

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// Archive is a tar archive of a folder that is being read. Close it.
type Archive struct {
	io.ReadCloser
	excluded []string
}

// PackWithout returns an archive of a folder, without the paths in a list with commas and all below
// them. It excludes hard links to excluded files, too.
func (u *Use) PackWithout(ctx context.Context, dir, excludes string) (*Archive, error) {
	u.trail.Asks(excludes)
	from, err := u.Guest().Pack(ctx, dir)
	if err != nil {
		return nil, err
	}
	a := &Archive{ReadCloser: from}
	for e := range strings.SplitSeq(excludes, ",") {
		if e = inArchive(e); e != "" {
			a.excluded = append(a.excluded, e)
		}
	}
	return a, nil
}

func inArchive(name string) string { return strings.Trim(path.Clean("/"+name), "/") }

func (a *Archive) excludes(name string) bool {
	name = inArchive(name)
	return slices.ContainsFunc(a.excluded, func(e string) bool { return name == e || strings.HasPrefix(name, e+"/") })
}

// Copy writes the archive.
func (a *Archive) Copy(to io.Writer) error {
	if len(a.excluded) == 0 {
		_, err := io.Copy(to, a.ReadCloser)
		return err
	}
	in, out := tar.NewReader(a.ReadCloser), tar.NewWriter(to)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return out.Close()
		}
		if err != nil {
			return err
		}
		if a.excludes(h.Name) || h.Typeflag == tar.TypeLink && a.excludes(h.Linkname) {
			continue
		}
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		if _, err := io.Copy(out, in); err != nil {
			return err
		}
	}
}

// Limited is a Reader that fails with Over after Left bytes.
type Limited struct {
	From io.Reader
	Left int64
	Over error
}

// Read implements io.Reader.
func (l *Limited) Read(p []byte) (int, error) {
	n, err := l.From.Read(p)
	if l.Left -= int64(n); l.Left < 0 {
		return 0, l.Over
	}
	return n, err
}

// Exists reports whether a sandbox exists, also while it sleeps.
func (s *Service) Exists(ctx context.Context, r Ref) (bool, error) {
	sb, err := s.Get(ctx, r)
	if fault.KindOf(err) == fault.NotFound {
		return false, nil
	}
	return err == nil && (sb.State == sandbox.Running || sb.State == sandbox.Sleeping), err
}
