package main

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/app/config"
)

// TestServerDefaults checks what a server warns of and serves without further settings.
func TestServerDefaults(t *testing.T) {
	load := func(env map[string]string) *config.Config {
		t.Helper()
		env["ATOLL_DATA_DIR"] = t.TempDir()
		cfg, err := config.Load(config.Sources{Getenv: func(name string) string { return env[name] }})
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	for _, c := range []struct {
		env  map[string]string
		warn bool
	}{
		{map[string]string{}, false},
		{map[string]string{"ATOLL_LISTEN": "[::1]:80"}, false},
		{map[string]string{"ATOLL_LISTEN": ":8080"}, true},
		{map[string]string{"ATOLL_LISTEN": "10.0.0.7:80"}, true},
		{map[string]string{"ATOLL_LISTEN": ":443", "ATOLL_TLS_CERT": "c.pem", "ATOLL_TLS_KEY": "k.pem"}, false},
	} {
		if got := exposed(load(c.env)); got != c.warn {
			t.Errorf("%v: %v", c.env, got)
		}
	}
	if cfg := load(map[string]string{}); cfg.E2B != "on" {
		t.Errorf("the E2B API is %s by default", cfg.E2B)
	}
}

// TestDevelopmentMode checks the flag, where it is refused, and what the demo says before Ctrl-C.
func TestDevelopmentMode(t *testing.T) {
	env := map[string]string{"ATOLL_DATA_DIR": t.TempDir(), "ATOLL_IMAGE": "none"}
	if got := atoll(t, "", env, "serve", "--dev", "--listen", "0.0.0.0:0"); got.code != exitUsage || !strings.Contains(got.err, "where development mode is refused") {
		t.Errorf("beyond loopback: %d, %s", got.code, got.err)
	}
	if got := atoll(t, "", env, "config", "--dev"); got.code != exitOK || !strings.Contains(got.out, "\ndev: on\n") {
		t.Errorf("--dev: %d, %s%s", got.code, got.out, got.err)
	}
	gone := ending(&config.Config{DataDir: "/d", OnExit: "destroy"})
	for _, want := range []string{"deletes every sandbox", "atoll sandbox snapshot NAME", "atoll serve --data-dir /d"} {
		if !strings.Contains(gone, want) {
			t.Errorf("no %q in %s", want, gone)
		}
	}
	if stays := ending(&config.Config{DataDir: "/d", OnExit: "detach"}); !strings.Contains(stays, "stay for the next server on /d") {
		t.Error(stays)
	}
}

// TestVolumesAreCheckedFirst checks that a wrong setting is reported before the image is missed.
func TestVolumesAreCheckedFirst(t *testing.T) {
	env := map[string]string{"ATOLL_DATA_DIR": t.TempDir(), "ATOLL_IMAGE": "none", "ATOLL_VOLUMES": "relative"}
	if got := atoll(t, "", env, "serve", "--listen", "127.0.0.1:0"); got.code != exitUsage || !strings.Contains(got.err, "volumes: relative must be an absolute path") || strings.Contains(got.err, "image") {
		t.Errorf("a wrong setting: %d, %s", got.code, got.err)
	}
	env["ATOLL_VOLUMES"] = ""
	if got := atoll(t, "", env, "serve", "--listen", "127.0.0.1:0"); got.code != exitUsage || !strings.Contains(got.err, `no image "none"`) {
		t.Errorf("without it: %d, %s", got.code, got.err)
	}
}
