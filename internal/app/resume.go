package app

import (
	"context"

	"github.com/atoll-run/atoll/internal/app/module"
)

// resumeModule continues the runs of an earlier process, and drives new ones.
type resumeModule struct {
	*process
	runs *runsModule
}

// Start implements module.Part.
func (m *resumeModule) Start(ctx context.Context, undo *module.Undo) error {
	undo.Add(func(context.Context) error { m.runs.Stop(); return nil })
	queued, looking := startLoops(ctx, undo)
	looking.Go(func() { m.runs.conversations.Run(queued) })
	looking.Go(func() { m.runs.approvals.Run(queued) })
	return m.runs.Loop.Start(ctx)
}
