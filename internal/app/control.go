package app

import (
	"context"

	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/control/directory"
	"github.com/atoll-run/atoll/internal/control/executors"
	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// controlModule is the control plane as the modules of an executor use it: the records of this
// process, or else a gateway.
type controlModule struct {
	*process
	identity *identityModule
	records  *recordsModule
	bus      *busModule
	files    *filesModule

	sandboxes sandbox.Records
	ledger    sandbox.Ledger
	snapshots sandbox.SnapshotRecords
	grants    sandbox.Grants
	builds    requirement.Store
	skills    execution.Skills
	uploads   execution.Uploads
}

// Start implements module.Part.
func (m *controlModule) Start(context.Context, *module.Undo) error {
	db := m.records.db
	m.sandboxes, m.snapshots = executors.Records{Store: db.Sandboxes()}, executors.SnapshotRecords{SnapshotStore: db.Snapshots()}
	m.ledger = sandboxes.Ledger{Accounts: db.Sandboxes(), Prices: m.prices()}
	m.grants = directory.Grants{Callers: m.records.authority}
	m.builds, m.skills, m.uploads = db.PackageBuilds(), db, m.files.Service
	return nil
}

// storedCA returns the stored certificates that sandboxes trust; nil if none are stored or they
// cannot be read now.
func (m *controlModule) storedCA(ctx context.Context) (*value, error) {
	kept, err := m.records.db.Settings(ctx)
	if err != nil {
		return nil, err
	}
	text, ok := kept[sandboxCA]
	if !ok {
		return nil, nil
	}
	t, err := storableSetting(sandboxCA)
	if err != nil {
		return nil, err
	}
	v, err := storedValue(ctx, m.records.db, t, text)
	if err != nil {
		m.log.Error("cannot read a stored setting, and the configured one applies", "setting", sandboxCA, "error", err)
		return nil, nil // certificatesModule tries again
	}
	return &v, nil
}
