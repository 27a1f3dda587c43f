package executor

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// waits makes a file of waiting jobs and returns what adds one.
func waits(t *testing.T, path string) (*waiting, func(id, code string) error) {
	t.Helper()
	w, _, _, err := openWaiting(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.close() })
	return w, func(id, code string) error {
		record, err := w.encode(jobRecord{Job: execution.Job{TraceID: id, Code: code, Secrets: []string{"s\xff"}}})
		if err != nil {
			t.Fatal(err)
		}
		return w.add(id, record)
	}
}

// A record that was being written when the process was killed has what was in
// the file before behind it, which can be any bytes.
func TestATornRecordEndsTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "waiting")
	w, add := waits(t, path)
	if err := add("a", "1"); err != nil {
		t.Fatal(err)
	}
	for _, torn := range []string{"b\xff\xff\xff\xff", "j\x01", "b\x02\x00\x00\x00aaxxxxxxxx", "j\x08\x00\x00\x00xxxxyyyy"} {
		if _, err := w.file.WriteAt([]byte(torn), w.size); err != nil {
			t.Fatal(err)
		}
		if ids := reopened(t, path); len(ids) != 1 || ids[0] != "a" {
			t.Errorf("after %q: %v", torn, ids)
		}
	}
}

// A job that is refused because the file cannot be written anew is not run by
// the next process.
func TestAJobThatIsRefusedDoesNotWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "waiting")
	w, add := waits(t, path)
	if err := add("stays", "x"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path+".new", 0o700); err != nil { // in the way of compact
		t.Fatal(err)
	}
	var refused string
	for _, id := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
		if err := add(id, strings.Repeat("x", 1<<20)); err != nil {
			refused = id
			break
		}
		if err := w.remove(id); err != nil {
			t.Fatal(err)
		}
	}
	if ids := reopened(t, path); refused == "" || len(ids) != 1 || ids[0] != "stays" {
		t.Errorf("refused %q; %v wait", refused, ids)
	}
}

// leftovers are sandboxes whose journals cannot be read.
type leftovers struct {
	Sandboxes
	folders []string
}

func (l leftovers) Left(context.Context) ([]string, error)        { return l.folders, nil }
func (l leftovers) Remove(_ context.Context, folder string) error { return os.RemoveAll(folder) }

func TestOutputsGoWithASandboxThatCannotBeTakenOver(t *testing.T) {
	dir := t.TempDir()
	folder, outputs := filepath.Join(dir, "sb-1"), filepath.Join(dir, "outputs")
	if err := errors.Join(os.Mkdir(folder, 0o700), os.Mkdir(outputs, 0o700), os.WriteFile(filepath.Join(folder, journalFile), []byte("torn"), 0o600),
		os.WriteFile(filepath.Join(outputs, "sb-1.stdout"), []byte("long"), 0o600),
		os.WriteFile(filepath.Join(outputs, "sb-1.files"), []byte("long"), 0o600)); err != nil {
		t.Fatal(err)
	}
	x, err := New(Config{Sandboxes: leftovers{folders: []string{folder}}, Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(), Outputs: outputs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.retries.Close)
	if err := x.Recover(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := x.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(outputs); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}
