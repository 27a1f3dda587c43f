package conversation

import (
	"context"
	"encoding/base64"
	"slices"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/upload"
)

func invalid(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

// checkMounts completes and checks the mounts of a session with an agent.
func (s *Service) checkMounts(ctx context.Context, t tenant.ID, d *agent.Definition, all []session.Mount) error {
	if len(all) == 0 {
		return nil
	}
	pooled := d.Pooled()
	if !pooled && !boxed(d) {
		return invalid("mounts are for the session's sandboxes: the agent needs the tool sandboxes or, for copies of uploaded files, sandbox")
	}
	for i := range all {
		if m := &all[i]; m.Path == "" && pooled {
			m.Path = runtime.Home + "/uploads/" + string(m.File)
		} else if m.Path == "" {
			m.Path = session.Uploads + "/uploads/" + string(m.File)
		}
	}
	if err := session.CheckMounts(all, pooled); err != nil {
		return err
	}
	return s.checkCopies(ctx, t, all, pooled)
}

// boxed reports whether an agent works in a sandbox that has no name.
func boxed(d *agent.Definition) bool {
	return hasSandboxSkill(d) || slices.ContainsFunc(d.Tools, func(t agent.Tool) bool { return d.Kind(&t) == agent.Sandbox })
}

// checkCopies rejects unknown uploaded files, and more of them than a sandbox is given.
func (s *Service) checkCopies(ctx context.Context, t tenant.ID, all []session.Mount, pooled bool) error {
	var size int64
	for i, m := range all {
		if m.File == "" {
			continue
		}
		if s.Files == nil {
			return invalid("mounts[%d].file_id: this server has no files", i)
		}
		f, err := s.Files.Get(ctx, t, string(m.File))
		if fault.KindOf(err) == fault.NotFound {
			return invalid("mounts[%d].file_id: %s", i, upload.ErrNotFound.Msg)
		}
		if err != nil {
			return err
		}
		if size += f.Size; !pooled && size > execution.MaxCopies {
			return invalid("mounts[%d].file_id: the files of an agent without the tool sandboxes must have at most %d bytes together", i, execution.MaxCopies)
		}
	}
	return nil
}

// NewMount is a mount as a client describes it; omitted fields are nil.
type NewMount struct {
	Type              session.MountType
	Path, FileID      *string
	Content, Encoding *string
	URL, Ref, Token   *string
}

// Mount returns the mount at a path of the request. A copy of an uploaded file without a path gets the
// default one.
func (in *NewMount) Mount(path string) (m session.Mount, err error) {
	m.Type = in.Type
	if in.Path == nil && in.FileID == nil {
		return m, invalid("%s.path is required", path)
	}
	if in.FileID != nil {
		m.File = upload.ID(*in.FileID)
		if !m.File.Valid() {
			return m, invalid("%s.file_id: %s", path, upload.ErrNotFound.Msg)
		}
		if in.Content != nil || in.Encoding != nil {
			return m, invalid("%s must have content or file_id", path)
		}
	}
	for _, f := range []struct{ from, to *string }{{in.Path, &m.Path}, {in.URL, &m.URL}, {in.Ref, &m.Ref}, {in.Token, &m.Token}} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	switch {
	case m.Type != session.MountFile && (in.Content != nil || in.Encoding != nil):
		return m, invalid("%s: content and encoding are of mounts of the type file", path)
	case m.Type == session.MountFile && in.Content == nil && in.FileID == nil:
		return m, invalid("%s.content or file_id is required in a mount of the type file", path)
	case in.Content == nil:
		return m, nil
	case in.Encoding != nil && *in.Encoding == "base64":
		if m.Content, err = base64.StdEncoding.DecodeString(*in.Content); err != nil {
			return m, invalid("%s.content is not valid base64", path)
		}
	default:
		m.Content = []byte(*in.Content)
	}
	return m, nil
}
