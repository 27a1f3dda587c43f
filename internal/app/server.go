// Package app puts the parts of a server together in one process: records,
// bus, blobs, engine and executor, gateway, jobs, and the HTTP interface over
// them. It alone knows all of them.
//
// What is opened first is closed last: Close undoes in the opposite order what
// Open did, also when Open fails in the middle.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/agent/admission"
	"github.com/atoll-run/atoll/internal/agent/approval"
	"github.com/atoll-run/atoll/internal/agent/conversation"
	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/agent/mcpclient"
	"github.com/atoll-run/atoll/internal/agent/mcptool"
	"github.com/atoll-run/atoll/internal/agent/response"
	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/app/localserver"
	"github.com/atoll-run/atoll/internal/control/directory"
	"github.com/atoll-run/atoll/internal/control/erasure"
	"github.com/atoll-run/atoll/internal/control/gateway"
	"github.com/atoll-run/atoll/internal/control/jobs"
	"github.com/atoll-run/atoll/internal/control/tools"
	"github.com/atoll-run/atoll/internal/control/webhook"
	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/breaker"
	"github.com/atoll-run/atoll/internal/core/installation"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/preview"
	"github.com/atoll-run/atoll/internal/core/ratelimit"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/thread"
	"github.com/atoll-run/atoll/internal/core/upload"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/core/web"
	"github.com/atoll-run/atoll/internal/edge/compat/e2b"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	previewproxy "github.com/atoll-run/atoll/internal/edge/preview"
	"github.com/atoll-run/atoll/internal/edge/tlscert"
	"github.com/atoll-run/atoll/internal/infra/blob"
	"github.com/atoll-run/atoll/internal/infra/bus"
	"github.com/atoll-run/atoll/internal/infra/seal"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/node/disk"
	"github.com/atoll-run/atoll/internal/node/engine"
	"github.com/atoll-run/atoll/internal/node/executor"
	"github.com/atoll-run/atoll/internal/node/image"
	"github.com/atoll-run/atoll/internal/node/packages"
	"github.com/atoll-run/atoll/internal/node/provision"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
	volume "github.com/atoll-run/atoll/internal/node/volumes"
	"github.com/atoll-run/atoll/internal/node/volumes/bucket"
)

// Config is what a Server is made of. All of it is required unless a field says otherwise.
type Config struct {
	Settings *config.Config
	DevKey   string // of the tenant dev; "" for none
	Version  string
	Platform engine.Platform
	Images   *image.Store
	Log      *slog.Logger
	Registry *prometheus.Registry
	// Listener is what Serve will get. Open answers on it that the server is starting; nil for
	// no answers until then.
	Listener *net.TCPListener
	Getenv   func(string) string // OpenTelemetry's own settings, and keys of declared models

	// Prebuilt returns the archive of an image that was installed with this program; "" if there is
	// none. May be nil.
	Prebuilt func(name string) string

	// KeepAdminKey gets the admin key of a first start before the records do; may be nil.
	KeepAdminKey tenant.KeepKey
}

// Server is an open server that does not serve yet.
type Server struct {
	cfg Config
	log *slog.Logger
	id  string // of this server, the same after every restart

	installation string              // id that all servers with the same records have
	member       installation.Member // this server, as the others know it
	misfit       atomic.Pointer[error]
	beaten       atomic.Pointer[error] // of the last renewal of this server's entry

	disk    *disk.Guard
	db      *store.DB
	applied applied // settings; after Open, of the loop that openSettings starts

	configuredCA, configuredWebhookCA []byte // bundles of sandbox_ca_bundle and webhook_ca as this server is configured

	refusals      *audit.Refusals
	trail         *ratelimit.Trail
	box           *seal.Box
	blobs         *blob.Store
	files         *upload.Service
	homes         engine.Threads // of this machine; Cache is nil if the machine cannot keep homes
	homeless      error          // why the machine cannot keep homes
	threads       *thread.Catalog
	bus           *bus.Bus
	mirrors       map[packages.Kind]bool // kinds of package for which this server runs a mirror, limited by allowed
	mirrorTrouble *packages.Trouble
	allowed       packages.List
	packages      *provision.Provisioner // nil if this server installs no packages and makes no variants
	engine        *engine.Engine
	executor      *executor.Executor
	aliases       *image.Aliases
	sandboxes     *sandboxes.Manager
	directory     *directory.Directory
	previews      *preview.Previews
	visits        *previewproxy.Handler
	seat          *bus.Executor
	gateway       *gateway.Gateway
	webhooks      *webhook.Client
	jobs          *jobs.Client
	tenants       *tenant.Admin
	eraser        *erasure.Eraser
	models        *model.Catalog
	allow         allowed
	web           *web.Service
	mcp           *mcptool.Tools
	mcpClient     *mcpclient.Client

	caps          *breaker.Breakers
	executeCode   *tools.ExecuteCode
	tools         *tools.Set
	runs          *loop.Loop
	gate          *admission.Gate
	conversations *conversation.Service
	responses     *response.Service
	approvals     *approval.Service
	rates         *ratelimit.Models
	budget        *usage.Budget
	programs      *usage.Programs
	authority     *tenant.Authority
	http          *httpapi.Server
	e2b           atomic.Pointer[e2b.Handlers] // nil where it is off
	tls           *tlscert.Files               // nil without TLS
	buckets       bucket.Buckets
	volumes       volume.Store // without Dir where volumes are in a bucket, or nothing can be mounted

	lacking atomic.Pointer[string] // what Ready last found

	starting *starting // nil without Config.Listener, or once Serve has it

	// AdminKey is the key that administers, if this start made it: nothing shows it
	// again.
	AdminKey string

	loops sync.WaitGroup // results and reconciliation
	undo  []func(context.Context) error
}

// Open starts everything but the HTTP interface. What an earlier process left
// running goes on.
func Open(ctx context.Context, cfg Config) (_ *Server, err error) {
	s := &Server{cfg: cfg, log: cfg.Log}
	s.setMemory()
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close(context.WithoutCancel(ctx)))
		}
	}()
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"data folder", s.lock},
		{"name of this server", s.openID},
		{"disk", s.openDisk},
		{"traces", s.openTraces},
		{"TLS", s.openTLS},
		{"answers while it starts", s.openStarting},
		{"records", s.openRecords},
		{"blob store", s.openBlobs},
		{"bus", s.openBus},
		{"storage", s.openStorage},
		{"shared parts of the installation", s.join},
		{"threads", s.openThreads},
		{"engine", s.openEngine},
		{"named sandboxes", s.openSandboxes},
		{"previews", s.openPreviews},
		{"webhooks", s.openWebhooks},
		{"gateway", s.openGateway},
		{"models", s.openModels},
		{"web", s.openWeb},
		{"MCP servers of callers", s.openRemotes},
		{"development mode", s.openDev},
		{"tools", s.openTools},
		{"runs", s.openRuns},
		{"deletion of tenants", s.openErasure},
		{"jobs", s.openJobs},
		{"HTTP interface", s.openHTTP},
		{"stored settings", s.openSettings},
		{"executions of an earlier process", s.recover},
		{"runs of an earlier process", s.startRuns},
		{"admin key", s.openAdminKey}, // last: a start that fails must not use up the key that is shown once
	} {
		if s.starting != nil {
			s.starting.step.Store(&step.name)
		}
		if err := step.do(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return s, nil
}

// Serve answers on ln until ctx ends, and then closes the server: running
// executions get the grace period of the settings.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	deadline := make(chan time.Time, 1)
	context.AfterFunc(ctx, func() { deadline <- time.Now().Add(s.cfg.Settings.ShutdownGrace) })
	if s.cfg.Settings.PreviewURL == "" {
		base, err := s.localPreviews(ln.Addr().String())
		if err != nil {
			return errors.Join(err, ln.Close(), s.Close(context.WithoutCancel(ctx)))
		}
		s.previews.SetBase(base)
	}
	if err := s.stopStarting(ctx); err != nil {
		return errors.Join(err, ln.Close(), s.Close(context.WithoutCancel(ctx)))
	}
	if err := s.announce(ln.Addr().String()); err != nil {
		return errors.Join(err, ln.Close(), s.Close(context.WithoutCancel(ctx)))
	}
	// A reader of this line may run a command, which looks for the record.
	s.log.Info("listening", "address", ln.Addr().String(), "version", s.cfg.Version)
	if s.tls != nil {
		ln = s.tls.Listen(ln)
	}
	err := s.http.Serve(ctx, ln)
	closing := context.WithoutCancel(ctx)
	if ctx.Err() != nil {
		until, cancel := context.WithDeadline(closing, <-deadline)
		defer cancel()
		closing = until
	}
	return errors.Join(err, s.Close(closing))
}

// announce records where the server listens, for the commands of this machine.
func (s *Server) announce(address string) error {
	dir := s.cfg.Settings.DataDir
	s.later(func(context.Context) error { return localserver.Remove(dir) })
	return localserver.Write(dir, localserver.Record{
		URL: localserver.URL(address, s.tls != nil), PID: os.Getpid(), Version: s.cfg.Version,
	})
}

// expire ends the executions that end with this process, and waits for that.
func (s *Server) expire() {
	if s.cfg.Settings.OnExit == "detach" {
		return
	}
	spent, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.executor.Close(spent); err != nil {
		s.log.Error("cannot end the running executions", "error", err)
	}
}

// Close ends what Open began. Executions that run may go on until ctx ends;
// then they end, or are let go of for the next process.
func (s *Server) Close(ctx context.Context) error {
	var errs []error
	for len(s.undo) > 0 {
		last := s.undo[len(s.undo)-1]
		s.undo = s.undo[:len(s.undo)-1]
		errs = append(errs, last(ctx))
	}
	return errors.Join(errs...)
}

// later adds an undo.
func (s *Server) later(f func(context.Context) error) { s.undo = append(s.undo, f) }

// path is a file or folder in the data folder.
func (s *Server) path(name string) string { return filepath.Join(s.cfg.Settings.DataDir, name) }
