package bus

import (
	"fmt"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// A tenant that fills the stream, with logs that ended and with logs that are
// still written to, drives out its own output and no other tenant's.
func TestLogsAreSharedFairly(t *testing.T) {
	const most = 8 << 20
	b := open(t, Config{Dir: t.TempDir(), Name: "gw", MaxBytes: most, MaxRunBytes: most / 4})
	ctx := deadline(t, 60*time.Second)
	h := serve(t, b, "x1", 1000)
	begin := func(tenant, id string) {
		t.Helper()
		j := job(id)
		j.Tenant = tenant
		if err := b.Runner().Start(ctx, j); err != nil {
			t.Fatal(err)
		}
	}
	write := func(id string, from, n int64) {
		t.Helper()
		for i := from; i < from+n; i++ {
			if err := b.Log().Append(id, []execution.Event{{Seq: i, Stream: execution.Stdout, Data: make([]byte, execution.MaxChunk)}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	end := func(id string, last int64) {
		t.Helper()
		if err := h.end(ctx, execution.Result{TraceID: id, LastSeq: last}); err != nil {
			t.Fatal(err)
		}
	}
	begin("ten_quiet", "trc_ended")
	write("trc_ended", 2, 4)
	end("trc_ended", 5)
	begin("ten_quiet", "trc_running")
	write("trc_running", 2, 4)

	for i := range 8 { // 12 MiB
		running, ended := fmt.Sprintf("trc_running_%d", i), fmt.Sprintf("trc_ended_%d", i)
		begin("ten_loud", running)
		write(running, 2, 12)
		begin("ten_loud", ended)
		write(ended, 2, 12)
		end(ended, 13)
	}

	end("trc_running", 5)
	for _, id := range []string{"trc_ended", "trc_running"} {
		if events, r, err := read(ctx, b, id, 0); err != nil || r.OutputTruncated || len(events) != 4 {
			t.Errorf("%s has %d of 4 events, %+v, %v", id, len(events), r, err)
		}
	}
	end("trc_running_0", 13)
	if events, r, err := read(ctx, b, "trc_running_0", 0); err != nil || !r.OutputTruncated || len(events) == 12 {
		t.Errorf("the oldest of who filled the stream has %d events, %+v, %v", len(events), r, err)
	}
	if events, _, err := read(ctx, b, "trc_ended_7", 0); err != nil || len(events) != 12 {
		t.Errorf("the newest has %d events, %v", len(events), err)
	}
	info, err := b.log.stream.Info(ctx)
	if err != nil || info.State.Bytes > most*7/8 {
		t.Errorf("the stream has %d bytes, %v", info.State.Bytes, err)
	}
	logs := 0
	for _, share := range b.log.shares.tenants {
		logs += len(share.logs)
	}
	if logs != b.log.shares.logs {
		t.Errorf("%d logs are remembered, %d counted", logs, b.log.shares.logs)
	}
}

// The NATS server holds memory for each log, so the oldest logs go when there are many.
func TestTheNumberOfLogsIsBounded(t *testing.T) {
	b := embedded(t)
	ctx := deadline(t, 60*time.Second)
	s := b.log.shares
	s.maxLogs = 40
	subjects := func() uint64 {
		t.Helper()
		stream, err := b.log.js.Stream(ctx, b.names.outputs)
		if err != nil {
			t.Fatal(err)
		}
		return stream.CachedInfo().State.NumSubjects
	}
	var last string
	for i := range 100 {
		last = fmt.Sprint("trc_", i)
		if err := b.Log().Finish(ctx, execution.Result{TraceID: last, LastSeq: 1}); err != nil {
			t.Fatal(err)
		}
	}
	for round := 0; subjects() > s.maxLogs; round++ {
		if round == 20 {
			t.Fatalf("%d logs are kept, want %d at most", subjects(), s.maxLogs)
		}
		s.mu.Lock()
		s.asked = time.Time{} // it is due
		s.mu.Unlock()
		s.relieve()
	}
	if n := subjects(); n < s.maxLogs/2 {
		t.Errorf("%d logs are left of %d", n, s.maxLogs)
	}
	if _, err := b.Log().Result(ctx, last); err != nil {
		t.Errorf("the last log: %v", err)
	}
}
