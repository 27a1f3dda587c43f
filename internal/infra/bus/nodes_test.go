package bus

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// TestNodes checks that servers find each other's addresses while they announce themselves, and that
// an announcement ends with the server.
func TestNodes(t *testing.T) {
	url := startServer(t).url()
	one, two := open(t, Config{URL: url, Name: "exe_1"}), open(t, Config{URL: url, Name: "exe_2"})
	here, err := one.OpenNodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	there, err := two.OpenNodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	announced, err := there.kv.WatchAll(t.Context(), jetstream.UpdatesOnly())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		here.Announce(ctx, "10.0.0.1:8443")
	}()
	if at := <-announced.Updates(); at == nil || at.Key() != "exe_1" {
		t.Fatalf("the first announcement is %+v", at)
	}
	if at, err := there.Find(t.Context(), "exe_1"); err != nil || at.Address != "10.0.0.1:8443" || at.Revision == 0 {
		t.Errorf("got %+v, %v", at, err)
	}
	for _, name := range []string{"exe_2", "", "exe_1.x", "*"} {
		if _, err := there.Find(t.Context(), name); fault.KindOf(err) != fault.NotFound {
			t.Errorf("%q: %v", name, err)
		}
	}
	stop()
	<-done
	if _, err := there.Find(t.Context(), "exe_1"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("after its end: %v", err)
	}
}
