package audit_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
)

// fill appends rows of two tenants.
func fill(t *testing.T, s audit.Store, n int) {
	t.Helper()
	for i := range n {
		for _, tenant := range []string{"ten_a", "ten_b"} {
			err := s.Append(t.Context(), audit.Row{
				TraceID: fmt.Sprint("trc_", i), Tenant: tenant, Key: "key_1", Source: "execute_code", Agent: "agent", SessionID: "turn",
				Language: "python", ExitStatus: audit.CapExceeded, ExitCode: -1, FailureReason: "no", Metadata: map[string]string{"i": fmt.Sprint(i)},
				Retention: audit.DefaultRetention,
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

func verify(t *testing.T, s *audit.Sealer, tenant string, known audit.Mark) audit.Report {
	t.Helper()
	r, err := s.Verify(t.Context(), tenant, known)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSealAndVerify(t *testing.T) {
	db := storetest.SQLite(t)
	s := audit.NewSealer(db.Audit())
	fill(t, db.Audit(), 30)
	if n, err := s.Seal(t.Context()); n != 60 || err != nil {
		t.Errorf("sealed %d %v", n, err)
	}
	if n, err := s.Seal(t.Context()); n != 0 || err != nil {
		t.Errorf("sealed %d %v", n, err)
	}
	first := verify(t, s, "ten_a", audit.Mark{})
	if len(first.Problems) != 0 || first.Rows != 30 || first.Seals != 1 || first.Head.Number != 1 {
		t.Errorf("got %+v", first)
	}
	fill(t, db.Audit(), 5)
	// What is not sealed yet is sealed by a verification.
	second := verify(t, s, "ten_a", first.Head)
	if len(second.Problems) != 0 || second.Rows != 35 || second.Seals != 2 {
		t.Errorf("got %+v", second)
	}
	if r := verify(t, s, "ten_unknown", audit.Mark{}); r.Seals != 0 || len(r.Problems) != 0 {
		t.Errorf("got %+v", r)
	}
}

// What the database's own rules refuse shows all the same when an owner of the
// database removes the rules first.
func TestTamperingShows(t *testing.T) {
	for name, c := range map[string]struct {
		statements []string
		kind       audit.ProblemKind
	}{
		"a changed row":              {[]string{`UPDATE audit_rows SET exit_status = 'ok' WHERE id = 7`}, audit.Changed},
		"a row of another time":      {[]string{`UPDATE audit_rows SET created_at = created_at + 1 WHERE id = 7`}, audit.Changed},
		"a row kept for less long":   {[]string{`UPDATE audit_rows SET retention_days = 1 WHERE id = 7`}, audit.Changed},
		"a row given to another":     {[]string{`UPDATE audit_rows SET tenant = 'ten_b' WHERE id = 7`}, audit.Changed},
		"a deleted row":              {[]string{`DELETE FROM audit_rows WHERE id = 7`}, audit.Missing},
		"a row and its place":        {[]string{`DELETE FROM audit_rows WHERE id = 7`, `DELETE FROM audit_members WHERE id = 7`}, audit.Missing},
		"a row in another's place":   {[]string{`UPDATE audit_members SET place = 900 WHERE id = 7`, `UPDATE audit_members SET place = 3 WHERE id = 9`, `UPDATE audit_members SET place = 4 WHERE id = 7`}, audit.Changed},
		"a seal less":                {[]string{`DELETE FROM audit_members WHERE number = 2`, `DELETE FROM audit_seals WHERE number = 2`}, audit.Order},
		"a seal of another number":   {[]string{`DELETE FROM audit_members WHERE number = 3`, `UPDATE audit_seals SET number = 9 WHERE number = 3`}, audit.Order},
		"a changed seal":             {[]string{`UPDATE audit_seals SET hash = zeroblob(32) WHERE number = 2`}, audit.Chain},
		"another seal before":        {[]string{`UPDATE audit_seals SET previous = zeroblob(32) WHERE number = 2`}, audit.Chain},
		"the last seal with its own": {[]string{`DELETE FROM audit_members WHERE number = 3`, `DELETE FROM audit_seals WHERE number = 3`, `DELETE FROM audit_rows WHERE id > 20`}, audit.Known},
	} {
		t.Run(name, func(t *testing.T) {
			db := storetest.SQLite(t)
			s := audit.NewSealer(db.Audit())
			for range 3 {
				fill(t, db.Audit(), 5)
				if _, err := s.Seal(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			head := verify(t, s, "ten_a", audit.Mark{}).Head
			if _, err := db.SQL().ExecContext(t.Context(), c.statements[0]); err == nil {
				t.Fatalf("the database let %q pass", c.statements[0])
			}
			disarm(t, db)
			for _, statement := range c.statements {
				if _, err := db.SQL().ExecContext(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			found := false
			r := verify(t, s, "ten_a", head)
			for _, p := range r.Problems {
				found = found || p.Kind == c.kind
			}
			if !found {
				t.Errorf("found %+v", r.Problems)
			}
		})
	}
}

// disarm takes the database's own rules about the trail away.
func disarm(t *testing.T, db *store.DB) {
	t.Helper()
	rows, err := db.SQL().QueryContext(t.Context(), `SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'audit%'`)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Close(); err != nil || len(names) == 0 {
		t.Fatalf("%d rules (%v)", len(names), err)
	}
	for _, name := range names {
		if _, err := db.SQL().ExecContext(t.Context(), `DROP TRIGGER `+name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.SQL().ExecContext(t.Context(), `PRAGMA foreign_keys = OFF`); err != nil {
		t.Fatal(err)
	}
}

func TestSealersAtOnce(t *testing.T) {
	db := storetest.SQLite(t)
	var appending, sealing sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		sealing.Go(func() {
			s := audit.NewSealer(db.Audit())
			for {
				if _, err := s.Seal(context.Background()); err != nil {
					t.Error(err)
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for range 4 {
		appending.Go(func() { fill(t, db.Audit(), 40) })
	}
	appending.Wait()
	close(stop)
	sealing.Wait()
	for _, tenant := range []string{"ten_a", "ten_b"} {
		if r := verify(t, audit.NewSealer(db.Audit()), tenant, audit.Mark{}); len(r.Problems) != 0 || r.Rows != 160 {
			t.Errorf("got %+v", r)
		}
	}
}
