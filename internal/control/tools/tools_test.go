package tools_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/control/gateway/gatewaytest"
	"github.com/atoll-run/atoll/internal/control/tools"
	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/breaker"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
)

// fixture is the tool over a real gateway, and a tenant that may use it.
type fixture struct {
	*tools.ExecuteCode
	t       *testing.T
	world   *gatewaytest.World
	caller  *tenant.Principal
	metrics *prometheus.Registry
	runs    atomic.Int64
}

func open(t *testing.T, change ...func(*tenant.Principal)) *fixture {
	t.Helper()
	w := gatewaytest.Open(t)
	f := &fixture{t: t, world: w, metrics: prometheus.NewRegistry()}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	breakers, err := breaker.New(w.DB.Breakers(), log, f.metrics)
	if err != nil {
		t.Fatal(err)
	}
	f.ExecuteCode = tools.NewExecuteCode(tools.Config{Runner: w.Gateway, Templates: w.DB.Tenants(), Breakers: breakers})
	f.caller = w.Principal(t, "acme", "pro", append([]func(*tenant.Principal){func(p *tenant.Principal) { p.Tenant.SandboxEnabled = true }}, change...)...)
	for name, network := range map[string]tenant.Network{"inside": tenant.InternalOnly, "outside": tenant.DefaultPublic, "off": ""} {
		tpl := tenant.Template{Tenant: f.caller.Tenant.ID, Name: name, Sandbox: network}
		if err := w.DB.Tenants().PutTemplate(t.Context(), tpl, tenant.PolicyEvent{Tenant: tpl.Tenant, Actor: "test", Field: "template/" + name}); err != nil {
			t.Fatal(err)
		}
	}
	w.Executor.Program("hello", func(r *gatewaytest.Run) int { f.runs.Add(1); r.Print(execution.Stdout, "hello\n"); return 0 })
	return f
}

func input(code string) tools.Input {
	return tools.Input{TraceID: execution.NewTraceID(), Code: code, Language: execution.Python, Agent: "support-7", Turn: "turn-1", Template: "inside"}
}

func (f *fixture) call(in tools.Input) *tools.Result {
	f.t.Helper()
	r, err := f.Call(f.t.Context(), f.caller, in)
	if err != nil {
		f.t.Fatalf("%s: %v", in.Code, err)
	}
	return r
}

// rows returns the audit rows of a call.
func (f *fixture) rows(traceID string) []audit.Row {
	f.t.Helper()
	rows, _, err := f.world.DB.Audit().List(f.t.Context(), audit.Filter{Tenant: f.caller.Tenant.ID, TraceID: traceID, Limit: 10})
	if err != nil {
		f.t.Fatal(err)
	}
	return rows
}

// row returns the one audit row of a call, which says the same as its result.
func (f *fixture) row(in tools.Input, r *tools.Result) audit.Row {
	f.t.Helper()
	rows := f.rows(in.TraceID)
	if len(rows) != 1 {
		f.t.Fatalf("%s left %d audit rows", in.Code, len(rows))
	}
	row := rows[0]
	if row.ExitStatus != r.ExitStatus || row.Source != "execute_code" || row.Agent != in.Agent || row.SessionID != in.Turn ||
		row.Key != f.caller.Key.ID || row.ExitCode != r.ExitCode || r.OK != (row.FailureReason == "") || row.Retention != audit.DefaultRetention ||
		row.StdoutTruncated != r.StdoutTruncated || row.StderrTruncated != r.StderrTruncated || r.TraceID != in.TraceID {
		f.t.Errorf("%s: the row is %+v, the result %+v", in.Code, row, r)
	}
	return row
}

func TestOutcomes(t *testing.T) {
	f := open(t)
	f.world.Executor.Program("oom", func(r *gatewaytest.Run) int {
		r.Result = &execution.Result{Status: execution.OOM, ExitCode: 137, Error: "memory limit of 512 MiB exceeded", PeakMemory: 512 << 20}
		return 0
	})
	f.world.Executor.Program("lost", func(r *gatewaytest.Run) int {
		r.Result = &execution.Result{Status: execution.Failed, ExitCode: -1, Error: "the sandbox ended unexpectedly"}
		return 0
	})
	f.world.Executor.Program("unready", func(r *gatewaytest.Run) int {
		r.Result = &execution.Result{Status: execution.Blocked, ExitCode: -1, NotStarted: true, Kind: fault.Unavailable, Error: "provisioning: the sandbox is not ready"}
		return 0
	})
	for _, c := range []struct {
		code    string
		status  audit.ExitStatus
		class   tools.Class
		message string
		stdout  string
	}{
		{"hello", audit.OK, "", "", "hello\n"},
		{"exit 3", audit.Error, "", "the program exited with status 3", ""},
		{"sleep", audit.Timeout, tools.TimedOut, "execution timed out after 1s", ""},
		{"oom", audit.OOM, tools.OutOfMemory, "memory limit of 512 MiB exceeded", ""},
		{"lost", audit.Error, tools.Failed, "the sandbox ended unexpectedly", ""},
		{"unready", audit.Provisioning, tools.Provisioning, "provisioning: the sandbox is not ready", ""},
	} {
		t.Run(c.code, func(t *testing.T) {
			f.t = t
			second := time.Second
			in := input(c.code)
			in.Timeout, in.Metadata = &second, map[string]string{"order": "4711"}
			r := f.call(in)
			if r.OK != (c.status == audit.OK) || r.ExitStatus != c.status || r.Error != c.class || r.Message != c.message || string(r.Stdout) != c.stdout {
				t.Errorf("got %+v", r)
			}
			if row := f.row(in, r); row.Metadata["order"] != "4711" {
				t.Errorf("the row is %+v", row)
			}
		})
	}
}

func TestCancelled(t *testing.T) {
	f := open(t)
	started := make(chan struct{})
	f.world.Executor.Program("wait", func(r *gatewaytest.Run) int { close(started); <-r.Context.Done(); return 0 })
	in := input("wait")
	var cancelling sync.WaitGroup
	cancelling.Go(func() {
		<-started
		if _, err := f.world.Cancel(context.Background(), f.caller.Tenant.ID, in.TraceID); err != nil {
			t.Error(err)
		}
	})
	r := f.call(in)
	cancelling.Wait() // for its answer too, which comes after the end
	if r.ExitStatus != audit.Cancelled || r.Error != tools.Cancelled || r.OK {
		t.Errorf("got %+v", r)
	}
	f.row(in, r)
}

func TestNoRoom(t *testing.T) {
	f := open(t)
	f.world.Executor.Refuse(fault.New(fault.Unavailable, "this executor is full"))
	in := input("hello")
	r := f.call(in)
	if r.Error != tools.Provisioning || r.ExitStatus != audit.Provisioning || f.runs.Load() != 0 {
		t.Errorf("got %+v", r)
	}
	f.row(in, r)
}

func TestPolicyFailsClosed(t *testing.T) {
	for _, c := range []struct {
		name, template, says string
		change               func(*tenant.Principal)
	}{
		{"not enabled", "inside", "not enabled for this tenant", func(p *tenant.Principal) { p.Tenant.SandboxEnabled = false }},
		{"regulated", "inside", "regulated tier", func(p *tenant.Principal) { p.Tenant.Tier = tenant.Regulated }},
		{"template not found", "nope", `template "nope" not found`, func(*tenant.Principal) {}},
		{"not opted in", "off", "has not opted in", func(*tenant.Principal) {}},
		{"needs a network", "outside", "default-public, but this tenant's policy allows no network; use internal-only", func(*tenant.Principal) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := open(t)
			c.change(f.caller)
			in := input("hello")
			in.Template = c.template
			r := f.call(in)
			if r.Error != tools.Provisioning || r.OK || !strings.Contains(r.Message, c.says) || r.ExitCode != -1 {
				t.Errorf("got %+v", r)
			}
			f.row(in, r)
			if f.runs.Load() != 0 || f.passed() != 0 {
				t.Error("a refused call ran, or was counted")
			}
			if _, err := f.world.Get(t.Context(), f.caller.Tenant.ID, in.TraceID); fault.KindOf(err) != fault.NotFound || err == nil {
				t.Errorf("a refused call has an execution (%v)", err)
			}
		})
	}
}

// passed is how many calls the breakers let pass.
func (f *fixture) passed() int { return f.outcome("passed") }

func (f *fixture) outcome(name string) int {
	f.t.Helper()
	all, err := f.metrics.Gather()
	if err != nil {
		f.t.Fatal(err)
	}
	for _, m := range all[0].GetMetric() {
		if m.GetLabel()[0].GetValue() == name {
			return int(m.GetCounter().GetValue())
		}
	}
	f.t.Fatalf("no outcome %s", name)
	return 0
}

func TestMistakesAreErrors(t *testing.T) {
	f := open(t)
	minus, zero := -time.Second, time.Duration(0)
	for name, change := range map[string]func(*tools.Input){
		"no agent":            func(in *tools.Input) { in.Agent = "" },
		"a long agent":        func(in *tools.Input) { in.Agent = strings.Repeat("é", 129) },
		"NUL in the agent":    func(in *tools.Input) { in.Agent = "a\x00" },
		"agent of bytes":      func(in *tools.Input) { in.Agent = "\xff" },
		"no turn":             func(in *tools.Input) { in.Turn = "" },
		"newline in the turn": func(in *tools.Input) { in.Turn = "a\n" },
		"a long turn":         func(in *tools.Input) { in.Turn = strings.Repeat("a", 129) },
		"no template":         func(in *tools.Input) { in.Template = "" },
		"a bad template":      func(in *tools.Input) { in.Template = "a b" },
		"no code":             func(in *tools.Input) { in.Code = "" },
		"too much code":       func(in *tools.Input) { in.Code = strings.Repeat("a", 1<<20+1) },
		"no language":         func(in *tools.Input) { in.Language = "" },
		"another language":    func(in *tools.Input) { in.Language = "perl" },
		"no time":             func(in *tools.Input) { in.Timeout = &zero },
		"less than no time":   func(in *tools.Input) { in.Timeout = &minus },
		"NUL in metadata":     func(in *tools.Input) { in.Metadata = map[string]string{"a": "\x00"} },
	} {
		in := input("hello")
		change(&in)
		r, err := f.Call(t.Context(), f.caller, in)
		if r != nil || err == nil || fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %+v %v", name, r, err)
		}
		if n := len(f.rows(in.TraceID)); n != 0 {
			t.Errorf("%s left %d rows", name, n)
		}
	}
	if f.passed() != 0 || f.runs.Load() != 0 {
		t.Error("a mistake was counted, or run")
	}
	edge := input("hello")
	edge.Agent, edge.Turn = strings.Repeat("é", 128), strings.Repeat("x", 128)
	f.row(edge, f.call(edge))

	f.caller.Environment = tenant.Environment{}
	if _, err := f.Call(t.Context(), f.caller, input("hello")); err == nil || fault.KindOf(err) != fault.Forbidden {
		t.Errorf("got %v", err)
	}
}

func TestATimeoutAboveThePlan(t *testing.T) {
	f := open(t)
	in, long := input("hello"), 2*time.Hour
	in.Timeout = &long
	r := f.call(in)
	if r.Error != tools.CapExceeded || !strings.Contains(r.Message, "plan's maximum of 3600 seconds") || f.passed() != 0 {
		t.Errorf("got %+v", r)
	}
	f.row(in, r)
}

func TestOutputIsCutAtWholeCharacters(t *testing.T) {
	f := open(t)
	f.world.Executor.Program("write", func(r *gatewaytest.Run) int {
		var stdout, stderr int
		fmt.Sscan(r.Args, &stdout, &stderr)
		for stream, text := range map[execution.Stream]string{
			execution.Stdout: strings.Repeat("€", stdout/3) + strings.Repeat("x", stdout%3),
			execution.Stderr: "x" + strings.Repeat("é", stderr/2),
		} {
			for ; len(text) > 0; text = text[min(len(text), 1<<15):] {
				r.Print(stream, text[:min(len(text), 1<<15)])
			}
		}
		return 0
	})
	const out, err = 256 << 10, 32 << 10
	for _, c := range []struct {
		stdout, stderr     int
		wantOut, wantErr   int
		outTrunc, errTrunc bool
	}{
		{10, 10, 10, 11, false, false},
		{out, err - 1, out, err - 1, false, false}, // the x stands for a byte
		{out + 2, err, out - 1, err - 1, true, true},
		{out + 300, 3 * err, out - 1, err - 1, true, true},
	} {
		in := input(fmt.Sprintf("write %d %d", c.stdout, c.stderr))
		r := f.call(in)
		if len(r.Stdout) != c.wantOut || len(r.Stderr) != c.wantErr || r.StdoutTruncated != c.outTrunc || r.StderrTruncated != c.errTrunc {
			t.Errorf("%s: %d and %d bytes, %v %v", in.Code, len(r.Stdout), len(r.Stderr), r.StdoutTruncated, r.StderrTruncated)
		}
		if !utf8.Valid(r.Stdout) || !utf8.Valid(r.Stderr) {
			t.Errorf("%s: cut inside a character", in.Code)
		}
		if row := f.row(in, r); row.StdoutBytes != int64(c.stdout) {
			t.Errorf("%s: %d bytes in the row", in.Code, row.StdoutBytes)
		}
	}
}

func TestTurnsShareASandbox(t *testing.T) {
	f := open(t)
	var mu sync.Mutex
	turns := map[string]string{}
	f.world.Executor.Program("turn", func(r *gatewaytest.Run) int {
		mu.Lock()
		defer mu.Unlock()
		turns[r.TraceID] = r.Turn
		return 0
	})
	of := func(p *tenant.Principal, agent, turn string) string {
		in := input("turn")
		in.Agent, in.Turn = agent, turn
		if _, err := f.Call(t.Context(), p, in); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		return turns[in.TraceID]
	}
	first := of(f.caller, "a", "1")
	if again := of(f.caller, "a", "1"); first == "" || again != first {
		t.Errorf("one turn has the sandboxes %q and %q", first, again)
	}
	for _, other := range [][2]string{{"a", "2"}, {"b", "1"}, {"a1", ""}, {"", "a1"}} {
		if other[0] == "" || other[1] == "" {
			continue
		}
		if of(f.caller, other[0], other[1]) == first {
			t.Errorf("%v shares a sandbox with another turn", other)
		}
	}
}

func TestTurnsAreEnded(t *testing.T) {
	f := open(t)
	var turn string
	f.world.Executor.Program("turn", func(r *gatewaytest.Run) int { turn = r.Turn; return 0 })
	in := input("turn")
	f.call(in)
	for _, other := range [][2]string{{in.Agent, "other"}, {"other", in.Turn}} {
		if err := f.EndTurn(t.Context(), f.caller, other[0], other[1]); err != nil {
			t.Error(err)
		}
	}
	if ended := f.world.Executor.EndedTurns(); len(ended) != 0 {
		t.Errorf("ended %v", ended)
	}
	if err := f.EndTurn(t.Context(), f.caller, in.Agent, in.Turn); err != nil {
		t.Error(err)
	}
	if ended := f.world.Executor.EndedTurns(); len(ended) != 1 || ended[0] != turn {
		t.Errorf("ended %v, want %s", ended, turn)
	}
	if err := f.EndTurn(t.Context(), f.caller, "", "x"); err == nil || fault.KindOf(err) != fault.Invalid {
		t.Errorf("got %v", err)
	}
}

var errAway = errors.New("the database is away")

// away is a store of counts, or of templates, that cannot be asked.
type away struct{ breaker.Store }

func (away) Caps(context.Context) (breaker.Caps, error) { return breaker.Caps{}, errAway }
func (away) Template(context.Context, tenant.ID, string) (tenant.Template, error) {
	return tenant.Template{}, errAway
}

func TestADatabaseThatIsAwayFailsClosed(t *testing.T) {
	f := open(t)
	broken, err := breaker.New(away{}, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	working, err := breaker.New(f.world.DB.Breakers(), slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]tools.Config{
		"breakers":  {Breakers: broken, Templates: f.world.DB.Tenants()},
		"templates": {Breakers: working, Templates: away{}},
	} {
		cfg.Runner = f.world.Gateway
		in := input("hello")
		r, err := tools.NewExecuteCode(cfg).Call(t.Context(), f.caller, in)
		if err != nil || r.Error != tools.Provisioning || strings.Contains(r.Message, errAway.Error()) || f.runs.Load() != 0 {
			t.Errorf("%s: %+v %v", name, r, err)
		}
		f.row(in, r)
	}
}

func TestCaps(t *testing.T) {
	f := open(t)
	storetest.Operator(t, f.world.DB)
	b := f.world.DB.Breakers()
	set := func(daily, hourly int64) {
		t.Helper()
		if _, _, err := b.ChangeCaps(t.Context(), "key_1", &daily, &hourly); err != nil {
			t.Fatal(err)
		}
	}
	try := func(agent string, dimension string) {
		t.Helper()
		in := input("hello")
		in.Agent = agent
		before := f.runs.Load()
		r := f.call(in)
		f.row(in, r)
		if dimension == "" {
			if !r.OK || f.runs.Load() != before+1 {
				t.Errorf("got %+v", r)
			}
			return
		}
		if r.Error != tools.CapExceeded || r.Dimension != dimension || f.runs.Load() != before || r.ExitStatus != audit.CapExceeded ||
			!strings.Contains(r.Message, dimension) || !strings.Contains(r.Message, r.ResetsAt.UTC().Format(time.RFC3339)) {
			t.Errorf("got %+v", r)
		}
		if d := time.Until(r.ResetsAt); d <= 0 || d > 24*time.Hour || dimension == "agent_hourly" && d > time.Hour {
			t.Errorf("%s resets in %s", dimension, d)
		}
	}
	set(4, 2)
	try("a", "")
	try("a", "") // the cap-th call passes
	try("a", "agent_hourly")
	try("b", "")
	try("c", "")
	try("d", "tenant_daily")
	try("a", "tenant_daily") // both; the tenant's is told
	set(0, 100)              // the switch
	try("e", "tenant_daily")
	set(100, 0)
	try("e", "agent_hourly")
	own, hourly := int64(5), int64(9)
	f.caller.Tenant.DailyCap, f.caller.Tenant.HourlyCap = &own, &hourly // its own, whatever the server's
	try("e", "")
	try("e", "tenant_daily")
}

func TestCapsHoldAtOnce(t *testing.T) {
	f := open(t)
	storetest.Operator(t, f.world.DB)
	daily, hourly := int64(40), int64(30)
	if _, _, err := f.world.DB.Breakers().ChangeCaps(t.Context(), "key_1", &daily, &hourly); err != nil {
		t.Fatal(err)
	}
	var ok, refused atomic.Int64
	var wg sync.WaitGroup
	for i := range 80 {
		wg.Go(func() {
			in := input("hello")
			in.Agent = fmt.Sprint("agent-", i%2)
			r, err := f.Call(t.Context(), f.caller, in)
			switch {
			case err != nil:
				t.Error(err)
			case r.OK:
				ok.Add(1)
			case r.Error == tools.CapExceeded:
				refused.Add(1)
			default:
				t.Errorf("got %+v", r)
			}
		})
	}
	wg.Wait()
	if ok.Load() != 40 || refused.Load() != 40 || f.runs.Load() != 40 || f.passed() != 40 {
		t.Errorf("%d passed, %d were refused, %d ran", ok.Load(), refused.Load(), f.runs.Load())
	}
	rows, _, err := f.world.DB.Audit().List(t.Context(), audit.Filter{Tenant: f.caller.Tenant.ID, Limit: 1000})
	traces := map[string]bool{}
	for _, r := range rows {
		traces[r.TraceID] = true
	}
	if err != nil || len(rows) != 80 || len(traces) != 80 {
		t.Errorf("%d rows of %d calls (%v)", len(rows), len(traces), err)
	}
}
