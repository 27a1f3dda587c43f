package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestRefusalsShareRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var rows []Row
		var away error
		r := NewRefusals(func(_ context.Context, row Row) error {
			mu.Lock()
			defer mu.Unlock()
			if away == nil {
				rows = append(rows, row)
			}
			return away
		}, slog.New(slog.DiscardHandler))
		refuse := func(n int, key string) {
			t.Helper()
			for i := range n {
				row := Row{TraceID: fmt.Sprint("trc_", i), Tenant: "a", Key: key, Source: "shell", ExitStatus: CapExceeded, FailureReason: "no room", Agent: "x"}
				if err := r.Append(t.Context(), row); err != nil {
					t.Fatal(err)
				}
			}
		}
		have := func(n int, count string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if len(rows) != n {
				t.Fatalf("there are %d rows, not %d", len(rows), n)
			}
			if last := rows[n-1]; last.Metadata[RefusalCount] != count || count != "" && (last.Agent != "" || last.TraceID == "" || last.Tenant != "a") {
				t.Errorf("the last row is %+v", last)
			}
		}
		refuse(RefusalRows+2400, "k")
		have(RefusalRows, "")
		refuse(1, "other")
		have(RefusalRows+1, "")
		reach := func(err error) {
			mu.Lock()
			defer mu.Unlock()
			away = err
		}
		reach(errors.New("the database is away"))
		time.Sleep(RefusalWindow + refusalFlush)
		have(RefusalRows+1, "")
		refuse(10, "k")
		reach(nil)
		time.Sleep(refusalFlush)
		have(RefusalRows+2, "2410")
		refuse(1, "k") // a new window
		have(RefusalRows+3, "")
		refuse(RefusalRows+6, "k")
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		have(2*RefusalRows+3, "7")
	})
}

// TestRefusalsOfOneTenant: however many kinds of calls a tenant is refused, its rows are
// bounded and all calls are counted; another's have rows of their own.
func TestRefusalsOfOneTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows, told := map[string]int{}, 0
		r := NewRefusals(func(_ context.Context, row Row) error {
			rows[row.Tenant]++
			n := 1
			if text := row.Metadata[RefusalCount]; text != "" {
				n, _ = strconv.Atoi(text)
			}
			if row.Tenant == "a" {
				told += n
			}
			return nil
		}, slog.New(slog.DiscardHandler))
		const keys, calls = 1000, 30
		for i := range keys * calls {
			if err := r.Append(t.Context(), Row{Tenant: "a", Key: fmt.Sprint("key_", i%keys), Source: "shell"}); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Append(t.Context(), Row{Tenant: "b", Key: "key"}); err != nil {
			t.Fatal(err)
		}
		if rows["a"] != TenantRefusalRows || rows["b"] != 1 {
			t.Errorf("at once there are %v rows", rows)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if most := 2*TenantRefusalRows + 1; rows["a"] > most || told != keys*calls {
			t.Errorf("%d calls are told in %d rows, want %d in %d at most", told, rows["a"], keys*calls, most)
		}
		if len(r.kinds) != 0 {
			t.Errorf("%d kinds are left", len(r.kinds))
		}
	})
}
