package executor

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// TestTheNextProcessHasTheKeyOfAThread: the files of a job that waits or runs have the key, and only
// the server's user can read them.
func TestTheNextProcessHasTheKeyOfAThread(t *testing.T) {
	dir := t.TempDir()
	key := bytes.Repeat([]byte{0, 0xff, '"', 7}, 16)
	rec := jobRecord{Job: execution.Job{TraceID: "trc_1", Thread: &execution.Thread{ID: "notes", Key: key}}}
	check := func(path string, got *execution.Job) {
		t.Helper()
		if !bytes.Equal(got.Thread.Key, key) {
			t.Errorf("%s: the key is %x", path, got.Thread.Key)
		}
		if st, err := os.Stat(path); err != nil || st.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", path, st.Mode(), err)
		}
	}

	w, _, _, err := openWaiting(filepath.Join(dir, "waiting"))
	if err != nil {
		t.Fatal(err)
	}
	record, err := w.encode(rec)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.add(rec.Job.TraceID, record); err != nil {
		t.Fatal(err)
	}
	again, left, _, err := openWaiting(w.path)
	if err != nil || len(left) != 1 {
		t.Fatal(left, err)
	}
	check(w.path, &left[0].Job)
	if err := w.compact(); err != nil {
		t.Fatal(err)
	}
	check(w.path, &left[0].Job)

	if err := Prepare(dir); err != nil {
		t.Fatal(err)
	}
	j, err := newJournal(dir, rec)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.cut(nil, j.size); err != nil {
		t.Fatal(err)
	}
	next, got, _, err := openJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	check(j.path, &got.Job)
	for _, c := range []interface{ close() error }{w, again, j, next} {
		if err := c.close(); err != nil {
			t.Error(err)
		}
	}
}
