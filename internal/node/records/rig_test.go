package records_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/control/executors"
	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	"github.com/atoll-run/atoll/internal/node/records"
	"github.com/atoll-run/atoll/test/atolltest"
)

var postgres atolltest.SharedPostgres

func TestMain(m *testing.M) { postgres.Main(m) }

// everywhere runs a test with the records in each engine.
func everywhere(t *testing.T, test func(t *testing.T, db *store.DB)) {
	storetest.Everywhere(t, &postgres, test)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantKind(t testing.TB, what string, err error, kind fault.Kind) {
	t.Helper()
	if err == nil || fault.KindOf(err) != kind {
		t.Errorf("%s: %v, want a fault of kind %d", what, err, kind)
	}
}

const self = "exe_1"

// link is the bus between an executor and its gateway, which folds each event at once.
type link struct {
	events   *executors.Events
	executor string

	mu     sync.Mutex
	away   bool
	before func(seq uint64) error // Publish fails before the event arrives; nil for none
	after  func(seq uint64) error // Publish fails after it; nil for none
	told   []uint64
}

func (l *link) Publish(ctx context.Context, seq uint64, event []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away {
		return fault.New(fault.Unavailable, "the bus is away")
	}
	if l.before != nil {
		if err := l.before(seq); err != nil {
			return err
		}
	}
	l.told = append(l.told, seq)
	if err := l.events.Fold(ctx, l.executor, seq, event); err != nil {
		if k := fault.KindOf(err); k != fault.NotFound && k != fault.Forbidden && k != fault.Invalid {
			return err
		}
	}
	if l.after != nil {
		return l.after(seq)
	}
	return nil
}

func (l *link) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// rig is an executor's journal with a gateway.
type rig struct {
	*records.Journal
	t      *testing.T
	db     *store.DB
	events *executors.Events
	link   *link
	inner  records.Records
	log    *logs
	change func(*records.Config)

	dir string
	end func()
}

// logs collects log messages.
type logs struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logs) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

func newRig(t *testing.T, db *store.DB, change func(*records.Config)) *rig {
	t.Helper()
	return newRigOf(t, db, self, change)
}

func newRigOf(t *testing.T, db *store.DB, executor string, change func(*records.Config)) *rig {
	t.Helper()
	r := &rig{t: t, db: db, dir: t.TempDir(), inner: newGateway(t, db, executor), log: &logs{}, change: change}
	log := slog.New(slog.NewTextHandler(io.MultiWriter(r.log, t.Output()), nil))
	r.events = &executors.Events{Store: db.NodeEvents(), Prices: usage.DefaultPrices(), Log: log}
	r.link = &link{events: r.events, executor: executor}
	r.open()
	t.Cleanup(func() { r.stop() })
	return r
}

// open opens the journal in dir and sends its events.
func (r *rig) open() {
	r.t.Helper()
	cfg := records.Config{
		Dir: r.dir, Executor: r.link.executor, Records: r.inner, Publisher: r.link, Log: r.events.Log,
	}
	if r.change != nil {
		r.change(&cfg)
	}
	j, err := records.Open(cfg)
	must(r.t, err)
	r.Journal = j
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); j.Run(ctx) }()
	r.end = func() { cancel(); <-done }
}

// stop ends the journal in order.
func (r *rig) stop() {
	if r.end == nil {
		return
	}
	r.end()
	r.end = nil
	if err := r.Close(context.Background()); err != nil {
		r.t.Error(err)
	}
}

// crash reopens the folder in its current state.
func (r *rig) crash() {
	r.t.Helper()
	dir := r.copy()
	r.link.mu.Lock()
	away := r.link.away
	r.link.away = true // the old process says nothing more
	r.link.mu.Unlock()
	r.end()
	_ = r.Close(expired())
	r.link.set(func() { r.link.away = away })
	r.dir = dir
	r.open()
}

func expired() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// copy copies the folder.
func (r *rig) copy() string {
	r.t.Helper()
	dir := r.t.TempDir()
	must(r.t, os.CopyFS(filepath.Join(dir, "journal"), os.DirFS(r.dir)))
	return filepath.Join(dir, "journal")
}

// settled waits until gateways know all.
func (r *rig) settled() {
	r.t.Helper()
	atolltest.Until(r.t, 60*time.Second, "all events are sent", func() bool { return r.Status().Events == 0 })
}

var grant = &sandbox.Grant{Tenant: "ten_1", Environment: "env_1", Key: "key_1"}

func draft(name string) *sandbox.Sandbox {
	now := time.Now().UTC().Truncate(time.Microsecond)
	return &sandbox.Sandbox{
		ID: runtime.NewID(), Tenant: "ten_1", Environment: "env_1", Session: "s", Name: name, Key: "key_1", Executor: self,
		Image: "default", Limits: runtime.DefaultLimits(), State: sandbox.Creating, SleepAfter: time.Minute, Env: map[string]string{"A": "b"},
		CreatedAt: now, UsedAt: now, MeteredAt: now,
	}
}

// create makes a running sandbox.
func (r *rig) create(name string) *sandbox.Sandbox {
	r.t.Helper()
	sb := draft(name)
	there, err := r.Create(r.t.Context(), grant, sb)
	must(r.t, err)
	if there != nil {
		r.t.Fatalf("there is %s", there.ID)
	}
	r.save(sb, func() { must(r.t, sb.Move(sandbox.Running, "")) })
	return sb
}

func (r *rig) save(sb *sandbox.Sandbox, change func()) {
	r.t.Helper()
	change()
	must(r.t, r.Save(r.t.Context(), sb))
}

// charge charges for some time more.
func (r *rig) charge(sb *sandbox.Sandbox, d time.Duration, bytes int64) {
	r.t.Helper()
	until := sb.MeteredAt.Add(d)
	must(r.t, r.Charge(r.t.Context(), sb, until, bytes))
	sb.MeteredAt = until
}

// recorded is the record that gateways have.
func (r *rig) recorded(id runtime.ID) *sandbox.Sandbox {
	r.t.Helper()
	sb, err := r.db.Sandboxes().Get(r.t.Context(), "ten_1", id)
	must(r.t, err)
	return sb
}

// wantState checks the record that gateways have.
func (r *rig) wantState(what string, id runtime.ID, state sandbox.State) {
	r.t.Helper()
	if sb := r.recorded(id); sb.State != state {
		r.t.Errorf("%s: %s, want %s", what, sb.State, state)
	}
}

// total returns the tenant's charges.
type total struct {
	seconds  float64
	bytesOut int64
	entries  int
}

func (r *rig) total() (t total) {
	r.t.Helper()
	var credits float64
	err := r.db.SQL().QueryRowContext(r.t.Context(), `SELECT count(*), coalesce(sum(seconds), 0), coalesce(sum(bytes_out), 0), coalesce(sum(credits), 0) FROM usage_entries`).
		Scan(&t.entries, &t.seconds, &t.bytesOut, &credits)
	must(r.t, err)
	days, err := r.db.Usage().Summary(r.t.Context(), "ten_1", time.Now().Add(-100*24*time.Hour), time.Now().Add(100*24*time.Hour))
	must(r.t, err)
	var sum total
	var sumCredits float64
	for _, d := range days {
		sum.seconds += d.Seconds
		sum.bytesOut += d.BytesOut
		sumCredits += d.Credits
	}
	if !near(sum.seconds, t.seconds) || sum.bytesOut != t.bytesOut || !near(sumCredits, credits) {
		r.t.Errorf("the days have %+v and %v, the entries %+v and %v", sum, sumCredits, t, credits)
	}
	return t
}

// wantTotal checks it.
func (r *rig) wantTotal(seconds float64, bytes int64) {
	r.t.Helper()
	if got := r.total(); !near(got.seconds, seconds) || got.bytesOut != bytes {
		r.t.Errorf("charged for %v s and %d bytes, want %v s and %d", got.seconds, got.bytesOut, seconds, bytes)
	}
}

func near(a, b float64) bool { return a-b < 1e-6 && b-a < 1e-6 }

// contacts lists the hosts of the audit trail, in order.
func (r *rig) contacts() (hosts []string) {
	r.t.Helper()
	page, _, err := r.db.Audit().List(r.t.Context(), audit.Filter{Tenant: "ten_1", Limit: 1000})
	must(r.t, err)
	for _, row := range page {
		if row.CodeSHA256 == [32]byte{} || row.SessionID != "s" || row.Key != "key_1" {
			r.t.Errorf("row %+v", row)
		}
		hosts = append(hosts, row.OutboundHosts...)
	}
	return hosts
}

// flaky is a gateway whose answers can be lost.
type flaky struct {
	records.Records
	mu   sync.Mutex
	lose bool                         // the answers of Create, Wake and Delete
	late func(call func() error) bool // takes a call instead; nil for none
}

var errLost = errors.New("no answer")

func (f *flaky) do(call func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.late != nil && f.late(call) {
		return fault.Wrap(fault.Unavailable, errLost, "no gateway answers")
	}
	err := call()
	if f.lose {
		return fault.Wrap(fault.Unavailable, errLost, "no gateway answers")
	}
	return err
}

func (f *flaky) Create(ctx context.Context, g *sandbox.Grant, s *sandbox.Sandbox) (there *sandbox.Sandbox, err error) {
	err = f.do(func() error { there, err = f.Records.Create(ctx, g, s); return err })
	return there, err
}

func (f *flaky) Wake(ctx context.Context, g *sandbox.Grant, s *sandbox.Sandbox) error {
	return f.do(func() error { return f.Records.Wake(context.WithoutCancel(ctx), g, s) })
}

func (f *flaky) Delete(ctx context.Context, id runtime.ID) error {
	return f.do(func() error { return f.Records.Delete(ctx, id) })
}
