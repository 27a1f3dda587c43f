package install

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

// tree lists the files in a folder.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, err := filepath.Rel(dir, p)
			found = append(found, rel)
			return err
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// dataDir makes a data folder with the tests' image.
func dataDir(t *testing.T) string {
	t.Helper()
	img, err := atolltest.ImageDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "images"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(img, filepath.Join(dir, "images", "default")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestMakeInstall installs below a folder, runs a program with what is there, and
// removes it again.
func TestMakeInstall(t *testing.T) {
	dest := t.TempDir()
	args := []string{"--no-print-directory", "-C", repo, "BIN=" + bin(t), "DESTDIR=" + dest, "PREFIX=/opt/atoll"}
	command(t, "make", append(args, "install")...)
	want := []string{
		"etc/atoll/atoll.yaml", "opt/atoll/bin/atoll", "opt/atoll/lib/systemd/system/atoll.service",
		"opt/atoll/libexec/atoll/atoll-guest", "opt/atoll/libexec/atoll/atoll-guestd", "opt/atoll/libexec/atoll/atoll-runsc",
		"opt/atoll/libexec/atoll/gvisor-bin/gvisor_sentry",
	}
	if got := tree(t, dest); !slices.Equal(got, want) {
		t.Fatalf("installed %q, want %q", got, want)
	}
	unit, err := os.ReadFile(filepath.Join(dest, "opt/atoll/lib/systemd/system/atoll.service"))
	if err != nil || !strings.Contains(string(unit), "\nExecStart=/opt/atoll/bin/atoll serve\n") {
		t.Errorf("the unit does not start the installed program (%v):\n%s", err, unit)
	}

	atoll := filepath.Join(dest, "opt/atoll/bin/atoll")
	program := filepath.Join(t.TempDir(), "six.py")
	if err := os.WriteFile(program, []byte("print(6 * 7)\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out := command(t, atoll, "run", "--data-dir", dataDir(t), program); out != "42\n" {
		t.Errorf("the program wrote %q", out)
	}

	config := filepath.Join(dest, "etc/atoll/atoll.yaml")
	if err := os.WriteFile(config, []byte("pool_size: 3\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	command(t, "make", append(args, "install")...)
	if kept, err := os.ReadFile(config); err != nil || string(kept) != "pool_size: 3\n" {
		t.Errorf("the configuration was written over: %q, %v", kept, err)
	}
	command(t, "make", append(args, "uninstall")...)
	if got := tree(t, dest); !slices.Equal(got, []string{"etc/atoll/atoll.yaml"}) {
		t.Errorf("left after uninstall: %q", got)
	}
}

// TestReproducible makes all release files twice.
func TestReproducible(t *testing.T) {
	again := t.TempDir()
	pack(t, again)
	if first, second := sums(t, files(t)), sums(t, again); !maps.Equal(first, second) || len(first) != 3 {
		t.Errorf("the release files differ:\n%v\n%v", first, second)
	}
}

// TestTarball runs a program with what was unpacked, in place.
func TestTarball(t *testing.T) {
	dir := t.TempDir()
	command(t, "tar", "-C", dir, "-xzf", sole(t, "*.tar.gz"))
	found, err := filepath.Glob(filepath.Join(dir, "*/bin/atoll"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%q, %v", found, err)
	}
	program := filepath.Join(dir, "six.sh")
	if err := os.WriteFile(program, []byte("echo $((6 * 7))\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out := command(t, found[0], "run", "--data-dir", dataDir(t), program); out != "42\n" {
		t.Errorf("the program wrote %q", out)
	}
}
