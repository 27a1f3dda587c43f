package app

import (
	"context"
	"os"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/core/installation"
)

// installationModule enters this server into the records that it shares with others. A server that
// does not share the bus and the stores as well is refused, before it touches the others' executions.
type installationModule struct {
	*process
	identity *identityModule
	records  *recordsModule
	bus      *busModule
	blobs    *blobsModule
	storage  *storageModule

	member installation.Member // this server, as the others know it
	misfit atomic.Pointer[error]
	beaten atomic.Pointer[error] // of the last renewal of this server's entry
	others atomic.Int32          // servers that also run
}

// Start implements module.Part.
func (m *installationModule) Start(ctx context.Context, undo *module.Undo) (err error) {
	if m.cfg.Settings.OwnRecords() {
		return nil // the lock of the data folder keeps others out
	}
	m.member.Executor, m.member.Blobs, m.member.Volumes = m.identity.id, m.blobs.claim, m.storage.claim
	if m.member.Host, err = os.Hostname(); err != nil {
		return err
	}
	if !m.cfg.Settings.Alone() {
		if m.member.Bus, err = m.bus.ID(ctx); err != nil {
			return err
		}
	}
	if err := installation.Join(ctx, m.records.db.Installation(), m.member); err != nil {
		return err
	}
	beats, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.beat(beats)
	}()
	undo.Add(func(ctx context.Context) error {
		stop()
		<-done
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
		defer cancel()
		return m.records.db.Installation().Leave(ctx, m.identity.id)
	})
	return nil
}

// beat renews this server's entry and looks for servers that do not fit: one that was frozen
// while another joined finds out here.
func (m *installationModule) beat(ctx context.Context) {
	tick := time.NewTicker(installation.BeatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := m.beatOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		if m.beaten.Store(&err); err != nil {
			m.log.Warn("cannot renew this server's entry in the database", "error", err)
		}
	}
}

func (m *installationModule) beatOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, installation.BeatEvery)
	defer cancel()
	if !m.cfg.Settings.Alone() {
		if id, err := m.bus.ID(ctx); err == nil { // its streams may have been made again
			m.member.Bus = id
		}
	}
	if err := m.records.db.Installation().Beat(ctx, m.member); err != nil {
		return err
	}
	others, err := m.records.db.Installation().Members(ctx, m.identity.id)
	if err != nil {
		return err
	}
	m.count(others)
	misfit := installation.Conflict(m.member, others)
	m.misfit.Store(&misfit)
	return nil
}

// count notes how many other servers run.
func (m *installationModule) count(others []installation.Seen) {
	n := int32(0)
	for _, o := range others {
		if o.Age < installation.DeadAfter {
			n++
		}
	}
	m.others.Store(n)
}

// servers returns how many servers of the installation run, this one included.
func (m *installationModule) servers() int { return 1 + int(m.others.Load()) }

// fits reports why this server must not go on beside the others.
func (m *installationModule) fits() error {
	if misfit := m.misfit.Load(); misfit != nil {
		return *misfit
	}
	return nil
}

// writable reports why the shared database took no entry of this server when it was last
// renewed: a database that answers may still be read-only or full.
func (m *installationModule) writable() error {
	if beaten := m.beaten.Load(); beaten != nil {
		return *beaten
	}
	return nil
}
