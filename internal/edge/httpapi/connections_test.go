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
	"github.com/atoll-run/atoll/test/httpapitest"
)

// TestConnectionsMakeRoom opens more connections than there may be: those with a key stay,
// and a new caller is answered, also where one tenant has taken all.
func TestConnectionsMakeRoom(t *testing.T) {
	const most = 20
	s := httpapitest.New(t, func(c *httpapitest.Setup) { c.MaxConnections = most })
	for _, who := range []string{"p", "q", "r"} {
		s.Principal(t, who, "pro")
	}
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
	ask := func(c net.Conn, who string) {
		t.Helper()
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		if _, err := io.WriteString(c, "GET /v1/executions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+gatewaytest.Token(who)+"\r\n\r\n"); err != nil {
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
	ended := func(c net.Conn) bool {
		t.Helper()
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		_, err := c.Read(make([]byte, 1))
		return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
	}
	keyed := dial()
	ask(keyed, "q")
	idle := make([]net.Conn, 3*most)
	for i := range idle {
		idle[i] = dial()
	}
	first := dial()
	ask(first, "p")
	ask(keyed, "q") // the same connection
	if !ended(idle[0]) {
		t.Error("the first connection without a key is open")
	}
	// One tenant takes all that there is: its own make room, for it and for others.
	for range 2 * most {
		ask(dial(), "p")
	}
	ask(dial(), "q")
	ask(keyed, "q")
	if !ended(first) {
		t.Error("the first connection of the tenant that has most is open")
	}
	// Where two have all, a third gets some of them.
	for range most/2 - 2 {
		ask(dial(), "q")
		ask(keyed, "q") // the last one to be spared
	}
	ask(dial(), "r")
	ask(keyed, "q")
}
