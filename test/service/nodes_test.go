package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/atoll-run/atoll/internal/infra/nodecert"
	"github.com/atoll-run/atoll/test/atolltest"
)

// connected returns the settings with which a server accepts the connections of others that share
// env.
func connected(t *testing.T, certificates string, env []string) []string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := nodecert.Issue(certificates, "127.0.0.1", nodecert.All, time.Hour)
	if err := errors.Join(err, l.Close()); err != nil {
		t.Fatal(err)
	}
	return append([]string{
		"ATOLL_NODE_LISTEN=" + l.Addr().String(), "ATOLL_NODE_CERT=" + cert, "ATOLL_NODE_KEY=" + key, "ATOLL_NODE_CA=" + filepath.Join(certificates, nodecert.CAFile),
	}, env...)
}

// TestAnyServerUsesAnySandbox sends each call about a sandbox to another server than the one before,
// and then kills the server that has the sandbox.
func TestAnyServerUsesAnySandbox(t *testing.T) {
	env, certificates := sharing(t), t.TempDir()
	home := atolltest.Start(t, atolltest.Options{Env: append(connected(t, certificates, env), "ATOLL_ON_EXIT=detach")})
	other := atolltest.Start(t, atolltest.Options{Env: connected(t, certificates, env)})
	apart := atolltest.Start(t, atolltest.Options{Env: env}) // no connections
	servers := []*atolltest.Server{home, other}
	home.Must(t, atolltest.Key, http.MethodPost, "/v1/sandboxes", map[string]any{"name": "dev"}).Into(t, http.StatusCreated, nil)
	atolltest.Until(t, time.Minute, "the servers know each other", func() bool {
		a, err := other.Call(t.Context(), atolltest.Key, http.MethodGet, "/v1/sandboxes/dev/files/list", nil, nil)
		return err == nil && a.Status == http.StatusOK
	})

	t.Run("every operation", func(t *testing.T) {
		d := &described{Server: home, key: atolltest.Key, saved: map[string]string{}}
		client := &http.Client{Transport: &http.Transport{}}
		defer client.CloseIdleConnections()
		for i, s := range sandboxSteps(t) {
			d.Server = servers[i%2]
			d.take(t, client, s)
		}
	})
	t.Run("output", func(t *testing.T) { followElsewhere(t, home, other) })
	t.Run("terminal", func(t *testing.T) {
		for _, s := range servers {
			exitOfTerminal(t, s)
		}
	})
	t.Run("preview", func(t *testing.T) {
		other.Must(t, atolltest.Key, http.MethodPost, "/v1/sandboxes/dev/processes", map[string]any{"command": "mkdir -p site && echo there > site/index.html && exec python3 -m http.server 8000 --bind 127.0.0.1 --directory site"}).Into(t, http.StatusCreated, nil)
		var opened struct{ URL string }
		other.Must(t, atolltest.Key, http.MethodPut, "/v1/sandboxes/dev/previews/8000", nil).Into(t, http.StatusOK, &opened)
		at, err := url.Parse(opened.URL)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range servers {
			var got string
			atolltest.Until(t, time.Minute, "the preview is served", func() bool {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Host = at.Host
				res, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(res.Body)
				if err := errors.Join(err, res.Body.Close()); err != nil {
					t.Fatal(err)
				}
				got = string(body)
				return res.StatusCode == http.StatusOK
			})
			if got != "there\n" {
				t.Errorf("got %q", got)
			}
		}
	})
	t.Run("another tenant", func(t *testing.T) {
		key := home.Tenant(t, "stranger", "enterprise") // the first server keeps the admin key
		if a := other.Must(t, key, http.MethodGet, "/v1/sandboxes/dev/files/list", nil); a.Status != http.StatusNotFound {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	})
	if a := apart.Must(t, atolltest.Key, http.MethodGet, "/v1/sandboxes/dev/files/list", nil); a.Status != http.StatusServiceUnavailable || !strings.Contains(string(a.Body), "node_listen") {
		t.Errorf("a server without connections: %d %s", a.Status, a.Body)
	}

	// The machine is lost for a while, and its sandboxes come back with it.
	data := home.Keep(t)
	if err := home.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = home.Wait(t.Context()) // it was killed
	began := time.Now()
	for {
		a := other.Must(t, atolltest.Key, http.MethodGet, "/v1/sandboxes/dev/files/list", nil)
		if a.Status != http.StatusServiceUnavailable {
			t.Fatalf("while its machine is away: %d %s", a.Status, a.Body)
		}
		if strings.Contains(string(a.Body), "retry when it is back") {
			break
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("its machine is still announced: %s", a.Body)
		}
	}
	atolltest.Start(t, atolltest.Options{Data: data, Env: connected(t, certificates, env)})
	atolltest.Until(t, time.Minute, "the sandbox is there again", func() bool {
		a := other.Must(t, atolltest.Key, http.MethodGet, "/v1/sandboxes/dev/files?path=site/index.html", nil)
		return a.Status == http.StatusOK && string(a.Body) == "there\n"
	})
	other.Must(t, atolltest.Key, http.MethodDelete, "/v1/sandboxes/dev", nil).Into(t, http.StatusNoContent, nil)
}

// exitOfTerminal checks that a terminal tells its client how its program has ended.
func exitOfTerminal(t *testing.T, s *atolltest.Server) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(s.URL, "http")+"/v1/sandboxes/dev/terminal?command="+url.QueryEscape("read line; exit 7"), &websocket.DialOptions{
		HTTPHeader: http.Header{"Authorization": {"Bearer " + atolltest.Key}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.CloseNow() }()
	if err := conn.Write(ctx, websocket.MessageBinary, []byte("text\n")); err != nil {
		t.Fatal(err)
	}
	for {
		kind, data, err := conn.Read(ctx)
		if err != nil {
			t.Fatalf("before the exit: %v", err)
		}
		var m struct {
			Type     string
			ExitCode *int `json:"exit_code"`
		}
		if kind == websocket.MessageBinary {
			continue
		}
		if err := json.Unmarshal(data, &m); err != nil {
			t.Fatal(err)
		}
		if m.Type == "exit" {
			if m.ExitCode == nil || *m.ExitCode != 7 {
				t.Errorf("got %s", data)
			}
			return
		}
	}
}

// followElsewhere follows the output of a program through a server that does not have its sandbox, and
// compares it with what the other one shows.
func followElsewhere(t *testing.T, home, other *atolltest.Server) {
	var made struct {
		ID string `json:"process_id"`
	}
	home.Must(t, atolltest.Key, http.MethodPost, "/v1/sandboxes/dev/processes", map[string]any{"command": "for i in $(seq 20000); do echo line $i; done"}).Into(t, http.StatusCreated, &made)
	read := func(s *atolltest.Server) (text string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		a, err := s.Call(ctx, atolltest.Key, http.MethodGet, fmt.Sprintf("/v1/sandboxes/dev/processes/%s/output", made.ID), nil, nil)
		if err != nil || a.Status != http.StatusOK {
			t.Fatalf("%v, %+v", err, a)
		}
		var all strings.Builder
		for line := range strings.Lines(string(a.Body)) {
			var e struct{ Type, Data string }
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			if e.Type == "output" {
				all.WriteString(e.Data)
			}
		}
		return all.String()
	}
	there, here := read(other), read(home)
	if there != here || !strings.HasSuffix(there, "line 20000\n") {
		t.Errorf("%d bytes there, %d here", len(there), len(here))
	}
}
