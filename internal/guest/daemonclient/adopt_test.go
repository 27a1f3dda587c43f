package daemonclient_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/daemonclient"
	"github.com/atoll-run/atoll/internal/guest/daemonclient/clienttest"
	"github.com/atoll-run/atoll/internal/node/idmap"
	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/check"
)

func TestAdopt(t *testing.T) {
	s := clienttest.New(t)
	c := s.Dial(t)
	owners, err := idmap.Find()
	must(t, err)
	uid, _ := owners.UID.ToHost(runtime.UID)
	below := func(at string) string {
		rest, ok := strings.CutPrefix(at, runtime.Home+"/")
		if !ok {
			t.Fatalf("it grows up at %q", at)
		}
		return filepath.Join(s.Home, rest)
	}
	grow := func(at string) {
		dir := filepath.Join(below(at), daemonclient.Adopted)
		must(t, os.MkdirAll(filepath.Join(dir, "sub", "more"), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, "sub", "f"), []byte("grown"), 0o644))
		for _, name := range []string{"", "sub", "sub/more", "sub/f"} {
			must(t, os.Lchown(filepath.Join(dir, name), int(uid), int(uid)))
		}
	}
	shell := func(command string) string {
		t.Helper()
		return strings.TrimSpace(run(t, c, command).out[process.Stdout])
	}

	t.Run("whole", func(t *testing.T) {
		// The kernel is asked about all of it before.
		if got := shell("ls -a; stat new/folder new/folder/sub/f; mkdir new; ls -a new; stat new/folder/sub/f; true"); strings.Contains(got, "grown") {
			t.Error(got)
		}
		must(t, c.Adopt(t.Context(), "new/folder", func(_ context.Context, at string) error {
			grow(at)
			nursery := filepath.Base(at)
			if got := shell("cat new/" + nursery + "/adopted/sub/f || ls new/" + nursery + " || mkdir new/" + nursery + "/x || ls -a new/folder || echo closed"); got != "closed" {
				t.Errorf("programs reach what is not whole: %s", got)
			}
			return nil
		}))
		if got := shell("ls -A new; find new/folder -type f; cat new/folder/sub/f; stat -c ' %U %h' new/folder; echo more >> new/folder/sub/f; mkdir new/folder/sub/more/x"); got != "folder\nnew/folder/sub/f\ngrown user 3" {
			t.Errorf("got %q", got)
		}
		if data, err := os.ReadFile(filepath.Join(s.Home, "new/folder/sub/f")); err != nil || string(data) != "grownmore\n" {
			t.Errorf("the host has %q, %v", data, err)
		}
	})
	left := func(t *testing.T) {
		t.Helper()
		entries, err := os.ReadDir(s.Home)
		must(t, err)
		if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), ".atoll-") }) {
			t.Errorf("there is left: %v", entries)
		}
	}
	t.Run("not made", func(t *testing.T) {
		no := errors.New("no")
		if err := c.Adopt(t.Context(), "nothing", func(_ context.Context, at string) error { grow(at); return no }); !errors.Is(err, no) {
			t.Error(err)
		}
		if err := c.Adopt(t.Context(), "nothing", func(context.Context, string) error { return nil }); fault.KindOf(err) != fault.NotFound {
			t.Errorf("what is not there: %v", err)
		}
		if err := c.Adopt(t.Context(), "nothing", func(_ context.Context, at string) error { grow(at); shell("mkdir nothing"); return nil }); fault.KindOf(err) != fault.Conflict {
			t.Errorf("what came meanwhile: %v", err)
		}
		if got := shell("ls -A nothing"); got != "" {
			t.Error(got)
		}
		left(t)
	})
	t.Run("refused", func(t *testing.T) {
		shell("ln -s nowhere link; mkdir -p closed && chmod 555 closed; touch file")
		for path, kind := range map[string]fault.Kind{
			"new/folder": fault.Conflict, "new/": fault.Conflict, "link": fault.Conflict, "/": fault.Conflict, "new/..": fault.Conflict, "closed/x": fault.Forbidden,
			"/usr/x": fault.Forbidden, "file/x": fault.Invalid, "": fault.Invalid, "a\x00b": fault.Invalid,
		} {
			err := c.Adopt(t.Context(), path, func(context.Context, string) error { t.Errorf("%q is made", path); return nil })
			if fault.KindOf(err) != kind {
				t.Errorf("%q: %v", path, err)
			}
		}
		left(t)
	})
	t.Run("hung up", func(t *testing.T) {
		other := s.Dial(t) // it has the first one hang up
		err := c.Adopt(t.Context(), "nothing2", func(context.Context, string) error { return nil })
		if !errors.Is(err, process.ErrGone) {
			t.Errorf("by the first: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var grown string
		err = other.Adopt(ctx, "nothing3", func(filling context.Context, at string) error {
			grow(at)
			grown = below(at)
			cancel()
			<-filling.Done()
			return context.Cause(filling)
		})
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		atolltest.Until(t, 10*time.Second, "the folder is removed", func() bool { _, err := os.Lstat(grown); return errors.Is(err, fs.ErrNotExist) })
		left(t)
	})
	t.Run("what the host does not see", func(t *testing.T) {
		c := s.Dial(t)
		run(t, c, "mkdir -p seen/deep/down unseen/deep; touch seen/f; ln -s f seen/l; mkfifo unseen/deep/pipe")
		for path, want := range map[string]bool{"seen": true, "unseen": false} {
			if whole, err := c.Whole(t.Context(), path); err != nil || whole != want {
				t.Errorf("%s: %v, %v", path, whole, err)
			}
		}
		if _, err := c.Whole(t.Context(), "seen/f"); fault.KindOf(err) != fault.Invalid {
			t.Errorf("of a file: %v", err)
		}
	})
}

var must = check.Must
