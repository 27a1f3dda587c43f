// Package imagetest helps the tests of images.
package imagetest

import (
	"os"
	"os/exec"
	"testing"
)

// Mount mounts an EROFS image read-only until the test ends and returns the
// folder. It needs a kernel with erofs and loop devices, and root or a sudo that
// does not ask.
func Mount(t testing.TB, image string) string {
	t.Helper()
	dir := t.TempDir()
	asRoot(t, "mount", "-t", "erofs", "-o", "ro,loop", image, dir)
	t.Cleanup(func() { asRoot(t, "umount", dir) })
	return dir
}

func asRoot(t testing.TB, argv ...string) {
	t.Helper()
	if os.Geteuid() != 0 {
		argv = append([]string{"sudo", "-n"}, argv...)
	}
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
}
