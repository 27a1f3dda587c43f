package service

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

// cluster returns the settings of gateways and executors that share PostgreSQL, NATS and a bucket.
func cluster(t *testing.T) *atolltest.Cluster {
	t.Helper()
	folder, err := os.MkdirTemp("", "atoll-roles-") // gateways of another user can read it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	c, err := atolltest.NewCluster(filepath.Join(folder, "certificates"), atolltest.Postgres(t).URL, natsServer(t), atolltest.StartS3(t).URL, "")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestRoles uses an executor without a database through gateways without rights, images and shared
// folders.
func TestRoles(t *testing.T) {
	c := cluster(t)
	gateways := []*atolltest.Server{c.StartGateway(t), c.StartGateway(t)}
	c.StartExecutor(t, "")
	one := gateways[0]
	run := func(s *atolltest.Server, fields map[string]any) *atolltest.Result {
		t.Helper()
		r := &atolltest.Result{}
		s.Must(t, atolltest.Key, http.MethodPost, "/v1/sandbox/execute", fields).Into(t, http.StatusOK, r)
		return r
	}
	if r := run(one, map[string]any{"language": "python", "code": "print(6*7)"}); r.Stdout != "42\n" {
		t.Errorf("an execution: %v", r)
	}
	for i, want := range []string{"1\n", "2\n"} { // the home is saved in the bucket
		if r := run(gateways[i], map[string]any{"language": "bash", "code": "echo x >> n; wc -l < n", "thread_id": "shared"}); r.Stdout != want {
			t.Errorf("use %d of a thread: %v", i+1, r)
		}
	}
	one.Must(t, atolltest.Key, http.MethodPost, "/v1/sandboxes", map[string]any{"name": "dev"}).Into(t, http.StatusCreated, nil)
	d := &described{Server: one, key: atolltest.Key, saved: map[string]string{}}
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for i, s := range sandboxSteps(t) {
		d.Server = gateways[i%2]
		d.take(t, client, s)
	}
}
