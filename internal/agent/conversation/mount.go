package conversation

import (
	"context"
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
