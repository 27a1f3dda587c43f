package warm

import (
	"context"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/initclient"
)

// MakeShared returns a sandbox for several programs of a kind, one after the other. Renew
// comes before each.
func (m *Maker) MakeShared(ctx context.Context, key Key) (*Sandbox, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("a sandbox of %s was not ready within %s", key, readyTimeout))
	defer cancel()
	if _, ok := m.cfg.Image.Interpreter(key.Language); !ok {
		return nil, m.noInterpreter(key.Language)
	}
	inst, err := m.instance(key, runtime.NewID(), func(spec runtime.Spec) (runtime.Instance, error) {
		spec.Shared = true
		return m.cfg.Runtime.Create(ctx, spec)
	})
	if err != nil {
		return nil, err
	}
	s, err := m.adopt(ctx, key, inst)
	if err != nil {
		return nil, err
	}
	s.shared = key
	return s, nil
}

// renewTime bounds what Renew takes, an interpreter's start and imports included.
const renewTime = time.Minute

// Renew ends what is left of the program that a sandbox of MakeShared has run, and has it
// ready for the next one, which finds nothing of it. After an error the sandbox is to be
// destroyed.
func (s *Sandbox) Renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, renewTime, fmt.Errorf("a sandbox of %s was not ready for its next program within %s", s.shared, renewTime))
	defer cancel()
	ctx, stop := whileAlive(ctx, s.instance)
	defer stop()
	in, _ := s.maker.cfg.Image.Interpreter(s.shared.Language)
	l := s.maker.cfg.Limits
	spec := initclient.RenewSpec{
		WarmSpec: initclient.WarmSpec{Command: s.command(in, s.env), Site: in.SiteDir},
		Root:     l.Root, Tmp: l.Tmp, Shm: l.Shm, Inodes: l.Inodes,
	}
	if s.shared.Preload {
		spec.Preload = s.maker.cfg.Image.Preloads
	}
	return s.guest.Renew(ctx, spec)
}
