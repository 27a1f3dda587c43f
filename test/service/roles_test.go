package service

import (
	"context"
	nats "github.com/nats-io/nats-server/v2/server"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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
	url := natsServer(t, &nats.User{Username: "gateway", Password: "secret"}, &nats.User{Username: "executor", Password: "secret", Permissions: executorPermissions()})
	c, err := atolltest.NewCluster(filepath.Join(folder, "certificates"), atolltest.Postgres(t).URL, url, atolltest.StartS3(t).URL, "")
	if err != nil {
		t.Fatal(err)
	}
	as := func(user string) string {
		return "ATOLL_NATS=" + strings.Replace(url, "nats://", "nats://"+user+":secret@", 1)
	}
	c.Gateway, c.Executor = append(c.Gateway, as("gateway")), append(c.Executor, as("executor"))
	return c
}

// executorPermissions returns the permissions of docs/operate/roles.md, for any executor.
func executorPermissions() *nats.Permissions {
	return &nats.Permissions{
		Publish: &nats.SubjectPermission{Allow: []string{
			"atoll.installation", "atoll.*.control.*", "atoll.*.control.*.>", "atoll.*.nodeevents.*", "atoll.*.result.>", "atoll.*.log.>", "atoll.*.starts.>", "atoll.*.web", "atoll.*.web.end.>", "$JS.API.>", "$KV.>",
		}},
		Subscribe: &nats.SubjectPermission{Allow: []string{
			"_INBOX.*.>", "atoll.*.command.>", "atoll.*.start executors", "atoll.*.exec.*", "atoll.*.run.>", "atoll.*.turn.>", "atoll.*.thread.deleted", "atoll.*.tenant.deleted",
		}},
		Response: &nats.ResponsePermission{MaxMsgs: 1000, Expires: 15 * time.Minute},
	}
}

// TestRoles uses an executor without a database through gateways without rights, images and shared
// folders.
func TestRoles(t *testing.T) {
	c := cluster(t)
	gateways := []*atolltest.Server{c.StartGateway(t), c.StartGateway(t)}
	executor := c.StartExecutor(t, "", "ATOLL_ON_EXIT=detach")
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

	for i := range 6 { // the records know at once that a sandbox is gone
		s := gateways[i%2]
		s.Must(t, atolltest.Key, http.MethodPost, "/v1/sandboxes", map[string]any{"name": "short"}).Into(t, http.StatusCreated, nil)
		s.Must(t, atolltest.Key, http.MethodDelete, "/v1/sandboxes/short", nil).Into(t, http.StatusNoContent, nil)
		gateways[1-i%2].Must(t, atolltest.Key, http.MethodGet, "/v1/sandboxes/short", nil).Into(t, http.StatusNotFound, nil)
	}

	// begin starts an execution at a gateway, and returns its id once it runs.
	begin := func(s *atolltest.Server, code string) string {
		t.Helper()
		go func() { // the gateway may be killed before it answers
			_, _ = s.Call(context.WithoutCancel(t.Context()), atolltest.Key, http.MethodPost, "/v1/sandbox/execute", map[string]any{"language": "bash", "code": code, "timeout": 60}, nil)
		}()
		var list struct {
			Data []struct {
				TraceID string `json:"trace_id"`
				Status  string `json:"status"`
			} `json:"data"`
		}
		atolltest.Until(t, time.Minute, "the execution runs", func() bool {
			gateways[1].Must(t, atolltest.Key, http.MethodGet, "/v1/executions?limit=1&status=running", nil).Into(t, http.StatusOK, &list)
			return len(list.Data) == 1
		})
		return list.Data[0].TraceID
	}
	ended := func(id, stdout string) {
		t.Helper()
		var is struct{ Status, Stdout string }
		atolltest.Until(t, time.Minute, "the execution ends", func() bool {
			gateways[1].Must(t, atolltest.Key, http.MethodGet, "/v1/executions/"+id, nil).Into(t, http.StatusOK, &is)
			return is.Status != "running" && is.Status != "pending"
		})
		if is.Status != "success" || is.Stdout != stdout {
			t.Errorf("the execution ended with %+v", is)
		}
	}
	id := begin(gateways[0], "sleep 3; echo of a killed gateway")
	if err := gateways[0].Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = gateways[0].Wait(t.Context()) // it was killed
	ended(id, "of a killed gateway\n")

	for _, line := range strings.Split(executor.Log(), "\n") {
		if strings.Contains(strings.ToLower(line), "permission") {
			t.Errorf("the executor lacks a permission in NATS: %s", line)
		}
	}

	two := gateways[1]
	two.Must(t, atolltest.Key, http.MethodPost, "/v1/sandboxes/dev/processes", map[string]any{"command": "sleep 3; echo there > later"}).Into(t, http.StatusCreated, nil)
	id = begin(two, "sleep 4; echo of a killed executor")
	data := executor.Keep(t)
	if err := executor.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = executor.Wait(t.Context()) // it was killed
	c.StartExecutor(t, data, "ATOLL_ON_EXIT=destroy")
	ended(id, "of a killed executor\n")
	atolltest.Until(t, time.Minute, "the process of the sandbox goes on", func() bool {
		a := two.Must(t, atolltest.Key, http.MethodGet, "/v1/sandboxes/dev/files?path=later", nil)
		return a.Status == http.StatusOK && string(a.Body) == "there\n"
	})
}
