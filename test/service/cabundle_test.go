package service

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// trusting asks a server of HTTPS from sandboxes of Atoll servers.
type trusting struct {
	t     *testing.T
	env   []string // of the servers and of commands on their machines
	asks  map[string]string
	hosts string
	ca    string // file with the certificate of the server of HTTPS
}

func startTrusting(t *testing.T, env ...string) *trusting {
	t.Helper()
	address := machine(t)
	port, ca := secureSite(t, address, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "welcome") }))
	url := "https://example.com:" + port + "/"
	return &trusting{
		t: t, ca: ca, hosts: hostsFile(t, address, "example.com"), env: append([]string{"ATOLL_NETWORK_ALLOW=" + address}, env...),
		asks: map[string]string{
			"python": "import urllib.request\ntry: print(urllib.request.urlopen('" + url + "').read().decode())\nexcept Exception as e: print('refused' if 'CERTIFICATE_VERIFY_FAILED' in str(e) else e)",
			"node":   "fetch('" + url + "').then(r => r.text()).then(s => console.log(s), e => console.log(e.cause && /CERT|SIGN/.test(e.cause.code) ? 'refused' : e))",
			"bash":   "curl -fsS " + url + " 2>error || { [ $? = 60 ] && echo refused; }",
		},
	}
}

// server starts one on a data folder; "" for a new one.
func (c *trusting) server(data string) *atolltest.Server {
	c.t.Helper()
	return atolltest.Start(c.t, atolltest.Options{Data: data, Hosts: c.hosts, Env: c.env})
}

// command runs atoll on a server's machine, and returns what it printed.
func (c *trusting) command(s *atolltest.Server, code int, args ...string) string {
	c.t.Helper()
	binary, err := atolltest.Binary()
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.CommandContext(c.t.Context(), binary, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.t.TempDir(), "ATOLL_DATA_DIR=" + s.Data}, c.env...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		c.t.Fatalf("atoll %q: %v, want exit code %d\n%s", args, err, code, out)
	}
	return string(out)
}

// tenant makes one whose sandboxes reach the server of HTTPS, and returns its key.
func (c *trusting) tenant(s *atolltest.Server, name string) string {
	c.t.Helper()
	key := s.Tenant(c.t, name, "enterprise")
	admin, base := s.AdminKey(c.t), "/v1/admin/tenants/"+name
	address := strings.TrimPrefix(c.env[0], "ATOLL_NETWORK_ALLOW=")
	s.Must(c.t, admin, http.MethodPatch, base, map[string]any{"network_enabled": true}).Into(c.t, http.StatusOK, nil)
	s.Must(c.t, admin, http.MethodPatch, base+"/environments/main", map[string]any{"permissions": map[string]any{
		"network": map[string]any{"enabled": true, "allowed_hosts": []string{"example.com"}, "allowed_cidrs": []string{address + "/32"}},
	}}).Into(c.t, http.StatusOK, nil)
	return key
}

// ask runs a program of each language on a server.
func (c *trusting) ask(s *atolltest.Server, key, when, want string) {
	c.t.Helper()
	for language, code := range c.asks {
		var r atolltest.Result
		s.Must(c.t, key, http.MethodPost, "/v1/sandbox/execute", map[string]any{"language": language, "code": code, "timeout": 60}).Into(c.t, http.StatusOK, &r)
		if strings.TrimSpace(r.Stdout) != want {
			c.t.Errorf("%s: a program in %s printed %q, want %q: %v", when, language, r.Stdout, want, r)
		}
	}
}

// applied waits until servers have applied the nth change of a setting.
func applied(t *testing.T, setting string, n int, servers ...*atolltest.Server) {
	t.Helper()
	for _, s := range servers {
		atolltest.Until(t, 20*time.Second, "a server applied the change", func() bool {
			return strings.Count(s.Log(), "msg=\"a setting changed\" setting="+setting) == n
		})
	}
}

// TestCABundleChanges changes the certificates of sandboxes with commands while two servers run,
// and kills one of them.
func TestCABundleChanges(t *testing.T) {
	c := startTrusting(t, sharing(t)...)
	one, two := c.server(""), c.server("")
	key := c.tenant(one, "trusting")
	both := func(when, want string) {
		t.Helper()
		for _, s := range []*atolltest.Server{one, two} {
			c.ask(s, key, when, want)
		}
	}
	both("without certificates", "refused")
	one.Must(t, key, http.MethodPost, "/v1/sandboxes", map[string]any{"name": "old"}).Into(t, http.StatusCreated, nil)
	old := func(want string) {
		t.Helper()
		c.env = append(c.env, "ATOLL_BASE_URL="+one.URL, "ATOLL_API_KEY="+key)
		defer func() { c.env = c.env[:len(c.env)-2] }()
		if got := strings.TrimSpace(c.command(one, 0, "sandbox", "exec", "old", "--", "sh", "-c", c.asks["bash"])); got != want {
			t.Errorf("the named sandbox printed %q, want %q", got, want)
		}
	}

	said := c.command(one, 0, "config", "set", "sandbox_ca_bundle", c.ca)
	if !strings.Contains(said, "named sandboxes keep their certificates") || !strings.Contains(said, "atoll sandbox restart") {
		t.Errorf("the command says %q", said)
	}
	if err := os.Remove(c.ca); err != nil { // the records have what is in it
		t.Fatal(err)
	}
	applied(t, "sandbox_ca_bundle", 1, one, two)
	both("with certificates", "welcome")
	old("refused")
	one.Must(t, key, http.MethodPost, "/v1/sandboxes/old/restart", nil).Into(t, http.StatusOK, nil)
	old("welcome")
	if list := c.command(two, 0, "config", "list"); !strings.Contains(list, "sandbox_ca_bundle: "+c.ca+" (1 certificate, SHA-256 ") {
		t.Errorf("the list says %q", list)
	}

	bad := filepath.Join(t.TempDir(), "bad.pem")
	if err := os.WriteFile(bad, []byte("this is no certificate\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if said := c.command(one, 1, "config", "set", "sandbox_ca_bundle", bad); !strings.Contains(said, bad+" is not in PEM form") {
		t.Errorf("with a file that is none the command says %q", said)
	}
	two.Keep(t)
	if err := two.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = two.Wait(t.Context())
	two = c.server(two.Data)
	both("after a kill", "welcome")
	if n := strings.Count(two.Log(), "setting=sandbox_ca_bundle"); n != 0 {
		t.Errorf("the server that starts begins with the stored certificates, and does not change to them: %d changes", n)
	}

	c.command(two, 0, "config", "unset", "sandbox_ca_bundle")
	applied(t, "sandbox_ca_bundle", 2, one)
	applied(t, "sandbox_ca_bundle", 1, two)
	both("without certificates again", "refused")
	old("welcome") // until it restarts
	for _, s := range []*atolltest.Server{one, two} {
		oneGuestImage(t, s)
	}
	var events struct {
		Data []struct{ Field, Old, New string } `json:"data"`
	}
	one.Must(t, one.AdminKey(t), http.MethodGet, "/v1/admin/tenants/operator/policy-events", nil).Into(t, http.StatusOK, &events)
	var changes []string
	for _, e := range events.Data {
		if e.Field == "setting/sandbox_ca_bundle" {
			changes = append(changes, fmt.Sprintf("%t %t", e.Old != "", e.New != ""))
		}
	}
	if fmt.Sprint(changes) != "[false true true false]" {
		t.Errorf("the events are %q", changes)
	}
}

// TestPooledSandboxesGetTheNewBundle: sandboxes that were ready before a change do not serve after it.
func TestPooledSandboxesGetTheNewBundle(t *testing.T) {
	c := startTrusting(t)
	s := c.server("")
	key := c.tenant(s, "pooled")
	pooled := func(want string) {
		t.Helper()
		atolltest.Until(t, time.Minute, "an execution finds its sandbox ready", func() bool {
			var r struct {
				Stdout, Start string
			}
			s.Must(t, key, http.MethodPost, "/v1/sandbox/execute", map[string]any{"language": "bash", "code": c.asks["bash"], "timeout": 60}).Into(t, http.StatusOK, &r)
			if strings.TrimSpace(r.Stdout) != want {
				t.Fatalf("a program printed %q, want %q", r.Stdout, want)
			}
			return r.Start == "warm"
		})
	}
	pooled("refused")
	for n, step := range []struct {
		args []string
		want string
	}{{[]string{"set", "sandbox_ca_bundle", c.ca}, "welcome"}, {[]string{"unset", "sandbox_ca_bundle"}, "refused"}} {
		c.command(s, 0, append([]string{"config"}, step.args...)...)
		applied(t, "sandbox_ca_bundle", n+1, s)
		pooled(step.want)
	}
	oneGuestImage(t, s)
}

// oneGuestImage waits until a server has no guest image with former certificates anymore.
func oneGuestImage(t *testing.T, s *atolltest.Server) {
	t.Helper()
	atolltest.Until(t, time.Minute, "the guest image with the certificates is gone", func() bool {
		images, err := filepath.Glob(filepath.Join(s.Data, "state", "guest-*.erofs"))
		return err == nil && len(images) == 1
	})
}

// TestWebhookCAChanges: a receiver with a private authority gets webhooks once a command has named it.
func TestWebhookCAChanges(t *testing.T) {
	hooks := newReceiver(t)
	c := &trusting{t: t, env: []string{noPool, "ATOLL_WEBHOOK_ALLOW=127.0.0.1"}}
	s := c.server("")
	end := func() (trace string) {
		t.Helper()
		a, err := s.Call(t.Context(), atolltest.Key, http.MethodPost, "/v1/sandbox/execute", map[string]any{"code": "print(1)", "webhook_url": hooks.URL}, http.Header{"Prefer": {"respond-async"}})
		if err != nil {
			t.Fatal(err)
		}
		var r record
		a.Into(t, http.StatusAccepted, &r)
		return r.TraceID
	}
	before := end()
	atolltest.Until(t, 30*time.Second, "an attempt fails", func() bool {
		return strings.Contains(s.Log(), before) && strings.Contains(s.Log(), "in the setting webhook_ca")
	})
	c.command(s, 0, "config", "set", "webhook_ca", hooks.ca)
	applied(t, "webhook_ca", 1, s)
	trace := end()
	if got := hooks.await(trace, 1, 20*time.Second); len(got) != 1 {
		t.Errorf("the webhook has come %d times", len(got))
	}
}
