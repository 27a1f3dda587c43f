package app

import (
	"context"
	"database/sql"
	"time"

	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// table returns the modules of a server's role before their start. Needs lists the modules that a part
// points to, and others that must start first. A part points to nil for a module of another role.
func (s *Server) table() []module.Module {
	p := s.process
	r := rolesOf(p.cfg.Settings)

	lock := &lockModule{process: p}
	identity := &identityModule{process: p}
	disk := &diskModule{process: p}
	traces := &tracesModule{process: p}
	tls := &tlsModule{process: p}
	starting := &startingModule{process: p, tls: tls}
	records := optional(r, onGateway, &recordsModule{process: p})
	shared := &sharedModule{process: p, identity: identity, records: records}
	blobs := &blobsModule{process: p, identity: identity, shared: shared}
	bus := &busModule{process: p, identity: identity, shared: shared}
	storage := &storageModule{process: p, identity: identity, shared: shared}
	installation := optional(r, onGateway, &installationModule{process: p, identity: identity, records: records, bus: bus, blobs: blobs, storage: storage})
	files := optional(r, onGateway, &filesModule{process: p, records: records, blobs: blobs})

	threads := optional(r, onGateway, &threadsModule{process: p, records: records, bus: bus, blobs: blobs})
	control := optional(r, onExecutor, &controlModule{process: p, identity: identity, records: records, bus: bus, files: files, threads: threads})
	homes := optional(r, onExecutor, &homesModule{process: p, bus: bus, blobs: blobs, threads: threads, control: control})
	engine := optional(r, onExecutor, &engineModule{process: p, control: control, storage: storage, homes: homes})
	packages := optional(r, onExecutor, &packagesModule{process: p, identity: identity, disk: disk, control: control, engine: engine})
	executor := optional(r, onExecutor, &executorModule{process: p, identity: identity, control: control, bus: bus, blobs: blobs, homes: homes, engine: engine})
	images := optional(r, onExecutor, &imagesModule{process: p, disk: disk, engine: engine})
	snapshots := &snapshotsModule{process: p, records: records, blobs: blobs, bus: bus, control: control}
	sandboxes := optional(r, onExecutor, &sandboxesModule{process: p, identity: identity, disk: disk, control: control, snapshots: snapshots, engine: engine, images: images})

	questions := optional(r, onGateway, &imageQuestionsModule{process: p, records: records, packages: packages, images: images})
	answers := optional(r, onGateway, &executorsModule{process: p, records: records, bus: bus, files: files, threads: threads})
	webhooks := optional(r, onGateway, &webhooksModule{process: p, blobs: blobs})
	gateway := optional(r, onGateway, &gatewayModule{process: p, disk: disk, records: records, bus: bus, blobs: blobs})
	nodes := &nodesModule{process: p, records: records, bus: bus}
	directory := optional(r, onGateway, &directoryModule{process: p, identity: identity, records: records, sandboxes: sandboxes, gateway: gateway, nodes: nodes})
	previews := optional(r, onGateway, &previewsModule{process: p, tls: tls, records: records, directory: directory})
	tenants := optional(r, onGateway, &tenantsModule{process: p, records: records, storage: storage, images: questions, webhooks: webhooks})
	models := optional(r, onGateway, &modelsModule{process: p, records: records, tenants: tenants})
	web := optional(r, onGateway, &webModule{process: p, records: records, gateway: gateway, directory: directory})
	remotes := optional(r, onGateway, &remotesModule{process: p, records: records, gateway: gateway, directory: directory})
	dev := optional(r, onGateway, &devModule{process: p, records: records, webhooks: webhooks, models: models, remotes: remotes})
	tools := optional(r, onGateway, &toolsModule{process: p, records: records, bus: bus, files: files, images: questions, gateway: gateway, directory: directory, previews: previews, remotes: remotes})
	runs := optional(r, onGateway, &runsModule{
		process: p, installation: installation, identity: identity, records: records, bus: bus, files: files, images: questions, webhooks: webhooks, gateway: gateway,
		directory: directory, models: models, web: web, remotes: remotes, tools: tools,
	})
	erasure := optional(r, onGateway, &erasureModule{process: p, records: records, bus: bus, blobs: blobs, storage: storage, threads: threads, gateway: gateway, runs: runs})
	jobs := optional(r, onGateway, &jobsModule{process: p, identity: identity, records: records, files: files, threads: threads, snapshots: snapshots, webhooks: webhooks, gateway: gateway, runs: runs})
	ready := &readiness{log: p.log, disk: disk, records: records, bus: bus, installation: installation, control: control, engine: engine}
	http := optional(r, onGateway, &httpModule{
		process: p, installation: installation, disk: disk, records: records, bus: bus, files: files, storage: storage, threads: threads, executor: executor, webhooks: webhooks, gateway: gateway,
		directory: directory, previews: previews, tenants: tenants, models: models, web: web, remotes: remotes, tools: tools, runs: runs, jobs: jobs, readiness: ready,
	})
	settings := optional(r, onGateway, &settingsModule{process: p, records: records, webhooks: webhooks, models: models, remotes: remotes, http: http})
	probes := optional(r, withoutGateway, &probesModule{process: p, readiness: ready})
	certificates := optional(r, onExecutor, &certificatesModule{process: p, control: control, engine: engine})
	imageAnswers := optional(r, onExecutor, &imageAnswersModule{process: p, bus: bus, packages: packages, images: images})
	recovery := optional(r, onExecutor, &recoveryModule{process: p, records: records, homes: homes, engine: engine, packages: packages, executor: executor, sandboxes: sandboxes, gateway: gateway})
	nodeServer := optional(r, onExecutor, &nodeServerModule{process: p, control: control, nodes: nodes, sandboxes: sandboxes})
	results := optional(r, onGateway, &resultsModule{process: p, bus: bus, executor: executor, gateway: gateway, erasure: erasure})
	resume := optional(r, onGateway, &resumeModule{process: p, runs: runs})
	adminKey := optional(r, onGateway, &adminKeyModule{process: p, records: records})

	// These hooks call modules that start later. No module calls a hook before its target has started.
	if r.has(onGateway) {
		records.enqueue = func(ctx context.Context, tx *sql.Tx, e *execution.Execution) error { return jobs.Enqueue(ctx, tx, e) }
		records.notify = func(ctx context.Context, tx *sql.Tx, t tenant.ID, id string, sealed []byte) error {
			return jobs.Notify(ctx, tx, t, id, sealed)
		}
		gateway.poke = func() { jobs.Poke() }
		runs.poke = gateway.poke
		runs.draining = http.draining
		previews.admit = http.admitE2B
		tenants.deleted = erasure.deleted
	}
	if r.has(withoutExecutor) {
		questions.executors = bus
	}
	starting.step = func() string { return s.modules.Current() }
	if r.has(onExecutor) {
		executor.ended = func(ctx context.Context) {
			if gateway != nil && gateway.Gateway != nil { // nil if the start failed
				gateway.Sweep(ctx, time.Now(), time.Time{})
			}
		}
		nodeServer.draining = func() error { return s.front.Draining() }
	}

	s.starting, s.tls, s.previews, s.ready, s.adminKey = starting, tls, previews, ready, adminKey
	s.front = probes
	if http != nil {
		s.front = http
	}
	return choose(r, []row{
		{onBoth, module.Module{Name: "data folder", Part: lock}},
		{onBoth, module.Module{Name: "name of this server", Part: identity, Needs: []string{"data folder"}}},
		{onBoth, module.Module{Name: "disk", Part: disk}},
		{onBoth, module.Module{Name: "traces", Part: traces}},
		{onBoth, module.Module{Name: "TLS", Part: tls}},
		{onBoth, module.Module{Name: "answers while it starts", Part: starting, Needs: []string{"TLS"}}},
		{onGateway, module.Module{Name: "records", Part: records, Needs: []string{"data folder"}}},
		{onBoth, module.Module{Name: "id of the installation", Part: shared, Needs: []string{"name of this server", "records"}}},
		{onBoth, module.Module{Name: "blob store", Part: blobs, Needs: []string{"data folder", "name of this server", "id of the installation"}}},
		{onBoth, module.Module{Name: "bus", Part: bus, Needs: []string{"data folder", "name of this server", "id of the installation"}}},
		{onBoth, module.Module{Name: "storage", Part: storage, Needs: []string{"data folder", "name of this server", "id of the installation"}}},
		{onGateway, module.Module{Name: joined, Part: installation, Needs: []string{"name of this server", "records", "bus", "blob store", "storage"}}},
		{onGateway, module.Module{Name: "files of callers", Part: files, Needs: []string{"records", "blob store"}}},

		{onGateway, module.Module{Name: "threads", Part: threads, Needs: []string{joined, "records", "bus", "blob store"}}},
		{onExecutor, module.Module{Name: "control plane", Part: control, Needs: []string{"name of this server", "records", "bus", "files of callers", "threads"}}},
		{onExecutor, module.Module{Name: "homes of threads", Part: homes, Needs: []string{joined, "bus", "blob store", "threads", "control plane"}}},
		{onExecutor, module.Module{Name: "engine", Part: engine, Needs: []string{joined, "control plane", "storage", "homes of threads"}}},
		{onExecutor, module.Module{Name: "packages", Part: packages, Needs: []string{"name of this server", "disk", "control plane", "engine"}}},
		{onExecutor, module.Module{Name: "executor", Part: executor, Needs: []string{"name of this server", "control plane", "bus", "blob store", "homes of threads", "engine", "packages"}}},
		{onExecutor, module.Module{Name: "images", Part: images, Needs: []string{"disk", "engine"}}},
		{onBoth, module.Module{Name: "snapshots", Part: snapshots, Needs: []string{"records", "blob store", "bus", "control plane"}}},
		{onExecutor, module.Module{Name: "named sandboxes", Part: sandboxes, Needs: []string{"name of this server", "disk", "control plane", "snapshots", "engine", "images"}}},

		{onGateway, module.Module{Name: "questions about images", Part: questions, Needs: []string{"records", "bus", "packages", "images"}}},
		{onGateway, module.Module{Name: "answers to executors", Part: answers, Needs: []string{joined, "records", "bus", "files of callers", "threads"}}},
		{onGateway, module.Module{Name: "webhooks", Part: webhooks, Needs: []string{"blob store"}}},
		{onGateway, module.Module{Name: "gateway", Part: gateway, Needs: []string{joined, "disk", "records", "bus", "blob store"}}},
		{onBoth, module.Module{Name: "other servers", Part: nodes, Needs: []string{"records", "bus"}}},
		{onGateway, module.Module{Name: "directory", Part: directory, Needs: []string{"name of this server", "records", "named sandboxes", "gateway", "other servers"}}},
		{onGateway, module.Module{Name: "previews", Part: previews, Needs: []string{"TLS", "records", "directory"}}},
		{onGateway, module.Module{Name: "tenants", Part: tenants, Needs: []string{"records", "storage", "questions about images", "webhooks"}}},
		{onGateway, module.Module{Name: "models", Part: models, Needs: []string{"records", "tenants"}}},
		{onGateway, module.Module{Name: "web", Part: web, Needs: []string{"records", "gateway", "directory"}}},
		{onGateway, module.Module{Name: "MCP servers of callers", Part: remotes, Needs: []string{"records", "gateway", "directory"}}},
		{onGateway, module.Module{Name: "development mode", Part: dev, Needs: []string{"records", "webhooks", "models", "MCP servers of callers"}}},
		{onGateway, module.Module{Name: "tools", Part: tools, Needs: []string{"records", "bus", "files of callers", "questions about images", "gateway", "directory", "previews", "MCP servers of callers"}}},
		{onGateway, module.Module{Name: "runs", Part: runs, Needs: []string{joined, "name of this server", "records", "bus", "files of callers", "questions about images", "webhooks", "gateway", "directory", "models", "web", "MCP servers of callers", "tools"}}},
		{onGateway, module.Module{Name: "deletion of tenants", Part: erasure, Needs: []string{"records", "bus", "blob store", "storage", "threads", "gateway", "runs"}}},
		{onGateway, module.Module{Name: "jobs", Part: jobs, Needs: []string{"name of this server", "records", "files of callers", "threads", "snapshots", "webhooks", "gateway", "runs"}}},
		{onGateway, module.Module{Name: "HTTP interface", Part: http, Needs: []string{
			"disk", "records", "bus", "files of callers", "storage", joined, "threads", "engine", "executor", "webhooks", "gateway", "directory", "previews", "tenants",
			"models", "web", "MCP servers of callers", "development mode", "tools", "runs", "deletion of tenants", "jobs", "control plane",
		}}},
		{onGateway, module.Module{Name: "stored settings", Part: settings, Needs: []string{"records", "webhooks", "models", "MCP servers of callers", "HTTP interface"}}},
		{onExecutor, module.Module{Name: "certificates of sandboxes", Part: certificates, Needs: []string{"control plane", "engine"}}},
		{withoutGateway, module.Module{Name: "probes", Part: probes, Needs: []string{"bus", "disk", "control plane", "engine"}}},

		// Work starts after everything that it may call.
		{onExecutor, module.Module{Name: "executions of an earlier process", Part: recovery, Needs: []string{"records", "homes of threads", "engine", "packages", "executor", "named sandboxes", "gateway", "jobs", "stored settings", "certificates of sandboxes"}}},
		{onExecutor, module.Module{Name: "answers about images", Part: imageAnswers, Needs: []string{"bus", "packages", "images"}}},
		{onExecutor, module.Module{Name: "connections of other servers", Part: nodeServer, Needs: []string{"control plane", "named sandboxes", "other servers", "executions of an earlier process"}}},
		{onGateway, module.Module{Name: "results of executions", Part: results, Needs: []string{"bus", "executor", "gateway", "deletion of tenants", "jobs", "executions of an earlier process"}}},
		{onGateway, module.Module{Name: "runs of an earlier process", Part: resume, Needs: []string{"runs", "results of executions"}}},
		// Last: a start that fails must not use up the key that is shown once.
		{onGateway, module.Module{Name: "admin key", Part: adminKey, Needs: []string{"traces", "answers while it starts", "records", "answers to executors", "answers about images", "connections of other servers", "runs of an earlier process"}}},
	})
}

// joined names the module that checks whether the servers of an installation fit. Modules that change
// shared data need it.
const joined = "shared parts of the installation"
