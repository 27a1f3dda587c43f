package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/app/doctor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// result is how a command ended.
type result struct {
	code     int
	out, err string
}

// atoll runs a command line with only the environment given.
func atoll(t *testing.T, stdin string, env map[string]string, args ...string) result {
	t.Helper()
	return atollContext(t.Context(), stdin, env, args...)
}

func atollContext(ctx context.Context, stdin string, env map[string]string, args ...string) result {
	var out, errs bytes.Buffer
	code := run(ctx, args, func(name string) string { return env[name] }, stdio{strings.NewReader(stdin), &out, &errs})
	return result{code, out.String(), errs.String()}
}

func TestCommandLineErrors(t *testing.T) {
	dir := t.TempDir()
	odd := filepath.Join(dir, "program.rb")
	if err := os.WriteFile(odd, []byte("puts 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string // in stderr
	}{
		{[]string{"bogus"}, exitUsage, `unknown command "bogus"`},
		{[]string{"serve", "extra"}, exitUsage, "unknown command"},
		{[]string{"serve", "--bogus"}, exitUsage, "unknown flag: --bogus"},
		{[]string{"serve", "--pool-size", "many"}, exitUsage, `pool_size (from --pool-size): "many" is neither a whole number nor auto`},
		{[]string{"serve", "--listen", "0.0.0.0:80", "--dev-key", "sk-atoll-x"}, exitUsage, "a fixed key is refused"},
		{[]string{"serve", "--config", filepath.Join(dir, "none.yaml")}, exitUsage, "none.yaml"},
		{[]string{"config", "--memory", "1KiB"}, exitUsage, "memory"},
		{[]string{"image", "remove"}, exitUsage, "requires at least 1 arg"},
		{[]string{"image", "remove", "none", "--data-dir", dir}, exitFailure, `there is no image "none"`},
		{[]string{"image", "import", filepath.Join(dir, "none.tar"), "--data-dir", dir}, exitFailure, ""},
		{[]string{"redteam", "--format", "pdf"}, exitUsage, "want text, json or junit"},
		{[]string{"redteam", "--list"}, exitFailure, "atoll-redteam: no such file or directory; reinstall Atoll, or run 'make build'"},
		{[]string{"run"}, exitUsage, "atoll run FILE, or - for stdin"},
		{[]string{"sandbx"}, exitUsage, "Did you mean this?\n\tsandbox"},
		{[]string{"sandbox", "creat"}, exitUsage, "did you mean 'atoll sandbox create'?"},
		{[]string{"sandbox", "list", "--data-dir", filepath.Join(dir, "empty")}, exitFailure, "start one with 'atoll serve'"},
		{[]string{"tenant", "list", "--data-dir", filepath.Join(dir, "empty")}, exitFailure, "start one with 'atoll serve'"},
		{[]string{"run", filepath.Join(dir, "none.py")}, exitNotRun, "no such file"},
		{[]string{"run", odd}, exitNotRun, "pass --language"},
		{[]string{"run", odd, "-l", "ruby", "--data-dir", dir}, exitNotRun, "language must be one of"},
		{[]string{"run", "-", "--env", "=A"}, exitNotRun, "want NAME=VALUE or NAME"},
		{[]string{"run", "-", "--env", "PATH=/", "--data-dir", dir}, exitNotRun, `"PATH" is reserved`},
		{[]string{"run", "-", "--timeout", "1500ms"}, exitNotRun, "whole seconds"},
		{[]string{"run", "-", "--timeout", "2h", "--data-dir", dir}, exitNotRun, "maximum of 3600 seconds"},
		{[]string{"run", "-", "--base-url", "http://127.0.0.1:1"}, exitNotRun, "no key for http://127.0.0.1:1: pass one with --key-file or set ATOLL_API_KEY"},
		{[]string{"vault", "credential", "add", "vlt_1", "--base-url", "http://127.0.0.1:1", "--key-file", odd}, exitUsage, "pass --mcp-server, or a VARIABLE and --host"},
	} {
		got := atoll(t, "print(1)", map[string]string{"HOME": dir}, c.args...)
		if got.code != c.code || !strings.Contains(got.err, c.want) || got.err == "" {
			t.Errorf("atoll %s: got %d %q, want %d %q", strings.Join(c.args, " "), got.code, got.err, c.code, c.want)
		}
		if got.out != "" {
			t.Errorf("atoll %s printed %q", strings.Join(c.args, " "), got.out)
		}
	}
}

// TestHelp checks that a reader of any command's help learns what it is for
// and how it is used.
func TestHelp(t *testing.T) {
	for _, c := range []struct{ command, want string }{
		{"", "atoll serve"},
		{"serve", "--pool-size"},
		{"run", "Exit codes"},
		{"image", "import"},
		{"image import", "OCI layout"},
		{"image build", "--image-mirror"},
		{"image list", "List images"},
		{"image remove", "NAME"},
		{"doctor", "--json"},
		{"config", "ATOLL_POOL_SIZE"},
		{"demo", "examples/hello.py"},
		{"version", "version"},
	} {
		got := atoll(t, "", nil, append(strings.Fields(c.command), "--help")...)
		if got.code != exitOK || !strings.Contains(got.out, c.want) || !strings.Contains(got.out, "Usage:") {
			t.Errorf("atoll %s --help: %d %s", c.command, got.code, got.out)
		}
	}
}

func TestConfigAndVersion(t *testing.T) {
	got := atoll(t, "", map[string]string{"HOME": "/h", "ATOLL_DEV_KEY": "sk-atoll-secret", "ATOLL_POOL_SIZE": "7"}, "config", "--memory=1GiB")
	if got.code != exitOK || !strings.Contains(got.out, "\npool_size: 7\n") || !strings.Contains(got.out, "\nmemory: 1GiB\n") {
		t.Errorf("got %+v", got)
	}
	if strings.Contains(got.out+got.err, "sk-atoll-secret") {
		t.Error("the key is printed")
	}
	if got := atoll(t, "", nil, "version"); got.code != exitOK || !strings.HasPrefix(got.out, "atoll ") {
		t.Errorf("version: %+v", got)
	}
}

func TestDoctorReports(t *testing.T) {
	dir := t.TempDir()
	env := map[string]string{"HOME": dir, "ATOLL_DATA_DIR": filepath.Join(dir, "data"), "ATOLL_RUNSC": filepath.Join(dir, "none")}
	got := atoll(t, "", env, "doctor")
	if got.code != exitFailure || !strings.Contains(got.out, "run make build") || !strings.Contains(got.out, "atoll image build") {
		t.Errorf("got %+v", got)
	}
	got = atoll(t, "", env, "doctor", "--json")
	var findings []doctor.Finding
	if err := json.Unmarshal([]byte(got.out), &findings); err != nil || len(findings) < 9 {
		t.Errorf("got %q: %v", got.out, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); err == nil {
		t.Error("a check made the data folder")
	}
}

func TestImageName(t *testing.T) {
	for source, want := range map[string]string{
		"python:3.14-slim":            "python-3.14-slim",
		"example.org:5000/a/B:latest": "b",
		"python@sha256:0123":          "python",
		"./tools.tar.gz":              "tools",
		"/srv/Images/My Layout/":      "my-layout",
	} {
		if got := imageName(source); got != want {
			t.Errorf("%s: got %q, want %q", source, got, want)
		}
	}
}

func TestServerThatIsNotThere(t *testing.T) {
	got := atoll(t, "x", map[string]string{"ATOLL_API_KEY": "k"}, "run", "-", "--base-url", "http://127.0.0.1:1")
	if got.code != exitNotRun || !strings.Contains(got.err, "refused") {
		t.Errorf("got %+v", got)
	}
}

// TestMCPTellsItsClient checks that what keeps 'atoll mcp' from starting is told to
// the client, on its side of the pipe.
func TestMCPTellsItsClient(t *testing.T) {
	dir := t.TempDir()
	const initialize = `{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n"
	for want, c := range map[string]struct {
		code int
		env  map[string]string
	}{
		"build the image with 'atoll image build'":                {exitFailure, map[string]string{"HOME": dir, "ATOLL_ROOTLESS": "never"}},
		"no key for http://127.0.0.1:1: pass one with --key-file": {exitFailure, map[string]string{"HOME": dir, "ATOLL_BASE_URL": "http://127.0.0.1:1"}},
		"connection refused; start the server with 'atoll serve'": {exitFailure, map[string]string{"HOME": dir, "ATOLL_BASE_URL": "http://127.0.0.1:1", "ATOLL_API_KEY": "sk-atoll-x"}},
		`memory (from ATOLL_MEMORY): \"x\" is not a size`:         {exitUsage, map[string]string{"HOME": dir, "ATOLL_MEMORY": "x"}},
	} {
		c.env["ATOLL_DATA_DIR"] = filepath.Join(dir, "data")
		got := atoll(t, initialize, c.env, "mcp")
		if got.code != c.code || !strings.HasPrefix(got.out, `{"jsonrpc":"2.0","id":7,"error":{`) || !strings.Contains(got.out, want) {
			t.Errorf("%q: got %d %s%s", want, got.code, got.out, got.err)
		}
	}
}

// TestHelpListsWhatIsThere checks that values of flags come from the tables that check them.
func TestHelpListsWhatIsThere(t *testing.T) {
	for command, scopes := range map[string]string{"key create": "sandboxes, environments, admin", "connection create": "s3, gcs, azure or volume"} {
		if got := atoll(t, "", nil, append(strings.Fields(command), "--help")...); !strings.Contains(got.out, scopes) {
			t.Errorf("the help of %s has no %q:\n%s", command, scopes, got.out)
		}
	}
}
