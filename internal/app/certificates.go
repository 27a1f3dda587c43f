package app

import (
	"context"

	"github.com/atoll-run/atoll/internal/app/module"
)

// certificatesModule gives new sandboxes the certificates that an operator stores while the server
// runs.
type certificatesModule struct {
	*process
	control *controlModule
	engine  *engineModule

	failed string // text of a value that could not be applied
}

// Start implements module.Part. The engine has started with the stored certificates.
func (m *certificatesModule) Start(ctx context.Context, undo *module.Undo) error {
	loop, loops := startLoops(ctx, undo)
	loops.Go(func() {
		repeatSettings(loop, m.apply, func(err error) { m.log.Warn("cannot read the stored certificates of sandboxes", "error", err) })
	})
	return nil
}

// apply applies the stored certificates if they have changed since the last call.
func (m *certificatesModule) apply(ctx context.Context) error {
	now, err := m.engine.currentCA(ctx, m.engine.ca.text, false)
	if err != nil || now.text == m.engine.ca.text {
		return err
	}
	if err := m.engine.SetCA(now.content); err != nil {
		// The loop retries, for example until the disk has room again. Log the failure only once.
		if m.failed != now.text {
			m.log.Error("cannot apply a stored setting", "setting", sandboxCA, "error", err)
		}
		m.failed = now.text
		return nil
	}
	m.engine.ca, m.failed = now, ""
	m.log.Info("a setting changed", "setting", sandboxCA, "value", now.text)
	return nil
}
