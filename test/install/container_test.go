package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/moby/profiles/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/test/atolltest"
)

// privileges are what a container has. The zero value is what 'docker run' gives
// without options.
type privileges struct {
	unconfined bool     // --security-opt seccomp=unconfined
	caps       []string // --cap-add
	devices    []string // --device
	privileged bool     // --privileged: all of the above and writable control groups
}

// dockerCaps are the capabilities of a container that asks for none.
var dockerCaps = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_MKNOD", "CAP_NET_RAW", "CAP_SETGID", "CAP_SETUID",
	"CAP_SETFCAP", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_KILL", "CAP_AUDIT_WRITE",
}

// privilegedCaps are more of those that a privileged container has: those that
// this test may have itself.
var privilegedCaps = []string{"CAP_SYS_ADMIN", "CAP_NET_ADMIN", "CAP_SYS_PTRACE", "CAP_SYS_NICE", "CAP_IPC_LOCK", "CAP_DAC_READ_SEARCH"}

// container is a running one.
type container struct {
	t   *testing.T
	id  string
	dir string
	cmd *exec.Cmd
	log syncBuffer
	end chan error
}

// unpacked is the release's OCI image as a folder. It is unpacked once for all tests.
var unpacked struct {
	dir    string // holds rootfs and layout; empty before the first use
	config imageConfig
}

// rootfs unpacks the release's OCI image from its layout. It returns the folder that
// holds rootfs, and the image's configuration.
func rootfs(t *testing.T) (dir string, config imageConfig) {
	t.Helper()
	if unpacked.dir != "" {
		return unpacked.dir, unpacked.config
	}
	archive := sole(t, "*.oci.tar")
	dir, err := os.MkdirTemp("", "atoll-rootfs-")
	if err != nil {
		t.Fatal(err)
	}
	unpacked.dir = dir // TestMain removes it
	command(t, "mkdir", filepath.Join(dir, "layout"), filepath.Join(dir, "rootfs"))
	command(t, "tar", "-C", filepath.Join(dir, "layout"), "-xf", archive)
	index, err := layout.ImageIndexFromPath(filepath.Join(dir, "layout"))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("%v, %v", manifest, err)
	}
	img, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	// 'docker load' reads the same file.
	saved, err := tarball.ImageFromPath(archive, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, err1 := img.ConfigName()
	got, err2 := saved.ConfigName()
	if err := errors.Join(err1, err2); err != nil || got != want {
		t.Fatalf("the archive of docker has %v, the layout %v (%v)", got, want, err)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range layers {
		digest, err := l.Digest()
		if err != nil {
			t.Fatal(err)
		}
		command(t, "tar", "-C", filepath.Join(dir, "rootfs"), "-xzf", filepath.Join(dir, "layout/blobs", digest.Algorithm, digest.Hex))
	}
	unpacked.config = imageConfig{args: slices.Concat(file.Config.Entrypoint, file.Config.Cmd), env: file.Config.Env, cwd: file.Config.WorkingDir}
	return dir, unpacked.config
}

type imageConfig struct {
	args, env []string
	cwd       string
}

// spec is what Docker makes of an image and privileges.
func spec(t *testing.T, c imageConfig, data, id string, p privileges) *specs.Spec {
	t.Helper()
	img, err := atolltest.ImageDir()
	if err != nil {
		t.Fatal(err)
	}
	caps := slices.Concat(dockerCaps, p.caps)
	cgroups := "ro"
	if p.privileged {
		caps, cgroups = slices.Concat(dockerCaps, privilegedCaps), "rw"
	}
	mount := func(to, kind, source string, options ...string) specs.Mount {
		return specs.Mount{Destination: to, Type: kind, Source: source, Options: options}
	}
	s := &specs.Spec{
		Version: "1.0.2", Hostname: "atoll", Root: &specs.Root{Path: "rootfs"},
		Process: &specs.Process{
			Args: c.args, Cwd: c.cwd,
			Env:          slices.Concat(c.env, []string{"ATOLL_LISTEN=127.0.0.1:8080", "ATOLL_DEV_KEY=" + atolltest.Key, "ATOLL_POOL_SIZE=1"}),
			Capabilities: &specs.LinuxCapabilities{Bounding: caps, Effective: caps, Permitted: caps},
		},
		Mounts: []specs.Mount{
			mount("/proc", "proc", "proc", "nosuid", "noexec", "nodev"),
			mount("/dev", "tmpfs", "tmpfs", "nosuid", "strictatime", "mode=755", "size=65536k"),
			mount("/dev/pts", "devpts", "devpts", "nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"),
			mount("/dev/shm", "tmpfs", "shm", "nosuid", "noexec", "nodev", "mode=1777", "size=65536k"),
			mount("/sys", "sysfs", "sysfs", "nosuid", "noexec", "nodev", cgroups),
			mount("/sys/fs/cgroup", "cgroup", "cgroup", "nosuid", "noexec", "nodev", "relatime", cgroups),
			mount("/var/lib/atoll", "bind", data, "rbind", "rw"),
			mount("/var/lib/atoll/images/default", "bind", img, "bind", "ro"),
		},
		Linux: &specs.Linux{
			Namespaces: []specs.LinuxNamespace{
				{Type: specs.PIDNamespace}, {Type: specs.IPCNamespace}, {Type: specs.UTSNamespace},
				{Type: specs.MountNamespace}, {Type: specs.NetworkNamespace}, {Type: specs.CgroupNamespace},
			},
			CgroupsPath: "/" + id,
			Resources:   &specs.LinuxResources{Devices: []specs.LinuxDeviceCgroup{{Allow: p.privileged, Access: "rwm"}}},
		},
	}
	for _, d := range []struct{ major, minor int64 }{{1, 3}, {1, 5}, {1, 7}, {1, 8}, {1, 9}, {5, 0}, {5, 2}} {
		s.Linux.Resources.Devices = append(s.Linux.Resources.Devices, specs.LinuxDeviceCgroup{Allow: true, Type: "c", Major: &d.major, Minor: &d.minor, Access: "rwm"})
	}
	devices := p.devices
	if p.privileged {
		devices = []string{"/dev/net/tun", "/dev/fuse"}
	}
	for _, path := range devices {
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil {
			t.Fatal(err)
		}
		major, minor, mode := int64(unix.Major(st.Rdev)), int64(unix.Minor(st.Rdev)), os.FileMode(0o666)
		s.Linux.Devices = append(s.Linux.Devices, specs.LinuxDevice{Path: path, Type: "c", Major: major, Minor: minor, FileMode: &mode})
		s.Linux.Resources.Devices = append(s.Linux.Resources.Devices, specs.LinuxDeviceCgroup{Allow: true, Type: "c", Major: &major, Minor: &minor, Access: "rwm"})
	}
	if !p.privileged {
		s.Linux.MaskedPaths = []string{"/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/proc/scsi", "/sys/firmware"}
		s.Linux.ReadonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
		if !p.unconfined {
			if s.Linux.Seccomp, err = seccomp.GetDefaultProfile(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}

// run starts the server's container from an unpacked image.
func run(t *testing.T, dir string, config imageConfig, p privileges) *container {
	t.Helper()
	c := &container{t: t, id: fmt.Sprintf("atoll-test-%d", time.Now().UnixNano()), dir: t.TempDir(), end: make(chan error, 1)}
	data := filepath.Join(c.dir, "data")
	if err := os.MkdirAll(filepath.Join(data, "images/default"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := spec(t, config, data, c.id, p)
	s.Root.Path = filepath.Join(dir, "rootfs")
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.dir, "config.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	c.cmd = exec.Command("runc", "--root", filepath.Join(c.dir, "runc"), "run", "--bundle", c.dir, c.id)
	c.cmd.Stdout, c.cmd.Stderr = &c.log, &c.log
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGTERM}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { c.end <- c.cmd.Wait() }()
	t.Cleanup(c.stop)
	return c
}

// runc runs a command of the container's runtime.
func (c *container) runc(args ...string) (string, error) {
	out, err := exec.Command("runc", append([]string{"--root", filepath.Join(c.dir, "runc")}, args...)...).CombinedOutput()
	return string(out), err
}

// stop ends the container as 'docker stop' does: it must end by itself, in order,
// and without leaving processes that have ended to process 1.
func (c *container) stop() {
	out, _ := c.runc("kill", c.id, "TERM")
	select {
	case err := <-c.end:
		if err != nil {
			c.t.Errorf("the container ended with %v %s\n%s", err, out, &c.log)
		}
	case <-time.After(time.Minute):
		c.t.Errorf("the container has not ended: %s", out)
		_, _ = c.runc("kill", c.id, "KILL")
		<-c.end
	}
	_, _ = c.runc("delete", "--force", c.id)
}

// pid is the host's number of process 1.
func (c *container) pid() string {
	out, err := c.runc("state", c.id)
	var state struct{ Pid int }
	if err != nil || json.Unmarshal([]byte(out), &state) != nil {
		return ""
	}
	return fmt.Sprint(state.Pid)
}

// execute runs Python by POST /v1/sandbox/execute from the container's network,
// once the server is ready.
func (c *container) execute(code string) (r atolltest.Result) {
	c.t.Helper()
	body, err := json.Marshal(map[string]any{"code": code, "timeout": 60})
	if err != nil {
		c.t.Fatal(err)
	}
	for range 300 {
		out, err := exec.CommandContext(c.t.Context(), "nsenter", "-t", c.pid(), "-n", "curl", "-s", "-m", "120", "-w", "\n%{http_code}",
			"-H", "Authorization: Bearer "+atolltest.Key, "-H", "Content-Type: application/json", "-d", string(body), "http://127.0.0.1:8080/v1/sandbox/execute").Output()
		answer, status, _ := strings.Cut(string(out), "\n")
		if err == nil && status == fmt.Sprint(http.StatusOK) {
			if err := json.Unmarshal([]byte(answer), &r); err != nil {
				c.t.Fatal(err)
			}
			return r
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-c.t.Context().Done():
		}
	}
	c.t.Fatalf("the server does not run programs:\n%s", &c.log)
	return r
}

// zombies counts the children of process 1 that have ended and were not waited for.
func (c *container) zombies() int {
	count := 0
	ps := command(c.t, "ps", "-o", "stat=", "--ppid", c.pid())
	for line := range strings.Lines(ps) {
		if strings.HasPrefix(line, "Z") {
			count++
		}
	}
	return count
}

// TestContainer starts the release's OCI image with the three sets of privileges
// that docs/operate/install.md describes.
func TestContainer(t *testing.T) {
	dir, config := rootfs(t)
	const hog = "x = bytearray(700 << 20)\nprint(len(x))"
	for _, test := range []struct {
		name  string
		with  privileges
		lacks []string // what the doctor in the container warns of
		homes bool     // whether threads can have homes
	}{
		{"programs alone", privileges{unconfined: true}, []string{"cgroups", "network", "fuse"}, false},
		{"all but control groups", privileges{
			unconfined: true, caps: []string{"CAP_SYS_ADMIN", "CAP_NET_ADMIN"}, devices: []string{"/dev/net/tun", "/dev/fuse"},
		}, []string{"cgroups"}, true},
		{"privileged", privileges{privileged: true}, nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := run(t, dir, config, test.with)
			if r := c.execute("print(6 * 7)"); r.Stdout != "42\n" || r.ExitCode != 0 {
				t.Errorf("the program's result: %v", &r)
			}
			if r := c.execute(hog); r.ExitCode != 137 || !strings.Contains(r.Reason(), "memory limit") {
				t.Errorf("a program that needs more than its memory: %v", &r)
			}
			// A process of many threads takes a moment from its end to its parent's turn.
			atolltest.Until(t, 10*time.Second, "process 1 has waited for every process that ended", func() bool { return c.zombies() == 0 })
			out, err := c.runc("exec", c.id, "/usr/bin/atoll", "doctor", "--json")
			var findings []struct{ Check, Level, Detail string }
			if err != nil || json.Unmarshal([]byte(out), &findings) != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if homes := !strings.Contains(c.log.String(), "cannot mount home directories of threads"); homes != test.homes {
				t.Errorf("threads can have homes: %v, want %v\n%s", homes, test.homes, &c.log)
			}
			var lacks []string
			for _, f := range findings {
				if f.Level != "ok" {
					lacks = append(lacks, f.Check)
				}
			}
			if !slices.Equal(lacks, test.lacks) {
				t.Errorf("the doctor warns of %q, want %q\n%s", lacks, test.lacks, out)
			}
		})
	}
}

// TestContainerWithDefaults: with Docker's own seccomp profile no sandbox can be
// made, and the doctor says what to do.
func TestContainerWithDefaults(t *testing.T) {
	image, config := rootfs(t)
	dir := t.TempDir()
	config.args = []string{"/usr/bin/atoll", "doctor"}
	c := &container{t: t, id: fmt.Sprintf("atoll-test-%d", time.Now().UnixNano()), dir: dir, end: make(chan error, 1)}
	data := filepath.Join(dir, "data")
	if err := os.MkdirAll(filepath.Join(data, "images/default"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := spec(t, config, data, c.id, privileges{})
	s.Root.Path = filepath.Join(image, "rootfs")
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := c.runc("run", "--bundle", dir, c.id)
	if code := exitCode(err); code != 1 || !strings.Contains(out, "--security-opt seccomp=unconfined") {
		t.Errorf("exit code %d (%v)\n%s", code, err, out)
	}
}

// exitCode is a command's, -1 if it did not exit by itself.
func exitCode(err error) int {
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return e.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

// syncBuffer is what a container writes, read while it writes.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
