package main

import (
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
		if got := plainHTTP(load(c.env)); (got != "") != c.warn {
			t.Errorf("%v: %q", c.env, got)
		}
	}
	if cfg := load(map[string]string{}); cfg.E2B != "on" {
		t.Errorf("the E2B API is %s by default", cfg.E2B)
	}
}
