package outbound

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestLoopbackOfOneTenant checks that development mode opens this machine's loopback for its tenant
// alone, and by its plain names alone.
func TestLoopbackOfOneTenant(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	defer srv.Close()
	at := srv.Listener.Addr().String()
	_, port, err := net.SplitHostPort(at)
	if err != nil {
		t.Fatal(err)
	}
	l, err := Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	dev, other := For(t.Context(), "ten_dev"), For(t.Context(), "ten_other")
	reached := func() bool {
		conn, err := l.Dial(dev, nil, "tcp", at)
		if err == nil {
			conn.Close()
		}
		return err == nil && l.Check(dev, nil, "url", "127.0.0.1") == nil && l.Opens(dev, "localhost")
	}
	if reached() {
		t.Error("loopback is open without development mode")
	}
	l.OpenLoopback("ten_dev")
	if !reached() {
		t.Error("the tenant does not reach loopback")
	}
	if conn, err := l.Dial(dev, nil, "tcp", net.JoinHostPort("localhost", port)); err != nil {
		t.Errorf("localhost: %v", err)
	} else {
		conn.Close()
	}
	for _, host := range []string{"10.0.0.1", "192.168.0.1", "169.254.169.254", "localhost.example.com", "127.0.0.1.nip.io"} {
		if l.Loopback(dev, host) {
			t.Errorf("%s counts as loopback", host)
		}
	}
	if conn, err := l.Dial(other, nil, "tcp", at); err == nil {
		conn.Close()
		t.Error("another tenant reaches loopback")
	}
	if l.Check(other, nil, "url", "127.0.0.1") == nil || l.Check(t.Context(), nil, "url", "[::1]") == nil || l.Opens(other, "localhost") {
		t.Error("another tenant may name loopback")
	}

	rt := &http.Transport{DialContext: func(ctx context.Context, network, at string) (net.Conn, error) { return l.Dial(ctx, nil, network, at) }}
	defer rt.CloseIdleConnections()
	for tenant, want := range map[string]bool{"ten_dev": true, "ten_other": false} {
		rt.CloseIdleConnections()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := Transport(rt, tenant).RoundTrip(r)
		if (err == nil) != want {
			t.Errorf("%s: %v", tenant, err)
		}
		if err == nil {
			res.Body.Close()
		}
	}
}

// TestSetWhileInUse checks that a change reaches copies of a list.
func TestSetWhileInUse(t *testing.T) {
	l, err := Parse([]string{"10.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	held := l
	if err := l.Set([]string{"not a host"}); err == nil || held.Check(t.Context(), nil, "url", "10.0.0.1") != nil {
		t.Errorf("a wrong list: %v", err)
	}
	if err := l.Set([]string{"192.168.0.1"}); err != nil {
		t.Fatal(err)
	}
	if held.Check(t.Context(), nil, "url", "10.0.0.1") == nil || held.Check(t.Context(), nil, "url", "192.168.0.1") != nil {
		t.Error("the copy has the former content")
	}
}
