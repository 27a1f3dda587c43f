package service

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// TestLogTellsNoSecrets has a server that logs all it can meet every kind of
// secret and output, in what succeeds, fails and is refused; nothing of them may
// be in its log.
func TestLogTellsNoSecrets(t *testing.T) {
	const mark = "zimtstern" // in everything that must not be seen
	hooks := newReceiver(t)
	s := atolltest.Start(t, atolltest.Options{Env: append(hooks.settings(), "ATOLL_LOG_LEVEL=debug", "ATOLL_DEV_KEY="+atolltest.Key+mark)})
	admin, dev := s.AdminKey(t), atolltest.Key+mark
	base := "/v1/admin/tenants/dev"
	s.Must(t, admin, http.MethodPost, base+"/environments", map[string]any{
		"name": "secretive", "image": atolltest.Image, "secrets": map[string]string{"TOKEN": mark + "-secret"}, "env_vars": map[string]string{"PLAIN": mark + "-plain"},
	}).Into(t, http.StatusCreated, nil)
	var made struct{ Key string }
	s.Must(t, admin, http.MethodPost, base+"/keys", map[string]any{
		"name": "secretive", "environment": "secretive", "webhook_url": hooks.URL + "/" + mark, "webhook_secret": mark + "-webhook",
	}).Into(t, http.StatusCreated, &made)

	run := func(key string, status int, header http.Header, body map[string]any) string {
		t.Helper()
		a, err := s.Call(t.Context(), key, http.MethodPost, "/v1/sandbox/execute", body, header)
		if err != nil {
			t.Fatal(err)
		}
		a.Into(t, status, nil)
		return a.Header.Get("X-Trace-Id")
	}
	code := "import os, sys; print('" + mark + "', os.environ['TOKEN']); sys.stderr.write('" + mark + "'); "
	for _, end := range []string{"", "sys.exit('" + mark + "')", "os.kill(os.getpid(), 9)", "raise KeyError('" + mark + "')"} {
		run(made.Key, http.StatusOK, nil, map[string]any{
			"code": code + end, "env_vars": map[string]string{"MINE": mark}, "metadata": map[string]string{"who": mark},
		})
	}
	run(made.Key, http.StatusGatewayTimeout, nil, map[string]any{"code": code + "import time; time.sleep(9)", "timeout": 1})
	hooks.fail = 1
	told := run(made.Key, http.StatusAccepted, http.Header{"Prefer": {"respond-async"}}, map[string]any{"code": code})
	if got := hooks.await(told, 1, time.Minute); len(got) == 0 {
		t.Error("no webhook came")
	}
	// Refused: by its form, its key, its language, its address.
	run(made.Key, http.StatusBadRequest, nil, map[string]any{"code": code, "language": mark})
	run(made.Key, http.StatusBadRequest, nil, map[string]any{"code": code, "unknown": mark})
	run(made.Key, http.StatusBadRequest, nil, map[string]any{"code": code, "env_vars": map[string]any{"A": []string{mark}}})
	run(made.Key, http.StatusBadRequest, http.Header{"Prefer": {"respond-async"}}, map[string]any{"code": code, "webhook_url": "https://10.0.0.1/" + mark})
	run("sk-atoll-"+mark, http.StatusUnauthorized, nil, map[string]any{"code": code})
	run(dev, http.StatusOK, nil, map[string]any{"code": "print('" + mark + "')"})

	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	log := s.Log()
	if !strings.Contains(log, told) || !strings.Contains(log, "request not served") || !strings.Contains(log, "webhook not delivered") {
		t.Errorf("the log does not even tell what happened:\n%s", log)
	}
	for line := range strings.Lines(log) {
		if strings.Contains(line, mark) {
			t.Errorf("the log has a secret or output: %s", line)
		}
	}
}
