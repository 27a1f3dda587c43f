package executors_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
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
	"github.com/atoll-run/atoll/test/atolltest"
)

var postgres atolltest.SharedPostgres

func TestMain(m *testing.M) { postgres.Main(m) }

func everywhere(t *testing.T, test func(t *testing.T, db *store.DB)) {
	storetest.Everywhere(t, &postgres, test)
}

func create(t *testing.T, db *store.DB, executor, name string) *sandbox.Sandbox {
	t.Helper()
	sb := &sandbox.Sandbox{
		ID: runtime.NewID(), Tenant: "ten_1", Environment: "env_1", Session: "s", Name: name, Key: "key_1", Executor: executor,
		Image: "default", Limits: runtime.DefaultLimits(), State: sandbox.Creating, Revision: 1,
	}
	there, err := db.Sandboxes().Create(t.Context(), sb, sandbox.Quota{})
	must(t, err)
	if there != nil {
		t.Fatal("there is one")
	}
	return sb
}

func encode(t *testing.T, e sandbox.Event) []byte {
	t.Helper()
	b, err := e.Encode()
	must(t, err)
	return b
}

// state is all that an event can change.
type state struct {
	sandboxes, entries, rows int
	seconds                  float64
}

func read(t *testing.T, db *store.DB) (s state) {
	t.Helper()
	for query, to := range map[string]any{
		`SELECT count(*) FROM sandboxes WHERE state = 'creating'`: &s.sandboxes,
		`SELECT count(*) FROM usage_entries`:                      &s.entries,
		`SELECT count(*) FROM audit_rows`:                         &s.rows,
		`SELECT coalesce(sum(seconds), 0) FROM usage_entries`:     &s.seconds,
	} {
		must(t, db.SQL().QueryRowContext(t.Context(), query).Scan(to))
	}
	return s
}

// An executor that was taken over changes nothing but its own sandboxes.
func TestHostileExecutor(t *testing.T) {
	everywhere(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		var log bytes.Buffer
		events := &executors.Events{Store: db.NodeEvents(), Prices: usage.DefaultPrices(), Log: slog.New(slog.NewTextHandler(&log, nil))}
		own, foreign := create(t, db, "exe_1", "own"), create(t, db, "exe_2", "foreign")
		before := read(t, db)
		saved := own.Clone()
		saved.State, saved.Revision = sandbox.Running, 2
		charge := &sandbox.Charge{From: own.MeteredAt, Until: own.MeteredAt.Add(time.Minute), CPU: 1, Memory: 1 << 20}
		contact := &sandbox.Contact{From: own.MeteredAt, Until: own.MeteredAt, Hosts: []string{"h"}}
		endings := []sandbox.Ending{{From: own.MeteredAt, Reason: "r"}}
		seq := uint64(0)
		fold := func(b []byte) error {
			seq++
			return events.Fold(ctx, "exe_1", seq, b)
		}
		for what, e := range map[string]sandbox.Event{
			"save": {Save: saved}, "charge": {Charge: charge}, "contact": {Contact: contact}, "endings": {Endings: endings}, "discard": {Discard: true},
		} {
			e.Journal = "jrn_1"
			for id, kind := range map[runtime.ID]fault.Kind{foreign.ID: fault.Forbidden, runtime.NewID(): fault.NotFound} {
				e.Sandbox = id
				if err := fold(encode(t, e)); fault.KindOf(err) != kind || err == nil {
					t.Errorf("%s of %s: %v", what, id, err)
				}
			}
		}
		good := func(change func(*sandbox.Event)) string {
			e := sandbox.Event{Journal: "jrn_1", Sandbox: own.ID, Save: saved.Clone()}
			change(&e)
			return string(encode(t, e))
		}
		text := good(func(*sandbox.Event) {})
		for what, b := range map[string]string{
			"nothing": "", "garbage": "\xff\x00{", "null": "null", "an empty object": "{}", "a list": "[]",
			"huge":             `{"journal":"` + strings.Repeat("x", sandbox.MaxEvent) + `"}`,
			"two changes":      strings.Replace(text, `"save"`, `"discard":true,"save"`, 1),
			"an odd id":        strings.Replace(text, string(own.ID), "../../x", 1),
			"an odd state":     strings.Replace(text, `"running"`, `"flying"`, 1),
			"a revision of 0":  strings.Replace(text, `"revision":2`, `"revision":0`, 1),
			"a revision of -1": strings.Replace(text, `"revision":2`, `"revision":-1`, 1),
			"a huge revision":  strings.Replace(text, `"revision":2`, `"revision":18446744073709551615`, 1),
			"too many cores":   strings.Replace(text, `"cpu":1`, `"cpu":1e300`, 1),
			"a huge size":      strings.Replace(text, `"memory":`, `"memory":10000000`, 1),
			"no kind of sleep": strings.Replace(text, `"running"`, `"sleeping"`, 1),
			"sleep and run":    strings.Replace(text, `"running"`, `"running","sleep":"disk"`, 1),
			"no disk":          strings.Replace(text, `"used_at"`, `"disk":-1,"used_at"`, 1),
			"less than none":   strings.Replace(text, `"memory":`, `"memory":-`, 1),
			"a NUL":            strings.Replace(text, `"image":"default"`, `"image":"a\u0000b"`, 1),
			"another time":     strings.Replace(text, `"used_at":"2`, `"used_at":"0`, 1),
			"no time":          strings.Replace(text, `"used_at":"2`, `"used_at":"x`, 1),
			"another's files":  strings.Replace(good(func(e *sandbox.Event) { e.Save.Stored = &sandbox.StoredCopy{State: "xyz"} }), `"xyz"`, `"../ten_2/xyz"`, 1),
		} {
			if b == text {
				t.Fatalf("%s: nothing was changed", what)
			}
			if err := fold([]byte(b)); err == nil || fault.KindOf(err) != fault.Invalid {
				t.Errorf("%s: %v", what, err)
			}
		}
		future := *charge
		future.Until = time.Now().Add(1000 * time.Hour)
		if err := fold(encode(t, sandbox.Event{Journal: "jrn_1", Sandbox: own.ID, Charge: &future})); fault.KindOf(err) != fault.Invalid || err == nil {
			t.Errorf("a charge for the future: %v", err)
		}
		for _, n := range []uint64{0, math.MaxUint64, math.MaxInt64 + 1} {
			if err := events.Fold(ctx, "exe_1", n, []byte(text)); fault.KindOf(err) != fault.Invalid || err == nil {
				t.Errorf("number %d: %v", n, err)
			}
		}
		if after := read(t, db); after != before {
			t.Errorf("%+v, before %+v", after, before)
		}
		if got, err := db.Sandboxes().Get(ctx, "ten_1", foreign.ID); err != nil || got.State != sandbox.Creating || got.Revision != 1 {
			t.Errorf("the other's: %+v, %v", got, err)
		}
		must(t, fold([]byte(text))) // it still works
		if got, err := db.Sandboxes().Get(ctx, "ten_1", own.ID); err != nil || got.State != sandbox.Running || got.Tenant != "ten_1" || got.Key != "key_1" {
			t.Errorf("its own: %+v, %v", got, err)
		}
		// The same time is not charged twice under other numbers.
		for range 3 {
			must(t, fold(encode(t, sandbox.Event{Journal: "jrn_1", Sandbox: own.ID, Charge: charge})))
		}
		if got := read(t, db); got.seconds != 60 || got.entries != 1 {
			t.Errorf("charged: %+v", got)
		}
		// One executor cannot use up the numbers of another one.
		must(t, events.Fold(ctx, "exe_1", math.MaxInt64, encode(t, sandbox.Event{Journal: "jrn_1", Sandbox: own.ID, Endings: endings})))
		must(t, events.Fold(ctx, "exe_2", 1, encode(t, sandbox.Event{Journal: "jrn_2", Sandbox: foreign.ID, Endings: endings})))
		if got, err := db.Sandboxes().Get(ctx, "ten_1", foreign.ID); err != nil || len(got.Endings) != 1 {
			t.Errorf("the other's endings: %+v, %v", got, err)
		}
		if !strings.Contains(log.String(), "are missing") {
			t.Error("a gap was not reported")
		}
	})
}

// The record decides the payer and the start of a charge, and bounds the times of contacts.
func TestRecordDecidesAboutCharges(t *testing.T) {
	everywhere(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		events := &executors.Events{Store: db.NodeEvents(), Prices: usage.DefaultPrices(), Log: slog.New(slog.DiscardHandler)}
		sb := create(t, db, "exe_1", "one")
		seq := uint64(0)
		fold := func(e sandbox.Event) {
			t.Helper()
			seq++
			e.Journal, e.Sandbox = "jrn_1", sb.ID
			must(t, events.Fold(ctx, "exe_1", seq, encode(t, e)))
		}
		early, until := sb.MeteredAt.Add(-1000*time.Hour), sb.MeteredAt.Add(30*time.Second)
		for range 2 {
			fold(sandbox.Event{Charge: &sandbox.Charge{From: early, Until: until, CPU: 1, Memory: 1 << 30, BytesOut: 5}})
		}
		if got := read(t, db); got.seconds != 30 || got.entries != 1 {
			t.Errorf("charged: %+v", got)
		}
		if credits, err := db.Usage().Month(ctx, "ten_1"); err != nil || credits <= 0 || credits > 1 {
			t.Errorf("charged %g credits for 30 seconds, %v", credits, err)
		}
		if got, err := db.Sandboxes().Get(ctx, "ten_1", sb.ID); err != nil || !got.MeteredAt.Equal(until) {
			t.Errorf("charged up to %s, not %s: %v", got.MeteredAt, until, err)
		}
		far := time.Now().AddDate(1000, 0, 0)
		for _, c := range []sandbox.Contact{{From: early, Until: until}, {From: early, Until: far}, {From: far, Until: far}} {
			c.Hosts = []string{"example.com"}
			fold(sandbox.Event{Contact: &c})
		}
		rows, _, err := db.Audit().List(ctx, audit.Filter{Tenant: "ten_1", TraceID: string(sb.ID), Limit: 10})
		must(t, err)
		if len(rows) != 3 {
			t.Errorf("%d rows", len(rows))
		}
		for _, row := range rows {
			if row.Key != "key_1" || row.SessionID != "s" || row.DurationMS < 0 || row.DurationMS > time.Hour.Milliseconds() {
				t.Errorf("row %+v", row)
			}
		}
		fold(sandbox.Event{Endings: []sandbox.Ending{{From: until, Reason: strings.Repeat("é", 5000), Dimension: strings.Repeat("x", 5000)}}})
		got, err := db.Sandboxes().Get(ctx, "ten_1", sb.ID)
		must(t, err)
		if e := got.Endings; len(e) != 1 || len(e[0].Reason) != 4096 || len(e[0].Dimension) != 4096 {
			t.Errorf("endings %+v", e)
		}
	})
}

// Two gateways get one event at the same time.
func TestFoldTwiceAtOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, db *store.DB) {
		events := &executors.Events{Store: db.NodeEvents(), Prices: usage.DefaultPrices(), Log: slog.New(slog.DiscardHandler)}
		sb := create(t, db, "exe_1", "one")
		for seq := range uint64(20) {
			from := sb.MeteredAt.Add(time.Duration(seq) * time.Second)
			e := sandbox.Event{Journal: "jrn_1", Sandbox: sb.ID, Charge: &sandbox.Charge{From: from, Until: from.Add(time.Second), CPU: 1, BytesOut: 1}}
			c := sandbox.Event{Journal: "jrn_1", Sandbox: sb.ID, Contact: &sandbox.Contact{From: from, Until: from, Hosts: []string{"h"}}}
			for i, b := range [][]byte{encode(t, e), encode(t, c)} {
				var all sync.WaitGroup
				for range 4 {
					all.Go(func() {
						if err := events.Fold(t.Context(), "exe_1", 2*seq+uint64(i)+1, b); err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
			}
		}
		if got := read(t, db); got.entries != 20 || got.seconds != 20 || got.rows != 20 {
			t.Errorf("%+v", got)
		}
	})
}

// The service drops events of a deleted record, but redelivers events after errors of a closed database.
func TestFoldWithoutDatabase(t *testing.T) {
	url, err := postgres.Get(t).Database(t.Context())
	must(t, err)
	db := storetest.Postgres(t, url)
	events := &executors.Events{Store: db.NodeEvents(), Prices: usage.DefaultPrices(), Log: slog.New(slog.DiscardHandler)}
	sb := create(t, db, "exe_1", "one")
	b := encode(t, sandbox.Event{Journal: "jrn_1", Sandbox: sb.ID, Endings: []sandbox.Ending{{From: time.Now(), Reason: "r"}}})
	must(t, db.SQL().Close())
	if err := events.Fold(t.Context(), "exe_1", 1, b); err == nil || fault.KindOf(err) == fault.Invalid || fault.KindOf(err) == fault.NotFound || fault.KindOf(err) == fault.Forbidden {
		t.Errorf("without a database: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := events.Fold(ctx, "exe_1", 1, b); !errors.Is(err, context.Canceled) && fault.KindOf(err) != fault.Unavailable {
		t.Logf("cancelled: %v", err)
	}
}
