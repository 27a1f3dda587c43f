package executor

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
)

// reopened returns the trace ids of the jobs that the next process finds.
func reopened(t *testing.T, path string) []string {
	t.Helper()
	w, left, _, err := openWaiting(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	var ids []string
	for _, r := range left {
		if r.Job.Secrets[0] != "s\xff" {
			t.Errorf("a secret is now %q", r.Job.Secrets)
		}
		ids = append(ids, r.Job.TraceID)
	}
	return ids
}

func TestWaiting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "waiting")
	w, left, _, err := openWaiting(path)
	if err != nil || len(left) > 0 {
		t.Fatal(left, err)
	}
	take := func(id string, code string) {
		t.Helper()
		record, err := w.encode(jobRecord{Job: execution.Job{TraceID: id, Code: code, Secrets: []string{"s\xff"}}, Created: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.add(id, record); err != nil {
			t.Fatal(err)
		}
	}
	begun := func(id string) {
		t.Helper()
		if err := w.remove(id); err != nil {
			t.Fatal(err)
		}
	}
	want := func(ids string) {
		t.Helper()
		if got := fmt.Sprint(reopened(t, path)); got != ids {
			t.Errorf("got %s, want %s", got, ids)
		}
	}
	take("a", "1")
	take("b", "2")
	take("c", "3")
	begun("b")
	want("[a c]")
	begun("a")
	begun("c")
	want("[]")
	take("d", "4")
	want("[d]") // and nothing of what was there before
	begun("d")
	if b, err := os.ReadFile(path); err != nil || len(bytes.Trim(b, "\x00")) > 0 {
		t.Errorf("of jobs that are gone %q is left, %v", b, err)
	}

	// The file stays small although it is never empty.
	take("stays", "x")
	for i := range 60 {
		id := fmt.Sprint(i)
		take(id, strings.Repeat("x", 1<<20))
		begun(id)
	}
	if st, err := os.Stat(path); err != nil || st.Size() > maxWaiting+2<<20 {
		t.Errorf("one job waits, in %d bytes (%v)", st.Size(), err)
	}
	want("[stays]")
	begun("stays")
	want("[]")

	// No caller was told of what a killed process wrote half of.
	take("stays", "x")
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if w, _, _, err = openWaiting(path); err != nil {
		t.Fatal(err)
	}
	take("half", "y")
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := len(data) + 1; cut < len(whole)-header; cut++ {
		stale := bytes.Repeat([]byte{'j', 1, 0, 0}, 500) // of jobs before
		for _, rest := range [][]byte{nil, stale} {
			if err := os.WriteFile(path, slices.Concat(whole[:cut], rest), 0o600); err != nil {
				t.Fatal(err)
			}
			want("[stays]")
		}
	}
}

func TestAnUnreadableJobDoesNotHideTheOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "waiting")
	w, add := waits(t, path)
	for _, id := range []string{"a", "b"} {
		if err := add(id, ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// The record of a later version: its checksum is right, its content is unknown.
	unknown := []byte(`{"Job":[]}`)
	sum := binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(unknown))
	if err := os.WriteFile(path, append(appendRecord(nil, kindTaken, sum, unknown), data...), 0o600); err != nil {
		t.Fatal(err)
	}
	again, left, unreadable, err := openWaiting(path)
	if err != nil {
		t.Fatal(err)
	}
	defer again.close()
	if len(left) != 2 || left[0].Job.TraceID != "a" || left[1].Job.TraceID != "b" || unreadable != 1 {
		t.Errorf("%d jobs are left and %d unreadable, want a, b and 1: %v", len(left), unreadable, left)
	}
}

// elsewhere is a bus on which another executor holds every turn.
type elsewhere struct{ held map[string]bool }

func (e elsewhere) Hold(id, _ string) error { e.held[id] = true; return nil }
func (e elsewhere) Release(id string)       { delete(e.held, id) }
func (elsewhere) HoldTurn(context.Context, string) error {
	return fault.New(fault.Conflict, "another executor has the turn")
}
func (elsewhere) ReleaseTurn(string) {}
func (elsewhere) Drain()             {}

// TestAJobThatIsNotTakenUpIsLetGo checks that an executor releases a job that it cannot start.
func TestAJobThatIsNotTakenUpIsLetGo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "waiting")
	w, _, _, err := openWaiting(path)
	if err != nil {
		t.Fatal(err)
	}
	record, err := w.encode(jobRecord{Job: execution.Job{TraceID: "trc_1", Turn: "turn"}, Created: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.add("trc_1", record), w.close()); err != nil {
		t.Fatal(err)
	}
	x, err := New(Config{Sandboxes: leftovers{}, Writer: &memoryLog{}, Waiting: path, Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	bus := elsewhere{map[string]bool{}}
	if err := errors.Join(x.Recover(t.Context(), bus), x.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	if len(bus.held) > 0 {
		t.Errorf("gateways find %v here", bus.held)
	}
	if left := reopened(t, path); len(left) > 0 {
		t.Errorf("%v wait", left)
	}
}
