package service

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// redteam runs atoll redteam on a server and returns its report.
func redteam(t *testing.T, s *atolltest.Server, args ...string) (report struct {
	Passed, Failed, Skipped int
	Took                    int64 `json:"duration_ms"`
	Cases                   []struct{ ID, Verdict, Evidence string }
}) {
	t.Helper()
	binary, err := atolltest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	args = append([]string{"redteam", "--base-url", s.URL, "--key-file", filepath.Join(s.Data, "admin-key"), "--format", "json"}, args...)
	out, err := exec.CommandContext(t.Context(), binary, args...).Output()
	if len(out) == 0 {
		t.Fatalf("redteam: %v", err)
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if (err == nil) != (report.Failed == 0) {
		t.Errorf("%d cases failed, and the exit says %v", report.Failed, err)
	}
	return report
}

// TestRedteam runs all cases against a server with every feature that they attack, and checks that the
// server still works and leaks no sandboxes.
func TestRedteam(t *testing.T) {
	port, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listen := port.Addr().String() // also the address of the attacker's package index
	if err := port.Close(); err != nil {
		t.Fatal(err)
	}
	s := atolltest.Start(t, atolltest.Options{Env: append([]string{
		"ATOLL_POOL_SIZE=2", "ATOLL_CLOUDFLARE=on", "ATOLL_E2B=on", "ATOLL_MODEL_ALLOW=127.0.0.1", "ATOLL_MCP_ALLOW=127.0.0.1", "ATOLL_PIP_INDEX=http://" + listen + "/simple",
	}, searchSettings...)})
	before := s.Metrics(t).Sum("atoll_sandboxes")
	began := time.Now()
	report := redteam(t, s, "--listen", listen, "--data-dir", s.Data)
	for _, c := range report.Cases {
		switch c.Verdict {
		case "FAIL":
			t.Errorf("%s: %s", c.ID, c.Evidence)
		case "SKIP":
			t.Errorf("%s is skipped: %s", c.ID, c.Evidence)
		}
	}
	t.Logf("%d cases in %v", len(report.Cases), time.Since(began).Round(time.Second))
	redteamGone(t, s, before)
	s.CheckHealthy(t)
}

// TestRedteamInterrupted ends a run in its middle, as Ctrl-C does.
func TestRedteamInterrupted(t *testing.T) {
	s := shared(t)
	before := s.Metrics(t).Sum("atoll_sandboxes")
	binary, err := atolltest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "redteam", "--base-url", s.URL, "--key-file", filepath.Join(s.Data, "admin-key"), "--run", "persistence,exhaustion")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "PASS") {
		t.Errorf("the first line is %q", lines.Text())
	}
	cancel()
	rest, _ := io.ReadAll(out)
	if err := cmd.Wait(); err == nil {
		t.Errorf("a run that was cut short ended with success: %s", rest)
	}
	redteamGone(t, s, before)
}

// redteamGone checks that a run left its two tenants disabled, and nothing else. before
// is how many named sandboxes there were.
func redteamGone(t *testing.T, s *atolltest.Server, before float64) {
	t.Helper()
	admin := s.AdminKey(t)
	for _, tenant := range []string{"redteam", "redteam-victim"} {
		at := "/v1/admin/tenants/" + tenant
		var it struct {
			Plan     string
			Disabled *string `json:"disabled_at"`
		}
		s.Must(t, admin, http.MethodGet, at, nil).Into(t, http.StatusOK, &it)
		if it.Disabled == nil || it.Plan != "free" {
			t.Errorf("tenant %s: %+v", tenant, it)
		}
		var envs struct{ Data []any }
		s.Must(t, admin, http.MethodGet, at+"/environments", nil).Into(t, http.StatusOK, &envs)
		if len(envs.Data) > 0 {
			t.Errorf("tenant %s has environments: %v", tenant, envs.Data)
		}
		var keys struct {
			Data []struct {
				Name    string
				Revoked *string `json:"revoked_at"`
			}
		}
		s.Must(t, admin, http.MethodGet, at+"/keys", nil).Into(t, http.StatusOK, &keys)
		for _, k := range keys.Data {
			if k.Revoked == nil {
				t.Errorf("tenant %s has the key %s", tenant, k.Name)
			}
		}
	}
	s.Must(t, admin, http.MethodGet, "/v1/admin/plans/redteam", nil).Into(t, http.StatusNotFound, nil)
	atolltest.Until(t, time.Minute, "the run's sandboxes are gone", func() bool { return s.Metrics(t).Sum("atoll_sandboxes") <= before })
}
