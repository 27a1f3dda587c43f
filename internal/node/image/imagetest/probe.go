package imagetest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/image"
)

// Probe returns an image.Probe that runs a program in a chroot of the mounted
// image, as the unprivileged user and without a network. It stands in for a
// sandbox in the tests of images, and is none.
func Probe(t testing.TB) image.Probe {
	return func(ctx context.Context, rootfs runtime.Rootfs, argv []string) ([]byte, error) {
		root := rootfs.Tree
		if rootfs.Image != "" {
			root = Mount(t, rootfs.Image)
		}
		script := `set -e; root=$1; shift
for bind in $BINDS; do mount --bind "$bind" "$root$bind"; done
exec chroot --userspec=1000:1000 "$root" "$@"`
		args := append([]string{"--mount", "--net", "sh", "-c", script, "sh", root}, argv...)
		cmd := exec.CommandContext(ctx, "unshare", args...)
		if os.Geteuid() != 0 {
			cmd = exec.CommandContext(ctx, "sudo", append([]string{"-n", "--preserve-env=BINDS", "unshare"}, args...)...)
		}
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + runtime.Home}
		binds := ""
		for _, b := range rootfs.Binds {
			if filepath.Clean(b.Source) != b.Target {
				t.Fatalf("this probe binds a folder only where it lies: %v", b)
			}
			binds += b.Target + " "
		}
		cmd.Env = append(cmd.Env, "BINDS="+binds)
		return cmd.Output()
	}
}
