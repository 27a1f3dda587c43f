package service

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
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
		t.Errorf("it is answered with %d where the tenant does not allow it", a.Status)
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
