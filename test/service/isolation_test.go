package service

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// TestIsolationKey runs programs of a key that share kernels, several at a time, and
// looks at what their records say.
func TestIsolationKey(t *testing.T) {
	s := shared(t)
	key, admin := s.Tenant(t, "evaluators", "enterprise"), s.AdminKey(t)
	const tenant = "/v1/admin/tenants/evaluators"
	var environments struct {
		Data []struct{ Name, Isolation string }
	}
	s.Must(t, admin, http.MethodGet, tenant+"/environments", nil).Into(t, http.StatusOK, &environments)
	env := tenant + "/environments/" + environments.Data[0].Name
	if got := environments.Data[0].Isolation; got != "run" {
		t.Errorf("an environment begins with isolation %q", got)
	}
	isolation := map[string]any{"isolation": "key"}
	if a := s.Must(t, admin, http.MethodPatch, env, isolation); a.Status != http.StatusForbidden {
		t.Errorf("it returns %d where the tenant does not allow it", a.Status)
	}
	s.Must(t, admin, http.MethodPatch, tenant, map[string]any{"key_isolation_enabled": true}).Into(t, http.StatusOK, nil)
	s.Must(t, admin, http.MethodPatch, env, isolation).Into(t, http.StatusOK, nil)

	get := func(key, method, path string, body, into any) http.Header {
		a, err := s.Call(t.Context(), key, method, path, body, nil)
		if err == nil && a.Status != http.StatusOK {
			err = fmt.Errorf("HTTP %d: %s", a.Status, a.Body)
		}
		if err == nil {
			err = json.Unmarshal(a.Body, into)
		}
		if err != nil {
			t.Error(err)
			return nil
		}
		return a.Header
	}
	// isolated runs a program, and returns which isolation its record has.
	isolated := func(n int) string {
		var out struct{ Stdout string }
		code := fmt.Sprintf("import os, time\nassert os.listdir('/tmp') == [], os.listdir('/tmp')\nopen('/tmp/%d', 'w').close()\ntime.sleep(0.05)\nprint(%d, sorted(os.listdir('/tmp')))", n, n)
		header := get(key, http.MethodPost, "/v1/sandbox/execute", map[string]any{"code": code, "language": "python"}, &out)
		if want := fmt.Sprintf("%d ['%d']\n", n, n); out.Stdout != want {
			t.Errorf("program %d printed %q", n, out.Stdout)
		}
		var e struct{ Isolation string }
		get(key, http.MethodGet, "/v1/executions/"+header.Get("X-Trace-Id"), nil, &e)
		return e.Isolation
	}
	var clients sync.WaitGroup
	for client := range 3 {
		clients.Go(func() {
			for i := range 5 {
				if got := isolated(10*client + i); got != "key" {
					t.Errorf("the record says isolation %q", got)
				}
			}
		})
	}
	clients.Wait()

	// It ends with the tenant's leave.
	s.Must(t, admin, http.MethodPatch, tenant, map[string]any{"key_isolation_enabled": false}).Into(t, http.StatusOK, nil)
	if got := isolated(99); got != "run" {
		t.Errorf("without the tenant's leave the record says isolation %q", got)
	}
}

// TestIsolationKeyKilled kills the server while a program of a key runs and kernels wait for the next
// ones. The next server takes the program on, and the end of the test counts what is left.
func TestIsolationKeyKilled(t *testing.T) {
	line := newSuccession(t)
	key, admin := line.now().Tenant(t, "evaluators", "enterprise"), line.now().AdminKey(t)
	const tenant = "/v1/admin/tenants/evaluators"
	line.now().Must(t, admin, http.MethodPatch, tenant, map[string]any{"key_isolation_enabled": true}).Into(t, http.StatusOK, nil)
	line.now().Must(t, admin, http.MethodPatch, tenant+"/environments/main", map[string]any{"isolation": "key"}).Into(t, http.StatusOK, nil)
	type record struct {
		Status, Isolation string
		Stdout            *string
	}
	run := func(code string) {
		t.Helper()
		a := line.now().Must(t, key, http.MethodPost, "/v1/sandbox/execute", map[string]any{"code": code})
		var r record
		line.now().Must(t, key, http.MethodGet, "/v1/executions/"+a.Header.Get("X-Trace-Id"), nil).Into(t, http.StatusOK, &r)
		if a.Status != http.StatusOK || r.Isolation != "key" || r.Status != "success" {
			t.Errorf("%d %s: %+v", a.Status, a.Body, r)
		}
	}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { run("import time; time.sleep(0.5)") })
	}
	both.Wait()
	var began struct {
		ID string `json:"trace_id"`
	}
	a, err := line.now().Call(t.Context(), key, http.MethodPost, "/v1/sandbox/execute", map[string]any{"code": "import time\nprint('begun', flush=True)\ntime.sleep(3)\nprint('ended')"}, http.Header{"Prefer": {"respond-async"}})
	if err != nil {
		t.Fatal(err)
	}
	a.Into(t, http.StatusAccepted, &began)
	path := "/v1/executions/" + began.ID
	at := func(s *atolltest.Server) (r record) {
		s.Must(t, key, http.MethodGet, path, nil).Into(t, http.StatusOK, &r)
		return r
	}
	atolltest.Until(t, time.Minute, "the program runs", func() bool { return at(line.now()).Status == "running" })
	line.next(syscall.SIGKILL)
	if err := line.now().WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	atolltest.Until(t, time.Minute, "the program ends", func() bool { return at(line.now()).Status != "running" })
	if r := at(line.now()); r.Status != "success" || r.Stdout == nil || *r.Stdout != "begun\nended\n" || r.Isolation != "key" {
		t.Errorf("%+v", r)
	}
	run("print(1)")
}
