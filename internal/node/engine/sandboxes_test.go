package engine

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/disk"
	"github.com/atoll-run/atoll/internal/node/home"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
	"github.com/atoll-run/atoll/test/atolltest"
)

// secured is a data folder whose part for a server's files is fit for programs'.
func secured(t *testing.T) string {
	t.Helper()
	dir := folder(t)
	own := filepath.Join(dir, "state", Server)
	if err := home.Secure(own); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := home.Unmount(own); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func recipe() sandboxes.Recipe {
	return sandboxes.Recipe{ID: runtime.NewID(), Image: atolltest.Image, Limits: runtime.DefaultLimits()}
}

// shell runs a command in a sandbox.
func shell(t *testing.T, l sandboxes.Live, command string) string {
	t.Helper()
	c, err := l.Guest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o, err := c.Run(t.Context(), process.Spec{Shell: command, Env: l.Environ(nil), Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	var out strings.Builder
	for {
		chunk, err := o.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		out.Write(chunk.Data)
	}
	if code := o.Exit().Code; code != 0 {
		t.Errorf("%s: exit code %d: %s", command, code, out.String())
	}
	return strings.TrimSpace(out.String())
}

func make1(t *testing.T, n Sandboxes, r sandboxes.Recipe) sandboxes.Live {
	t.Helper()
	if err := n.Admit(r); err != nil {
		t.Fatal(err)
	}
	l, err := n.Create(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestANamedSandboxKeepsItsFilesOnDisk(t *testing.T) {
	e := start(t, secured(t), nil)
	n, r := e.Sandboxes(), recipe()
	l := make1(t, n, r)
	shell(t, l, `echo home > ~/a; echo tmp > /tmp/b; echo var > /var/tmp/c; mkdir -p ~/d/e; ln -s a ~/l; head -c 200000000 /dev/zero > ~/big`)
	if got := shell(t, l, `cat a /tmp/b /var/tmp/c; stat -c %u:%g:%a . /tmp /var/tmp; stat -c %s big; echo $HOME`); got != "home\ntmp\nvar\n1000:1000:755\n0:0:1777\n0:0:1777\n200000000\n/home/user" {
		t.Errorf("inside: %s", got)
	}
	if used, err := disk.Measure(t.Context(), l.Folder(), 1<<40); err != nil || used < 200_000_000 || used > 210_000_000 {
		t.Errorf("on disk: %d, %v", used, err)
	}
	if left, err := n.List(t.Context()); err != nil || !slices.Equal(left, []runtime.ID{r.ID}) {
		t.Errorf("left: %v, %v", left, err)
	}
	if err := l.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
	nothingLeft(t, e, r.ID)
}

// nothingLeft reports files of a sandbox that is gone.
func nothingLeft(t *testing.T, e *Engine, id runtime.ID) {
	t.Helper()
	for _, dir := range []string{e.host.dir, e.host.disk} {
		err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			if strings.Contains(path, string(id)) {
				t.Errorf("%s is left", path)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestANamedSandboxOutlivesItsEngine(t *testing.T) {
	dir := secured(t)
	first := open(t, dir, nil)
	r, other := recipe(), recipe()
	l := make1(t, first.Sandboxes(), r)
	shell(t, l, `echo kept > ~/a; nohup sh -c 'while :; do date +%s%N > ~/beat; sleep 0.05; done' >/dev/null 2>&1 & until [ -s ~/beat ]; do sleep 0.05; done`)
	dead := make1(t, first.Sandboxes(), other)
	for _, l := range []sandboxes.Live{l, dead} {
		if err := l.Detach(); err != nil {
			t.Error(err)
		}
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}

	e := start(t, dir, nil) // sweeps
	n := e.Sandboxes()
	l, err := n.Open(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if got := shell(t, l, `cat a; before=$(cat beat); for i in $(seq 100); do [ "$(cat beat)" != "$before" ] && echo alive && exit; sleep 0.05; done`); got != "kept\nalive" {
		t.Errorf("after the take-over: %s", got)
	}
	if left, err := n.List(t.Context()); err != nil || len(left) != 2 {
		t.Errorf("left: %v, %v", left, err)
	}
	if err := n.Remove(t.Context(), other.ID); err != nil {
		t.Error(err)
	}
	if _, err := n.Open(t.Context(), other); err == nil {
		t.Error("a removed sandbox was opened")
	}
	if err := l.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
	nothingLeft(t, e, r.ID)
	nothingLeft(t, e, other.ID)
}
