package app

import (
	"context"

	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/control/directory"
	"github.com/atoll-run/atoll/internal/control/executors"
	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/remote/control"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	nodecontrol "github.com/atoll-run/atoll/internal/node/control"
	noderecords "github.com/atoll-run/atoll/internal/node/records"
)

// controlModule is the control plane as the modules of an executor use it: the records of this
// process, or else a gateway.
type controlModule struct {
	*process
	identity *identityModule
	records  *recordsModule
	bus      *busModule
	files    *filesModule
	threads  *threadsModule

	gateways *nodecontrol.Client  // nil if this process has the records
	journal  *noderecords.Journal // likewise

	sandboxes sandbox.Records
	ledger    sandbox.Ledger
	snapshots sandbox.SnapshotRecords
	grants    sandbox.Grants
	builds    requirement.Store
	skills    execution.Skills
	uploads   execution.Uploads
}

// Start implements module.Part.
func (m *controlModule) Start(ctx context.Context, undo *module.Undo) error {
	if m.records == nil {
		return m.ask(ctx, undo)
	}
	db := m.records.db
	m.sandboxes, m.snapshots = executors.Records{Store: db.Sandboxes()}, executors.SnapshotRecords{SnapshotStore: db.Snapshots()}
	m.ledger = sandboxes.Ledger{Accounts: db.Sandboxes(), Prices: m.prices()}
	m.grants = directory.Grants{Callers: m.records.authority}
	m.builds, m.skills, m.uploads = db.PackageBuilds(), db, m.files.Service
	return nil
}

// ask uses gateways, and a journal of this machine for the records of its sandboxes.
func (m *controlModule) ask(ctx context.Context, undo *module.Undo) error {
	c := nodecontrol.New(nodecontrol.Config{Gateways: m.bus.Gateways(), Log: m.log})
	journal, err := noderecords.Open(noderecords.Config{
		Dir: m.path("records"), Executor: m.identity.id, Records: nodecontrol.Records{Client: c}, Publisher: m.bus.NodeEventWriter(), Log: m.log,
	})
	if err != nil {
		return err
	}
	undo.Add(journal.Close)
	loop, loops := startLoops(ctx, undo)
	loops.Go(func() { journal.Run(loop) })
	m.gateways, m.journal, m.grants, m.skills, m.uploads = c, journal, c, c, c
	m.sandboxes, m.ledger, m.snapshots, m.builds = journal, journal, nodecontrol.Snapshots{Client: c}, nodecontrol.Builds{Client: c}
	return nil
}

// writable reports why changes of sandboxes cannot be stored on this machine.
func (m *controlModule) writable() error {
	if m.journal == nil {
		return nil
	}
	return m.journal.Status().Err
}

// threadExists reports whether a tenant has a thread.
func (m *controlModule) threadExists(ctx context.Context, tenantID, id string) (bool, error) {
	if m.gateways != nil {
		return m.gateways.ThreadExists(ctx, tenantID, id)
	}
	return m.threads.Exists(ctx, tenantID, id)
}

// node returns a machine's sandboxes as other servers use them.
func (m *controlModule) node(local sandbox.Node) sandbox.Node {
	if m.gateways == nil {
		return local
	}
	return m.gateways.Node(local)
}

// storedCA returns the stored certificates that sandboxes trust; nil if none are stored or they
// cannot be read now. It waits for a gateway if wait is set.
func (m *controlModule) storedCA(ctx context.Context, known string, wait bool) (*value, error) {
	if m.gateways != nil {
		return m.remoteCA(ctx, known, wait)
	}
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

func (m *controlModule) remoteCA(ctx context.Context, known string, wait bool) (*value, error) {
	get := func() (control.CA, error) { return m.gateways.SandboxCA(ctx, known) }
	if wait {
		get = func() (control.CA, error) { return m.gateways.AwaitSandboxCA(ctx) }
	}
	ca, err := get()
	if err != nil || !ca.Stored {
		return nil, err
	}
	return &value{text: ca.Text, content: ca.Content}, nil
}
