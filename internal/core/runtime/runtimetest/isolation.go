package runtimetest

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

// report is what the suite's program finds out about the world around it.
type report struct {
	UID, GID   int
	Groups     []int
	Status     map[string]string
	Env        []string
	Hostname   string
	Interfaces []string
	Processes  []string
	Files      []int
	Root       []string
	Mounts     string
	Tries      map[string]string
}

// testIsolation: a program is unprivileged and alone, and sees nothing of the host.
func testIsolation(t *testing.T, f *fixture) {
	const secret = "do-not-show-this"
	t.Setenv("ATOLL_SECRET", secret)
	b := f.create(t)
	var r report
	b.ask(t, &r, "report")

	if r.UID != runtime.UID || r.GID != runtime.GID || slices.ContainsFunc(r.Groups, func(g int) bool { return g != runtime.GID }) {
		t.Errorf("the program is %d:%d of %v", r.UID, r.GID, r.Groups)
	}
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapAmb"} {
		if v, ok := r.Status[set]; ok && strings.Trim(v, "0") != "" {
			t.Errorf("%s is %s", set, v)
		}
	}
	if v, ok := r.Status["NoNewPrivs"]; ok && v != "1" {
		t.Errorf("NoNewPrivs is %s", v)
	}
	if slices.ContainsFunc(r.Env, func(kv string) bool { return !strings.HasPrefix(kv, "HOME=") }) {
		t.Errorf("environment: %q", r.Env)
	}
	if host, err := os.Hostname(); err != nil || r.Hostname == host {
		t.Errorf("the program knows the host's name %q (%v)", r.Hostname, err)
	}
	if slices.ContainsFunc(r.Interfaces, func(name string) bool { return name != "lo" }) {
		t.Errorf("network interfaces: %q", r.Interfaces)
	}
	for _, p := range r.Processes {
		if p != runtime.GuestDir+"/guest" && p != "probe report" {
			t.Errorf("process: %q", p)
		}
	}
	if len(r.Files) > 0 {
		t.Errorf("descriptors beyond the standard three: %v", r.Files)
	}
	known := []string{".atoll", "bin", "dev", "etc", "home", "proc", "sys", "tmp"}
	if !slices.Equal(r.Root, known) {
		t.Errorf("the root folder holds %q, not %q", r.Root, known)
	}
	for _, of := range []string{f.state, built.dir} {
		if strings.Contains(r.Mounts, of) {
			t.Errorf("mounts tell of %s:\n%s", of, r.Mounts)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(r.Tries)) {
		if r.Tries[what] == "" {
			t.Errorf("the program can: %s", what)
		}
	}
	if t.Failed() {
		t.Logf("all tries: %s", strings.ReplaceAll(fmt.Sprintf("%q", r.Tries), `" "`, "\"\n\""))
	}
}

// testApart: what one sandbox writes, no other sees, neither beside nor after it.
func testApart(t *testing.T, f *fixture) {
	places := []string{runtime.Home + "/trace", "/tmp/trace", "/dev/shm/trace"}
	one, beside := f.create(t), f.create(t)
	for _, p := range places {
		one.run(t, "write", p, "mine")
	}
	for _, p := range places {
		if res, out := beside.try(t, "read", p); res.ExitCode == 0 {
			t.Errorf("%s beside: %q", p, out)
		}
		if got := one.run(t, "read", p); got != "mine" {
			t.Errorf("%s: %q", p, got)
		}
	}
	must(t, one.guest.Close())
	must(t, one.Destroy(t.Context()))
	after := f.create(t)
	for _, p := range places {
		if res, out := after.try(t, "read", p); res.ExitCode == 0 {
			t.Errorf("%s after: %q", p, out)
		}
	}
}
