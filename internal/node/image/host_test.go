package image_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/node/image"
	"github.com/atoll-run/atoll/internal/node/image/imagetest"
)

func TestHost(t *testing.T) {
	s := open(t)
	img, err := s.Host(t.Context(), imagetest.Probe(t))
	if err != nil {
		t.Fatal(err)
	}
	bash, ok := img.Interpreter(execution.Bash)
	if !ok || bash.Version == "" || !strings.HasPrefix(bash.Path, "/usr/") {
		t.Fatalf("bash: %+v", img.Interpreters)
	}
	if python, ok := img.Interpreter(execution.Python); ok && (python.Version == "" || python.SiteDir == "") {
		t.Errorf("%+v", python)
	}
	for _, b := range img.Rootfs.Binds {
		if b.Source == "/" || strings.HasPrefix(b.Source, "/home") || strings.HasPrefix(b.Source, "/root") || strings.HasPrefix(b.Source, "/etc") {
			t.Errorf("%s is shown", b.Source)
		}
	}
	for _, secret := range []string{"shadow", "ssl/private", "ssh", "machine-id", "sudoers", "fstab"} {
		data, err := os.ReadFile(filepath.Join(img.Rootfs.Tree, "etc", secret))
		if err == nil && len(data) > 0 {
			t.Errorf("/etc/%s is shown", secret)
		}
	}
	err = filepath.WalkDir(img.Rootfs.Tree, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if info, err := d.Info(); err != nil {
			return err
		} else if d.Type() != fs.ModeSymlink && info.Mode().Perm()&0o004 == 0 {
			t.Errorf("%s cannot be read in the sandbox: %v", p, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	again, err := s.Host(t.Context(), imagetest.Probe(t))
	if err != nil || !again.Created.Equal(img.Created) || again.Digest != img.Digest {
		t.Fatalf("made anew though nothing changed: %+v, %v", again, err)
	}
	if got, err := s.Get(image.HostName); err != nil || got.Rootfs.Tree != img.Rootfs.Tree || len(got.Rootfs.Binds) != len(img.Rootfs.Binds) {
		t.Fatalf("%+v, %v", got, err)
	}
	if left := leftovers(t, s); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}
