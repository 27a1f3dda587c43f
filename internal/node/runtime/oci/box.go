package oci

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/idmap"
)

// The box is a sandbox's part of the stage, in the sandbox's own mount namespace.
var (
	boxDir   = filepath.Join(stageDir, "box")
	boxRoot  = filepath.Join(boxDir, "root")  // the sandbox's /
	boxGuest = filepath.Join(boxDir, "guest") // its sandbox.GuestDir
)

// boxBind is where the i-th of a Tree's binds is, boxMount the i-th mount.
func boxBind(i int) string  { return filepath.Join(boxDir, "bind"+strconv.Itoa(i)) }
func boxMount(i int) string { return filepath.Join(boxDir, "mount"+strconv.Itoa(i)) }

// layerOverhead are the files that the overlay needs for itself in its layer.
const layerOverhead = 8

// buildBox mounts what a sandbox sees: its root file system read-only, under a
// layer in memory with a size, and folders of the host. All but its mounts
// belongs, as the sandbox's user namespace sees it, to its owner on the host. lower is the folder of the image, guest that of the guest's files.
func buildBox(spec runtime.Spec, lower, guest string) error {
	base := baseUID(spec.ID)
	users, err := newUserNamespace(0, base)
	if err != nil {
		return err
	}
	defer users.Close()
	if err := tmpfs(boxDir, "size=64k,mode=755", unix.MS_NOSUID|unix.MS_NODEV); err != nil {
		return err
	}
	if err := buildRoot(spec.Limits, lower, users, base); err != nil {
		return err
	}
	if err := shift(guest, boxGuest, users, false); err != nil {
		return err
	}
	for i, b := range spec.Rootfs.Binds {
		if err := shift(b.Source, boxBind(i), users, false); err != nil {
			return err
		}
	}
	return buildMounts(spec.Mounts, base)
}

// buildMounts mounts folders of the host whose files belong, there, to the
// users that package idmap names.
func buildMounts(mounts []runtime.Mount, base uint32) error {
	if len(mounts) == 0 {
		return nil
	}
	users, err := newUserNamespace(idmap.Base, base)
	if err != nil {
		return err
	}
	defer users.Close()
	for i, m := range mounts {
		if err := shift(m.Source, boxMount(i), users, m.Writable); err != nil {
			return err
		}
	}
	return nil
}

// buildRoot mounts the sandbox's /.
func buildRoot(l runtime.Limits, source string, users *os.File, base uint32) error {
	lower, layer := filepath.Join(boxDir, "lower"), filepath.Join(boxDir, "layer")
	upper, work := filepath.Join(layer, "upper"), filepath.Join(layer, "work")
	if err := shift(source, lower, users, false); err != nil {
		return err
	}
	if err := os.Mkdir(layer, 0o755); err != nil {
		return err
	}
	options := fmt.Sprintf("size=%d,nr_inodes=%d,mode=755", l.Root, l.Inodes+layerOverhead)
	if err := tmpfs(layer, options, unix.MS_NOSUID|unix.MS_NODEV); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Stat(lower, &st); err != nil {
		return err
	}
	for _, dir := range []string{upper, work, boxRoot} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	// The overlay's / is the upper one, and the guest needs to own it.
	if err := unix.Chown(upper, int(base), int(base)); err != nil {
		return err
	}
	if err := unix.Chmod(upper, st.Mode&0o777|0o555); err != nil {
		return err
	}
	// Relative, so that /proc/mounts shows the sandbox nothing of the host.
	if err := unix.Chdir(boxDir); err != nil {
		return err
	}
	const data = "lowerdir=lower,upperdir=layer/upper,workdir=layer/work"
	if err := unix.Mount("overlay", boxRoot, "overlay", unix.MS_NOSUID|unix.MS_NODEV, data); err != nil {
		return fmt.Errorf("mount the overlay: %w", err)
	}
	return unix.Chdir("/")
}
