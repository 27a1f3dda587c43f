package doctor

import (
	"errors"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExamineNamesEveryLack checks that on a machine without binaries and
// image each lack is found, and that no finding leaves its reader without
// advice.
func TestExamineNamesEveryLack(t *testing.T) {
	dir := t.TempDir()
	findings := Examine(t.Context(), Target{
		DataDir: filepath.Join(dir, "not", "yet", "made"),
		Runtime: "gvisor",
		Runsc:   filepath.Join(dir, "atoll-runsc"),
		Guest:   filepath.Join(dir, "atoll-guest"),
		Image:   func() (string, error) { return "", errors.New("there is no image") },
	})
	level := map[string]Level{}
	for _, f := range findings {
		if f.Detail == "" {
			t.Errorf("%s says nothing of what was seen", f.Check)
		}
		if (f.Level == OK) != (f.Fix == "") {
			t.Errorf("%s is %s with the advice %q", f.Check, f.Level, f.Fix)
		}
		level[f.Check] = f.Level
	}
	for _, check := range []string{"runtime", "guest", "image"} {
		if level[check] != Failed {
			t.Errorf("%s is %q, want failed", check, level[check])
		}
	}
	for _, check := range []string{"kernel", "user namespaces", "cgroups", "network", "fuse", "disk"} {
		if level[check] == "" {
			t.Errorf("%s was not checked", check)
		}
	}
	if Healthy(findings) {
		t.Error("a machine without a runtime is called healthy")
	}
}

func TestBinariesAreTried(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "runsc")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho runsc version 1\necho more\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if f := runtimeBinary(t.Context(), Target{Runtime: "gvisor", Runsc: script}); f.Level != Failed {
		t.Errorf("a runtime without its kernel: %+v", f)
	}
	if err := os.Mkdir(filepath.Join(dir, "gvisor-bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "gvisor-bin", "gvisor_sentry"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	f := runtimeBinary(t.Context(), Target{Runtime: "gvisor", Runsc: script})
	if f.Level != OK || f.Detail != script+", runsc version 1" {
		t.Errorf("a working runtime: %+v", f)
	}
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if f := runtimeBinary(t.Context(), Target{Runtime: "gvisor", Runsc: script}); f.Level != Failed {
		t.Errorf("a broken runtime: %+v", f)
	}
	if f := guestBinary(script); f.Level != OK {
		t.Errorf("a guest: %+v", f)
	}
	if err := os.Chmod(script, 0o644); err != nil {
		t.Fatal(err)
	}
	if f := guestBinary(script); f.Level != Failed {
		t.Errorf("a guest that cannot be executed: %+v", f)
	}
}

func TestAnOCIRuntimeIsCalledWeaker(t *testing.T) {
	script := filepath.Join(t.TempDir(), "crun")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho crun version 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	want := Warning
	if os.Geteuid() != 0 {
		want = Failed // it needs root
	}
	if f := runtimeBinary(t.Context(), Target{Runtime: "oci", OCI: script}); f.Level != want || !strings.Contains(f.Detail, "crun version 1") {
		t.Errorf("an OCI runtime: %+v", f)
	}
	if f := runtimeBinary(t.Context(), Target{Runtime: "oci", OCI: script + "-not"}); f.Level != Failed {
		t.Errorf("a missing OCI runtime: %+v", f)
	}
}

// TestExamineGateway checks a machine for a gateway, which runs no sandboxes.
func TestExamineGateway(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	target := Target{DataDir: t.TempDir(), Gateway: true, Servers: []Server{{"database", "postgres://u:secret@" + address + "/atoll"}, {"nats", address}}}
	seen := func() map[string]Level {
		levels := map[string]Level{}
		for _, f := range Examine(t.Context(), target) {
			if levels[f.Check] = f.Level; strings.Contains(f.Detail, "secret") {
				t.Errorf("%s shows the password: %s", f.Check, f.Detail)
			}
		}
		return levels
	}
	want := map[string]Level{"role": OK, "disk": OK, "database": OK, "nats": OK}
	if got := seen(); !maps.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
	l.Close()
	target.Servers[0].URLs = "postgres://u:secret@%zz/atoll, " + target.Servers[0].URLs
	want["database"], want["nats"] = Failed, Failed
	if got := seen(); !maps.Equal(got, want) {
		t.Errorf("without servers: found %v, want %v", got, want)
	}
}
