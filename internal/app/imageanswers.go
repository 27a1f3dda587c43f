package app

import (
	"context"

	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/core/imagequery"
)

// imageAnswersModule answers questions of gateways in other processes about images and packages.
type imageAnswersModule struct {
	*process
	bus      *busModule
	packages *packagesModule
	images   *imagesModule
}

// Start implements module.Part.
func (m *imageAnswersModule) Start(_ context.Context, undo *module.Undo) error {
	if m.cfg.Settings.Alone() {
		return nil
	}
	stop, err := m.bus.AnswerGateways(imagequery.Handlers(m.images.answers(m.packages)))
	if err != nil {
		return err
	}
	undo.Add(func(context.Context) error { stop(); return nil })
	return nil
}
