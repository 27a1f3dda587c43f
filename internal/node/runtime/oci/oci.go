// Package oci runs sandboxes under an OCI runtime of the operator's choice, such
// as crun or runc, by driving its binary.
//
// Such a sandbox shares the host's kernel: its boundary is made of namespaces,
// a user namespace of its own, a system call filter and control groups, and is
// weaker than gVisor's. It is for people who have another boundary around the
// machine, or programs that gVisor cannot run.
//
// All mounts of a sandbox live in a mount namespace that only the sandbox's own
// processes keep alive, and the images they share in one that only the Runtime
// keeps alive. So nothing is mounted on the host, and the kernel takes every
// mount back when its last user ends, by whatever signal.
package oci

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/cgroup"
	"github.com/atoll-run/atoll/internal/node/runtime/state"
)

var _ runtime.Runtime = (*Runtime)(nil)

// Config is what a Runtime needs to know.
type Config struct {
	Binary string // name or path of the OCI runtime
	Guest  string // path of the EROFS file mounted at sandbox.GuestDir
	State  string // folder for sandboxes, made if needed

	// Cgroups is where groups are made. Nil means that none can be: then
	// memory and CPU are not limited.
	Cgroups *cgroup.Parent
}

// Runtime makes sandboxes under an OCI runtime. It needs root, and Linux 5.19
// for mounts with shifted owners.
type Runtime struct {
	cfg   Config
	name  string // the binary's own, such as "crun"
	dir   *state.Dir
	stage *stage
}

// New checks the configuration and opens the state folder.
func New(cfg Config) (_ *Runtime, err error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("oci: %w without being root; runtime gvisor is", runtime.ErrUnsupported)
	}
	if cfg.Binary, err = exec.LookPath(cfg.Binary); err != nil {
		return nil, fmt.Errorf("oci: %w", err)
	}
	name, err := identify(cfg.Binary)
	if err != nil {
		return nil, fmt.Errorf("oci: %w", err)
	}
	if _, err := os.Stat(cfg.Guest); err != nil {
		return nil, fmt.Errorf("oci: %w", err)
	}
	for _, path := range []*string{&cfg.State, &cfg.Guest} {
		if *path, err = hostPath(*path); err != nil {
			return nil, fmt.Errorf("oci: %w", err)
		}
	}
	dir, err := state.Open(cfg.State)
	if err != nil {
		return nil, fmt.Errorf("oci: open state folder: %w", err)
	}
	r := &Runtime{cfg: cfg, name: name, dir: dir}
	if r.stage, err = openStage(r.hidesCgroups()); err != nil {
		return nil, errors.Join(fmt.Errorf("oci: %w", err), dir.Close())
	}
	return r, nil
}

// identify asks the binary what it is. "crun version 1.8.1" is how all of them
// answer.
func identify(binary string) (string, error) {
	out, err := exec.Command(binary, "--version").Output() //nolint:noctx // it ends by itself, and at once
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", binary, err)
	}
	name, _, ok := strings.Cut(string(out), " ")
	if !ok {
		return "", fmt.Errorf("%s is no OCI runtime: --version answers %.40q", binary, out)
	}
	return name, nil
}

// hidesCgroups reports whether the binary can be told to leave control groups
// alone. crun then must not see them either: it refuses machines that have both
// versions.
func (r *Runtime) hidesCgroups() bool { return r.name == "crun" }

// Close lets go of the state folder. Sandboxes live on.
func (r *Runtime) Close() error {
	ids, err := r.dir.List()
	errs := []error{err, r.stage.close()}
	if err == nil && len(ids) == 0 {
		errs = append(errs, r.removeStray(filepath.Dir(r.groupPath("none"))))
	}
	return errors.Join(append(errs, r.dir.Close())...)
}

// Forget unmounts an image that no new sandbox uses. Those that use it keep it.
func (r *Runtime) Forget(image string) error {
	path, err := hostPath(image)
	if err != nil {
		return err
	}
	return r.stage.forget(path)
}

// Name implements runtime.Runtime.
func (r *Runtime) Name() string { return "oci" }

// Admit reports why limits cannot be held on this machine.
func (r *Runtime) Admit(runtime.Limits) error {
	if r.cfg.Cgroups == nil {
		return errors.New("an OCI runtime needs control groups to limit memory and processors, and this process has none; use the runtime gvisor")
	}
	return nil
}

// Create implements runtime.Runtime.
func (r *Runtime) Create(ctx context.Context, spec runtime.Spec) (_ runtime.Instance, err error) {
	if err := spec.Limits.Validate(); err != nil {
		return nil, err
	}
	for _, m := range spec.Mounts {
		if err := m.Validate(); err != nil {
			return nil, err
		}
		if _, err := hostPath(m.Source); err != nil {
			return nil, err
		}
	}
	if err := r.dir.Create(spec); err != nil {
		return nil, fmt.Errorf("create state of %s: %w", spec.ID, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Destroy(context.WithoutCancel(ctx), spec.ID))
		}
	}()
	if err := r.writeBundle(spec); err != nil {
		return nil, fmt.Errorf("write bundle of %s: %w", spec.ID, err)
	}
	var group *cgroup.Group
	if r.cfg.Cgroups != nil {
		if group, err = r.cfg.Cgroups.Create(string(spec.ID), groupLimits(spec.Limits)); err != nil {
			return nil, err
		}
	}
	pid, err := r.launch(ctx, spec, group)
	if err != nil {
		return nil, err
	}
	rec := state.Record{Spec: spec, Pid: pid}
	if rec.Start, err = state.StartTime(pid); err != nil {
		return nil, fmt.Errorf("sandbox %s ended at once: %w", spec.ID, err)
	}
	if err := r.dir.Write(rec); err != nil {
		return nil, err
	}
	return r.open(rec)
}

// guestTasks is room for the guest and for the runtime's own processes while
// they set the sandbox up, beside the tasks of the unprivileged user.
const guestTasks = 32

func groupLimits(l runtime.Limits) cgroup.Limits {
	return cgroup.Limits{Memory: l.Memory, CPU: l.CPU, Tasks: int64(l.Processes) + guestTasks}
}

// Restore implements runtime.Runtime.
func (r *Runtime) Restore(context.Context, runtime.Spec, string, bool) (runtime.Instance, error) {
	return nil, errCheckpoint
}

// Prepare implements runtime.Runtime.
func (r *Runtime) Prepare(context.Context, runtime.Spec) (runtime.Prepared, error) {
	return nil, errCheckpoint
}

var errCheckpoint = fmt.Errorf("checkpoint and restore: %w, which shares the host's kernel; runtime gvisor can", runtime.ErrUnsupported)

// Open implements runtime.Runtime.
func (r *Runtime) Open(_ context.Context, id runtime.ID) (runtime.Instance, error) {
	rec, err := r.dir.Read(id)
	if err != nil {
		return nil, err
	}
	return r.open(rec)
}

func (r *Runtime) open(rec state.Record) (*Instance, error) {
	proc, err := state.OpenProcess(rec)
	if err != nil {
		return nil, fmt.Errorf("sandbox %s: %w", rec.Spec.ID, err)
	}
	ch, err := r.dir.OpenChannel(rec.Spec.ID)
	if err != nil {
		proc.Close()
		return nil, fmt.Errorf("open channel of %s: %w", rec.Spec.ID, err)
	}
	return &Instance{runtime: r, id: rec.Spec.ID, pid: rec.Pid, limits: rec.Spec.Limits, proc: proc, channel: ch}, nil
}

// List implements runtime.Runtime.
func (r *Runtime) List(context.Context) ([]runtime.Info, error) { return r.dir.Infos(r.cfg.Cgroups) }
