package gvisor

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/cgroup"
	"github.com/atoll-run/atoll/internal/node/runtime/ocispec"
	"github.com/atoll-run/atoll/internal/node/runtime/state"
)

const (
	bundleDir = "bundle"
	runscDir  = "runsc"
	pidFile   = "pid"
	rootFlag  = "--root="
)

// writeBundle writes the OCI bundle that runsc reads: a configuration and, for
// an image, an empty root folder.
func (r *Runtime) writeBundle(spec runtime.Spec) error {
	root := spec.Rootfs.Tree
	if root == "" {
		root = r.dir.Path(spec.ID, bundleDir, "rootfs")
		if err := os.MkdirAll(root, 0o755); err != nil {
			return err
		}
	} else if err := os.Mkdir(r.dir.Path(spec.ID, bundleDir), 0o700); err != nil {
		return err
	}
	s := ocispec.New(spec, root)
	s.Annotations = map[string]string{
		"dev.gvisor.spec.rootfs.overlay": "memory",
		"dev.gvisor.spec.rootfs.options": "size=" + strconv.FormatInt(spec.Limits.Root, 10),
		// What the sandbox's kernel (runsc/sentry) tells programs there is, and
		// how many files they may make.
		"run.atoll.memory": strconv.FormatInt(spec.Limits.Memory, 10),
		"run.atoll.cpus":   strconv.FormatFloat(spec.Limits.CPU, 'f', -1, 64),
		"run.atoll.inodes": strconv.Itoa(spec.Limits.Inodes),
	}
	if spec.Rootfs.Image != "" {
		s.Annotations["dev.gvisor.spec.rootfs.source"] = spec.Rootfs.Image
		s.Annotations["dev.gvisor.spec.rootfs.type"] = "erofs"
	} else {
		s.Annotations["dev.gvisor.spec.rootfs.source"] = root
		s.Annotations["dev.gvisor.spec.rootfs.type"] = "bind"
	}
	s.Mounts = append(s.Mounts, specs.Mount{
		Destination: runtime.GuestDir, Type: "erofs", Source: cmp.Or(spec.Guest, r.cfg.Guest), Options: []string{"ro", "nosuid", "nodev"},
	})
	r.addMounts(s, spec)
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(r.dir.Path(spec.ID, bundleDir, "config.json"), data, 0o600)
}

// arguments are those of a runsc command on a sandbox. Each sandbox has a runsc root
// folder of its own, so that commands do not queue for its lock and removing
// the sandbox's folder removes all.
func (r *Runtime) arguments(id runtime.ID) []string {
	return []string{
		rootFlag + r.dir.Path(id, runscDir),
		"--platform=systrap",
		"--network=none",
		"--overlay2=none",
		"--directfs=false", // the kernel runs as the user nobody in a user namespace, with the narrower seccomp filter
		"--ignore-cgroups", // we made one
		"--host-settings=ignore",
		"--sidecar-usage-policy=DEFAULT",
		"--watchdog-action=panic",
		"--gofer-network-namespace=new", // a shared one is pinned by a mount on the host
	}
}

// launch starts the sandbox and returns the process id of its kernel.
func (r *Runtime) launch(ctx context.Context, spec runtime.Spec, group *cgroup.Group, command []string) (int, error) {
	id := spec.ID
	logPath, pidPath := r.dir.Path(id, "runsc.log"), r.dir.Path(id, pidFile)
	args := append([]string{"--log=" + logPath}, r.arguments(id)...)
	if spec.Network != nil {
		args = append(args, "--network=sandbox") // the last one counts
	}
	if spec.Sockets {
		args = append(args, "--host-uds=open") // to connect, that is; never to make one
	}
	if owns(spec) {
		args = append(args, "--file-access-mounts=exclusive")
	}
	args = append(append(args, command...), "--bundle="+r.dir.Path(id, bundleDir), "--pid-file="+pidPath, string(id))
	stdin, stdout, err := r.dir.OpenStdio(id)
	if err != nil {
		return 0, err
	}
	defer stdin.Close()
	defer stdout.Close()
	// The sandbox inherits standard error too, so it must not be a pipe that we
	// wait on; runsc's own complaints go to a file.
	discard, err := state.Discard()
	if err != nil {
		return 0, err
	}
	defer discard.Close()
	if group != nil && !served(spec) && spec.Network == nil && !r.users.alone {
		l := launch{Args: args, stdio: []*os.File{stdin, stdout, discard}}
		l.Tasks, l.Group = group.Entrance()
		err = r.launchBy(ctx, l)
	} else {
		err = r.run(ctx, spec, group, args, stdin, stdout, discard)
	}
	if err != nil {
		return 0, fmt.Errorf("runsc %s: %w: %s", strings.Join(command, " "), err, state.Tail(logPath))
	}
	data, err := os.ReadFile(pidPath)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(bytes.TrimSpace(data)))
}

// run runs a runsc command. A process of its own is for what the others do not do: file
// servers, which are the same program and live on with the environment that they are
// started with, sandboxes with a network, whose namespace runsc enters and whose sockets it
// leaves open until it ends, and those without a control group or of a user who is not root.
func (r *Runtime) run(ctx context.Context, spec runtime.Spec, group *cgroup.Group, args []string, stdin, stdout, stderr *os.File) error {
	cmd := exec.CommandContext(ctx, r.cfg.Runsc, args...)
	// A command lives for some milliseconds, one step after the other, and needs
	// no collector. What it starts gets an environment of its own.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GOMAXPROCS=1", "ATOLL_RUNSC_MOUNTS=" + strconv.Itoa(len(spec.Mounts))}
	if !served(spec) {
		cmd.Env = append(cmd.Env, "GOGC=off")
	}
	cmd.SysProcAttr = r.users.attributes()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	var err error
	if group != nil {
		err = group.Start(cmd)
	} else {
		err = r.cores.start(cmd, spec.Limits.CPU)
	}
	if err == nil {
		err = cmd.Wait()
	}
	return err
}
