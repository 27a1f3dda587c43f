package webhook

import (
	"context"
	"errors"
	"net/http"
	"testing"
)

// Messages that a silent receiver of one tenant does not take leave memory for
// those of another.
func TestMemoryIsSharedAmongTenants(t *testing.T) {
	block := make(chan struct{})
	silent, arrived, roots := receiver(t, func(http.ResponseWriter, *http.Request) { <-block })
	c := client(t, Config{RootCAs: roots, Allow: []string{"example.com"}})
	const size = maxMemory / 64
	c.memory = newMemory(size)
	big := ended(silent, "")
	big.Stdout = make([]byte, 150<<10) // a message of 900 KiB, as each byte becomes six
	big.StdoutBytes = int64(len(big.Stdout))
	sent := make(chan error, 3)
	for range cap(sent) {
		go func() {
			_, err := c.Deliver(t.Context(), big)
			sent <- err
		}()
	}
	<-arrived
	other := make(chan error, 1)
	go func() {
		h, err := c.memory.acquire(t.Context(), "ten_2", size/2)
		if err == nil {
			h.release()
		}
		other <- err
	}()
	if err := <-other; err != nil {
		t.Error(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.memory.acquire(gone, "ten_1", 160<<10); !errors.Is(err, context.Canceled) {
		t.Errorf("a second large message of the tenant: %v", err)
	}
	close(block)
	for range cap(sent) {
		if err := <-sent; err != nil {
			t.Error(err)
		}
	}
	if len(c.memory.tenants) != 0 {
		t.Errorf("left: %v", c.memory.tenants)
	}
	if !c.memory.all.TryAcquire(size) {
		t.Error("memory was not given back")
	}
}
