package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/api/routes"
	"github.com/atoll-run/atoll/internal/agent/agents"
	"github.com/atoll-run/atoll/internal/control/directory"
	"github.com/atoll-run/atoll/internal/control/environments"
	"github.com/atoll-run/atoll/internal/control/gateway"
	"github.com/atoll-run/atoll/internal/control/gateway/gatewaytest"
	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/breaker"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/activity"
	"github.com/atoll-run/atoll/internal/edge/httpapi/admin"
	agentapi "github.com/atoll-run/atoll/internal/edge/httpapi/agent"
	"github.com/atoll-run/atoll/internal/edge/httpapi/execute"
	modelapi "github.com/atoll-run/atoll/internal/edge/httpapi/model"
	"github.com/atoll-run/atoll/internal/edge/httpapi/usage"
)

// operator runs commands against a server.
type operator struct {
	t   *testing.T
	env map[string]string
	in  string
}

func newOperator(t *testing.T) (*operator, *gatewaytest.World) {
	t.Helper()
	w := gatewaytest.Open(t)
	tenants, log := w.DB.Tenants(), slog.New(slog.DiscardHandler)
	setup := tenant.Setup{Store: tenants, DevKey: "sk-atoll-development", Environment: tenant.Environment{Image: "default", Limits: runtime.DefaultLimits()}}
	if err := setup.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	key, err := setup.AdminKey(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	breakers, err := breaker.New(w.DB.Breakers(), log, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	authority := tenant.NewAuthority(tenants)
	all := tenant.NewAdmin(tenant.AdminConfig{
		Store: tenants, Authority: authority, Limits: runtime.DefaultLimits(),
		CheckImage:   func(context.Context, string) error { return nil },
		CheckWebhook: func(context.Context, string) error { return nil },
		CheckSecret:  func(string) error { return nil },
		Reach:        func(context.Context, *storage.Connection) error { return nil },
	})
	handlers := routes.Handlers{
		Execute:  &execute.Handlers{Gateway: w.Gateway, CheckURL: func(context.Context, string) error { return nil }, Tenants: all, Webhooks: again{}},
		Usage:    &usage.Handlers{Ledger: w.DB.Usage(), Tenants: all, Keep: 30 * 24 * time.Hour},
		Activity: &activity.Handlers{Store: w.DB.Activity(), Names: all},
		Admin: &admin.Handlers{
			Tenants: all, Trail: w.DB.Audit(), Verifier: audit.NewSealer(w.DB.Audit()), Caps: breakers, Models: catalogOf(t, w.DB.Models(), tenants),
			Environments: &environments.Service{Tenants: all, Sandboxes: directory.New(directory.Config{Store: w.DB.Sandboxes()})},
		},
	}
	handlers.Models = &modelapi.Handlers{Catalog: handlers.Admin.Models, Tenants: all}
	handlers.Agents = &agentapi.Handlers{Service: &agents.Service{Store: w.DB.Agents(), Models: handlers.Admin.Models}}
	server, err := httpapi.New(httpapi.Config{Operations: handlers.Operations(), Auth: authority, Metrics: prometheus.NewRegistry(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(server)
	t.Cleanup(front.Close)
	return &operator{t: t, env: map[string]string{"ATOLL_BASE_URL": front.URL, "ATOLL_API_KEY": key}}, w
}

// again takes every webhook.
type again struct{}

func (again) Redeliver(context.Context, *execution.Execution) error { return nil }

// run runs a command and returns what it wrote.
func (o *operator) run(want int, args ...string) (stdout, stderr string) {
	o.t.Helper()
	var out, err bytes.Buffer
	code := run(o.t.Context(), args, func(name string) string { return o.env[name] }, stdio{strings.NewReader(o.in), &out, &err})
	if code != want {
		o.t.Fatalf("atoll %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), code, want, out.String(), err.String())
	}
	return out.String(), err.String()
}

// says runs a command that succeeds and checks what it wrote, blanks apart.
func (o *operator) says(args string, want ...string) string {
	o.t.Helper()
	out, _ := o.run(0, strings.Fields(args)...)
	plain := blanks.ReplaceAllString(out, " ")
	for _, w := range want {
		if !strings.Contains(plain, w) {
			o.t.Errorf("atoll %s: no %q in\n%s", args, w, out)
		}
	}
	return out
}

var blanks = regexp.MustCompile(` +`)

func TestAdminCommands(t *testing.T) {
	o, w := newOperator(t)
	o.says("tenant create acme --plan pro --budget 50 --daily-cap 7 --redaction-off jwt,bearer", "plan pro", "budget 50", "daily 7, hourly default", "redaction off bearer, jwt")
	o.says("env show acme default", "default")
	o.says("tenant create second --env reports", "environment reports")
	o.says("env show second reports", "reports")
	if out := o.says("tenant create third --env=", "name third"); strings.Contains(out, "environment") {
		t.Errorf("without an environment: %s", out)
	}
	if _, says := o.run(2, "tenant", "delete", "third"); !strings.Contains(says, "pass --yes") {
		t.Errorf("deleting without a word: %s", says)
	}
	o.says("tenant show third", "state active")
	o.says("tenant delete third --yes --detach", "is deleting the tenant third")
	o.says("tenant show third", "state being deleted since")
	o.says("tenant list", "being deleted")
	o.says("tenant events operator", "tenant/third")
	if _, says := o.run(1, "tenant", "delete", "operator", "--yes"); !strings.Contains(says, "administer the others") {
		t.Errorf("deleting the operator: %s", says)
	}
	if _, says := o.run(1, "tenant", "delete", "nobody", "--yes"); !strings.Contains(says, "not_found") {
		t.Errorf("deleting nobody: %s", says)
	}
	o.says("tenant events second", "environment/reports", "default")
	o.says("tenant set acme --hourly-cap 3 --audit-days 90", "daily 7, hourly 3", "90 days")
	o.says("tenant set acme --daily-cap server", "daily default, hourly 3")
	o.says("tenant list", "acme", "operator", "dev")
	o.says("tenant events acme", "audit_days 30 90", "caps.tenant_daily 7 server")
	o.says("tenant show acme --json", `"name": "acme"`)

	o.env["API_TOKEN"] = "a secret of length"
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("another-secret-of-length\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.says("env create acme e --cpu 2 --memory 1GiB --var A=1 --secret-env API_TOKEN --secret-file B="+secret, "memory 1GiB", `variable A="1"`, "secret API_TOKEN", "secret B")
	o.says("tenant set acme --key-isolation", "key isolation on")
	o.says("env set acme e --isolation key", "isolation key")
	o.says("env set acme e --isolation run", "isolation run")
	if out := o.says("env set acme e --unset B --secret-env C=API_TOKEN --processes 99", "secret C", "processes 99"); strings.Contains(out, "secret B") || strings.Contains(out, "length") {
		t.Errorf("got\n%s", out)
	}
	if out := o.says("env set acme e --bind C=api.example.com,*.example.net", "secret C for api.example.com, *.example.net"); strings.Contains(out, "length") {
		t.Errorf("a secret is shown: %s", out)
	}
	if out := o.says("env set acme e --bind C=", "secret C"); strings.Contains(out, "api.example.com") {
		t.Errorf("it is bound still: %s", out)
	}
	if _, told := o.run(0, "env", "set", "acme", "e", "--allow", "pypi,npm,api.example.com"); !strings.Contains(told, "The environments of acme may have a network") {
		t.Errorf("the change of the tenant is not told: %s", told)
	}
	if _, told := o.run(1, "env", "create", "acme", "e", "--root"); strings.Contains(told, "may run programs as root") {
		t.Errorf("an environment that there was: %s", told)
	}
	o.says("tenant show acme", "network on", "root off") // the refused change is taken back, what was on is left
	if _, told := o.run(0, "env", "set", "acme", "e", "--deny", "npm"); strings.Contains(told, "may have a network") {
		t.Errorf("there was no change of the tenant: %s", told)
	}
	o.says("env show acme e", "network hosts: "+strings.Join(tenant.PresetHosts("pypi"), ", ")+", api.example.com\n")
	o.says("tenant show acme", "network on")
	o.says("env set dev --allow 192.0.2.0/24", "name default", "network hosts: 192.0.2.0/24")
	o.run(2, "env", "set", "dev", "--deny", "npm")
	o.says("env set dev --deny 192.0.2.0/24", "network off")
	o.says("env list acme", "e env_", "1GiB")

	// The key alone is on stdout.
	out, told := o.run(0, "key", "create", "acme", "k", "--env", "e", "--expires-in", "1h", "--webhook-url", "https://example.com/x", "--webhook-secret-file", secret)
	key := strings.TrimSpace(out)
	if !strings.HasPrefix(key, "sk-atoll-") || strings.Contains(key, "\n") || !strings.Contains(told, "not shown again") {
		t.Errorf("got %q and %q", out, told)
	}
	kept := filepath.Join(t.TempDir(), "kept.key")
	if out, _ := o.run(0, "key", "create", "acme", "filed", "--env", "e", "--out", kept); strings.Contains(out, "sk-atoll-") || !strings.Contains(out, kept) {
		t.Errorf("got %q", out)
	}
	if info, err := os.Stat(kept); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v", info, err)
	}
	o.says("execution list --key-file " + kept)
	if _, told := o.run(1, "key", "create", "acme", "again", "--env", "e", "--out", kept); !strings.Contains(told, "the file exists") {
		t.Errorf("got %q", told)
	}
	o.says("key revoke acme filed", "revoked")
	o.says("key list acme", "k key_", "until", "https://example.com/x")
	o.says("key set acme k --expires-at never --webhook-secret-file=", "state active", "webhook signed off")
	o.says("template set acme support --sandbox internal-only", "support internal-only")
	o.says("template set acme support", "support off")
	o.says("template list acme", "support off")
	o.says("template delete acme support", "deleted support")
	o.says("plan set team --max-cpu 2 --max-timeout 10m --streaming", "cpu 2", "timeout 10m0s", "streaming on", "output 100MiB")
	o.says("plan set team --concurrency 3 --max-memory 1GiB", "cpu 2", "memory 1GiB", "concurrency 3", "timeout 10m0s", "streaming on", "output 100MiB")
	o.says("plan set team --streaming=false --concurrency 0 --max-memory 0", "cpu 2", "memory any", "concurrency any", "timeout 10m0s", "streaming off")
	o.says("plan list", "free 1 1GiB 5 1m0s off off", "enterprise any any any default on on", "team 2 any")
	o.says("plan delete team", "deleted team")
	o.says("caps set --agent-hourly 50", "tenant, a UTC day 1000", "agent, a UTC hour 50")
	o.says("caps show", "agent, a UTC hour 50")

	// As the tenant's own key.
	admin := o.env["ATOLL_API_KEY"]
	o.env["ATOLL_API_KEY"] = key
	p, err := w.Authenticate(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	req := gatewaytest.Request("print hello")
	if _, err := w.Execute(t.Context(), &p, req, call()); err != nil {
		t.Fatal(err)
	}
	o.says("execution list --status success", req.TraceID, "python inline 0")
	o.says("execution show "+req.TraceID, "status success", "--- stdout\nhello\n")
	if out := o.says("execution output " + req.TraceID); out != "hello\n" {
		t.Errorf("got %q", out)
	}
	if out := o.says("execution output --follow " + req.TraceID); out != "hello\n" {
		t.Errorf("got %q", out)
	}
	gone := gatewaytest.Request("print gone")
	if _, err := w.Execute(t.Context(), &p, gone, call()); err != nil {
		t.Fatal(err)
	}
	o.says("execution rm "+gone.TraceID, "deleted "+gone.TraceID)
	if _, told := o.run(1, "execution", "show", gone.TraceID); !strings.Contains(told, "404 not_found") {
		t.Errorf("got %s", told)
	}
	if _, told := o.run(1, "execution", "cancel", req.TraceID); !strings.Contains(told, "409 conflict") {
		t.Errorf("got %q", told)
	}
	if _, told := o.run(1, "tenant", "list"); !strings.Contains(told, "403 forbidden") {
		t.Errorf("got %q", told)
	}
	o.env["ATOLL_API_KEY"] = admin

	o.says("audit list acme --since 1h --status ok", req.TraceID, "execute")
	o.says("audit list acme --agent unknown", "WHEN")
	if out := o.says("audit export acme"); strings.Count(out, "\n") != 2 || !json.Valid([]byte(out[:strings.Index(out, "\n")])) {
		t.Errorf("got %q", out)
	}
	head := o.says("audit verify acme", "acme whole 2 0 1 1:")
	fields := strings.Fields(head)
	o.says("audit verify acme --known "+fields[len(fields)-1], "whole")
	o.says("audit verify", "operator whole 0 0 0", "acme whole 2")
	if _, told := o.run(1, "audit", "verify", "acme", "--known", "1:"+strings.Repeat("0", 64)); !strings.Contains(told, "are incomplete") {
		t.Errorf("got %q", told)
	}
	heads := filepath.Join(t.TempDir(), "heads.json")
	if err := os.WriteFile(heads, []byte(o.says("audit verify --json")), 0o600); err != nil {
		t.Fatal(err)
	}
	o.says("audit verify --heads "+heads, "acme whole 2")
	// A trail whose tenant is not on record, and one that is not there at all.
	if err := w.DB.Audit().Append(t.Context(), audit.Row{TraceID: "trc_x", Tenant: "ten_gone", ExitStatus: audit.OK, Retention: audit.DefaultRetention}); err != nil {
		t.Fatal(err)
	}
	if out, told := o.run(1, "audit", "verify"); !strings.Contains(told, "ten_gone: seal 0: tenant: the audit trail of tenant ten_gone has no record of the tenant") || !strings.Contains(out, "NOT WHOLE") {
		t.Errorf("got %q %q", out, told)
	}
	if err := os.WriteFile(heads, []byte(`{"taken":{"ok":true,"head":{"number":1,"hash":"00"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, told := o.run(1, "audit", "verify", "--heads", heads); !strings.Contains(told, "taken: seal 0: known: the tenant and its whole trail are gone") {
		t.Errorf("got %q", told)
	}
	o.says("usage show acme", "execute 2 2", "of 50.0000", "kept outputs: 6 B, of 500GiB")
	o.says("usage show acme --by agent", "AGENT SESSION CALLS")
	o.says("activity --tenant acme --since 24h --status ok", "WHEN WHO WHAT WHERE STATUS", "k execute", "e ok")
	if _, told := o.run(1, "activity", "--tenant", "acme", "--kind", "sleep"); !strings.Contains(told, "kind") {
		t.Errorf("got %q", told)
	}
	o.says("webhook redeliver acme "+req.TraceID, "pending")
	o.says("key revoke acme k", "state revoked")
	o.says("env delete acme e", "deleted e")
}

// call is an inline one.
func call() (c gateway.Call) {
	c.Source, c.Delivery = execution.SourceAPI, execution.Inline
	return c
}

func TestAdminCommandLines(t *testing.T) {
	o, _ := newOperator(t)
	o.env["EMPTY"] = ""
	for args, says := range map[string]string{
		"tenant set acme":     "", // unknown: the server says so
		"tenant set dev":      "nothing to change",
		"env set dev default": "nothing to change",
		"key set dev x":       "nothing to change",
		"caps set":            "nothing to change",
		"key create dev":      "want atoll key create TENANT NAME [flags]",
		"key create dev x --env default --expires-in -5s":     "--expires-in must be positive",
		"key create dev x --expires-in 5s --expires-at never": "none of the others can be",
		"tenant set dev --daily-cap many":                     "want a number, or server",
		"env set dev default --var A":                         "want NAME=VALUE",
		"env set dev default --memory lots":                   "--memory",
		"env set dev default --secret-env EMPTY":              "EMPTY is not set",
		"env set dev default --bind C":                        "NAME=VALUE",
		"env set dev default --secret-file A=/no/such/file":   "no such file",
		"audit list dev --since sometime":                     "want a date",
		"audit verify --known 1:00":                           "takes NUMBER:HASH",
		"audit verify dev --known x":                          "takes NUMBER:HASH",
		"tenant list --key-file /no/such/file":                "no such file",
		"plan set p --max-memory lots":                        "--max-memory",
		"tenant bogus":                                        `unknown command "bogus" for "atoll tenant"`,
		"image bogus":                                         `unknown command "bogus" for "atoll image"`,
		"tenant list --base-url localhost:8080":               "must begin with http:// or https://",
	} {
		var out, err bytes.Buffer
		code := run(t.Context(), strings.Fields(args), func(name string) string { return o.env[name] }, stdio{strings.NewReader(""), &out, &err})
		want := exitUsage
		if says == "" || strings.Contains(says, "no such file") {
			want = exitFailure
		}
		if code != want || !strings.Contains(err.String(), says) || out.Len() != 0 {
			t.Errorf("atoll %s: exit code %d, %s%s", args, code, out.String(), err.String())
		}
	}
}

func TestAdminKeyStaysHere(t *testing.T) {
	o, _ := newOperator(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, adminKeyFile), []byte(o.env["ATOLL_API_KEY"]+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address := strings.TrimPrefix(o.env["ATOLL_BASE_URL"], "http://")
	o.env = map[string]string{"ATOLL_DATA_DIR": dir, "ATOLL_LISTEN": address}
	o.says("tenant list", "operator") // this machine's server, found by its settings

	o.env["ATOLL_BASE_URL"] = "http://" + address
	if _, told := o.run(1, "tenant", "list"); !strings.Contains(told, "no key for http://"+address) {
		t.Errorf("the key of this machine went elsewhere: %s", told)
	}
	o.says("tenant list --data-dir "+dir, "operator") // said so
	o.in = "sk-atoll-wrong\n"
	if _, told := o.run(1, "tenant", "list", "--key-file", "-"); !strings.Contains(told, "401 unauthorized") {
		t.Errorf("got %s", told)
	}
	delete(o.env, "ATOLL_BASE_URL")
	settings := filepath.Join(t.TempDir(), "atoll.yaml")
	if err := os.WriteFile(settings, []byte("listen: "+address+"\ndata_dir: "+dir+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.env = map[string]string{}
	o.says("tenant list --config "+settings, "operator")
	o.env = map[string]string{"ATOLL_LISTEN": address, "ATOLL_DATA_DIR": t.TempDir(), "HOME": t.TempDir(), "ATOLL_DEV_KEY": "sk-atoll-development"}
	o.says("execution list", "TRACE") // the settings have the key
	if _, told := o.run(1, "tenant", "list"); !strings.Contains(told, "pass one with --key-file or set ATOLL_API_KEY") {
		t.Errorf("got %s", told)
	}
	o.env = map[string]string{"ATOLL_LISTEN": address, "ATOLL_DATA_DIR": dir, "ATOLL_API_KEY": "sk-atoll-bogus"}
	if _, told := o.run(1, "tenant", "list"); !strings.Contains(told, "401") || !strings.Contains(told, "unset it to use this machine's key") {
		t.Errorf("this machine's key came before ATOLL_API_KEY: %s", told)
	}
	o.env = map[string]string{"ATOLL_BASE_URL": "http://127.0.0.1:1", "ATOLL_API_KEY": "sk-atoll-x"}
	if _, told := o.run(1, "tenant", "list"); !strings.Contains(told, "no answer from http://127.0.0.1:1: ") || !strings.Contains(told, "start the server with 'atoll serve'") {
		t.Errorf("got %s", told)
	}
}

func TestTablesAreHarmless(t *testing.T) {
	var out bytes.Buffer
	row(&out, "a\x1b[31m\tb", "", "é\u0085", "to\u202edeh", 7)
	if out.String() != "a [31m b\t-\té \tto deh\t7\n" {
		t.Errorf("got %q", out.String())
	}
	if at, err := moment("since", "2h"); err != nil {
		t.Error(err)
	} else if then, err := time.Parse(time.RFC3339, at); err != nil || time.Since(then).Round(time.Hour) != 2*time.Hour {
		t.Errorf("got %s %v", at, err)
	}
	for _, c := range [][2]string{{"2026-01-31", "2026-01-31T00:00:00Z"}, {"2026-01-31T12:00:00+01:00", "2026-01-31T12:00:00+01:00"}} {
		if got, err := moment("since", c[0]); err != nil || got != c[1] {
			t.Errorf("%s: %s %v", c[0], got, err)
		}
	}
}
