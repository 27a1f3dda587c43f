package app

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestStarting(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	get := func(path string) (int, http.Header, string) {
		t.Helper()
		res, err := http.Get("http://" + ln.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, res.Header, string(body)
	}
	plain := func(ln net.Listener) net.Listener { return ln }
	s := answer(ln.(*net.TCPListener), plain, func() string { return "bus" }, slog.New(slog.DiscardHandler))
	if code, _, body := get("/healthz"); code != 200 || body != `{"status":"ok"}` {
		t.Errorf("healthz: %d %s", code, body)
	}
	for _, path := range []string{"/readyz", "/v1/sandboxes"} {
		code, h, body := get(path)
		if code != 503 || h.Get("Retry-After") != "1" || !strings.Contains(body, `"error":"service_unavailable"`) || !strings.Contains(body, "starting (bus)") {
			t.Errorf("%s: %d %v %s", path, code, h, body)
		}
	}
	silent, err := net.Dial("tcp", ln.Addr().String()) // it must not hold up the server
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if err := s.stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	next := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "open") })}
	served := make(chan error, 1)
	go func() { served <- next.Serve(ln) }()
	if code, _, body := get("/readyz"); code != 200 || body != "open" {
		t.Errorf("after the handover: %d %s", code, body)
	}
	next.Close()
	if err := <-served; err != http.ErrServerClosed {
		t.Error(err)
	}
}
