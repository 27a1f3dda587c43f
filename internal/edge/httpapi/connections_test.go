package httpapi_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/control/gateway/gatewaytest"
	"github.com/atoll-run/atoll/internal/edge/httpapi/httpapitest"
)

// TestConnectionsWithoutAKeyMakeRoom opens more connections than there may be: those with a
// key stay, and a new caller is answered.
func TestConnectionsWithoutAKeyMakeRoom(t *testing.T) {
	const most = 20
	s := httpapitest.New(t, func(c *httpapitest.Setup) { c.MaxConnections = most })
	s.Principal(t, "p", "pro")
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- s.Serve(ctx, ln) }()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	dial := func() net.Conn {
		t.Helper()
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	ask := func(c net.Conn) {
		t.Helper()
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		if _, err := io.WriteString(c, "GET /v1/executions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+gatewaytest.Token("p")+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("got %s, %v", resp.Status, err)
		}
	}
	keyed := dial()
	ask(keyed)
	idle := make([]net.Conn, 3*most)
	for i := range idle {
		idle[i] = dial()
	}
	ask(dial())
	ask(keyed) // the same connection
	_ = idle[0].SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := idle[0].Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the first connection without a key: %v", err)
	}
	// When all have a key, the newest is not taken.
	for range most - 2 {
		ask(dial())
	}
	late := dial()
	_ = late.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := late.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection beyond the bound: %v", err)
	}
	ask(keyed)
}
