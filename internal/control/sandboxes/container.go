package sandboxes

import (
	"cmp"
	"context"
	"slices"

	"github.com/atoll-run/atoll/internal/core/container"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Container is a sandbox of code_interpreter.
type Container struct {
	*sandbox.Sandbox
	container.Settings
}

// CheckMinutes checks how long an unused container lives.
func CheckMinutes(minutes int64) error {
	if minutes < 1 || minutes > container.MaxMinutes {
		return fault.New(fault.Invalid, "expires_after.minutes must be between 1 and %d", container.MaxMinutes)
	}
	return nil
}

// CreateContainer creates a container. memory is in bytes; 0 and nil select the limits and the
// network of the environment.
func (s *Service) CreateContainer(ctx context.Context, p *tenant.Principal, t *Trail, settings container.Settings, memory int64, network *runtime.NetworkPolicy) (*Container, error) {
	spec, err := settings.Spec(p)
	if err != nil {
		return nil, err
	}
	spec.Memory, spec.Network = memory, network
	sb, _, err := s.ensure(ctx, p, t, container.Session, container.NewName(), spec)
	if err != nil {
		return nil, err
	}
	return &Container{sb, settings}, nil
}

// GetContainer returns a container by id, also one that has expired, and a Ref to its sandbox.
func (s *Service) GetContainer(ctx context.Context, p *tenant.Principal, t *Trail, id container.ID) (Ref, *Container, error) {
	unknown := fault.New(fault.NotFound, "container %.80q not found", id)
	of, ok := id.Sandbox()
	if !ok {
		return Ref{}, nil, unknown
	}
	sb, err := s.Get(ctx, Ref{Caller: p, Session: container.Session, Name: string(of)})
	if err != nil && fault.KindOf(err) == fault.NotFound {
		return Ref{}, nil, unknown
	}
	if err != nil {
		return Ref{}, nil, err
	}
	settings, ok := container.Of(sb)
	if !ok {
		return Ref{}, nil, unknown
	}
	return s.Refer(ctx, p, t, container.Session, string(of)), &Container{sb, settings}, nil
}

// Containers returns the containers of the caller's environment, oldest first.
func (s *Service) Containers(ctx context.Context, p *tenant.Principal) ([]Container, error) {
	found, err := s.cfg.Sandboxes.List(ctx, p, container.Session)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b *sandbox.Sandbox) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	var all []Container
	for _, sb := range found {
		if settings, ok := container.Of(sb); ok {
			all = append(all, Container{sb, settings})
		}
	}
	return all, nil
}

// WithinContainer is Within for a container. It restarts the container's idle timeout.
func (s *Service) WithinContainer(ctx context.Context, p *tenant.Principal, t *Trail, id container.ID, f func(*Use) error) error {
	r, c, err := s.GetContainer(ctx, p, t, id)
	if err != nil {
		return err
	}
	if c.State == sandbox.Destroyed {
		return fault.New(fault.NotFound, "the container has expired")
	}
	return s.Within(ctx, r, func(u *Use) error {
		if _, err := s.update(ctx, r, c.Used(p, c.Sandbox, 0)); err != nil {
			return err
		}
		return f(u)
	})
}

// ContainerFiles returns the files of a container, oldest first.
func (u *Use) ContainerFiles(ctx context.Context) ([]file.Info, error) {
	found, err := container.Files(ctx, u.Guest())
	slices.SortFunc(found, func(a, b file.Info) int {
		return cmp.Or(a.Modified.Compare(b.Modified), cmp.Compare(a.Path, b.Path))
	})
	return found, err
}

// ContainerFile returns a regular file of a container by its id.
func (u *Use) ContainerFile(ctx context.Context, id container.FileID) (file.Info, error) {
	unknown := fault.New(fault.NotFound, "file not found in this container")
	at, ok := id.Path(container.IDOf(u.Sandbox().ID))
	if !ok {
		return file.Info{}, unknown
	}
	u.trail.Asks(at)
	info, err := u.Guest().Stat(ctx, at)
	if err != nil && fault.KindOf(err) == fault.NotFound || err == nil && info.Kind != file.Regular {
		return file.Info{}, unknown
	}
	return info, err
}
