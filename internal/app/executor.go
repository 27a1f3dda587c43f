package app

import (
	"context"
	"path/filepath"
	"runtime"
	"time"

	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/infra/bus"
	"github.com/atoll-run/atoll/internal/node/executor"
)

const (
	// slotsPerCore is how many executions run at once for each core: most of them
	// wait for something.
	slotsPerCore = 8

	// lostAfter is how long an executor on another machine may be out of reach
	// before its executions count as lost.
	lostAfter = time.Minute

	// turnMemory is what the sandbox of a turn takes while it waits for the next call: as
	// many are kept as pool_memory has room for. For turnKeep after a call none is given up
	// for another turn's: the agent or model thinks about what it read.
	turnMemory = 16 << 20
	turnKeep   = 10 * time.Second
)

// executorModule takes executions from the bus and runs them.
type executorModule struct {
	*process
	identity *identityModule
	control  *controlModule
	bus      *busModule
	blobs    *blobsModule
	homes    *homesModule
	engine   *engineModule

	*executor.Executor
	presence *bus.Executor

	ended func(context.Context) // records executions that ended with the executor; set by the table
}

// Start implements module.Part.
func (m *executorModule) Start(_ context.Context, undo *module.Undo) (err error) {
	cfg, platform := m.cfg.Settings, m.cfg.Platform
	pool := cfg.Pool(config.ThisMachine())
	concurrency := cfg.MaxConcurrent
	if concurrency == 0 {
		concurrency = slotsPerCore * runtime.NumCPU()
	}
	waitFor := lostAfter / 2
	if cfg.Alone() {
		waitFor = 0
	}
	m.Executor, err = executor.New(executor.Config{
		Waiting: m.path(filepath.Join("state", "waiting")), WaitFor: waitFor,
		Outputs: filepath.Join(m.folder(), "outputs"), Mark: filepath.Join(platform.State, platform.Name, "mark"),
		Web: m.bus.Web(), Skills: m.control.skills, Uploads: m.control.uploads, Homes: m.homes.forExecutor(), HomeFree: int64(cfg.MinFreeDisk),
		Sandboxes: m.engine.Engine, Writer: m.bus.Log(), Starts: m.bus.Starts(), Blobs: m.blobs.Store, Log: m.log, Registry: m.cfg.Registry,
		Concurrency: concurrency, Queue: cfg.MaxQueue, TurnIdle: cfg.TurnIdle, TurnKeep: turnKeep, Turns: max(4*concurrency, int(pool.Memory/turnMemory)), FlushTime: cfg.FlushTimeout, Detach: cfg.OnExit == "detach",
	})
	if err != nil {
		return err
	}
	undo.Add(m.stop)
	stop, err := m.bus.DeletedTenants(m.EndTurnsOf)
	if err != nil {
		return err
	}
	undo.Add(func(context.Context) error { stop(); return nil })
	m.presence, err = m.bus.Serve(m.identity.id, m.Executor)
	return err
}

// stop ends the executor, and records the ends that came of it.
func (m *executorModule) stop(ctx context.Context) error {
	err := m.Close(ctx)
	if m.cfg.Settings.Alone() && m.cfg.Settings.OnExit != "detach" {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		m.ended(last)
	}
	if m.presence != nil {
		m.presence.Close()
	}
	return err
}

// expire ends the executions that end with this process, and waits for that.
func (m *executorModule) expire() {
	if m.cfg.Settings.OnExit == "detach" {
		return
	}
	spent, cancel := context.WithCancel(context.Background())
	cancel()
	if err := m.Close(spent); err != nil {
		m.log.Error("cannot end the running executions", "error", err)
	}
}
