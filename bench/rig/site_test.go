package rig

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain is the site of TestServeSite, too, when it is told an address.
func TestMain(m *testing.M) {
	if address := os.Getenv("ATOLL_BENCH_SITE"); address != "" {
		s := http.Server{Addr: address, ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "<p>a page</p>")
		})}
		fmt.Fprintln(os.Stderr, s.ListenAndServe())
		os.Exit(3)
	}
	os.Exit(m.Run())
}

func site(port int) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("ATOLL_BENCH_SITE=127.0.0.1:%d", port))
	return cmd
}

func TestServeSite(t *testing.T) {
	port, err := FreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cmd := site(port)
	s, err := ServeSite(t.Context(), cmd, port, 2)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := s.Get(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if _, err := ServeSite(t.Context(), site(port), port+1, 1); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second one at the same port: %v", err)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Signal(syscall.Signal(0)); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("after the end: %v", err)
	}
}

func TestServeSiteNever(t *testing.T) {
	port, err := FreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cmd := exec.Command("sh", "-c", "exec sleep 1000")
	cancel(enough)
	if _, err := ServeSite(ctx, cmd, port, 1); !errors.Is(err, enough) {
		t.Errorf("one that never serves: %v", err)
	}
	if err := cmd.Process.Signal(syscall.Signal(0)); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("after the end: %v", err)
	}
}
