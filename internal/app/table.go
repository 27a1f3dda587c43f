package app

import (
	"context"
	"database/sql"
	"time"

	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// table returns the modules of a server before their start. Needs lists the modules that a part points
// to, and others that must start first.
func (s *Server) table() []module.Module {
	p := s.process

	lock := &lockModule{process: p}
	identity := &identityModule{process: p}
	disk := &diskModule{process: p}
	traces := &tracesModule{process: p}
	tls := &tlsModule{process: p}
	starting := &startingModule{process: p, tls: tls}
	records := &recordsModule{process: p}
	blobs := &blobsModule{process: p, identity: identity, records: records}
	bus := &busModule{process: p, identity: identity, records: records}
	storage := &storageModule{process: p, identity: identity, records: records}
	installation := &installationModule{process: p, identity: identity, records: records, bus: bus, blobs: blobs, storage: storage}

	threads := &threadsModule{process: p, records: records, bus: bus, blobs: blobs}
	homes := &homesModule{process: p, bus: bus, threads: threads}
	engine := &engineModule{process: p, records: records, storage: storage, homes: homes}
	packages := &packagesModule{process: p, identity: identity, disk: disk, records: records, engine: engine}
	executor := &executorModule{process: p, identity: identity, records: records, bus: bus, blobs: blobs, homes: homes, engine: engine}
	images := &imagesModule{process: p, disk: disk, engine: engine}
	snapshots := &snapshotsModule{process: p, records: records, blobs: blobs}
	sandboxes := &sandboxesModule{process: p, identity: identity, disk: disk, records: records, snapshots: snapshots, engine: engine, images: images}

	webhooks := &webhooksModule{process: p, blobs: blobs}
	gateway := &gatewayModule{process: p, disk: disk, records: records, bus: bus, blobs: blobs}
	nodes := &nodesModule{process: p, bus: bus}
	directory := &directoryModule{process: p, identity: identity, records: records, sandboxes: sandboxes, gateway: gateway, nodes: nodes}
	previews := &previewsModule{process: p, tls: tls, records: records, directory: directory}
	tenants := &tenantsModule{process: p, records: records, storage: storage, packages: packages, images: images, webhooks: webhooks}
	models := &modelsModule{process: p, records: records, tenants: tenants}
	web := &webModule{process: p, records: records, gateway: gateway, directory: directory}
	remotes := &remotesModule{process: p, records: records, gateway: gateway, directory: directory}
	dev := &devModule{process: p, records: records, webhooks: webhooks, models: models, remotes: remotes}
	tools := &toolsModule{process: p, records: records, bus: bus, blobs: blobs, images: images, gateway: gateway, directory: directory, previews: previews, remotes: remotes}
	runs := &runsModule{
		process: p, installation: installation, identity: identity, records: records, bus: bus, blobs: blobs, packages: packages, webhooks: webhooks, gateway: gateway,
		directory: directory, models: models, web: web, remotes: remotes, tools: tools,
	}
	erasure := &erasureModule{process: p, records: records, bus: bus, blobs: blobs, storage: storage, threads: threads, gateway: gateway, runs: runs}
	jobs := &jobsModule{process: p, identity: identity, records: records, blobs: blobs, threads: threads, snapshots: snapshots, webhooks: webhooks, gateway: gateway, runs: runs}
	ready := &readiness{log: p.log, disk: disk, records: records, bus: bus, installation: installation, engine: engine}
	http := &httpModule{
		process: p, installation: installation, disk: disk, records: records, bus: bus, blobs: blobs, storage: storage, threads: threads, executor: executor, webhooks: webhooks, gateway: gateway,
		directory: directory, previews: previews, tenants: tenants, models: models, web: web, remotes: remotes, tools: tools, runs: runs, jobs: jobs, readiness: ready,
	}
	settings := &settingsModule{process: p, records: records, engine: engine, webhooks: webhooks, models: models, remotes: remotes, http: http}
	recovery := &recoveryModule{process: p, records: records, homes: homes, engine: engine, packages: packages, executor: executor, sandboxes: sandboxes, gateway: gateway}
	nodeServer := &nodeServerModule{process: p, nodes: nodes, sandboxes: sandboxes}
	results := &resultsModule{process: p, bus: bus, executor: executor, gateway: gateway, erasure: erasure}
	resume := &resumeModule{process: p, runs: runs}
	adminKey := &adminKeyModule{process: p, records: records}

	// These hooks call modules that start later. No module calls a hook before its target has started.
	records.enqueue = func(ctx context.Context, tx *sql.Tx, e *execution.Execution) error { return jobs.Enqueue(ctx, tx, e) }
	records.notify = func(ctx context.Context, tx *sql.Tx, t tenant.ID, id string, sealed []byte) error {
		return jobs.Notify(ctx, tx, t, id, sealed)
	}
	gateway.poke = func() { jobs.Poke() }
	runs.poke = gateway.poke
	runs.draining = http.draining
	previews.admit = http.admitE2B
	tenants.deleted = erasure.deleted
	starting.step = func() string { return s.modules.Current() }
	executor.ended = func(ctx context.Context) {
		if gateway.Gateway != nil { // nil if the start failed
			gateway.Sweep(ctx, time.Now(), time.Time{})
		}
	}

	s.starting, s.tls, s.previews, s.ready, s.http, s.adminKey = starting, tls, previews, ready, http, adminKey
	return []module.Module{
		{Name: "data folder", Part: lock},
		{Name: "name of this server", Part: identity, Needs: []string{"data folder"}},
		{Name: "disk", Part: disk},
		{Name: "traces", Part: traces},
		{Name: "TLS", Part: tls},
		{Name: "answers while it starts", Part: starting, Needs: []string{"TLS"}},
		{Name: "records", Part: records, Needs: []string{"data folder"}},
		{Name: "blob store", Part: blobs, Needs: []string{"data folder", "name of this server", "records"}},
		{Name: "bus", Part: bus, Needs: []string{"data folder", "name of this server", "records"}},
		{Name: "storage", Part: storage, Needs: []string{"data folder", "name of this server", "records"}},
		{Name: joined, Part: installation, Needs: []string{"name of this server", "records", "bus", "blob store", "storage"}},

		{Name: "threads", Part: threads, Needs: []string{joined, "records", "bus", "blob store"}},
		{Name: "homes of threads", Part: homes, Needs: []string{joined, "bus", "threads"}},
		{Name: "engine", Part: engine, Needs: []string{joined, "records", "storage", "homes of threads"}},
		{Name: "packages", Part: packages, Needs: []string{"name of this server", "disk", "records", "engine"}},
		{Name: "executor", Part: executor, Needs: []string{"name of this server", "records", "bus", "blob store", "homes of threads", "engine", "packages"}},
		{Name: "images", Part: images, Needs: []string{"disk", "engine"}},
		{Name: "snapshots", Part: snapshots, Needs: []string{"records", "blob store"}},
		{Name: "named sandboxes", Part: sandboxes, Needs: []string{"name of this server", "disk", "records", "snapshots", "engine", "images"}},

		{Name: "webhooks", Part: webhooks, Needs: []string{"blob store"}},
		{Name: "gateway", Part: gateway, Needs: []string{joined, "disk", "records", "bus", "blob store"}},
		{Name: "other servers", Part: nodes, Needs: []string{"bus"}},
		{Name: "directory", Part: directory, Needs: []string{"name of this server", "records", "named sandboxes", "gateway", "other servers"}},
		{Name: "previews", Part: previews, Needs: []string{"TLS", "records", "directory"}},
		{Name: "tenants", Part: tenants, Needs: []string{"records", "storage", "packages", "images", "webhooks"}},
		{Name: "models", Part: models, Needs: []string{"records", "tenants"}},
		{Name: "web", Part: web, Needs: []string{"records", "gateway", "directory"}},
		{Name: "MCP servers of callers", Part: remotes, Needs: []string{"records", "gateway", "directory"}},
		{Name: "development mode", Part: dev, Needs: []string{"records", "webhooks", "models", "MCP servers of callers"}},
		{Name: "tools", Part: tools, Needs: []string{"records", "bus", "blob store", "images", "gateway", "directory", "previews", "MCP servers of callers"}},
		{Name: "runs", Part: runs, Needs: []string{joined, "name of this server", "records", "bus", "blob store", "packages", "webhooks", "gateway", "directory", "models", "web", "MCP servers of callers", "tools"}},
		{Name: "deletion of tenants", Part: erasure, Needs: []string{"records", "bus", "blob store", "storage", "threads", "gateway", "runs"}},
		{Name: "jobs", Part: jobs, Needs: []string{"name of this server", "records", "blob store", "threads", "snapshots", "webhooks", "gateway", "runs"}},
		{Name: "HTTP interface", Part: http, Needs: []string{
			"disk", "records", "bus", "blob store", "storage", joined, "threads", "engine", "executor", "webhooks", "gateway", "directory", "previews", "tenants",
			"models", "web", "MCP servers of callers", "development mode", "tools", "runs", "deletion of tenants", "jobs",
		}},
		{Name: "stored settings", Part: settings, Needs: []string{"records", "engine", "webhooks", "models", "MCP servers of callers", "HTTP interface"}},

		// Work starts after everything that it may call.
		{Name: "executions of an earlier process", Part: recovery, Needs: []string{"records", "homes of threads", "engine", "packages", "executor", "named sandboxes", "gateway", "jobs", "stored settings"}},
		{Name: "connections of other servers", Part: nodeServer, Needs: []string{"named sandboxes", "other servers", "executions of an earlier process"}},
		{Name: "results of executions", Part: results, Needs: []string{"bus", "executor", "gateway", "deletion of tenants", "jobs", "executions of an earlier process"}},
		{Name: "runs of an earlier process", Part: resume, Needs: []string{"runs", "results of executions"}},
		// Last: a start that fails must not use up the key that is shown once.
		{Name: "admin key", Part: adminKey, Needs: []string{"traces", "answers while it starts", "records", "connections of other servers", "runs of an earlier process"}},
	}
}

// joined names the module that checks whether the servers of an installation fit. Modules that change
// shared data need it.
const joined = "shared parts of the installation"
