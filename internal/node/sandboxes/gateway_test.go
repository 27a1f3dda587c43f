package sandboxes_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/control/directory"
	"github.com/atoll-run/atoll/internal/control/placement"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/sandbox/sandboxtest"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/noderpc/noderpctest"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
)

// fleet are two machines with the same records.
type fleet struct {
	machines []*machine // exe_1 and exe_2
	max      int        // sandboxes of each; 0 for any number

	mu   sync.Mutex
	gone map[string]bool // guarded by mu; machines that no longer announce themselves
}

// newFleet starts machines with room for max sandboxes each; 0 for any number.
func newFleet(t *testing.T, max int) *fleet {
	t.Helper()
	f := &fleet{max: max, gone: map[string]bool{}}
	db, who := storetest.SQLite(t), callers{}
	for i := range 2 {
		f.machines = append(f.machines, startOn(t, db, who, func(c *sandboxes.Config) { c.Executor, c.MaxSandboxes = fmt.Sprint("exe_", i+1), max }, nil))
	}
	return f
}

// kill ends the announcements of a machine.
func (f *fleet) kill(executor string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone[executor] = true
}

// gateway is a Directory without sandboxes, with connections of its own.
type gateway struct {
	*directory.Directory
	fleet *fleet
	nodes map[string]sandbox.Node
	stale bool // placement does not see the limits of machines

	mu     sync.Mutex
	folded []string // guarded by mu
}

func (f *fleet) gateway(t *testing.T) *gateway {
	t.Helper()
	g := &gateway{fleet: f, nodes: map[string]sandbox.Node{}}
	for i, m := range f.machines {
		g.nodes[fmt.Sprint("exe_", i+1)] = noderpctest.Remote(t, m.Manager)
	}
	db := f.machines[0].db
	g.Directory = directory.New(directory.Config{Peers: g, Store: db.Sandboxes(), Snapshots: db.Snapshots(), Refusals: db.Audit(), Fold: g.fold})
	return g
}

func (g *gateway) Node(_ context.Context, executor string) (sandbox.Node, error) {
	g.fleet.mu.Lock()
	defer g.fleet.mu.Unlock()
	if n := g.nodes[executor]; n != nil && !g.fleet.gone[executor] {
		return n, nil
	}
	return nil, fault.New(fault.Unavailable, "the machine of the sandbox (executor %s) cannot be reached; retry when it is back", executor)
}

func (g *gateway) Candidates(context.Context) (all []placement.Candidate, err error) {
	g.fleet.mu.Lock()
	defer g.fleet.mu.Unlock()
	for i, m := range g.fleet.machines {
		c := placement.Candidate{Executor: fmt.Sprint("exe_", i+1), Sandboxes: m.Count()}
		if !g.stale {
			c.MaxSandboxes = g.fleet.max
		}
		if !g.fleet.gone[c.Executor] {
			all = append(all, c)
		}
	}
	return all, nil
}

func (g *gateway) fold(_ context.Context, executor string, sb *sandbox.Sandbox) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.folded = append(g.folded, executor+" "+sb.Name+" "+string(sb.State))
	return errors.New("the records are away") // fails no call
}

// takeFolded returns the records folded since the last call.
func (g *gateway) takeFolded() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer func() { g.folded = nil }()
	return g.folded
}

// gatewayNode is a gateway for callers with grants.
type gatewayNode struct {
	g       *gateway
	callers callers
}

func (n gatewayNode) of(grant *sandbox.Grant) *tenant.Principal {
	if p := n.callers[grant.Key]; p != nil {
		return p
	}
	return &tenant.Principal{}
}

func (n gatewayNode) Ensure(ctx context.Context, grant *sandbox.Grant, session, name string, spec *sandbox.Spec) (*sandbox.Sandbox, bool, error) {
	return n.g.Ensure(ctx, n.of(grant), session, name, spec)
}

func (n gatewayNode) Use(ctx context.Context, grant *sandbox.Grant, session, nameOrID string) (sandbox.Handle, error) {
	return n.g.Use(ctx, n.of(grant), session, nameOrID)
}

func (n gatewayNode) Reach(ctx context.Context, id runtime.ID) (sandbox.Handle, error) {
	return n.g.Reach(ctx, id)
}

func (n gatewayNode) Get(ctx context.Context, grant *sandbox.Grant, session, nameOrID string) (*sandbox.Sandbox, error) {
	return n.g.Get(ctx, n.of(grant), session, nameOrID)
}

func (n gatewayNode) List(ctx context.Context, grant *sandbox.Grant, session string) ([]*sandbox.Sandbox, error) {
	return n.g.List(ctx, n.of(grant), session)
}

func (n gatewayNode) Usage(ctx context.Context, grant *sandbox.Grant, session, nameOrID string) (sandbox.Usage, error) {
	return n.g.Usage(ctx, n.of(grant), session, nameOrID)
}

func (n gatewayNode) Update(ctx context.Context, grant *sandbox.Grant, session, nameOrID string, c sandbox.Change) (*sandbox.Sandbox, error) {
	return n.g.Update(ctx, n.of(grant), session, nameOrID, c)
}

func (n gatewayNode) Sleep(ctx context.Context, grant *sandbox.Grant, session, nameOrID string) (*sandbox.Sandbox, error) {
	return n.g.Sleep(ctx, n.of(grant), session, nameOrID)
}

func (n gatewayNode) Restart(ctx context.Context, grant *sandbox.Grant, session, nameOrID string) (*sandbox.Sandbox, error) {
	return n.g.Restart(ctx, n.of(grant), session, nameOrID)
}

func (n gatewayNode) Fork(ctx context.Context, grant *sandbox.Grant, session, nameOrID string, count int) ([]*sandbox.Sandbox, error) {
	return n.g.Fork(ctx, n.of(grant), session, nameOrID, count)
}

func (n gatewayNode) Destroy(ctx context.Context, grant *sandbox.Grant, session, nameOrID string) (*sandbox.Sandbox, error) {
	before, err := n.Get(ctx, grant, session, nameOrID)
	if err != nil {
		return nil, err
	}
	if err := n.g.Destroy(ctx, n.of(grant), session, nameOrID); err != nil {
		return nil, err
	}
	return n.Get(ctx, grant, session, string(before.ID))
}

func (n gatewayNode) Snapshot(ctx context.Context, grant *sandbox.Grant, session, nameOrID string, keep time.Duration) (*sandbox.Snapshot, error) {
	return n.g.Snapshot(ctx, n.of(grant), session, nameOrID, keep)
}

func (n gatewayNode) Orphans(ctx context.Context) ([]runtime.ID, error) { return n.g.Orphans(ctx) }
func (n gatewayNode) Reap(ctx context.Context) ([]runtime.ID, error)    { return n.g.Reap(ctx) }

// TestGatewayContract tests a gateway without sandboxes and one machine.
func TestGatewayContract(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 0)
	f.kill("exe_2")
	m := f.machines[0]
	sandboxtest.Contract(t, sandboxtest.Rig{
		Node: gatewayNode{f.gateway(t), m.callers}, Machine: m.Manager, Caller: m.caller, Image: "node:22",
	})
}

// TestGateways uses sandboxes of two machines through two gateways.
func TestGateways(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 0)
	ctx := t.Context()
	p := f.machines[0].caller("a")
	a, b := f.gateway(t), f.gateway(t)

	// A new sandbox goes to the machine without one. All gateways see all.
	byMachine := map[string]*sandbox.Sandbox{}
	for _, name := range []string{"one", "two"} {
		sb, created, err := a.Ensure(ctx, p, "s", name, &sandbox.Spec{})
		if err != nil || !created || byMachine[sb.Executor] != nil {
			t.Fatalf("%+v, %v, %v", sb, created, err)
		}
		byMachine[sb.Executor] = sb
	}
	for _, g := range []*gateway{a, b} {
		all, err := g.List(ctx, p, "")
		if err != nil || len(all) != 2 || all[0].Name != "one" || all[1].Name != "two" {
			t.Fatalf("listed %v, %v", all, err)
		}
		for _, sb := range all {
			again, created, err := g.Ensure(ctx, p, "s", sb.Name, &sandbox.Spec{})
			if err != nil || created || again.ID != sb.ID || again.Executor != sb.Executor {
				t.Errorf("%+v, %v, %v", again, created, err)
			}
			h, err := g.Use(ctx, p, "s", sb.Name)
			if err != nil {
				t.Fatal(err)
			}
			if out, _, err := run(ctx, h, "echo "+sb.Name); err != nil || out != sb.Name {
				t.Errorf("%q, %v", out, err)
			}
			h.Close()
			if h, err = g.Reach(ctx, sb.ID); err != nil || h.Sandbox().ID != sb.ID {
				t.Fatal(err)
			}
			h.Close()
			if u, err := g.Usage(ctx, p, "", string(sb.ID)); err != nil || u.Memory == 0 {
				t.Errorf("%+v, %v", u, err)
			}
		}
	}

	// Each command hands its result to Fold.
	a.takeFolded()
	one := byMachine["exe_1"]
	b.takeFolded()
	if _, err := b.Update(ctx, p, "s", one.Name, sandbox.Change{SleepAfter: new(time.Minute)}); err != nil {
		t.Error(err)
	}
	if sb, err := b.Sleep(ctx, p, "s", one.Name); err != nil || sb.State != sandbox.Sleeping {
		t.Fatalf("%+v, %v", sb, err)
	}
	if _, err := b.Restart(ctx, p, "s", one.Name); err != nil {
		t.Error(err)
	}
	forks, err := b.Fork(ctx, p, "s", one.Name, 2)
	if err != nil || len(forks) != 2 || forks[0].Executor != "exe_1" {
		t.Fatalf("%+v, %v", forks, err)
	}
	if err := b.Destroy(ctx, p, "", string(forks[0].ID)); err != nil {
		t.Error(err)
	}
	want := []string{"exe_1 " + one.Name + " running", "exe_1 " + one.Name + " sleeping", "exe_1 " + one.Name + " running"}
	for _, fork := range forks {
		want = append(want, "exe_1 "+fork.Name+" "+string(fork.State))
	}
	want = append(want, "exe_1 "+forks[0].Name+" destroyed")
	if got := b.takeFolded(); !slices.Equal(got, want) || len(a.takeFolded()) > 0 {
		t.Errorf("folded %q, want %q", got, want)
	}
	if got, err := a.Get(ctx, p, "", string(forks[0].ID)); err != nil || got.State != sandbox.Destroyed {
		t.Errorf("on record: %+v, %v", got, err)
	}
	_, err = a.Use(ctx, p, "", string(forks[0].ID))
	refused(t, "a destroyed one", err, fault.NotFound, "there is no sandbox")

	if orphans, err := a.Orphans(ctx); err != nil || len(orphans) > 0 {
		t.Errorf("orphans: %v, %v", orphans, err)
	}
	if reaped, err := a.Reap(ctx); err != nil || len(reaped) > 0 {
		t.Errorf("reaped: %v, %v", reaped, err)
	}

	// A machine that is gone keeps its sandboxes. The other takes new ones.
	f.kill("exe_1")
	if sb, err := a.Get(ctx, p, "s", one.Name); err != nil || sb.ID != one.ID {
		t.Errorf("%+v, %v", sb, err)
	}
	if all, err := a.List(ctx, p, "s"); err != nil || len(all) != 3 {
		t.Errorf("listed %v, %v", all, err)
	}
	for what, call := range map[string]func() error{
		"use":     func() error { _, err := a.Use(ctx, p, "s", one.Name); return err },
		"reach":   func() error { _, err := a.Reach(ctx, one.ID); return err },
		"ensure":  func() error { _, _, err := a.Ensure(ctx, p, "s", one.Name, &sandbox.Spec{}); return err },
		"destroy": func() error { return a.Destroy(ctx, p, "s", one.Name) },
	} {
		refused(t, what, call(), fault.Unavailable, "executor exe_1")
	}
	if sb, created, err := a.Ensure(ctx, p, "s", "three", &sandbox.Spec{}); err != nil || !created || sb.Executor != "exe_2" {
		t.Errorf("%+v, %v, %v", sb, created, err)
	}
	f.kill("exe_2")
	_, _, err = a.Ensure(ctx, p, "s", "four", &sandbox.Spec{})
	refused(t, "without a machine", err, fault.Unavailable, "no executor is available for new sandboxes")
	if e, ok := errors.AsType[*fault.Error](err); !ok || e.RetryAfter <= 0 {
		t.Errorf("no time for a retry: %+v", e)
	}
}

// TestGatewayRace creates the same sandboxes through two gateways at once.
func TestGatewayRace(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 0)
	p := f.machines[0].caller("a")
	gateways := []*gateway{f.gateway(t), f.gateway(t)}
	for round := range 4 {
		name := fmt.Sprint("x", round)
		ids, created := make([]runtime.ID, 8), make([]bool, 8)
		var g sync.WaitGroup
		for i := range ids {
			g.Go(func() {
				sb, made, err := gateways[i%2].Ensure(t.Context(), p, "s", name, &sandbox.Spec{})
				if err != nil {
					t.Error(err)
					return
				}
				ids[i], created[i] = sb.ID, made
			})
		}
		g.Wait()
		made := 0
		for i := range ids {
			if ids[i] != ids[0] {
				t.Errorf("%s and %s", ids[i], ids[0])
			}
			if created[i] {
				made++
			}
		}
		if made != 1 {
			t.Errorf("%d calls created the sandbox", made)
		}
	}
	if n := f.machines[0].Count() + f.machines[1].Count(); n != 4 {
		t.Errorf("the machines have %d sandboxes", n)
	}
	for _, m := range f.machines {
		if left, err := m.Orphans(t.Context()); err != nil || len(left) > 0 {
			t.Errorf("orphans: %v, %v", left, err)
		}
	}
}

// TestGatewayFull creates more sandboxes than the machines have room for, with and without knowing
// that.
func TestGatewayFull(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1)
	p := f.machines[0].caller("a")
	g := f.gateway(t)
	g.stale = true
	var on []string
	for i := range 2 {
		sb, _, err := g.Ensure(t.Context(), p, "s", fmt.Sprint("x", i), &sandbox.Spec{})
		if err != nil {
			t.Fatal(err)
		}
		on = append(on, sb.Executor)
	}
	if slices.Sort(on); !slices.Equal(on, []string{"exe_1", "exe_2"}) {
		t.Errorf("they are on %v", on)
	}
	_, _, err := g.Ensure(t.Context(), p, "s", "x2", &sandbox.Spec{})
	refused(t, "full machines", err, fault.Unavailable, "no executor is available for new sandboxes; one of them answered: this server has 1 sandboxes")
	g.stale = false
	_, _, err = g.Ensure(t.Context(), p, "s", "x2", &sandbox.Spec{})
	refused(t, "machines that placement knows to be full", err, fault.Unavailable, "no executor is available for new sandboxes; retry")
	if sb, created, err := g.Ensure(t.Context(), p, "s", "x1", nil); err != nil || created || sb.Name != "x1" {
		t.Errorf("%+v, %v, %v", sb, created, err)
	}
	if err := g.Destroy(t.Context(), p, "s", "x0"); err != nil {
		t.Fatal(err)
	}
	if _, created, err := g.Ensure(t.Context(), p, "s", "x2", &sandbox.Spec{}); err != nil || !created {
		t.Error(created, err)
	}

}
