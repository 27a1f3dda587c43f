package sandboxes_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/control/executors"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/sandbox/sandboxtest"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/node/records"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
	"github.com/atoll-run/atoll/test/atolltest"
)

// folded has events of an executor applied at once, as a gateway beside it would.
type folded struct{ *executors.Events }

func (f folded) Publish(ctx context.Context, seq uint64, event []byte) error {
	return f.Fold(ctx, "exe_1", seq, event)
}

// journaled has a manager keep its records in a journal, and returns the current one.
func journaled(t *testing.T) (change func(*sandboxes.Config), current func() *records.Journal) {
	dir := filepath.Join(t.TempDir(), "journal")
	var journal *records.Journal
	end := func() {
		if journal != nil {
			if err := journal.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(end)
	return func(c *sandboxes.Config) {
		end()
		events := c.Records.(executors.Records).Store.(sandbox.EventStore)
		var err error
		journal, err = records.Open(records.Config{
			Dir: dir, Executor: "exe_1", Records: c.Records, Log: c.Log,
			Publisher: folded{&executors.Events{Store: events, Prices: usage.DefaultPrices(), Log: slog.New(slog.DiscardHandler)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		go journal.Run(context.Background()) // until Close
		c.Records, c.Ledger = journal, journal
	}, func() *records.Journal { return journal }
}

// TestContractWithJournal tests the manager of an executor without a database.
func TestContractWithJournal(t *testing.T) {
	t.Parallel()
	change, _ := journaled(t)
	m := start(t, change)
	sandboxtest.Contract(t, sandboxtest.Rig{
		Node: m.Manager, Machine: m.Manager,
		Caller: func(as string, change ...func(*tenant.Principal)) *tenant.Principal { return m.caller(as, change...) },
		Image:  "node:22",
		Elsewhere: func(t *testing.T, sb *sandbox.Sandbox, executor string) {
			sb.Executor = executor
			if there, err := m.db.Sandboxes().Create(t.Context(), sb, sandbox.Quota{}); there != nil || err != nil {
				t.Fatal(there, err)
			}
		},
	})
}

// A manager that restarts takes over the sandboxes of its journal, and gateways have their states.
func TestRestartWithJournal(t *testing.T) {
	t.Parallel()
	change, journal := journaled(t)
	m := start(t, change)
	p := m.caller("one")
	a, b := m.ensure(p, "s", "a", nil), m.ensure(p, "s", "b", nil)
	m.shell(p, "s", "a", "echo kept > file")
	if _, err := m.Sleep(t.Context(), p, "s", "b"); err != nil {
		t.Fatal(err)
	}
	m.restart()
	if out := m.shell(p, "s", "a", "cat file"); out != "kept" {
		t.Errorf("file has %q", out)
	}
	m.shell(p, "s", "b", "true")
	if err := m.Destroy(t.Context(), p, "s", "a"); err != nil {
		t.Fatal(err)
	}
	again := m.ensure(p, "s", "a", nil) // at once
	atolltest.Until(t, 20*time.Second, "gateways know all", func() bool { return journal().Status().Events == 0 })
	for id, want := range map[runtime.ID]sandbox.State{a.ID: sandbox.Destroyed, b.ID: sandbox.Running, again.ID: sandbox.Running} {
		if sb, err := m.db.Sandboxes().Get(t.Context(), p.Tenant.ID, id); err != nil || sb.State != want {
			t.Errorf("%s is %+v, want %s (%v)", id, sb, want, err)
		}
	}
}
