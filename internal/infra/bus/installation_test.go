package bus

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
)

// Two installations on one NATS account neither run each other's jobs nor see each other's
// output and results.
func TestInstallationsShareNATS(t *testing.T) {
	s := startServer(t)
	ctx := deadline(t, 30*time.Second)
	one := open(t, Config{URL: s.url(), Name: "exe_1", Installation: "ins_1"})
	two := open(t, Config{URL: s.url(), Name: "exe_2", Installation: "ins_2"})
	foreign := serve(t, two, "exe_2", 8)
	got := make(chan string, 8)
	for name, b := range map[string]*Bus{"one": one, "two": two} {
		results(t, b, func(_ context.Context, r execution.Result) error { got <- name + " " + r.TraceID; return nil })
	}
	err := one.Runner().Start(ctx, job("trc_1"))
	wantFault(t, err, fault.Unavailable, "no executor has room")
	turn := job("trc_2")
	turn.Turn = "turn"
	wantFault(t, one.Runner().Start(ctx, turn), fault.Unavailable, "no executor has room")
	if foreign.starts != 0 {
		t.Fatal("the other installation's executor ran it")
	}
	if _, err := one.Web().CallWeb(ctx, execution.WebCall{TraceID: "trc_1"}); err == nil {
		t.Error("a call of the web was answered")
	}

	own := serve(t, one, "exe_1", 8)
	if err := one.Runner().Start(ctx, job("trc_1")); err != nil {
		t.Fatal(err)
	}
	if alive, err := two.Runner().Alive(ctx, "trc_1"); err != nil || alive {
		t.Errorf("the other installation sees the run: %v, %v", alive, err)
	}
	if err := one.Log().Append("trc_1", []execution.Event{{Seq: 2, Stream: execution.Stdout, Data: []byte("x")}}); err != nil {
		t.Fatal(err)
	}
	if err := own.end(ctx, done("trc_1")); err != nil {
		t.Fatal(err)
	}
	if r := <-got; r != "one trc_1" {
		t.Errorf("result at %q", r)
	}
	if _, err := two.Log().Result(ctx, "trc_1"); err == nil {
		t.Error("the other installation reads the log")
	}

	id := func(b *Bus) string {
		t.Helper()
		id, err := b.ID(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	same := open(t, Config{URL: s.url(), Name: "exe_3", Installation: "ins_1"})
	if id(one) != id(same) || id(one) == id(two) {
		t.Errorf("ids %s, %s, %s", id(one), id(same), id(two))
	}
}

// What the operator of a NATS server has set on a stream stays when a server starts.
func TestStreamsKeepTheirSettings(t *testing.T) {
	s := startServer(t)
	ctx := deadline(t, 30*time.Second)
	b := open(t, Config{URL: s.url(), Name: "exe_1"})
	for _, name := range []string{b.names.results, b.names.outputs} {
		stream, err := b.js.Stream(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		c := stream.CachedInfo().Config
		c.Compression, c.Metadata["owner"] = jetstream.S2Compression, "operator"
		if _, err := b.js.UpdateStream(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	again := open(t, Config{URL: s.url(), Name: "exe_2", MaxBytes: 1 << 30})
	for _, name := range []string{again.names.results, again.names.outputs} {
		stream, err := again.js.Stream(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		c := stream.CachedInfo().Config
		if c.Compression != jetstream.S2Compression || c.Metadata["owner"] != "operator" {
			t.Errorf("stream %s was reset: %+v", name, c)
		}
		if name == again.names.outputs && c.MaxBytes != 1<<30 {
			t.Errorf("stream %s has %d bytes", name, c.MaxBytes)
		}
	}
}
