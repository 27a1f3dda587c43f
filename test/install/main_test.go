package install

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

// version is that of the packages the tests make.
const version = "v9.9.9"

// release is a folder of release files. They are made once for all tests.
var release struct {
	once sync.Once
	dir  string
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, dir := range []string{release.dir, unpacked.dir} {
		if dir != "" {
			_ = os.RemoveAll(dir) // a temporary folder
		}
	}
	os.Exit(code)
}

// repo is the folder of the sources.
const repo = "../.."

// bin returns the folder of the built programs.
func bin(t testing.TB) string {
	t.Helper()
	atoll, err := atolltest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(atoll)
}

// pack writes the release files into a folder, compressed as fast as possible.
func pack(t testing.TB, dir string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "packaging/package.sh", dir)
	cmd.Dir = repo
	cmd.Env = append(os.Environ(), "VERSION="+version, "BIN="+bin(t), "LEVEL=1", "SOURCE_DATE_EPOCH=1700000000")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("package.sh: %v\n%s", err, out)
	}
}

// files returns the folder of the release files.
func files(t testing.TB) string {
	t.Helper()
	release.once.Do(func() {
		if release.dir, release.err = os.MkdirTemp("", "atoll-release-"); release.err == nil {
			pack(t, release.dir)
		}
	})
	if release.err != nil {
		t.Fatal(release.err)
	}
	return release.dir
}

// sole returns the only file of the release that matches a pattern.
func sole(t testing.TB, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(files(t), pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("files like %s: %q, %v", pattern, found, err)
	}
	return found[0]
}

// sums returns the checksum of each file in a folder.
func sums(t testing.TB, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = fmt.Sprintf("%x", sha256.Sum256(data))
	}
	return out
}

// command runs a program and returns what it wrote, stderr included.
func command(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}
