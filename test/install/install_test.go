package install

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

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
		"opt/atoll/libexec/atoll/atoll-guest", "opt/atoll/libexec/atoll/atoll-guestd", "opt/atoll/libexec/atoll/atoll-redteam", "opt/atoll/libexec/atoll/atoll-runsc",
		"opt/atoll/libexec/atoll/gvisor-bin/gvisor_sentry",
		"opt/atoll/share/doc/atoll/NOTICE", "opt/atoll/share/doc/atoll/copyright",
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
	if first, second := sums(t, files(t)), sums(t, again); !maps.Equal(first, second) || len(first) != 4 {
		t.Errorf("the release files differ:\n%v\n%v", first, second)
	}
}

// smallImage makes a data folder whose default image has only Bash, this machine's.
func smallImage(t *testing.T, atoll string) string {
	t.Helper()
	dir := t.TempDir()
	files := filepath.Join(dir, "files.tar")
	command(t, "sh", "-c", `tar -Pchf "$1" /usr/bin/bash $(ldd /usr/bin/bash | grep -o '/[^ ]*')`, "sh", files)
	layer, err := tarball.LayerFromFile(files)
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	img, err = mutate.ConfigFile(img, &v1.ConfigFile{Architecture: runtime.GOARCH, OS: "linux", RootFS: configOf(t, img).RootFS})
	if err != nil {
		t.Fatal(err)
	}
	saved := filepath.Join(dir, "saved.tar")
	if err := tarball.WriteToFile(saved, name.MustParseReference("small:latest"), img); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	command(t, atoll, "image", "import", "--data-dir", data, "--name", "default", saved)
	return data
}

func configOf(t *testing.T, img v1.Image) *v1.ConfigFile {
	t.Helper()
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestPrebuiltImage exports a small image and starts anew with it: from the place
// where packages put it, and from image_source.
func TestPrebuiltImage(t *testing.T) {
	dir := t.TempDir()
	command(t, "make", "--no-print-directory", "-C", repo, "BIN="+bin(t), "DESTDIR="+dir, "PREFIX=/usr", "install")
	atoll := filepath.Join(dir, "usr/bin/atoll")
	program := filepath.Join(dir, "six.sh")
	images := filepath.Join(dir, "usr/share/atoll/images")
	if err := errors.Join(os.Mkdir(images, 0o755), os.WriteFile(program, []byte("echo $((6 * 7))\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(images, "atoll-image-default-"+runtime.GOARCH+".tar.zst")
	printed, err := exec.CommandContext(t.Context(), atoll, "image", "export", "--data-dir", smallImage(t, atoll), "default", archive).Output()
	if err != nil {
		t.Fatal(err)
	}
	sum, _, _ := strings.Cut(string(printed), " ")

	fresh := filepath.Join(dir, "first")
	if out := command(t, atoll, "doctor", "--data-dir", fresh); !strings.Contains(out, "the first start imports "+archive) {
		t.Errorf("the doctor says %s", out)
	}
	if out := command(t, atoll, "run", "--data-dir", fresh, program); out != "42\n" {
		t.Errorf("the first run wrote %q", out)
	}
	if out := command(t, atoll, "run", "--data-dir", fresh, program); out != "42\n" {
		t.Errorf("the second run wrote %q", out)
	}

	moved := filepath.Join(dir, "elsewhere.tar.zst")
	if err := os.Rename(archive, moved); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "second")
	out, err := exec.CommandContext(t.Context(), atoll, "run", "--data-dir", other, "--image-source", moved+"#sha256="+strings.Repeat("0", 64), program).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "is not the one that was asked for") {
		t.Errorf("with another checksum: %v, %s", err, out)
	}
	if out := command(t, atoll, "run", "--data-dir", other, "--image-source", moved+"#sha256="+sum, program); out != "42\n" {
		t.Errorf("with its checksum: %q", out)
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
