package bus

import (
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// TestTickets checks that one of many callers on two servers takes a ticket, and that an unused one
// expires.
func TestTickets(t *testing.T) {
	url := startServer(t).url()
	var servers []*Tickets
	for _, name := range []string{"exe_1", "exe_2"} {
		tickets, err := open(t, Config{URL: url, Name: name}).OpenTickets(t.Context(), time.Second)
		if err != nil {
			t.Fatal(err)
		}
		servers = append(servers, tickets)
	}
	for n := range 20 {
		hash := sha256.Sum256([]byte{byte(n)})
		if err := servers[n%2].Put(t.Context(), hash, []byte("value")); err != nil {
			t.Fatal(err)
		}
		var taken atomic.Int32
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				switch value, err := servers[i%2].Take(t.Context(), hash); {
				case err == nil && string(value) == "value":
					taken.Add(1)
				case fault.KindOf(err) != fault.NotFound:
					t.Errorf("%q, %v", value, err)
				}
			})
		}
		all.Wait()
		if taken.Load() != 1 {
			t.Fatalf("%d callers took one ticket", taken.Load())
		}
	}
	hash := sha256.Sum256([]byte("late"))
	if err := servers[0].Put(t.Context(), hash, []byte("value")); err != nil {
		t.Fatal(err)
	}
	// Its life is a second; the bus removes it some time after.
	deadline := time.Now().Add(time.Minute)
	for {
		if _, err := servers[1].kv.Get(t.Context(), keyOf(hash)); err != nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("an unused ticket is kept")
		}
		time.Sleep(50 * time.Millisecond)
	}
}
