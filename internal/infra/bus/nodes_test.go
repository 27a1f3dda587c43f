package bus

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/test/atolltest"
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
	var beats atomic.Int64
	go func() {
		defer close(done)
		here.Announce(ctx, func() Node {
			return Node{Address: "10.0.0.1:8443", Role: RoleExecutor, Sandboxes: int(beats.Add(1)), MaxSandboxes: 10, FreeMemory: 1 << 30, CPUs: 4, Draining: true}
		})
	}()
	if at := <-announced.Updates(); at == nil || at.Key() != "exe_1" {
		t.Fatalf("the first announcement is %+v", at)
	}
	if at, err := there.Find(t.Context(), "exe_1"); err != nil || at.Address != "10.0.0.1:8443" || at.Revision == 0 || at.Name != "exe_1" {
		t.Errorf("got %+v, %v", at, err)
	}
	for _, name := range []string{"exe_2", "", "exe_1.x", "*"} {
		if _, err := there.Find(t.Context(), name); fault.KindOf(err) != fault.NotFound {
			t.Errorf("%q: %v", name, err)
		}
	}
	for name, value := range map[string]string{"exe_0": `{"address":"10.0.0.2:8443","later":[1]}`, "exe_3": "{", "exe_4": `{"address":"10.0.0.2:8443","role":"gateway"}`} {
		if _, err := there.kv.Put(t.Context(), name, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	all, err := there.List(t.Context())
	if err != nil || len(all) != 2 {
		t.Fatalf("listed %+v, %v", all, err)
	}
	if at := all[0]; at.Name != "exe_0" || at.Role != RoleAll || at.Address != "10.0.0.2:8443" || at.Draining {
		t.Errorf("got %+v", at)
	}
	at := all[1]
	if at.Sandboxes < 1 || at.Revision == 0 {
		t.Errorf("got %+v", at)
	}
	at.Sandboxes, at.Revision = 0, 0
	if want := (Node{Name: "exe_1", Address: "10.0.0.1:8443", Role: RoleExecutor, MaxSandboxes: 10, FreeMemory: 1 << 30, CPUs: 4, Draining: true}); at != want {
		t.Errorf("got %+v, want %+v", at, want)
	}
	atolltest.Until(t, time.Minute, "a later announcement has new values", func() bool {
		at, err := there.Find(t.Context(), "exe_1")
		if err != nil {
			t.Fatal(err)
		}
		return beats.Load() >= 3 && at.Sandboxes > 1
	})
	stop()
	<-done
	if _, err := there.Find(t.Context(), "exe_1"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("after its end: %v", err)
	}
	atolltest.Until(t, time.Minute, "the leases end", func() bool {
		if all, err = there.List(t.Context()); err != nil {
			t.Fatal(err)
		}
		return len(all) == 0
	})
}

// FuzzNode checks that announcements of other servers decode to values within their bounds.
func FuzzNode(f *testing.F) {
	for _, seed := range []string{
		`{"address":"10.0.0.1:8443"}`, `{"address":"a:1","role":"executor","sandboxes":3,"max_sandboxes":10,"free_memory":1073741824,"cpus":4,"draining":true,"later":{}}`,
		`{"address":"a:1","sandboxes":-3,"cpus":-1,"free_memory":-9223372036854775808}`, `{"address":"","role":"x"}`, "{", "null", `{"sandboxes":1e400}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		of, err := parseNode(value)
		if err != nil {
			if of != (Node{}) {
				t.Errorf("got %+v with %v", of, err)
			}
			return
		}
		if len(value) > maxNode || of.Address == "" || len(of.Address) > maxAddress || of.Role != RoleAll && of.Role != RoleExecutor ||
			of.Sandboxes < 0 || of.MaxSandboxes < 0 || of.CPUs < 0 || of.FreeMemory < 0 || of.Name != "" || of.Revision != 0 {
			t.Errorf("got %+v", of)
		}
		again, err := json.Marshal(of)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := parseNode(again); len(again) <= maxNode && (err != nil || back != of) {
			t.Errorf("%+v became %+v, %v", of, back, err)
		}
	})
}
