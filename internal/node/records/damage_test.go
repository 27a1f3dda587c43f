package records_test

import (
	"bytes"
	"context"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	"github.com/atoll-run/atoll/internal/node/records"
	"github.com/atoll-run/atoll/test/atolltest"
)

var update = flag.Bool("update", false, "write the journal of this version to testdata")

// quiet accepts everything and has nothing.
type quiet struct {
	records.Records
	seqs []uint64
}

func (q *quiet) Publish(_ context.Context, seq uint64, _ []byte) error {
	q.seqs = append(q.seqs, seq)
	return nil
}

func (q *quiet) Create(context.Context, *sandbox.Grant, *sandbox.Sandbox) (*sandbox.Sandbox, error) {
	return nil, nil
}

func (q *quiet) ListByExecutor(context.Context, string) ([]*sandbox.Sandbox, error) { return nil, nil }

// openBytes opens a journal whose file has some content.
func openBytes(t testing.TB, b []byte) (j *records.Journal, bus *quiet, err error) {
	t.Helper()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "journal"), b, 0o600))
	bus = &quiet{}
	j, err = records.Open(records.Config{Dir: dir, Executor: self, Records: bus, Publisher: bus, Log: slog.New(slog.DiscardHandler)})
	return j, bus, err
}

// written is the file of a journal with a few changes whose events were not sent, and the length of
// the file after each of them.
func written(t testing.TB) (b []byte, after []int, details []string, id runtime.ID) {
	t.Helper()
	dir := t.TempDir()
	bus := &quiet{}
	j, err := records.Open(records.Config{Dir: dir, Executor: self, Records: bus, Publisher: bus, Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	note := func(detail string) {
		b, err = os.ReadFile(filepath.Join(dir, "journal"))
		must(t, err)
		after, details = append(after, len(b)), append(details, detail)
	}
	sb := draft("one")
	_, err = j.Create(t.Context(), grant, sb)
	must(t, err)
	note("")
	sb.State = sandbox.Running
	for i, detail := range []string{"a", "b", "c"} {
		sb.Detail = detail
		must(t, j.Save(t.Context(), sb))
		note(detail)
		must(t, j.Charge(t.Context(), sb, sb.MeteredAt.Add(time.Duration(i+1)*time.Second), 1))
		note(detail)
	}
	return b, after, details, sb.ID // the file stays open; its folder goes
}

// A power failure cuts the file anywhere: acknowledged entries survive, and later ones get
// numbers that were never used.
func TestTornFile(t *testing.T) {
	b, after, details, id := written(t)
	step := 31
	if atolltest.Soak() {
		step = 1
	}
	for cut := after[0]; cut <= len(b); cut++ {
		if cut%step != 0 && !slices.Contains(after, cut) {
			continue
		}
		for _, tail := range [][]byte{nil, make([]byte, 100), bytes.Repeat([]byte("ATJ1"), 7)} {
			if len(tail) > 0 && cut%(7*step) != 0 {
				continue
			}
			j, bus, err := openBytes(t, slices.Concat(b[:cut], tail))
			must(t, err)
			n := 0
			for n+1 < len(after) && after[n+1] <= cut {
				n++
			}
			got, ok := j.Record(id)
			if !ok || got.Detail != details[n] {
				t.Fatalf("cut at %d with %d bytes behind: %+v, want the detail %q", cut, len(tail), got, details[n])
			}
			if events := j.Status().Events; events != n {
				t.Fatalf("cut at %d: %d events, want %d", cut, events, n)
			}
			must(t, j.Save(t.Context(), got))
			must(t, j.Close(context.Background()))
			if len(bus.seqs) != n+1 || !slices.IsSorted(bus.seqs) {
				t.Fatalf("cut at %d: events %v", cut, bus.seqs)
			}
			clean := cut == after[n] && len(tail) == 0
			if last := bus.seqs[n]; n > 0 && (last == bus.seqs[n-1]+1) != clean {
				t.Fatalf("cut at %d: events %v", cut, bus.seqs)
			}
		}
	}
}

// A damaged file is noticed and kept; records that cannot be read come from a gateway.
func TestDamagedFile(t *testing.T) {
	everywhere(t, func(t *testing.T, db *store.DB) {
		r := newRig(t, db, nil)
		one, two := r.create("one"), r.create("two")
		_, err := r.ListByExecutor(t.Context(), self)
		must(t, err)
		r.settled()
		r.stop()
		path := filepath.Join(r.dir, "journal")
		whole, err := os.ReadFile(path)
		must(t, err)
		for _, damaged := range []*sandbox.Sandbox{two, one} { // one of them is the last in the file
			b := slices.Clone(whole)
			b[bytes.Index(b, []byte(damaged.ID))] ^= 1
			must(t, os.WriteFile(path, b, 0o600))
			r.open()
			all, err := r.ListByExecutor(t.Context(), self)
			must(t, err)
			if len(all) != 2 || all[0].ID != one.ID || all[1].ID != two.ID {
				t.Errorf("records %+v", all)
			}
			for _, sb := range all {
				if (sb.Revision > 1<<32) != (sb.ID == damaged.ID) {
					t.Errorf("%s has the revision %d", sb.ID, sb.Revision)
				}
			}
			if damaged == two {
				r.stop()
			}
		}
		all := []*sandbox.Sandbox{one, two}
		if !r.log.has("the journal of sandboxes is damaged") || !r.log.has("took records of sandboxes from a gateway") {
			t.Error("the log does not report it")
		}
		if left, err := filepath.Glob(path + ".damaged-*"); err != nil || len(left) != 2 {
			t.Errorf("copies: %q, %v", left, err)
		}
		for _, sb := range all {
			r.save(sb, func() { sb.Detail = "saved again" })
		}
		r.settled()
		for _, sb := range all {
			if got := r.recorded(sb.ID); got.Detail != "saved again" {
				t.Errorf("record %+v", got)
			}
		}
		r.crash()
		if all, err := r.ListByExecutor(t.Context(), self); err != nil || len(all) != 2 {
			t.Errorf("%d records, %v", len(all), err)
		}
	})
}

// A file without a readable beginning is damage, and no new executor.
func TestFileOfGarbage(t *testing.T) {
	for _, b := range []string{"x", "ATJ1", strings.Repeat("\x00", 5000)} {
		j, _, err := openBytes(t, []byte(b))
		must(t, err)
		must(t, j.Close(context.Background()))
	}
}

// The journal of each released version stays readable.
func TestReleasedFormat(t *testing.T) {
	path := filepath.Join("testdata", "journal-1")
	if *update {
		b, _, _, _ := written(t)
		must(t, os.MkdirAll("testdata", 0o755))
		must(t, os.WriteFile(path, b, 0o644))
	}
	b, err := os.ReadFile(path)
	must(t, err)
	j, bus, err := openBytes(t, b)
	must(t, err)
	all, err := j.ListByExecutor(t.Context(), self)
	must(t, err)
	if len(all) != 1 || all[0].Detail != "c" || all[0].Env["A"] != "b" || all[0].Revision != 4 {
		t.Errorf("records %+v", all)
	}
	must(t, j.Close(context.Background()))
	if len(bus.seqs) != 6 {
		t.Errorf("%d events", len(bus.seqs))
	}
}

// FuzzOpen: a journal opens whatever its file has, and then works.
func FuzzOpen(f *testing.F) {
	b, after, _, _ := written(f)
	f.Add(b)
	for _, n := range after {
		f.Add(b[:n-3])
		f.Add(slices.Concat(b[:n-3], b[n:]))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		j, bus, err := openBytes(t, b)
		if err != nil {
			return // another executor's, or a newer version's
		}
		all, err := j.ListByExecutor(t.Context(), self)
		must(t, err)
		for _, sb := range all {
			must(t, j.Save(t.Context(), sb))
		}
		sb := draft("new")
		_, err = j.Create(t.Context(), grant, sb)
		must(t, err)
		sb.State = sandbox.Running
		must(t, j.Save(t.Context(), sb))
		must(t, j.Charge(t.Context(), sb, sb.MeteredAt.Add(time.Second), 1))
		if err := j.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if !slices.IsSorted(bus.seqs) || len(slices.Compact(slices.Clone(bus.seqs))) != len(bus.seqs) {
			t.Errorf("events %v", bus.seqs)
		}
	})
}

// The numbers of events survive a journal without events and records.
func TestNumbersGoOn(t *testing.T) {
	r := newRig(t, storetest.SQLite(t), nil)
	for range 3 {
		sb := r.create("one")
		r.save(sb, func() { must(t, sb.Move(sandbox.Destroyed, "")) })
		r.settled()
		r.stop()
		r.open()
	}
	for i := 1; i < len(r.link.told); i++ {
		if r.link.told[i] != r.link.told[i-1]+1 {
			t.Fatalf("events %v", r.link.told)
		}
	}
}
