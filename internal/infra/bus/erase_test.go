package bus

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// TestErase: a log that is deleted leaves nothing in the files of the stream, and others stay.
func TestErase(t *testing.T) {
	dir := t.TempDir()
	b := open(t, Config{Dir: dir, Name: "gw"})
	stored := func(text string) bool {
		found := false
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				data, err := os.ReadFile(path)
				found = found || err == nil && bytes.Contains(data, []byte(text))
			}
			return nil // files of NATS come and go
		})
		return found && err == nil
	}
	for i, id := range []string{"trc_gone", "trc_stays", "trc_gone", "trc_stays"} {
		if err := b.Log().Append(id, []execution.Event{{Seq: int64(i/2) + 2, Stream: execution.Stdout, Data: []byte("canary of " + id)}}); err != nil {
			t.Fatal(err)
		}
		b.Log().sent(t.Context(), id)
	}
	if !stored("canary of trc_gone") {
		t.Fatal("nothing is stored, so that nothing can be left")
	}
	if err := b.Log().Purge(t.Context(), "trc_gone"); err != nil {
		t.Fatal(err)
	}
	if stored("canary of trc_gone") || !stored("canary of trc_stays") {
		t.Errorf("in the files there is the log that was deleted: %t, the other: %t", stored("canary of trc_gone"), stored("canary of trc_stays"))
	}
	if last, err := b.Log().Last(t.Context(), "trc_stays"); err != nil || last != 3 {
		t.Errorf("of the other log there are %d, %v", last, err)
	}
	if err := b.Log().Purge(t.Context(), "trc_gone"); err != nil && !errors.Is(err, ErrNoLog) {
		t.Error(err)
	}
}
