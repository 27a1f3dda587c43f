package runtimetest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/initclient"
)

// testFailedCreate: whatever goes wrong, nothing is left.
func testFailedCreate(t *testing.T, f *fixture) {
	garbage := filepath.Join(t.TempDir(), "garbage.erofs")
	must(t, os.WriteFile(garbage, make([]byte, 64<<10), 0o644))
	for name, change := range map[string]func(*runtime.Spec){
		"no such image":  func(s *runtime.Spec) { s.Rootfs = runtime.Rootfs{Image: garbage + ".not"} },
		"no image":       func(s *runtime.Spec) { s.Rootfs = runtime.Rootfs{Image: garbage} },
		"no such folder": func(s *runtime.Spec) { s.Rootfs = runtime.Rootfs{Tree: garbage + ".not"} },
		"no limits":      func(s *runtime.Spec) { s.Limits = runtime.Limits{} },
		"no ID":          func(s *runtime.Spec) { s.ID = "../x" },
	} {
		t.Run(name, func(t *testing.T) {
			spec := f.spec(t)
			change(&spec)
			inst, err := f.runtime.Create(t.Context(), spec)
			if err == nil {
				must(t, inst.Destroy(t.Context()))
				t.Error("a sandbox was made")
			}
			f.checkEmpty(t)
		})
	}
	// The caller gives up, sooner and later: how long all of it takes is
	// measured, and cut into pieces.
	begun := time.Now()
	b := f.create(t)
	whole := time.Since(begun)
	must(t, b.guest.Close())
	must(t, b.Destroy(t.Context()))
	const pieces = 12
	for i := range pieces {
		after := whole * time.Duration(i) / pieces
		t.Run(fmt.Sprintf("given up at %d of %d", i, pieces), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			if inst, err := f.runtime.Create(ctx, f.spec(t)); err == nil {
				must(t, inst.Destroy(t.Context()))
			}
			f.checkEmpty(t)
		})
	}
}

// victimVariable tells a copy of the test program that it is to be killed, and
// on which state folder it is to make sandboxes before.
const victimVariable = "ATOLL_SANDBOXTEST_VICTIM"

// testKilledHost: the process that made sandboxes is killed. The next one finds
// them alive, and what it destroys is gone.
func testKilledHost(t *testing.T, f *fixture) {
	must(t, f.runtime.Close())
	cmd := exec.Command(os.Args[0], "-test.run=^"+rootTest(t)+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), victimVariable+"="+f.state, builtVariable+"="+built.dir)
	cmd.Stderr = os.Stderr
	said, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	var ids []runtime.ID
	for scanner := bufio.NewScanner(said); len(ids) < victims && scanner.Scan(); {
		if id := runtime.ID(scanner.Text()); id.Valid() {
			ids = append(ids, id)
		} else {
			t.Log(scanner.Text())
		}
	}
	must(t, cmd.Process.Kill())
	cmd.Wait()
	f.runtime = f.Open(t, f.state, f.groups)
	if len(ids) != victims {
		t.Fatalf("the process to be killed made %d sandboxes of %d", len(ids), victims)
	}
	for _, id := range ids {
		inst, err := f.runtime.Open(t.Context(), id)
		must(t, err)
		b := &box{Instance: inst}
		b.guest, err = initclient.Dial(t.Context(), inst.Channel())
		must(t, err)
		if got := b.run(t, "echo", "alive"); got != "[alive]\n" {
			t.Errorf("a program printed %q", got)
		}
		must(t, b.guest.Close())
		must(t, inst.Detach())
	}
	infos, err := f.runtime.List(t.Context())
	must(t, err)
	for _, info := range infos {
		must(t, f.runtime.Destroy(t.Context(), info.ID))
	}
	f.checkEmpty(t)
}

// victims is how many sandboxes the process to be killed makes; another is
// being made while it is killed.
const victims = 2

// becomeVictim makes sandboxes until it is killed.
func becomeVictim(t *testing.T, d Driver, state string) {
	f := &fixture{Driver: d, state: state}
	if !d.NoCgroups {
		f.groups = openGroups(t, state)
	}
	rt := d.Open(t, state, f.groups)
	for {
		inst, err := rt.Create(t.Context(), f.spec(t))
		must(t, err)
		fmt.Println(inst.ID())
	}
}
