package executors_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/control/directory"
	"github.com/atoll-run/atoll/internal/control/executors"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/proof"
	"github.com/atoll-run/atoll/internal/core/remote/remotetest"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/skill/skilltest"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/thread"
	"github.com/atoll-run/atoll/internal/core/upload"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/infra/blob"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	node "github.com/atoll-run/atoll/internal/node/control"
)

var discard = slog.New(slog.DiscardHandler)

// world is a database with two tenants, and the service of a gateway.
type world struct {
	db      *store.DB
	signer  proof.Signer
	grants  sandbox.Grants
	service *executors.Service
	events  *executors.Events
	seq     map[string]uint64 // of the last events, by executor
	mine    holder            // has a sandbox of exe_1
	other   holder            // of another tenant
}

// holder is a key of a tenant in an environment.
type holder struct {
	tenant, environment, key string
	skill                    execution.SkillRef
	file                     execution.FileRef
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newWorld(t testing.TB) *world {
	t.Helper()
	db := storetest.SQLite(t)
	storetest.Operator(t, db)
	w := &world{db: db, signer: storetest.Box(t), grants: directory.Grants{Callers: tenant.NewAuthority(db.Tenants())}}
	blobs, err := blob.Open(context.Background(), "file://"+t.TempDir())
	must(t, err)
	t.Cleanup(func() { _ = blobs.Close() })
	uploads := &upload.Service{Store: db.Files(), Contents: upload.Contents{Blobs: blobs, Seal: storetest.Box(t)}, Log: discard}
	w.service = executors.NewService(executors.Config{
		Sandboxes: db.Sandboxes(), Snapshots: db.Snapshots(), Grants: w.grants,
		Builds: db.PackageBuilds(), Skills: db, Uploads: uploads, Threads: thread.New(thread.Config{Records: db.Threads(), Log: discard}), Settings: db,
		SnapshotKey: func(id tenant.ID) []byte { return bytes.Repeat([]byte(id), 64)[:64] }, Signer: w.signer,
	})
	w.events, w.seq = &executors.Events{Store: db.NodeEvents(), Prices: usage.DefaultPrices(), Log: discard}, map[string]uint64{}
	w.mine, w.other = w.tenant(t, uploads, "ten_mine"), w.tenant(t, uploads, "ten_other")
	return w
}

// tenant creates a tenant with an environment, a key, a skill and a file.
func (w *world) tenant(t testing.TB, uploads *upload.Service, id string) holder {
	t.Helper()
	ctx := context.Background()
	must(t, w.db.Tenants().CreateTenant(ctx, tenant.Tenant{ID: id, Name: id, Plan: "pro", Tier: tenant.Standard, AuditDays: 30, CreatedAt: time.Now()}))
	environment(t, w.db, id, "env_"+id)
	h := holder{tenant: id, environment: "env_" + id, key: key(t, w.db, id, "env_"+id)}
	k := skilltest.New(id)
	must(t, w.db.Skills().Create(ctx, k, skilltest.Bundle(t, "report", "Writes reports."), skill.Limits{}))
	h.skill = execution.SkillRef{Name: "report", Version: string(k.Latest.ID)}
	f := &upload.File{Name: "a.txt", MediaType: "text/plain"}
	must(t, uploads.Upload(ctx, &tenant.Principal{Tenant: tenant.Tenant{ID: id}}, f, strings.NewReader("file of "+id), func() (time.Duration, error) { return 0, nil }))
	h.file = execution.FileRef{ID: string(f.ID), Path: "/mnt/a"}
	return h
}

func environment(t testing.TB, db *store.DB, tenantID, id string) {
	t.Helper()
	must(t, db.Tenants().CreateEnvironment(context.Background(), tenant.Environment{ID: id, Tenant: tenantID, Name: id, Image: "default", Limits: runtime.DefaultLimits(), CreatedAt: time.Now()}))
}

// key creates a key in an environment.
func key(t testing.TB, db *store.DB, tenantID, environment string) string {
	t.Helper()
	k := tenant.Key{ID: tenant.NewID("key"), Tenant: tenantID, Environment: environment, Scopes: []tenant.Scope{tenant.ScopeSandboxes}, CreatedAt: time.Now()}
	k.Name, k.Hash = k.ID, tenant.HashKey(k.ID)
	must(t, db.Tenants().CreateKey(context.Background(), k))
	return k.ID
}

// wire carries the calls of an executor.
func (w *world) wire(executor string) remotetest.Wire {
	return remotetest.Wire{Handlers: w.service.Handlers(), From: executor}
}

// client is the client of an executor.
func (w *world) client(executor string) *node.Client {
	return node.New(node.Config{Gateways: w.wire(executor), Log: discard, Patience: 1})
}

// grant is the grant of a holder that a gateway gave an executor with a proof for so long.
func (w *world) grant(t testing.TB, h holder, executor string, life time.Duration) *sandbox.Grant {
	t.Helper()
	g, err := w.grants.Grant(context.Background(), h.tenant, h.key, h.environment)
	must(t, err)
	return g.ProvenTo(executor, w.signer, time.Now().Add(life))
}

// create has an executor record a sandbox that runs.
func (w *world) create(t testing.TB, h holder, executor, name string) *sandbox.Sandbox {
	t.Helper()
	ctx, records := context.Background(), node.Records{Client: w.client(executor)}
	sb := draft(h, executor, name)
	there, err := records.Create(ctx, w.grant(t, h, executor, time.Hour), sb)
	must(t, err)
	if there != nil {
		t.Fatalf("there is %s", there.ID)
	}
	must(t, sb.Move(sandbox.Running, ""))
	w.save(t, sb)
	return sb
}

// report has an executor report an event.
func (w *world) report(t testing.TB, executor string, e sandbox.Event) error {
	t.Helper()
	e.Journal = "jrn_" + executor
	b, err := e.Encode()
	must(t, err)
	w.seq[executor]++
	return w.events.Fold(context.Background(), executor, w.seq[executor], b)
}

// save has a sandbox's executor report a change.
func (w *world) save(t testing.TB, sb *sandbox.Sandbox) {
	t.Helper()
	sb.Revision++
	must(t, w.report(t, sb.Executor, sandbox.Event{Sandbox: sb.ID, Save: sb}))
}

func draft(h holder, executor, name string) *sandbox.Sandbox {
	return &sandbox.Sandbox{
		ID: runtime.NewID(), Tenant: h.tenant, Environment: h.environment, Session: "s", Name: name, Key: h.key, Executor: executor,
		Image: "default", Limits: runtime.DefaultLimits(), State: sandbox.Creating, SleepAfter: time.Minute, UsedAt: time.Now(), Revision: 1, Env: map[string]string{"SECRET": "of " + h.tenant},
	}
}

// machine notes the grants of its uses.
type machine struct {
	sandbox.Node
	seen func(*sandbox.Grant)
}

func (m machine) Use(_ context.Context, g *sandbox.Grant, _, _ string) (sandbox.Handle, error) {
	m.seen(g)
	return nil, sandbox.ErrNotFound
}
