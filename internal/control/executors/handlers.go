package executors

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/remote"
	"github.com/atoll-run/atoll/internal/core/remote/control"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// none adapts a use case without a result.
func none[In any](f func(ctx context.Context, from string, in In) error) func(context.Context, string, In) (remote.None, error) {
	return func(ctx context.Context, from string, in In) (remote.None, error) {
		return remote.None{}, f(ctx, from, in)
	}
}

// Handlers returns the handlers of all calls of package remote/control.
func (s *Service) Handlers() remote.Handlers {
	h := remote.Handlers{}
	control.CreateSandbox.Handle(h, s.Create)
	control.WakeSandbox.Handle(h, none(s.Wake))
	control.DeleteSandbox.Handle(h, none(s.Delete))
	control.CheckBudget.Handle(h, none(s.CheckBudget))
	control.GetSandbox.Handle(h, func(ctx context.Context, from string, in control.Ref) (*sandbox.Sandbox, error) {
		return s.own(ctx, from, in.Tenant, in.ID)
	})
	control.ListSandboxes.Handle(h, func(ctx context.Context, from string, _ remote.None) ([]*sandbox.Sandbox, error) {
		return s.cfg.Sandboxes.ListByExecutor(ctx, from)
	})
	control.ListWithoutEnv.Handle(h, func(ctx context.Context, from string, _ remote.None) ([]runtime.ID, error) {
		return s.cfg.Sandboxes.ListWithoutEnvironment(ctx, from)
	})
	control.RenewGrant.Handle(h, s.Grant)
	s.snapshotHandlers(h)
	s.machineHandlers(h)
	return h
}

func (s *Service) snapshotHandlers(h remote.Handlers) {
	control.BeginSnapshot.Handle(h, none(s.BeginSnapshot))
	control.FinishSnapshot.Handle(h, s.FinishSnapshot)
	control.AbandonSnapshot.Handle(h, none(s.AbandonSnapshot))
	control.AbandonAllSnapshots.Handle(h, none(func(ctx context.Context, from string, _ remote.None) error {
		return s.cfg.Snapshots.AbandonAll(ctx, from)
	}))
	control.FindSnapshot.Handle(h, s.FindSnapshot)
	control.MarkGarbage.Handle(h, none(s.MarkGarbage))
	control.GetSnapshotKey.Handle(h, s.SnapshotKey)
}

func (s *Service) machineHandlers(h remote.Handlers) {
	control.ListWanted.Handle(h, func(ctx context.Context, _ string, _ remote.None) ([]requirement.Wanted, error) {
		return s.cfg.Builds.Wanted(ctx)
	})
	control.ListBuilds.Handle(h, func(ctx context.Context, _, ref string) ([]requirement.Build, error) {
		return s.cfg.Builds.Builds(ctx, ref)
	})
	control.ListOwnBuilds.Handle(h, func(ctx context.Context, from string, _ remote.None) ([]requirement.Build, error) {
		return s.cfg.Builds.Of(ctx, from)
	})
	control.PutBuild.Handle(h, none(s.PutBuild))
	control.DeleteBuild.Handle(h, none(func(ctx context.Context, from, ref string) error { return s.cfg.Builds.Delete(ctx, ref, from) }))
	control.ListUsedImages.Handle(h, func(ctx context.Context, _ string, _ remote.None) ([]string, error) {
		return s.cfg.Builds.UsedImages(ctx)
	})
	control.ReadSkill.Handle(h, func(ctx context.Context, _ string, in control.Skill) ([]execution.SkillFile, error) {
		return s.SkillFiles(ctx, in)
	})
	control.ReadUpload.Handle(h, func(ctx context.Context, _ string, in control.Upload) ([]byte, error) { return s.Upload(ctx, in) })
	control.ThreadExists.Handle(h, func(ctx context.Context, _ string, in control.Thread) (bool, error) {
		return s.cfg.Threads.Exists(ctx, in.Tenant, in.ID)
	})
	control.GetSandboxCA.Handle(h, func(ctx context.Context, _ string, known control.KnownCA) (control.CA, error) {
		return s.SandboxCA(ctx, known)
	})
}
