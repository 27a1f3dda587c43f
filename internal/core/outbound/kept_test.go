package outbound

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

func TestKeptConnectionsDoNotOutliveTheList(t *testing.T) {
	var made atomic.Int64
	begun, hold := make(chan struct{}, 1), make(chan struct{})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" {
			begun <- struct{}{}
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		}
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			made.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	defer close(hold)
	list, err := Parse([]string{"127.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		return list.Dial(ctx, nil, network, address)
	}}
	defer tr.CloseIdleConnections()
	get := func(path string) error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := (&http.Client{Transport: tr}).Do(r)
		if err == nil {
			err = a.Body.Close()
		}
		return err
	}
	set := func(to ...string) {
		t.Helper()
		if err := list.Set(to); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := get("/"); err != nil {
			t.Fatal(err)
		}
	}
	set("127.0.0.1", "192.0.2.1") // still allowed
	if err := get("/"); err != nil || made.Load() != 1 {
		t.Errorf("one that is still allowed is made again: %v, %d connections", err, made.Load())
	}
	set("192.0.2.1")
	if err := get("/"); err == nil {
		t.Error("a connection that was kept serves a host that is not allowed any more")
	}
	set("127.0.0.1")
	ended := make(chan error, 1)
	go func() { ended <- get("/long") }()
	<-begun
	set()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("a request in progress has an answer")
		}
	case <-time.After(10 * time.Second):
		t.Error("a request in progress continues")
	}
	list.live.kept.mu.Lock()
	defer list.live.kept.mu.Unlock()
	if n := len(list.live.kept.conns); n != 0 {
		t.Errorf("%d connections are noted", n)
	}
}
