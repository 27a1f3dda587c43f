package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/dustin/go-humanize"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/node/netns"
	"github.com/atoll-run/atoll/internal/node/rootless"
)

// oldestKernel is the first whose pidfds can be polled without blocking; gVisor
// itself would do with an older one.
var oldestKernel = [2]int{5, 10}

func kernel() Finding {
	const name = "kernel"
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return failed(name, err.Error(), "Atoll needs Linux")
	}
	release := unix.ByteSliceToString(u.Release[:])
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		return warning(name, "cannot read the version in "+release, "make sure that it is 5.10 or newer")
	}
	if major < oldestKernel[0] || major == oldestKernel[0] && minor < oldestKernel[1] {
		return failed(name, "Linux "+release, "Atoll needs Linux 5.10 or newer: upgrade the kernel")
	}
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		return failed(name, "Linux "+release+" on "+runtime.GOARCH, "gVisor runs on amd64 and arm64")
	}
	return ok(name, "Linux %s on %s", release, runtime.GOARCH)
}

// userNamespaces makes one, since the settings that forbid it are many and
// differ between distributions. It runs runsc in it where there is no true(1),
// as in a container without a base image.
func userNamespaces(ctx context.Context, t Target) Finding {
	const name = "user namespaces"
	cmd := exec.CommandContext(ctx, "true")
	if errors.Is(cmd.Err, exec.ErrNotFound) {
		cmd = exec.CommandContext(ctx, t.Runsc, "--version")
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	err := cmd.Run()
	switch {
	case err == nil:
		return ok(name, "one can be made")
	case errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist):
		return warning(name, "could not be tried: there is no true(1)", "install coreutils")
	case os.Geteuid() == 0 && t.Runtime != "gvisor":
		return warning(name, "none can be made: "+err.Error(), allowUserNamespaces())
	case os.Geteuid() == 0: // gVisor's kernels live in one
		return failed(name, "none can be made: "+err.Error(), allowUserNamespaces())
	default:
		return failed(name, "none can be made: "+err.Error(), allowUserNamespaces()+"; or run as root")
	}
}

// allowUserNamespaces names the setting that forbids them.
func allowUserNamespaces() string {
	if fix := rootless.Forbidden(); fix != "" {
		return "run " + fix
	}
	return "in a container, leave its seccomp profile off (docker run --security-opt seccomp=unconfined); in a chroot none can ever be made"
}

// subordinateIDs says whether sandboxes of an ordinary user get another user to
// run as; nil for root, whose do.
func subordinateIDs() []Finding {
	const name = "subordinate ids"
	if os.Geteuid() == 0 {
		return nil
	}
	if err := rootless.Subordinate(); err != nil {
		return []Finding{warning(name, strings.ReplaceAll(err.Error(), "\n", "; "),
			"without them sandboxes run as this very user, and the default image cannot be built: as root, run what is named")}
	}
	return []Finding{ok(name, "newuidmap works with what /etc/subuid and /etc/subgid grant")}
}

func cgroups() Finding {
	const (
		name     = "cgroups"
		mount    = "/sys/fs/cgroup"
		delegate = "run as root, or in a unit with Delegate=yes (systemd-run --user --scope -p Delegate=yes atoll serve)"
		weaker   = "; without it memory and processes are held by weaker means"
	)
	var st unix.Statfs_t
	if err := unix.Statfs(mount, &st); err != nil {
		return warning(name, mount+" is not mounted", "mount cgroup v2 there"+weaker)
	}
	if st.Type != unix.CGROUP2_SUPER_MAGIC {
		var missing []string
		for _, c := range []string{"memory", "cpu", "pids"} {
			if unix.Access(filepath.Join(mount, c), unix.W_OK) != nil {
				missing = append(missing, c)
			}
		}
		if len(missing) > 0 {
			return warning(name, "version 1, not writable: "+strings.Join(missing, ", "), delegate+weaker)
		}
		return ok(name, "version 1 with memory, cpu and pids, writable")
	}
	own, err := ownCgroup()
	if err != nil {
		return warning(name, err.Error(), delegate+weaker)
	}
	dir := filepath.Join(mount, own)
	if os.Geteuid() == 0 && unix.Access(filepath.Join(dir, "cgroup.subtree_control"), unix.W_OK) != nil {
		dir = mount
	}
	have, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return warning(name, err.Error(), delegate+weaker)
	}
	var missing []string
	for _, c := range []string{"memory", "cpu", "pids"} {
		if !containsWord(string(have), c) {
			missing = append(missing, c)
		}
	}
	if len(missing) > 0 {
		return warning(name, "version 2, but "+dir+" has no "+strings.Join(missing, ", "), delegate+weaker)
	}
	if unix.Access(filepath.Join(dir, "cgroup.subtree_control"), unix.W_OK) != nil || unix.Access(dir, unix.W_OK) != nil {
		return warning(name, "version 2, but "+dir+" is not delegated to this user", delegate+weaker)
	}
	return ok(name, "version 2 with memory, cpu and pids, delegated at %s", dir)
}

// ownCgroup returns this process's group in the version 2 hierarchy.
func ownCgroup() (string, error) {
	raw, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(raw)) {
		if path, found := strings.CutPrefix(strings.TrimSpace(line), "0::"); found {
			return path, nil
		}
	}
	return "", errors.New("this process is not in a cgroup v2 group")
}

func containsWord(text, word string) bool {
	for w := range strings.FieldsSeq(text) {
		if w == word {
			return true
		}
	}
	return false
}

// device checks that a device can be opened; what it is for is not needed by
// every sandbox, so its lack is no failure.
func device(name, path, fix string) Finding {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return warning(name, err.Error(), fix)
	}
	_ = f.Close() // nothing was written
	return ok(name, "%s opens", path)
}

// network makes what a sandbox's network needs of the host, as far as this user may.
func network() Finding {
	const name = "network"
	dev := device(name, "/dev/net/tun", "sandboxes with a network need it: modprobe tun, in a container pass --device /dev/net/tun, and let this user open it (chmod 0666 /dev/net/tun)")
	if dev.Level != OK {
		return dev
	}
	if os.Geteuid() != 0 {
		if rootless.Subordinate() != nil {
			return warning(name, "sandboxes cannot have one", "it takes subordinate ids, or root")
		}
		return dev
	}
	l, err := netns.New(netns.Config{
		Address: netip.MustParsePrefix("192.0.2.2/30"), MAC: net.HardwareAddr{2, 0, 0, 0, 0, 2},
		Gateway: netip.MustParseAddr("192.0.2.1"), GatewayMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, MTU: 1500,
	})
	if err == nil {
		err = l.Close()
	}
	if err != nil {
		return warning(name, "sandboxes cannot have one: "+err.Error(), "in a container, allow it CAP_NET_ADMIN and CAP_SYS_ADMIN")
	}
	return ok(name, "a namespace with a TAP device can be made")
}

// enoughDisk is what building the default image takes, with room for a few
// more.
const enoughDisk = 4 << 30

func disk(dir string) Finding {
	const name = "disk"
	at := dir
	var st unix.Statfs_t
	err := unix.Statfs(at, &st)
	for errors.Is(err, unix.ENOENT) && at != filepath.Dir(at) { // not made yet
		at = filepath.Dir(at)
		err = unix.Statfs(at, &st)
	}
	if err != nil {
		return failed(name, fmt.Sprintf("%s: %v", dir, err), "choose another data_dir")
	}
	if unix.Access(at, unix.W_OK) != nil {
		return failed(name, at+" is not writable", "choose another data_dir, or own this one")
	}
	free := st.Bavail * uint64(st.Bsize)
	if free < enoughDisk {
		return warning(name, fmt.Sprintf("%s free at %s", humanize.IBytes(free), at), "building the default image takes about "+humanize.IBytes(enoughDisk))
	}
	return ok(name, "%s free at %s", humanize.IBytes(free), at)
}

func runtimeBinary(ctx context.Context, t Target) Finding {
	const name = "runtime"
	binary, fix := t.Runsc, "run make build, or set runsc to gVisor's runtime"
	if t.Runtime == "oci" {
		binary, fix = t.OCI, "install it (apt-get install crun), or set oci_runtime"
	}
	path, err := exec.LookPath(binary)
	if err != nil {
		return failed(name, err.Error(), fix)
	}
	if sentry := filepath.Join(filepath.Dir(path), "gvisor-bin", "gvisor_sentry"); t.Runtime == "gvisor" {
		if _, err := os.Stat(sentry); err != nil {
			return failed(name, err.Error(), fix)
		}
	}
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return failed(name, fmt.Sprintf("%s --version: %v", path, err), fix)
	}
	first, _, _ := strings.Cut(string(out), "\n")
	if t.Runtime == "oci" {
		return weaker(path + ", " + first)
	}
	return ok(name, "%s, %s", path, first)
}

// weaker is the finding on an OCI runtime that is there.
func weaker(seen string) Finding {
	const name = "runtime"
	if os.Geteuid() != 0 {
		return failed(name, seen+", which Atoll drives as root only", "run as root, or set runtime to gvisor")
	}
	return warning(name, seen+": sandboxes share the host's kernel, a weaker boundary than gVisor's", "set runtime to gvisor, unless another boundary surrounds this machine")
}

func guestBinary(path string) Finding {
	const name = "guest"
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return failed(name, err.Error(), "run make build, or set guest to atoll-guest")
	case info.Mode()&0o111 == 0:
		return failed(name, path+" is not executable", "chmod +x "+path)
	}
	return ok(name, "%s", path)
}

func image(describe func() (string, error)) Finding {
	const name = "image"
	detail, err := describe()
	if err != nil {
		return failed(name, err.Error(), "run 'atoll image build', or set image to host")
	}
	return ok(name, "%s", detail)
}
