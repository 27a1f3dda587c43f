package bus

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/infra/seal"
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

// TestEraseIsBounded: NATS rewrites a file for each message that it overwrites, while the
// stream of all logs waits. So few are, and none that is encrypted.
func TestEraseIsBounded(t *testing.T) {
	b := embedded(t)
	box, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	events, r := b.RunEvents(box), &run.Run{ID: "run_1", Tenant: "acme"}
	const id = "trc_long"
	for i := range maxOverwritten + 20 {
		if err := b.Log().Append(id, []execution.Event{{Seq: int64(i) + 2, Stream: execution.Stdout, Data: []byte("x")}}); err != nil {
			t.Fatal(err)
		}
		b.Log().sent(t.Context(), id)
	}
	if err := events.Publish(t.Context(), r, []run.Event{{}}); err != nil {
		t.Fatal(err)
	}
	b.Log().sent(t.Context(), string(r.ID))
	asked := make(chan *nats.Msg, 1000)
	sub, err := b.data.ChanSubscribe("$JS.API.STREAM.MSG.DELETE.>", asked)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := b.data.Flush(); err != nil {
		t.Fatal(err)
	}
	deletions := func() (n int) {
		if err := b.data.Flush(); err != nil {
			t.Fatal(err)
		}
		for n = 0; len(asked) > 0; n++ {
			<-asked
		}
		return n
	}
	if err := b.Log().Purge(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if n := deletions(); n != maxOverwritten {
		t.Errorf("%d messages are overwritten, want %d", n, maxOverwritten)
	}
	if err := events.Delete(t.Context(), r.ID); err != nil {
		t.Fatal(err)
	}
	if n := deletions(); n != 0 {
		t.Errorf("%d encrypted messages are overwritten", n)
	}
	for _, id := range []string{id, string(r.ID)} {
		if _, _, err := b.Log().last(t.Context(), id); !errors.Is(err, ErrNoLog) {
			t.Errorf("the log of %s is still there: %v", id, err)
		}
	}
}

// TestEraseTogether: servers delete a log at the same time, of which each message goes once.
func TestEraseTogether(t *testing.T) {
	b := embedded(t)
	const id, events = "trc_gone", 200
	for i := range events {
		if err := b.Log().Append(id, []execution.Event{{Seq: int64(i) + 2, Stream: execution.Stdout, Data: []byte("x")}}); err != nil {
			t.Fatal(err)
		}
		b.Log().sent(t.Context(), id) // a message for each
	}
	var all errgroup.Group
	for range 4 {
		all.Go(func() error { return b.Log().Purge(t.Context(), id) })
	}
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := b.Log().Result(t.Context(), id); !errors.Is(err, ErrNoLog) {
		t.Errorf("afterwards: %v", err)
	}
}
