package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/control/gateway"
	"github.com/atoll-run/atoll/internal/control/gateway/gatewaytest"
	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/test/atolltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	inline   = gateway.Call{Source: execution.SourceAPI, Delivery: execution.Inline}
	streamed = gateway.Call{Source: execution.SourceAPI, Delivery: execution.Streamed}
	async    = gateway.Call{Source: execution.SourceAPI, Delivery: execution.Async}
)

// rows returns the audit rows of an execution.
func rows(t *testing.T, w *gatewaytest.World, p *tenant.Principal, traceID string) []audit.Row {
	t.Helper()
	page, _, err := w.DB.Audit().List(t.Context(), audit.Filter{Tenant: p.Tenant.ID, TraceID: traceID, Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// ended waits until an execution has ended and returns its record.
func ended(t *testing.T, w *gatewaytest.World, e *execution.Execution) *execution.Execution {
	t.Helper()
	e, err := w.Follow(t.Context(), e, 1, func([]execution.Event) error { return nil })
	if e == nil {
		t.Fatal(err)
	}
	return e
}

func TestInline(t *testing.T) {
	w := gatewaytest.Open(t)
	p := w.Principal(t, "a", "free")
	req := gatewaytest.Request("print hello")
	req.Metadata = map[string]string{"order": "7"}
	e, err := w.Execute(t.Context(), p, req, inline)
	if err != nil {
		t.Fatal(err)
	}
	if e.Status != execution.Success || string(e.Stdout) != "hello\n" || e.TraceID != req.TraceID || e.CompletedAt.Before(e.CreatedAt) {
		t.Errorf("got %+v", e)
	}
	kept, err := w.GetOutput(t.Context(), p.Tenant.ID, e.TraceID)
	if err != nil {
		t.Fatal(err)
	}
	if kept.Status != execution.Success || string(kept.Stdout) != "hello\n" || kept.Metadata["order"] != "7" || kept.Key != p.Key.ID {
		t.Errorf("kept %+v", kept)
	}
	trail := rows(t, w, p, e.TraceID)
	if len(trail) != 1 {
		t.Fatalf("%d audit rows", len(trail))
	}
	if r := trail[0]; r.ExitStatus != audit.OK || r.StdoutBytes != 6 || r.CodeSHA256 != e.CodeSHA256 || r.FailureReason != "" || r.Retention != 30*24*time.Hour {
		t.Errorf("the audit row is %+v", r)
	}
	days, err := w.DB.Usage().Summary(t.Context(), p.Tenant.ID, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	if err != nil || len(days) != 1 || days[0].Calls != 1 || days[0].Sessions != 1 || days[0].Credits <= 0 {
		t.Errorf("used %+v, %v", days, err)
	}
}

func TestWhatAnExecutorIsTold(t *testing.T) {
	w := gatewaytest.Open(t)
	p := w.Principal(t, "a", "pro", func(p *tenant.Principal) {
		p.Environment.Env = map[string]string{"A": "environment", "B": "environment", "C": "environment"}
		p.Environment.Secrets = map[string]string{"B": "secret-b", "C": "secret-c", "D": ""}
		p.Environment.Bound = map[string]tenant.Binding{"C": {Hosts: []string{"api.example.com"}, Placeholder: "atoll-bound-c"}}
		p.Key.Env, p.Key.Secrets = map[string]string{"KEY": "of the key", "BOTH": "of the key"}, map[string]string{"S": "secret-of-key"}
		p.Tenant.RedactionOff = []string{"jwt"}
	})
	jobs := make(chan execution.Job, 1)
	w.Executor.Program("look", func(r *gatewaytest.Run) int { jobs <- r.Job; return 0 })
	req := gatewaytest.Request("look")
	req.Env = map[string]string{"C": "request", "BOTH": "request"}
	if _, err := w.Execute(t.Context(), p, req, inline); err != nil {
		t.Fatal(err)
	}
	job := <-jobs
	if job.Image != "default" || job.Limits != p.Environment.Limits || job.Tenant != p.Tenant.ID || job.Turn != "" ||
		job.MaxOutput != gatewaytest.MaxOutput || job.StoreOutput != 1<<30 {
		t.Errorf("the job is %+v", job)
	}
	if len(job.Env) != 4 || job.Env["C"] != "request" || job.Env["BOTH"] != "request" || job.Env["KEY"] != "of the key" || job.Env["S"] != "secret-of-key" || job.BaseEnv["A"] != "environment" || job.BaseEnv["B"] != "secret-b" || job.BaseEnv["C"] != "atoll-bound-c" {
		t.Errorf("variables %v over %v", job.Env, job.BaseEnv)
	}
	if strings.Join(job.Secrets, ",") != "secret-b,secret-c,secret-of-key" || strings.Join(job.Redact, ",") != "bearer" {
		t.Errorf("secrets %v, rules %v", job.Secrets, job.Redact)
	}
	want := []execution.BoundSecret{{Placeholder: "atoll-bound-c", Value: "secret-c", Hosts: []string{"api.example.com"}}}
	if !reflect.DeepEqual(job.BoundSecrets, want) {
		t.Errorf("bound secrets %v", job.BoundSecrets)
	}
}

func TestTurnsAreTheirOwn(t *testing.T) {
	w := gatewaytest.Open(t)
	turns := make(chan string, 1)
	w.Executor.Program("turn", func(r *gatewaytest.Run) int { turns <- r.Turn; return 0 })
	seen := map[string]string{}
	call := func(p *tenant.Principal, agent, turn string) string {
		t.Helper()
		c := gateway.Call{Source: execution.SourceExecuteCode, Delivery: execution.Inline, Agent: agent, Turn: turn}
		if _, err := w.Execute(t.Context(), p, gatewaytest.Request("turn"), c); err != nil {
			t.Fatal(err)
		}
		return <-turns
	}
	a, b := w.Principal(t, "a", "pro"), w.Principal(t, "b", "pro")
	for name, turn := range map[string]string{
		"a": call(a, "x", "yz"), "another tenant": call(b, "x", "yz"), "another cut": call(a, "xy", "z"), "another turn": call(a, "x", "yy"),
	} {
		if other, ok := seen[turn]; ok || turn == "" {
			t.Errorf("%s has the sandbox of %s", name, other)
		}
		seen[turn] = name
	}
	if seen[call(a, "x", "yz")] != "a" {
		t.Error("a turn has two sandboxes")
	}
}

// TestRecordable runs nothing for a caller whose calls the trail has no room for.
func TestRecordable(t *testing.T) {
	full := fault.Limit("audit_rows", time.Time{}, "the audit trail is full")
	w := gatewaytest.Open(t, func(c *gateway.Config) {
		c.Recordable = func(_ context.Context, p *tenant.Principal) error {
			if p.Tenant.Name == "full" {
				return full
			}
			return nil
		}
	})
	p, req := w.Principal(t, "full", "pro"), gatewaytest.Request("print x")
	if _, err := w.Execute(t.Context(), p, req, inline); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	if _, err := w.Get(t.Context(), p.Tenant.ID, req.TraceID); fault.KindOf(err) != fault.NotFound {
		t.Errorf("recorded: %v", err)
	}
	if trail := rows(t, w, p, req.TraceID); len(trail) != 1 || trail[0].ExitStatus != audit.CapExceeded {
		t.Errorf("the trail is %+v", trail)
	}
	if _, err := w.Execute(t.Context(), w.Principal(t, "other", "pro"), gatewaytest.Request("print x"), inline); err != nil {
		t.Error(err)
	}
}

// TestRoom has responses ask for room as executions do.
func TestRoom(t *testing.T) {
	var disk error
	w := gatewaytest.Open(t, func(c *gateway.Config) { c.Disk = func() error { return disk } })
	p := w.Principal(t, "a", "free")
	for _, kept := range []bool{false, true} {
		if err := w.Room(t.Context(), p, w.DB.Usage(), kept); err != nil {
			t.Errorf("with room: %v", err)
		}
		disk = errors.New("96 % of the disk are in use")
		if err := w.Room(t.Context(), p, w.DB.Usage(), kept); fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "low on disk space") {
			t.Errorf("on a full disk: %v", err)
		}
		disk = nil
	}
}

func TestRefusals(t *testing.T) {
	full := errors.New("96 % of the disk are in use")
	var disk error
	w := gatewaytest.Open(t, func(c *gateway.Config) { c.Disk = func() error { return disk } })
	free := w.Principal(t, "free", "free")
	past := time.Now()
	for _, c := range []struct {
		name      string
		call      gateway.Call
		change    func(p *tenant.Principal, r *execution.Request)
		kind      fault.Kind
		dimension string
		message   string
		trail     audit.ExitStatus
	}{
		{name: "streaming", call: streamed, kind: fault.Exhausted, dimension: "streaming", message: "Streaming execution requires a plan with streaming", trail: audit.CapExceeded},
		{name: "async", call: async, kind: fault.Exhausted, dimension: "async", message: "asynchronous delivery", trail: audit.CapExceeded},
		{name: "timeout", call: inline, change: func(_ *tenant.Principal, r *execution.Request) { r.Timeout = 61 * time.Second }, kind: fault.Exhausted, dimension: "timeout", message: "maximum of 60 seconds", trail: audit.CapExceeded},
		{name: "cpu", call: inline, change: func(p *tenant.Principal, _ *execution.Request) { p.Environment.Limits.CPU = 2 }, kind: fault.Exhausted, dimension: "cpu", message: "cpu of 2 exceeds the free plan's maximum of 1", trail: audit.CapExceeded},
		{name: "memory", call: inline, change: func(p *tenant.Principal, _ *execution.Request) { p.Environment.Limits.Memory = 2 << 30 }, kind: fault.Exhausted, dimension: "memory", message: "memory of 2 GiB exceeds the free plan's maximum of 1 GiB", trail: audit.CapExceeded},
		{name: "disk", call: inline, change: func(*tenant.Principal, *execution.Request) { disk = full }, kind: fault.Unavailable, message: "disk", trail: audit.Provisioning},
		{name: "disabled", call: inline, change: func(p *tenant.Principal, _ *execution.Request) { p.Tenant.DisabledAt = &past }, kind: fault.Forbidden, message: "disabled"},
		{name: "no environment", call: inline, change: func(p *tenant.Principal, _ *execution.Request) { p.Environment = tenant.Environment{} }, kind: fault.Forbidden, message: "no environment"},
		{name: "no code", call: inline, change: func(_ *tenant.Principal, r *execution.Request) { r.Code = "" }, kind: fault.Invalid, message: "code must be"},
		{name: "reserved", call: inline, change: func(_ *tenant.Principal, r *execution.Request) { r.Env = map[string]string{"PATH": "x"} }, kind: fault.Invalid, message: "reserved"},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer func() { disk = nil }()
			p, req := *free, gatewaytest.Request("print x")
			if c.change != nil {
				c.change(&p, &req)
			}
			_, err := w.Execute(t.Context(), &p, req, c.call)
			f, ok := errors.AsType[*fault.Error](err)
			if !ok || f.Kind != c.kind || f.Dimension != c.dimension || !strings.Contains(f.Msg, c.message) {
				t.Fatalf("got %v", err)
			}
			if strings.Contains(f.Msg, full.Error()) {
				t.Error("the caller is told of our disk")
			}
			if _, err := w.Get(t.Context(), p.Tenant.ID, req.TraceID); fault.KindOf(err) != fault.NotFound {
				t.Errorf("recorded: %v", err)
			}
			trail := rows(t, w, free, req.TraceID)
			switch {
			case c.trail == "" && len(trail) != 0, c.trail != "" && (len(trail) != 1 || trail[0].ExitStatus != c.trail || trail[0].FailureReason != f.Msg):
				t.Errorf("the trail is %+v", trail)
			}
		})
	}
}

func TestConcurrencyIsLimited(t *testing.T) {
	w := gatewaytest.Open(t)
	p := w.Principal(t, "a", "pro", func(p *tenant.Principal) { p.Plan.Concurrency = 2 })
	var running []*execution.Execution
	for range 2 {
		e, err := w.Execute(t.Context(), p, gatewaytest.Request("sleep"), streamed)
		if err != nil {
			t.Fatal(err)
		}
		running = append(running, e)
	}
	req := gatewaytest.Request("print x")
	_, err := w.Execute(t.Context(), p, req, inline)
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Kind != fault.Exhausted || f.Dimension != "concurrency" || !strings.Contains(f.Msg, "(2/2)") {
		t.Errorf("got %v", err)
	}
	if trail := rows(t, w, p, req.TraceID); len(trail) != 1 || trail[0].ExitStatus != audit.CapExceeded {
		t.Errorf("the trail is %+v", trail)
	}
	if _, err := w.Cancel(t.Context(), p.Tenant.ID, running[0].TraceID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Execute(t.Context(), p, gatewaytest.Request("print x"), inline); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
}

func TestNoExecutorHasRoom(t *testing.T) {
	w := gatewaytest.Open(t)
	p := w.Principal(t, "a", "pro")
	w.Executor.Refuse(fault.New(fault.Unavailable, "full"))
	for _, c := range []gateway.Call{inline, streamed, async} {
		c.IdempotencyKey = "once"
		req := gatewaytest.Request("print x")
		e, err := w.Execute(t.Context(), p, req, c)
		if fault.KindOf(err) != fault.Unavailable {
			t.Fatalf("%s: got %v", c.Delivery, err)
		}
		if e == nil || e.Status != execution.Failed || !e.NotStarted || e.ExitCode != -1 || e.WebhookStatus != "" {
			t.Errorf("%s: recorded %+v", c.Delivery, e)
		}
		if trail := rows(t, w, p, req.TraceID); len(trail) != 1 || trail[0].ExitStatus != audit.Provisioning {
			t.Errorf("%s: the trail is %+v", c.Delivery, trail)
		}
	}
	w.Executor.Refuse(nil)
	c := inline
	c.IdempotencyKey = "once"
	e, err := w.Execute(t.Context(), p, gatewaytest.Request("print x"), c)
	atolltest.Until(t, time.Minute, "there is room again", func() bool { // an executor that was full stays away for a moment
		if fault.KindOf(err) != fault.Unavailable {
			return true
		}
		e, err = w.Execute(t.Context(), p, gatewaytest.Request("print x"), c)
		return false
	})
	if err != nil || e.Status != execution.Success {
		t.Errorf("trying again with the same key: %+v, %v", e, err)
	}
}

// TestLateRefusal is of a run that an executor took and then could not begin.
func TestLateRefusal(t *testing.T) {
	w := gatewaytest.Open(t)
	p := w.Principal(t, "a", "pro")
	w.Executor.Program("broken", func(r *gatewaytest.Run) int {
		r.Result = &execution.Result{Status: execution.Blocked, ExitCode: -1, NotStarted: true, Kind: fault.Unavailable, Error: "the sandbox failed its readiness check"}
		return 0
	})
	e, err := w.Execute(t.Context(), p, gatewaytest.Request("broken"), inline)
	if fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "readiness") || e == nil || e.Status != execution.Blocked {
		t.Errorf("got %+v, %v", e, err)
	}
	e, err = w.Execute(t.Context(), p, gatewaytest.Request("broken"), streamed)
	if err != nil {
		t.Fatal(err)
	}
	e, err = w.Follow(t.Context(), e, 1, func([]execution.Event) error { return nil })
	if fault.KindOf(err) != fault.Unavailable || e == nil || !e.NotStarted {
		t.Errorf("followed to %+v, %v", e, err)
	}
	if trail := rows(t, w, p, e.TraceID); len(trail) != 1 || trail[0].ExitStatus != audit.Provisioning {
		t.Errorf("the trail is %+v", trail)
	}
}

func TestARunOutlivesItsCaller(t *testing.T) {
	w := gatewaytest.Open(t)
	p := w.Principal(t, "a", "free")
	began, goOn := make(chan struct{}), make(chan struct{})
	w.Executor.Program("wait", func(*gatewaytest.Run) int { close(began); <-goOn; return 0 })
	ctx, leave := context.WithCancel(t.Context())
	req, got := gatewaytest.Request("wait"), make(chan error, 1)
	go func() {
		_, err := w.Execute(ctx, p, req, inline)
		got <- err
	}()
	<-began
	leave()
	if err := <-got; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller got %v", err)
	}
	close(goOn)
	e, err := w.Get(t.Context(), p.Tenant.ID, req.TraceID)
	if err != nil {
		t.Fatal(err)
	}
	if e = ended(t, w, e); e.Status != execution.Success {
		t.Errorf("it ended as %+v", e)
	}
}

func TestConcludeAgain(t *testing.T) {
	w := gatewaytest.Open(t)
	p := w.Principal(t, "a", "free")
	e, err := w.Execute(t.Context(), p, gatewaytest.Request("exit 3"), inline)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []execution.Result{
		{TraceID: e.TraceID, Status: execution.Success, CompletedAt: time.Now()},
		{TraceID: execution.NewTraceID(), Status: execution.Success, CompletedAt: time.Now()},
	} {
		if err := w.Conclude(t.Context(), r); err != nil {
			t.Error(err)
		}
	}
	now, err := w.Get(t.Context(), p.Tenant.ID, e.TraceID)
	if err != nil || now.Status != execution.Failed || now.ExitCode != 3 {
		t.Errorf("now %+v, %v", now, err)
	}
	if trail := rows(t, w, p, e.TraceID); len(trail) != 1 || trail[0].FailureReason != "the program exited with status 3" {
		t.Errorf("the trail is %+v", trail)
	}
}

// outputs are a blob store that can be away.
type outputs struct {
	gateway.Outputs
	away *atomic.Bool
}

func (o outputs) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if o.away.Load() {
		return nil, fault.New(fault.Unavailable, "stored data cannot be reached")
	}
	return o.Outputs.Open(ctx, name, offset, length)
}

func TestLargeOutput(t *testing.T) {
	var away atomic.Bool
	w := gatewaytest.Open(t, func(c *gateway.Config) { c.Outputs = outputs{c.Outputs, &away} })
	p := w.Principal(t, "a", "pro")
	line := strings.Repeat("x", 1023) + "\n"
	w.Executor.Program("large", func(r *gatewaytest.Run) int {
		for range 2048 { // 2 MiB: twice what is shown
			r.Print(execution.Stdout, line)
		}
		r.Print(execution.Stderr, "done\n")
		return 0
	})
	e, err := w.Execute(t.Context(), p, gatewaytest.Request("large"), inline)
	if err != nil {
		t.Fatal(err)
	}
	if !e.Stored || len(e.Stdout) != 0 || !e.StdoutTruncated || e.StderrTruncated {
		t.Errorf("recorded %+v", e)
	}
	shown, err := w.Shown(t.Context(), e, execution.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(shown); err != nil || string(got) != strings.Repeat(line, 1024) {
		t.Errorf("%d bytes are shown, %v", len(got), err)
	}
	if gateway.Gone(e, execution.Stdout, shown) {
		t.Error("a stored output counts as gone")
	}
	away.Store(true)
	if _, err := w.Shown(t.Context(), e, execution.Stdout); !errors.Is(err, gateway.ErrUnreadable) {
		t.Errorf("an output that cannot be read: %v", err)
	}
	away.Store(false)
	whole, err := w.Whole(t.Context(), e, execution.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Repeat(line, 2048)
	if n, err := whole.Seek(0, io.SeekEnd); err != nil || n != int64(len(all)) {
		t.Errorf("the end is at %d, %v", n, err)
	}
	for _, at := range []int64{0, 1000, 1 << 20, int64(len(all)) - 1} {
		if _, err := whole.Seek(at, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(whole); err != nil || !bytes.Equal(got, []byte(all[at:])) {
			t.Errorf("from %d: %d bytes, %v", at, len(got), err)
		}
	}
	_ = whole.Close()
	if n, err := w.Purge(t.Context(), 0); err != nil || n != 1 {
		t.Errorf("purged %d, %v", n, err)
	}
	if _, err := w.Whole(t.Context(), e, execution.Stdout); fault.KindOf(err) != fault.NotFound {
		t.Errorf("after purging: %v", err)
	}
	if _, err := w.Get(t.Context(), p.Tenant.ID, e.TraceID); fault.KindOf(err) != fault.NotFound {
		t.Errorf("after purging: %v", err)
	}
	for _, s := range []execution.Stream{execution.Stdout, execution.Stderr} {
		if err := w.Blobs.Delete(t.Context(), execution.OutputName(e.Tenant, e.TraceID, s)); err != nil {
			t.Fatal(err)
		}
		shown, err := w.Shown(t.Context(), e, s)
		if err != nil || !gateway.Gone(e, s, shown) {
			t.Errorf("%s was deleted: gone %v, %v", s, gateway.Gone(e, s, shown), err)
		}
	}
}

// While executors are full, a burst of a tenant is refused without a record for each call.
func TestABurstIsRefusedWithoutRecords(t *testing.T) {
	w := gatewaytest.Open(t)
	p, other := w.Principal(t, "a", "pro"), w.Principal(t, "b", "pro")
	full := fault.New(fault.Unavailable, "full")
	full.RetryAfter = 7 * time.Second
	w.Executor.Refuse(full)
	retryAfter := func(p *tenant.Principal) (recorded bool) {
		t.Helper()
		e, err := w.Execute(t.Context(), p, gatewaytest.Request("print 1"), inline)
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Kind != fault.Unavailable || f.RetryAfter != full.RetryAfter {
			t.Errorf("refused with %v", err)
		}
		return e != nil
	}
	if !retryAfter(p) {
		t.Error("the first call has no record")
	}
	if !retryAfter(other) {
		t.Error("the call of another tenant did not get to an executor")
	}
	atolltest.Until(t, time.Minute, "a call follows so soon that it needs no record", func() bool { return !retryAfter(p) })
	w.Executor.Refuse(nil)
	atolltest.Until(t, time.Minute, "calls run again", func() bool {
		_, err := w.Execute(t.Context(), p, gatewaytest.Request("print 1"), inline)
		return err == nil
	})
}

// TestATurnsExecutorIsNotAll checks that the gateway still asks other executors after the executor with
// a turn's sandbox has refused a call of that turn.
func TestATurnsExecutorIsNotAll(t *testing.T) {
	w := gatewaytest.Open(t)
	p := w.Principal(t, "a", "pro")
	full := fault.New(fault.Unavailable, "full")
	full.RetryAfter = 7 * time.Second
	w.Executor.Refuse(full)
	turn := gateway.Call{Source: execution.SourceExecuteCode, Delivery: execution.Inline, Agent: "a", Turn: "1"}
	if _, err := w.Execute(t.Context(), p, gatewaytest.Request("print 1"), turn); fault.KindOf(err) != fault.Unavailable {
		t.Fatal(err)
	}
	if e, err := w.Execute(t.Context(), p, gatewaytest.Request("print 1"), inline); e == nil {
		t.Errorf("the next call was refused without asking an executor: %v", err)
	}
}

// TestForget checks that deleting a run deletes the logs of its executions.
func TestForget(t *testing.T) {
	w := gatewaytest.Open(t)
	p := w.Principal(t, "acme", "enterprise")
	const run = "run_0123456789abcdef0123456789abcdef"
	e, err := w.Execute(t.Context(), p, gatewaytest.Request("print secret"), gateway.Call{Source: execution.SourceResponse, Delivery: execution.Inline, Run: run})
	if err != nil {
		t.Fatal(err)
	}
	// The answer to an inline call does not wait for its log.
	atolltest.Until(t, time.Minute, "the log has its result", func() bool {
		_, err := w.Bus.Log().Result(t.Context(), e.TraceID)
		return err == nil
	})
	if err := w.Forget(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Bus.Log().Result(t.Context(), e.TraceID); !errors.Is(err, execution.ErrNoLog) {
		t.Errorf("its log is still there: %v", err)
	}
}
