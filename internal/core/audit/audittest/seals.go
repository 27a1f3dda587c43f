package audittest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
)

// seal covers up to most rows of a tenant with a seal that is well formed and
// no more: what a real one is made of is not the store's affair.
func seal(ctx context.Context, o Opened, tenant string, most int) (int, error) {
	return o.Store.Seal(ctx, tenant, most, func(last audit.Seal, rows []audit.Row) audit.Seal { return next(last, tenant, rows) })
}

func next(last audit.Seal, tenant string, rows []audit.Row) audit.Seal {
	s := audit.Seal{Tenant: tenant, Number: last.Number + 1, Rows: len(rows), Previous: last.Hash, CreatedAt: time.Now().UTC().Truncate(time.Microsecond)}
	for _, r := range rows {
		s.Digests = append(s.Digests, slices.Concat(r.CodeSHA256[:], []byte(r.TraceID)))
		s.Expires = append(s.Expires, r.CreatedAt.Add(r.Retention).Unix())
	}
	s.Hash = [32]byte{1, byte(s.Number)}
	return s
}

func seals(t *testing.T, o Opened, tenant string) []audit.Covered {
	t.Helper()
	var all []audit.Covered
	for c, err := range o.Store.Seals(t.Context(), tenant) {
		must(t, err)
		all = append(all, c)
	}
	return all
}

// wantChain checks that the seals of a tenant follow each other and cover rows
// in all, each once.
func wantChain(t *testing.T, o Opened, tenant string, rows int) []audit.Covered {
	t.Helper()
	all := seals(t, o, tenant)
	var previous [32]byte
	seen := map[int64]bool{}
	for i, c := range all {
		if c.Number != int64(i+1) || c.Previous != previous || c.Tenant != tenant {
			t.Errorf("seal %d has number %d and follows %x", i+1, c.Number, c.Previous[:2])
		}
		if c.Rows != len(c.Left) || c.Rows != len(c.Digests) || c.Rows != len(c.Expires) {
			t.Errorf("seal %d of %d rows has %d of them, %d digests, %d times", c.Number, c.Rows, len(c.Left), len(c.Digests), len(c.Expires))
		}
		for place, r := range c.Left {
			if string(c.Digests[place][32:]) != r.TraceID {
				t.Errorf("seal %d: another row at place %d", c.Number, place)
			}
			seen[r.ID] = true
		}
		previous = c.Hash
	}
	if len(seen) != rows {
		t.Errorf("%d rows are covered, not %d", len(seen), rows)
	}
	return all
}

func unsealed(t *testing.T, o Opened) []string {
	t.Helper()
	tenants, err := o.Store.Unsealed(t.Context())
	must(t, err)
	slices.Sort(tenants)
	return tenants
}

func testSeal(t *testing.T, o Opened) {
	if n, err := seal(t.Context(), o, "a", 10); n != 0 || err != nil {
		t.Errorf("nothing to seal: %d, %v", n, err)
	}
	appendRows(t, o, row("a", "1"), row("b", "1"), row("a", "2"))
	if got := unsealed(t, o); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("unsealed: %v", got)
	}
	if n, err := seal(t.Context(), o, "a", 10); n != 2 || err != nil {
		t.Fatalf("got %d, %v", n, err)
	}
	if got := unsealed(t, o); !slices.Equal(got, []string{"b"}) {
		t.Errorf("unsealed: %v", got)
	}
	appendRows(t, o, row("a", "3"))
	if n, err := seal(t.Context(), o, "a", 10); n != 1 || err != nil {
		t.Fatalf("got %d, %v", n, err)
	}
	all := wantChain(t, o, "a", 3)
	if len(all) != 2 || all[0].Left[0].TraceID != "1" || all[0].Left[1].TraceID != "2" {
		t.Errorf("got %+v", all)
	}
	if all[0].CreatedAt.Location() != time.UTC || time.Since(all[0].CreatedAt).Abs() > time.Minute {
		t.Errorf("made at %v", all[0].CreatedAt)
	}
	if got := seals(t, o, "b"); len(got) != 0 {
		t.Errorf("b has %d seals", len(got))
	}
}

func testMost(t *testing.T, o Opened) {
	for i := range 5 {
		appendRows(t, o, row("a", fmt.Sprint(i)))
	}
	for _, want := range []int{2, 2, 1, 0} {
		if n, err := seal(t.Context(), o, "a", 2); n != want || err != nil {
			t.Errorf("got %d, %v, want %d", n, err, want)
		}
	}
	wantChain(t, o, "a", 5)
}

func testSealRace(t *testing.T, o Opened) {
	const writers, each = 8, 40
	var writing, sealing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := range each {
				if err := o.Store.Append(t.Context(), row("a", fmt.Sprintf("%d-%d", w, i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	for range 4 {
		sealing.Go(func() {
			for {
				n, err := seal(t.Context(), o, "a", 7)
				if err != nil {
					t.Error(err)
					return
				}
				select {
				case <-done:
					if n == 0 {
						return
					}
				default:
				}
			}
		})
	}
	writing.Wait()
	close(done)
	sealing.Wait()
	wantChain(t, o, "a", writers*each)
}

func testAppendWhileSealing(t *testing.T, o Opened) {
	appendRows(t, o, row("a", "1"))
	_, err := o.Store.Seal(t.Context(), "a", 10, func(last audit.Seal, rows []audit.Row) audit.Seal {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		for _, tenant := range []string{"a", "b"} {
			if err := o.Store.Append(ctx, row(tenant, "2")); err != nil {
				t.Errorf("append while a seal is made: %v", err)
			}
		}
		return next(last, "a", rows)
	})
	must(t, err)
	if n, err := seal(t.Context(), o, "a", 10); n != 1 || err != nil {
		t.Errorf("the row that came meanwhile: %d, %v", n, err)
	}
	wantChain(t, o, "a", 2)
}

func testWrongSeal(t *testing.T, o Opened) {
	appendRows(t, o, row("a", "1"))
	for what, change := range map[string]func(*audit.Seal){
		"another tenant": func(s *audit.Seal) { s.Tenant = "b" },
		"another number": func(s *audit.Seal) { s.Number = 7 },
		"more rows":      func(s *audit.Seal) { s.Rows = 2 },
	} {
		_, err := o.Store.Seal(t.Context(), "a", 10, func(last audit.Seal, rows []audit.Row) audit.Seal {
			s := next(last, "a", rows)
			change(&s)
			return s
		})
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	if n, err := seal(t.Context(), o, "a", 10); n != 1 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
}

func testPurge(t *testing.T, o Opened) {
	purge := func(most int) int {
		t.Helper()
		n, err := o.Store.Purge(t.Context(), most)
		must(t, err)
		return n
	}
	short := func(r *audit.Row) { r.Retention = 24 * time.Hour }
	appendRows(t, o, row("a", "1", short), row("a", "2"), row("a", "3", short), row("b", "4", short))
	if n, err := seal(t.Context(), o, "a", 10); n != 3 || err != nil {
		t.Fatalf("got %d, %v", n, err)
	}
	if n := purge(10); n != 0 {
		t.Errorf("%d rows went too early", n)
	}
	o.Age(t, 25*time.Hour)
	if n := purge(1); n != 1 {
		t.Errorf("%d rows went, not 1", n)
	}
	if n := purge(10); n != 1 {
		t.Errorf("%d rows went, not 1: b's is not sealed", n)
	}
	if got := traces(list(t, o, audit.Filter{Tenant: "a"})); !slices.Equal(got, []string{"2"}) {
		t.Errorf("left: %v", got)
	}
	all := seals(t, o, "a")
	if len(all) != 1 || all[0].Rows != 3 || len(all[0].Left) != 1 || all[0].Left[1].TraceID != "2" {
		t.Errorf("got %+v", all)
	}
	if n, err := seal(t.Context(), o, "b", 10); n != 1 || err != nil {
		t.Fatalf("got %d, %v", n, err)
	}
	if n := purge(10); n != 1 {
		t.Errorf("%d rows went, not 1", n)
	}
	if n := purge(0); n != 0 {
		t.Errorf("%d rows went", n)
	}
}
