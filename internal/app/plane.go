package app

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/control/gateway"
	"github.com/atoll-run/atoll/internal/control/jobs"
	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/redact"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/upload"
	"github.com/atoll-run/atoll/internal/infra/blob"
	"github.com/atoll-run/atoll/internal/infra/bus"
	"github.com/atoll-run/atoll/internal/infra/trace"
	"github.com/atoll-run/atoll/internal/node/engine"
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

	sealEvery   = 30 * time.Second
	expireEvery = time.Minute
	purgeEvery  = 10 * time.Minute
	purgeTime   = 5 * time.Minute // at most
	purgeBatch  = 1000
	sweepEvery  = time.Hour
)

func (s *Server) openBlobs(ctx context.Context) (err error) {
	url := s.cfg.Settings.Blobs
	if url == "" {
		url = "file://" + s.path("blobs")
	}
	if s.blobs, err = blob.Open(ctx, url); err != nil {
		return err
	}
	s.later(func(context.Context) error { return s.blobs.Close() })
	if s.cfg.Settings.Blobs != "" {
		if s.member.Blobs, err = s.blobs.Claim(ctx, s.installation, s.id); err != nil {
			return fmt.Errorf("blobs: %w", err)
		}
	}
	s.files = &upload.Service{
		Store: s.db.Files(), Contents: upload.Contents{Blobs: s.blobs, Seal: s.box}, Log: s.log,
		Limits: upload.Limits{Files: s.cfg.Settings.MaxFiles, Bytes: int64(s.cfg.Settings.MaxFileBytes), Size: int64(s.cfg.Settings.MaxFileSize)},
	}
	return nil
}

func (s *Server) openBus(ctx context.Context) (err error) {
	cfg := s.cfg.Settings
	installation, replicas := "", 0
	if cfg.NATS != "" {
		installation, replicas = s.installation, cfg.NATSReplicas
	}
	s.bus, err = bus.Open(ctx, bus.Config{
		URL: cfg.NATS, Credentials: cfg.NATSCreds, Dir: s.path("nats"), Name: s.id, Installation: installation, Replicas: replicas,
		MaxBytes: int64(cfg.LogSize), MaxRunBytes: int64(cfg.LogPerRun), MaxAge: cfg.LogAge, Log: s.log,
		Inject: inject, Extract: extract,
	})
	if err != nil {
		return err
	}
	s.later(func(context.Context) error { return s.bus.Close() })
	return nil
}

// inject and extract carry the context of a trace over the bus.
func inject(ctx context.Context) map[string]string {
	var out map[string]string
	for name, values := range trace.Header(ctx) {
		if out == nil {
			out = map[string]string{}
		}
		out[name] = values[0]
	}
	return out
}

func extract(ctx context.Context, headers map[string]string) context.Context {
	if !trace.On() {
		return ctx
	}
	carried := make(map[string][]string, len(headers))
	for name, value := range headers {
		carried[name] = []string{value}
	}
	return trace.Extract(ctx, carried)
}

func (s *Server) openEngine(ctx context.Context) (err error) {
	cfg := s.cfg.Settings
	var folders engine.Folders
	if s.volumes.Dir != "" {
		folders = s.volumes
	}
	if err := s.firstSettings(ctx); err != nil {
		return err
	}
	network, err := s.network()
	if err != nil {
		return err
	}
	platform := s.cfg.Platform
	platform.Files = network.Files
	pool := cfg.Pool(config.ThisMachine())
	s.engine, err = engine.Open(ctx, engine.Config{
		Platform: platform, Images: s.cfg.Images, Resolver: resolver{s}, Volumes: folders,
		Buckets: engine.Buckets{Buckets: s.buckets, Owners: s.volumes.Owners, Cache: int64(cfg.MountCache)}, Image: cfg.Image, Limits: cfg.Limits(), Env: cfg.EnvVars,
		PoolSize: pool.Others, PoolDefault: pool.Default, PoolMemory: pool.Memory, Standby: cfg.StandbyKernels, Journals: true, Network: network, Registry: s.cfg.Registry, Unfit: s.homeless,
	})
	if err != nil {
		return err
	}
	s.later(func(context.Context) error { return s.engine.Close() })
	s.openPackages()
	concurrency := cfg.MaxConcurrent
	if concurrency == 0 {
		concurrency = slotsPerCore * runtime.NumCPU()
	}
	waitFor := lostAfter / 2
	if cfg.NATS == "" {
		waitFor = 0 // no other process has an executor
	}
	s.executor, err = executor.New(executor.Config{
		Waiting: s.path(filepath.Join("state", "waiting")), WaitFor: waitFor,
		Outputs: filepath.Join(s.folder(), "outputs"), Mark: filepath.Join(platform.State, platform.Name, "mark"),
		Web: s.bus.Web(), Skills: s.db, Uploads: s.files, Homes: s.homesOf(), HomeFree: int64(cfg.MinFreeDisk),
		Sandboxes: s.engine, Writer: s.bus.Log(), Starts: s.bus.Starts(), Blobs: s.blobs, Log: s.log, Registry: s.cfg.Registry,
		Concurrency: concurrency, Queue: cfg.MaxQueue, TurnIdle: cfg.TurnIdle, TurnKeep: turnKeep, Turns: max(4*concurrency, int(pool.Memory/turnMemory)), FlushTime: cfg.FlushTimeout, Detach: cfg.OnExit == "detach",
	})
	if err != nil {
		return err
	}
	s.later(s.closeExecutor)
	s.seat, err = s.bus.Serve(s.id, s.executor)
	return err
}

// closeExecutor ends the executor, and records the ends that came of it.
func (s *Server) closeExecutor(ctx context.Context) error {
	err := s.executor.Close(ctx)
	if s.gateway != nil && s.cfg.Settings.NATS == "" && s.cfg.Settings.OnExit != "detach" {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		s.gateway.Sweep(last, time.Now(), time.Time{})
	}
	if s.seat != nil {
		s.seat.Close()
	}
	return err
}

func (s *Server) openGateway(context.Context) (err error) {
	cfg := s.cfg.Settings
	rules, err := redact.Except(nil)
	if err != nil {
		return err
	}
	s.gateway, err = gateway.New(gateway.Config{
		Store:   prompt{s.db.Executions(), func() { s.jobs.Poke() }},
		Runner:  s.bus.Runner(),
		Log:     s.bus.Log(),
		Starts:  s.bus.Starts(),
		Await:   func(traceID string) gateway.Waiter { return s.bus.Await(traceID) },
		Outputs: s.blobs,
		Trail:   s.refusals,
		Disk:    s.disk.Admit,

		Recordable: s.trail.Check,

		Prices:     s.prices(),
		Rules:      rules,
		MaxTimeout: cfg.MaxTimeout,
		MaxOutput:  int64(cfg.MaxOutput),
		Keep:       s.keepOutputs(),
		Logger:     s.log,
		Metrics:    s.cfg.Registry,
	})
	return err
}

func (s *Server) openJobs(ctx context.Context) (err error) {
	trail := audit.NewSealer(s.db.Audit())
	delivered, err := countDeliveries(s.cfg.Registry)
	if err != nil {
		return err
	}
	s.jobs, err = jobs.New(jobs.Config{
		DB: s.db.SQL(), Postgres: s.db.Postgres(), ID: s.id, Log: s.log,
		Executions: s.db.Executions(), Deliver: s.deliver, Tell: s.tell, Observe: delivered,
		Periodic: []jobs.Periodic{
			{Name: "seal_audit", Every: sealEvery, Run: func(ctx context.Context) error {
				_, err := trail.Seal(ctx)
				return err
			}},
			{Name: "purge_audit", Every: purgeEvery, Timeout: purgeTime, Run: purge(s.db.Audit().Purge)},
			{Name: "purge_executions", Every: purgeEvery, Timeout: purgeTime, Run: func(ctx context.Context) error {
				_, err := s.gateway.Purge(ctx, s.cfg.Settings.KeepFor)
				return err
			}},
			{Name: "expire_responses", Every: expireEvery, Timeout: purgeTime, Run: s.runs.Expire},
			{Name: "expire_threads", Every: purgeEvery, Timeout: purgeTime, Run: s.threads.Expire},
			{Name: "sweep_threads", Every: sweepEvery, Timeout: sweepEvery, Run: s.threads.Sweep},
			{Name: "purge_sandboxes", Every: purgeEvery, Timeout: purgeTime, Run: purge(s.sandboxes.Purge)},
			{Name: "expire_snapshots", Every: purgeEvery, Timeout: purgeTime, Run: purge(s.sandboxes.ExpireSnapshots)},
			{Name: "sweep_snapshots", Every: sweepEvery, Timeout: sweepEvery, Run: s.sandboxes.Sweep},
			{Name: "sweep_files", Every: purgeEvery, Timeout: purgeTime, Run: purge(s.files.Sweep)},
			{Name: "purge_keys", Every: purgeEvery, Timeout: purgeTime, Run: purge(func(ctx context.Context, most int) (int, error) {
				n, err := s.db.Executions().PurgeKeys(ctx, most)
				if err != nil || n == most {
					return n, err
				}
				more, err := s.db.Idempotency().Purge(ctx, most-n)
				return n + more, err
			})},
			{Name: "purge_usage", Every: purgeEvery, Timeout: purgeTime, Run: purge(func(ctx context.Context, most int) (int, error) {
				return s.db.Usage().Purge(ctx, s.cfg.Settings.KeepUsage, most)
			})},
		},
	})
	if err != nil {
		return err
	}
	if err := s.jobs.Start(ctx); err != nil {
		return err
	}
	s.later(func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return s.jobs.Stop(ctx)
	})
	return nil
}

// purge is the work of deleting what is old, in pieces that hold up no request for
// long, until nothing is left of it.
func purge(some func(ctx context.Context, most int) (int, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		for {
			if n, err := some(ctx, purgeBatch); err != nil || n < purgeBatch {
				return err
			}
		}
	}
}

// countDeliveries returns what counts attempts at webhooks by their outcome.
func countDeliveries(reg prometheus.Registerer) (func(outcome string), error) {
	counts := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "atoll_webhook_attempts_total",
		Help: "Attempts to deliver a webhook: delivered, retried (it failed and is tried again), failed (for the last time).",
	}, []string{"outcome"})
	if err := reg.Register(counts); err != nil {
		return nil, err
	}
	for _, outcome := range jobs.Outcomes { // from the start, so that a first failure is an increase
		counts.WithLabelValues(outcome)
	}
	return func(outcome string) { counts.WithLabelValues(outcome).Inc() }, nil
}

// deliver makes one attempt at a webhook.
func (s *Server) deliver(ctx context.Context, e *execution.Execution) (tried bool, err error) {
	ctx, span := trace.StartKind(ctx, "webhook.deliver", trace.Client, trace.String(trace.TraceID, e.TraceID))
	defer span.End()
	tried, err = s.webhooks.Deliver(ctx, e)
	span.Fail(err)
	return tried, err
}

// tell makes one attempt at a message about a session.
func (s *Server) tell(ctx context.Context, t tenant.ID, id string, sealed []byte) (tried bool, err error) {
	n, err := s.db.OpenNotice(t, id, sealed)
	if err != nil {
		return false, err
	}
	ctx, span := trace.StartKind(ctx, "webhook.deliver", trace.Client)
	defer span.End()
	tried, err = s.webhooks.Tell(ctx, n)
	span.Fail(err)
	return tried, err
}

// recover goes on with what an earlier process left: it takes over the runs of
// this machine, records ends that were not recorded yet, and ends what is lost.
func (s *Server) recover(ctx context.Context) error {
	loops, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.later(func(context.Context) error {
		stop()
		s.loops.Wait()
		return nil
	})
	if err := s.executor.Recover(ctx, s.seat); err != nil {
		return err
	}
	takeOver, err := s.sandboxes.BeginRecovery(ctx)
	if err != nil {
		return err
	}
	s.loops.Go(func() { // a thousand take half a minute, in which the server can serve others
		if err := takeOver(loops); err != nil && loops.Err() == nil {
			s.log.Error("cannot take over the named sandboxes", "error", err)
		}
	})
	s.loops.Go(func() { s.warmUp(loops) })
	if s.packages != nil {
		s.loops.Go(func() { s.packages.Run(loops) })
	}
	s.loops.Go(func() { s.sandboxes.Run(loops) })
	s.loops.Go(func() { s.forgetThreads(loops) })
	s.loops.Go(func() { s.eraser.Run(loops) })
	s.loops.Go(func() {
		if err := s.bus.Results(loops, s.gateway.Conclude); err != nil && loops.Err() == nil {
			s.log.Error("stopped recording results", "error", err)
		}
	})
	if s.cfg.Settings.NATS == "" { // no other process has an executor
		s.gateway.Sweep(ctx, time.Now(), s.executor.Complete())
	}
	s.loops.Go(func() {
		if err := s.gateway.Reconcile(loops, lostAfter); err != nil {
			s.log.Error("stopped looking for lost executions", "error", err)
		}
	})
	return nil
}
