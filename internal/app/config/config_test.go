package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

func env(pairs ...string) func(string) string {
	m := map[string]string{"HOME": "/home/user"}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return m[name] }
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "atoll.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDefaults(t *testing.T) {
	c, err := Load(Sources{Getenv: env()})
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "127.0.0.1:8080" || c.PoolSize != PoolAuto || c.MaxTimeout != time.Hour || c.MaxOutput != 10<<20 {
		t.Errorf("got %+v", c)
	}
	if c.Limits() != runtime.DefaultLimits() {
		t.Errorf("the limits are %+v, the domain's defaults %+v", c.Limits(), runtime.DefaultLimits())
	}
	if !filepath.IsAbs(c.DataDir) {
		t.Errorf("data_dir is %q", c.DataDir)
	}
}

func TestPrecedence(t *testing.T) {
	path := file(t, "pool_size: 3\nmemory: 1GiB\nlog_level: warn\nenv_vars:\n  LANG: C.UTF-8\n  YES: \"yes\"\nshutdown_grace: 5\n")
	c, err := Load(Sources{
		Getenv: env("ATOLL_CONFIG", path, "ATOLL_POOL_SIZE", "4", "ATOLL_LOG_LEVEL", "error", "ATOLL_CPU", "", "ATOLL_ENV_VARS", ""),
		Flags:  map[string]string{"log-level": "debug", "data-dir": "somewhere"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.Memory != 1<<30 || c.ShutdownGrace != 5*time.Second || c.EnvVars["LANG"] != "C.UTF-8" || c.EnvVars["YES"] != "yes" {
		t.Errorf("from the file: %+v", c)
	}
	if c.PoolSize != 4 || c.CPU != 1 {
		t.Errorf("from the environment: pool_size %d, cpu %v", c.PoolSize, c.CPU)
	}
	if c.LogLevel != "debug" || !filepath.IsAbs(c.DataDir) || filepath.Base(c.DataDir) != "somewhere" {
		t.Errorf("from flags: log_level %s, data_dir %s", c.LogLevel, c.DataDir)
	}
	c, err = Load(Sources{Getenv: env("ATOLL_ENV_VARS", `{"A":"1"}`)})
	if err != nil || c.EnvVars["A"] != "1" {
		t.Errorf("env_vars as JSON: %v, %v", c, err)
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"ATOLL_LISTEN", "8080", "not an address and port"},
		{"ATOLL_DEV_KEY", "a b", "dev_key"},
		{"ATOLL_DEV", "yes", "dev (from ATOLL_DEV): must be one of on, off"},
		{"ATOLL_DEV_KEY", strings.Repeat("k", 257), "dev_key"},
		{"ATOLL_POOL_SIZE", "two", `"two" is neither a whole number nor auto`},
		{"ATOLL_POOL_SIZE", "-1", "between 0 and 1000"},
		{"ATOLL_POOL_SIZE", "1001", "between 0 and 1000"},
		{"ATOLL_CPU", "NaN", "not a number"},
		{"ATOLL_CPU", "0", "every limit must be positive"},
		{"ATOLL_MEMORY", "1 parsec", "not a size"},
		{"ATOLL_MEMORY", "32MiB", "at least 64 MiB"},
		{"ATOLL_ROOT_SIZE", "512MiB", "below the memory limit"},
		{"ATOLL_MAX_TIMEOUT", "soon", "not a duration"},
		{"ATOLL_MAX_TIMEOUT", "0s", "max_timeout"},
		{"ATOLL_MAX_TIMEOUT", "1500ms", "whole seconds"},
		{"ATOLL_ON_EXIT", "explode", "must be one of detach, destroy"},
		{"ATOLL_RUNTIME", "docker", "must be one of gvisor, oci"},
		{"ATOLL_ENV_VARS", "A=1", "object of strings"},
		{"ATOLL_ENV_VARS", `{"PATH":"/"}`, "reserved"},
		{"ATOLL_MAX_OUTPUT", "0", "max_output"},
		{"ATOLL_TLS_CERT", "cert.pem", "set both or neither"},
		{"ATOLL_DATABASE", "mysql://db", "postgres://"},
		{"ATOLL_SECRET_KEY", "c2hvcnQ=", "64 hexadecimal digits"},
		{"ATOLL_LOG_PER_RUN", "2GiB", "at most log_size"},
		{"ATOLL_LOG_AGE", "1s", "at least 1m"},
		{"ATOLL_KEEP_EXECUTIONS", "1s", "at least 1h"},
		{"ATOLL_KEEP_USAGE", "720h", "at least 1488h"},
		{"ATOLL_TURN_IDLE", "0", "turn_idle"},
		{"ATOLL_PRICE_CALL", "-1", "not be negative"},
		{"ATOLL_PRICE_SEARCH", "-1", "not be negative"},
		{"ATOLL_PRICE_SANDBOX_WINDOW", "-1", "price_sandbox_window"},
		{"ATOLL_PRICE_TOOLS", `{"mcp":"cheap"}`, "number of US dollars"},
		{"ATOLL_PRICE_TOOLS", `{"search":"1"}`, `"search" is no tool; there are sandbox,`},
		{"ATOLL_IMAGE_MIRROR", "ftp://example.org", "image_mirror"},
		{"ATOLL_CONFIG", "/nowhere/at/all", "read configuration"},
	} {
		if _, err := Load(Sources{Getenv: env(c.name, c.value)}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%s: got %v, want %q", c.name, c.value, err, c.want)
		}
	}
	for _, listen := range []string{":8080", "0.0.0.0:8080", "[::]:8080", "192.0.2.1:8080", "example.org:8080"} {
		_, err := Load(Sources{Getenv: env("ATOLL_LISTEN", listen, "ATOLL_DEV_KEY", "sk-atoll-dev")})
		if err == nil || !strings.Contains(err.Error(), "beyond loopback") {
			t.Errorf("%s with a development key: %v", listen, err)
		}
		if c, err := Load(Sources{Getenv: env("ATOLL_LISTEN", listen)}); err != nil || c.Loopback {
			t.Errorf("%s: %v", listen, err)
		}
	}
	for _, listen := range []string{"127.0.0.1:0", "localhost:80", "[::1]:80", "127.3.2.1:80"} {
		if _, err := Load(Sources{Getenv: env("ATOLL_LISTEN", listen)}); err != nil {
			t.Errorf("%s: %v", listen, err)
		}
	}
}

func TestFileIsStrict(t *testing.T) {
	for text, want := range map[string]string{
		"pool_size: 1\npoolsize: 2\n":    `line 2: unknown setting "poolsize"`,
		"pool_size: [1]\n":               "pool_size must be a single value",
		"pool_size: 1\npool_size: 2\n":   "already defined",
		"- a list\n":                     "cannot unmarshal",
		"{":                              "read configuration",
		"listen: 0.0.0.0:1\ncpu: many\n": `cpu (from`,
	} {
		if _, err := Load(Sources{File: file(t, text), Getenv: env()}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	if _, err := Load(Sources{File: file(t, "# nothing\n"), Getenv: env()}); err != nil {
		t.Errorf("an empty file: %v", err)
	}
}

// TestEverySettingIsDocumented checks the table that everything is made from.
func TestEverySettingIsDocumented(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Settings() {
		if s.Name == "" || s.Group == "" || s.Help == "" || s.Shown == "" || seen[s.Name] {
			t.Errorf("incomplete or twice: %+v", s)
		}
		seen[s.Name] = true
	}
	committed, err := os.ReadFile("../../../docs/reference/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(committed) != Markdown() {
		t.Error("docs/reference/settings.md is stale: run make generate")
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	c, err := Load(Sources{Getenv: env("ATOLL_DEV_KEY", "sk-atoll-secret")})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range Settings() {
		if strings.Contains(s.Value(c), "secret") {
			t.Errorf("%s prints %q", s.Name, s.Value(c))
		}
	}
	_, err = Load(Sources{Getenv: env("ATOLL_DEV_KEY", "a secret with spaces")})
	if err == nil || strings.Contains(err.Error(), "a secret") {
		t.Errorf("the error is %v", err)
	}
}

func TestSizesAreExact(t *testing.T) {
	for text, want := range map[string]string{
		"512MiB": "512MiB", "1GiB": "1GiB", "1536MiB": "1536MiB", "10MB": "10000000", "1024": "1KiB", "1": "1",
	} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err != nil || s.String() != want {
			t.Errorf("%s: got %s, %v, want %s", text, s, err, want)
		}
	}
}

// TestDefaultFile: the installation's file counts only for a user who can read it.
func TestDefaultFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "atoll.yaml")
	if got := defaultFile(path); got != "" {
		t.Errorf("a missing file: %q", got)
	}
	if err := os.WriteFile(path, []byte("pool_size: 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := defaultFile(path); got != path {
		t.Errorf("got %q, want %q", got, path)
	}
}

func TestFilesFitMemory(t *testing.T) {
	for _, c := range []struct {
		flags          map[string]string
		root, tmp, shm Size
	}{
		{nil, 128 << 20, 128 << 20, 64 << 20},
		{map[string]string{"memory": "1GiB"}, 128 << 20, 128 << 20, 64 << 20},
		{map[string]string{"memory": "400MiB"}, 128 << 20, 128 << 20, 64 << 20},
		{map[string]string{"memory": "128MiB"}, 32 << 20, 32 << 20, 16 << 20},
		{map[string]string{"memory": "128MiB", "tmp-size": "8MiB"}, 32 << 20, 8 << 20, 16 << 20},
	} {
		got, err := Load(Sources{Getenv: env(), Flags: c.flags})
		if err != nil || got.RootSize != c.root || got.TmpSize != c.tmp || got.ShmSize != c.shm {
			t.Errorf("%v: got %+v, %v", c.flags, got, err)
		}
	}
	if _, err := Load(Sources{Getenv: env("ATOLL_TMP_SIZE", "128MiB"), Flags: map[string]string{"memory": "128MiB"}}); err == nil {
		t.Error("a size that was given shrinks with the memory")
	}
}
