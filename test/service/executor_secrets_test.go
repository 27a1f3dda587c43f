package service

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/infra/seal"
	"github.com/atoll-run/atoll/internal/node/home"
	"github.com/atoll-run/atoll/test/atolltest"
)

// TestExecutorHoldsOneTenant has two tenants that work on different executors, and searches the memory
// and files of each executor for secrets, keys and data of the other tenant and of the installation.
func TestExecutorHoldsOneTenant(t *testing.T) {
	c := cluster(t)
	gateway := c.StartGateway(t)
	box, err := seal.New(c.Key)
	if err != nil {
		t.Fatal(err)
	}
	installation := map[string][]byte{"secret_key": c.Key, "key of threads": box.Threads(), "key of snapshots": box.Snapshots(), "admin key": []byte(gateway.AdminKey(t))}

	x := c.StartExecutor(t, "", "ATOLL_ON_EXIT=detach")
	first := newCustomer(t, gateway, "first")
	first.work(t)
	first.keys(t, box)
	data := x.Keep(t)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	y := c.StartExecutor(t, "")
	second := newCustomer(t, gateway, "second")
	second.work(t)
	second.keys(t, box)

	search := func(x *atolltest.Server, of, other *customer) {
		t.Helper()
		needles := atolltest.Needles{}
		for what, needle := range of.mustHave {
			needles["own "+what] = needle
		}
		for from, all := range map[string]map[string][]byte{"the other tenant": other.needles, "the installation": installation} {
			for what, needle := range all {
				what += " of " + from
				needles[what], needles[what+", in hexadecimal"], needles[what+", in base64"] = needle, []byte(hex.EncodeToString(needle)), []byte(base64.StdEncoding.EncodeToString(needle))
			}
		}
		memory, files := atolltest.InMemory(t, x.Pid, needles), atolltest.InFiles(t, needles, x.Data, config.DefaultStateDir(x.Data))
		for what := range needles {
			own := strings.HasPrefix(what, "own ")
			switch {
			case own && !memory[what] && files[what] == "":
				t.Errorf("the search does not find its tenant's %s", what)
			case !own && memory[what]:
				t.Errorf("the executor of %s has the %s in memory", of.name, what)
			case !own && files[what] != "":
				t.Errorf("the executor of %s has the %s in %s", of.name, what, files[what])
			}
		}
	}
	search(y, second, first)
	x = c.StartExecutor(t, data, "ATOLL_ON_EXIT=detach") // with the sandbox of the first tenant
	first.use(t)
	search(x, first, second)
	first.gateway.Must(t, first.key, http.MethodDelete, "/v1/sandboxes/own", nil).Into(t, http.StatusNoContent, nil)
}

// customer is a tenant with secrets.
type customer struct {
	gateway   *atolltest.Server
	name, key string
	needles   map[string][]byte // that only executors of the tenant may have
	mustHave  map[string][]byte // needles that its executor must hold
}

func newCustomer(t *testing.T, gateway *atolltest.Server, name string) *customer {
	t.Helper()
	c := &customer{gateway: gateway, name: name, key: gateway.Tenant(t, name, "enterprise")}
	c.needles = map[string][]byte{"API key": []byte(c.key)}
	for _, what := range []string{"secret", "environment variable", "sandbox variable", "file in a thread", "file in a sandbox"} {
		c.needles[what] = []byte("this is the " + what + " of " + name + " alone: 7f1e")
	}
	gateway.Must(t, gateway.AdminKey(t), http.MethodPatch, "/v1/admin/tenants/"+name+"/environments/main", map[string]any{
		"secrets": map[string]string{"TOKEN": string(c.needles["secret"])}, "env_vars": map[string]string{"PLACE": string(c.needles["environment variable"])},
	}).Into(t, http.StatusOK, nil)
	return c
}

// work runs a program with a home directory, and keeps a sandbox, a snapshot of it and a copy.
func (c *customer) work(t *testing.T) {
	t.Helper()
	atolltest.Until(t, time.Minute, "an executor takes executions", func() bool {
		a := c.gateway.Must(t, c.key, http.MethodPost, "/v1/sandbox/execute", map[string]any{"language": "bash", "code": "cat > kept; test -n \"$TOKEN\" -a -n \"$PLACE\"", "stdin": string(c.needles["file in a thread"]), "thread_id": "own"})
		return a.Status == http.StatusOK
	})
	c.gateway.Must(t, c.key, http.MethodPost, "/v1/sandboxes", map[string]any{"name": "own", "env_vars": map[string]string{"MINE": string(c.needles["sandbox variable"])}}).Into(t, http.StatusCreated, nil)
	c.gateway.Must(t, c.key, http.MethodPut, "/v1/sandboxes/own/files?path=kept", string(c.needles["file in a sandbox"])).Into(t, http.StatusOK, nil)
	c.gateway.Must(t, c.key, http.MethodPost, "/v1/sandboxes/own/snapshots", nil).Into(t, http.StatusCreated, nil)
	c.use(t)
}

// use uses the sandbox.
func (c *customer) use(t *testing.T) {
	t.Helper()
	atolltest.Until(t, time.Minute, "the sandbox can be used", func() bool {
		a := c.gateway.Must(t, c.key, http.MethodGet, "/v1/sandboxes/own/files?path=kept", nil)
		return a.Status == http.StatusOK && bytes.Contains(a.Body, c.needles["file in a sandbox"])
	})
}

// keys adds the keys of the tenant's stored data.
func (c *customer) keys(t *testing.T, box *seal.Box) {
	t.Helper()
	var of struct {
		ID string `json:"id"`
	}
	c.gateway.Must(t, c.gateway.AdminKey(t), http.MethodGet, "/v1/admin/tenants/"+c.name, nil).Into(t, http.StatusOK, &of)
	for what, key := range map[string][]byte{"key of threads": box.Threads(), "key of snapshots": box.Snapshots()} {
		derived, err := home.TenantKey(key, of.ID)
		if err != nil {
			t.Fatal(err)
		}
		c.needles[what] = derived[:32]
	}
	c.mustHave = map[string][]byte{}
	for _, what := range []string{"secret", "environment variable", "file in a sandbox"} {
		c.mustHave[what] = c.needles[what]
	}
}
