package service

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/infra/blob"
	"github.com/atoll-run/atoll/test/atolltest"
)

// owned creates data of every kind that contains text for the tenant of a key, and leaves programs
// running.
func owned(t *testing.T, s *atolltest.Server, admin, key, tenant, text string) {
	t.Helper()
	type o = map[string]any
	must := func(key, method, path string, body any, status int) (made struct {
		ID  string
		Key string
	}) {
		t.Helper()
		s.Must(t, key, method, path, body).Into(t, status, &made)
		return made
	}
	at := "/v1/admin/tenants/" + tenant
	must(admin, http.MethodPost, at+"/connections", o{"slug": "team", "kind": "volume"}, http.StatusCreated)
	must(admin, http.MethodPost, at+"/connections/team/grants", o{"environment": "main"}, http.StatusCreated)
	must(admin, http.MethodPut, at+"/templates/support", o{"sandbox": o{"environment": "internal-only"}}, http.StatusOK)

	// The server stores output beyond an answer's limit in the blob store.
	long := "print('" + text + "' * 20000); open('/data/team/f', 'w').write('" + text + "'); open('/home/user/f', 'w').write('" + text + "'); open('out', 'w').write('" + text + "')"
	must(key, http.MethodPost, "/v1/sandbox/execute", o{"code": long, "thread_id": "kept", "outputs": []string{"out"}}, http.StatusOK)
	upload(t, s, key, form(t, "file", text))
	must(key, http.MethodPost, "/v1/vaults", o{"display_name": text}, http.StatusCreated)
	must(key, http.MethodPost, "/v1/sandboxes", o{"name": "dev", "env_vars": o{"TEXT": text}}, http.StatusCreated)
	must(key, http.MethodPost, "/v1/sandboxes/dev/processes", o{"command": "echo " + text + " > f; exec sleep 1000"}, http.StatusCreated)
	must(key, http.MethodPost, "/v1/sandboxes/dev/snapshots", nil, http.StatusCreated)
	must(key, http.MethodPost, "/v1/sandboxes", o{"name": "asleep"}, http.StatusCreated)
	must(key, http.MethodPost, "/v1/sandboxes/asleep/sleep", nil, http.StatusOK)
	must(key, http.MethodPost, "/v1/sessions/default/tools/shell", o{"command": "echo " + text, "sandbox": "tool"}, http.StatusOK)

	must(key, http.MethodPost, "/v1/responses", o{"model": "scripted", "input": "run print('" + text + "')", "tools": []any{o{"type": "sandbox"}}}, http.StatusOK)
	must(key, http.MethodPost, "/v1/responses", o{"model": "scripted", "input": "slow " + text, "background": true}, http.StatusOK)
	agent := must(key, http.MethodPost, "/v1/agents", o{"name": text, "model": o{"name": "scripted"}}, http.StatusCreated)
	session := must(key, http.MethodPost, "/v1/sessions", o{"agent_id": agent.ID}, http.StatusCreated)
	must(key, http.MethodPost, "/v1/sessions/"+session.ID+"/events", o{"type": "message", "content": "say " + text}, http.StatusOK)

	running, err := s.Call(t.Context(), key, http.MethodPost, "/v1/sandbox/execute", o{"code": "import time; print('" + text + "', flush=True); time.sleep(1000)", "timeout": 1000}, http.Header{"Prefer": {"respond-async"}})
	if err != nil || running.Status != http.StatusAccepted {
		t.Fatalf("an execution that runs: %v, %+v", err, running)
	}
}

// upload uploads a file.
func upload(t *testing.T, s *atolltest.Server, key string, f multipartForm) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v1/files", bytes.NewReader(f.body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", f.media)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("an upload: %s", res.Status)
	}
}

// leaving creates the tenant of that name and returns a key with all scopes.
func leaving(t *testing.T, s *atolltest.Server, admin string) (key string) {
	t.Helper()
	s.Tenant(t, "leaving", "enterprise")
	var made struct{ Key string }
	s.Must(t, admin, http.MethodPost, "/v1/admin/tenants/leaving/keys", map[string]any{
		"name": "all", "environment": "main", "scopes": []string{"execute", "read", "tools", "sandboxes", "environments"},
	}).Into(t, http.StatusCreated, &made)
	return made.Key
}

// TestTenantIsDeletedOnAllServers checks that deleting a tenant deletes its sandboxes on two servers
// and its data in a bucket.
func TestTenantIsDeletedOnAllServers(t *testing.T) {
	env := append(sharing(t), "ATOLL_MODEL_ALLOW=127.0.0.1")
	servers := together(t, 2, env)
	s, second := servers[0], servers[1]
	admin := s.AdminKey(t)
	addModel(t, s, "scripted", obedient(t).URL)
	key := leaving(t, s, admin)
	owned(t, s, admin, key, "leaving", "pemba-0815")
	second.Must(t, key, http.MethodPost, "/v1/sandboxes", map[string]any{"name": "second"}).Into(t, http.StatusCreated, nil)

	t.Setenv("AWS_ACCESS_KEY_ID", atolltest.S3AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", atolltest.S3SecretKey)
	settings := map[string]string{}
	for _, setting := range env {
		name, value, _ := strings.Cut(setting, "=")
		settings[name] = value
	}
	bucket, err := blob.Open(t.Context(), settings["ATOLL_BLOBS"])
	if err != nil {
		t.Fatal(err)
	}
	defer bucket.Close()
	objects := func(id string) (names []string) {
		for _, folder := range []string{"outputs", "files", "threads", "snapshots"} {
			for o, err := range bucket.List(t.Context(), folder+"/"+id) {
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, o.Name)
			}
		}
		return names
	}

	var gone struct{ ID string }
	s.Must(t, admin, http.MethodGet, "/v1/admin/tenants/leaving", nil).Into(t, http.StatusOK, &gone)
	volume := filepath.Join(settings["ATOLL_VOLUMES"], gone.ID)
	if _, err := os.Stat(volume); err != nil || len(objects(gone.ID)) < 4 {
		t.Fatalf("before: %v, objects %q", err, objects(gone.ID))
	}
	s.Must(t, admin, http.MethodDelete, "/v1/admin/tenants/leaving", nil).Into(t, http.StatusAccepted, nil)
	atolltest.Until(t, time.Minute, "the other server refuses the key", func() bool {
		return second.Must(t, key, http.MethodGet, "/v1/executions", nil).Status == http.StatusUnauthorized
	})
	atolltest.Until(t, 2*time.Minute, "the tenant is gone", func() bool {
		return second.Must(t, admin, http.MethodGet, "/v1/admin/tenants/leaving", nil).Status == http.StatusNotFound
	})
	if left := objects(gone.ID); len(left) > 0 {
		t.Errorf("in the bucket is left %q", left)
	}
	if _, err := os.Stat(volume); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its volumes: %v", err)
	}
	for _, s := range servers {
		noFiles(t, s.Data, gone.ID, "pemba-0815")
	}
	checkTrail(t, second, admin, gone.ID)
}

// deletedTenant checks that the server deletes a tenant with running programs, even if the server
// is killed in the middle, and keeps only the audit trail.
func deletedTenant(t *testing.T) {
	line := newSuccession(t, "ATOLL_ON_EXIT=detach", "ATOLL_MODEL_ALLOW=127.0.0.1")
	s := line.now()
	admin := s.AdminKey(t)
	const text = "pemba-0815"
	addModel(t, s, "scripted", obedient(t).URL)
	key := leaving(t, s, admin)
	other := s.Tenant(t, "staying", "enterprise")
	owned(t, s, admin, key, "leaving", text)
	s.Must(t, other, http.MethodPost, "/v1/sandboxes", map[string]any{"name": "dev"}).Into(t, http.StatusCreated, nil)

	var gone struct {
		ID        string
		DeletedAt *time.Time `json:"deleted_at"`
	}
	const at = "/v1/admin/tenants/leaving"
	s.Must(t, admin, http.MethodDelete, at, nil).Into(t, http.StatusAccepted, &gone)
	if gone.DeletedAt == nil {
		t.Errorf("the answer is %+v", gone)
	}
	s.Must(t, key, http.MethodGet, "/v1/executions", nil).Into(t, http.StatusUnauthorized, nil)
	s.Must(t, admin, http.MethodPatch, at, map[string]any{"disabled": false}).Into(t, http.StatusConflict, nil)
	s.Must(t, admin, http.MethodPost, at+"/environments", map[string]any{"name": "new"}).Into(t, http.StatusConflict, nil)
	s.Must(t, admin, http.MethodPost, "/v1/admin/tenants", map[string]any{"name": "leaving"}).Into(t, http.StatusConflict, nil)
	s.Must(t, admin, http.MethodDelete, "/v1/admin/tenants/operator", nil).Into(t, http.StatusConflict, nil)

	line.next(syscall.SIGKILL)
	s = line.now()
	if err := s.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Must(t, key, http.MethodGet, "/v1/executions", nil).Into(t, http.StatusUnauthorized, nil)
	atolltest.Until(t, 2*time.Minute, "the tenant is gone", func() bool {
		return s.Must(t, admin, http.MethodGet, at, nil).Status == http.StatusNotFound
	})
	s.Must(t, admin, http.MethodGet, "/v1/admin/tenants/"+gone.ID, nil).Into(t, http.StatusNotFound, nil)
	s.Must(t, admin, http.MethodDelete, "/v1/admin/tenants/"+gone.ID, nil).Into(t, http.StatusNotFound, nil)

	checkTrail(t, s, admin, gone.ID)
	s.Must(t, other, http.MethodGet, "/v1/sandboxes/dev", nil).Into(t, http.StatusOK, nil)
	s.Must(t, other, http.MethodPost, "/v1/sandbox/execute", map[string]any{"code": "print(1)"}).Into(t, http.StatusOK, nil)
	noFiles(t, line.data, gone.ID, text)
	s.Tenant(t, "leaving", "free") // the name is free
}

// checkTrail checks that the audit trail and the policy events name the key that deleted a tenant.
func checkTrail(t *testing.T, s *atolltest.Server, admin, id string) {
	t.Helper()
	var page struct{ Data []map[string]any }
	s.Must(t, admin, http.MethodGet, "/v1/admin/tenants/"+id+"/audit", nil).Into(t, http.StatusOK, &page)
	if len(page.Data) == 0 {
		t.Error("the audit rows are gone")
	}
	var report struct {
		OK bool
	}
	s.Must(t, admin, http.MethodPost, "/v1/admin/tenants/"+id+"/audit/verify", nil).Into(t, http.StatusOK, &report)
	if !report.OK {
		t.Error("the trail is not right")
	}
	for _, of := range []struct{ tenant, field string }{{id, "tenant"}, {"operator", "tenant/leaving"}} {
		s.Must(t, admin, http.MethodGet, "/v1/admin/tenants/"+of.tenant+"/policy-events?limit=100", nil).Into(t, http.StatusOK, &page)
		found := false
		for _, e := range page.Data {
			actor, _ := e["actor"].(string)
			found = found || e["field"] == of.field && e["new"] == "deleted" && strings.HasPrefix(actor, "key_")
		}
		if !found {
			text, _ := json.Marshal(page.Data)
			t.Errorf("no event %s of %s says who deleted it: %s", of.field, of.tenant, text)
		}
	}
}

// noFiles fails for a tenant's files and folders below the data folder, and for files that contain
// text. It waits for a result that a killed server had received and not recorded: the bus delivers it
// again after a minute.
func noFiles(t *testing.T, data, id, text string) {
	t.Helper()
	var left []string
	defer func() {
		for _, path := range left {
			t.Errorf("%s is left", path)
		}
	}()
	atolltest.Until(t, 2*time.Minute, "the tenant's data is gone", func() bool {
		left = leftFiles(t, data, id, text)
		return len(left) == 0
	})
}

// leftFiles lists what noFiles looks for. It skips SQLite's files, which keep deleted rows until SQLite
// overwrites them.
func leftFiles(t *testing.T, data, id, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // deleted during the walk
		}
		if strings.Contains(path, id) {
			found = append(found, path)
		}
		if !d.Type().IsRegular() || strings.HasPrefix(path, filepath.Join(data, "images")) || strings.HasPrefix(d.Name(), "atoll.db") {
			return nil
		}
		if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(text)) {
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
