package oci

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/cgroup"
	"github.com/atoll-run/atoll/internal/node/runtime/state"
)

// Destroy implements runtime.Runtime.
func (r *Runtime) Destroy(ctx context.Context, id runtime.ID) error {
	if err := r.Kill(ctx, id); err != nil {
		return err // its record stays for the next try
	}
	return r.dir.Remove(id)
}

// Kill implements runtime.Runtime. The control group goes, too.
func (r *Runtime) Kill(ctx context.Context, id runtime.ID) error {
	if !id.Valid() {
		return fmt.Errorf("sandbox id %q is not valid", id)
	}
	var errs []error
	rec, err := r.dir.Read(id)
	if err == nil {
		errs = append(errs, r.endProcess(ctx, rec))
	}
	if r.cfg.Cgroups == nil {
		if rec.Pid == 0 || !r.hidesCgroups() {
			errs = append(errs, r.deleteContainer(ctx, id))
		}
	} else {
		// Whatever the main process's end did not take along: a half-started
		// sandbox whose process was not yet on record.
		group := r.cfg.Cgroups.Group(string(id))
		group.Kill()
		errs = append(errs, group.Remove(), r.removeStray(r.groupPath(id)))
	}
	return errors.Join(errs...)
}

// endProcess kills a sandbox's main process, which is process 1 of a PID
// namespace and takes all others along, and waits for it to be gone.
func (r *Runtime) endProcess(ctx context.Context, rec state.Record) error {
	proc, err := state.OpenProcess(rec)
	if errors.Is(err, runtime.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer proc.Close()
	if err := proc.Kill(); err != nil {
		return fmt.Errorf("kill sandbox %s: %w", rec.Spec.ID, err)
	}
	if r.cfg.Cgroups != nil { // frozen processes take note of their end when they go on
		if err := r.cfg.Cgroups.Group(string(rec.Spec.ID)).Thaw(); err != nil {
			return err
		}
	}
	select {
	case <-proc.Done():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the end of sandbox %s: %w", rec.Spec.ID, context.Cause(ctx))
	}
}

// deleteContainer has the runtime end what it may have made, where no group of
// ours holds it.
func (r *Runtime) deleteContainer(ctx context.Context, id runtime.ID) error {
	if _, err := os.Stat(r.dir.Path(id, runtimeDir, string(id))); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return r.stage.run(func() error {
		out, err := r.command(ctx, id, "delete", "--force", string(id)).CombinedOutput()
		if err == nil || strings.Contains(string(out), "does not exist") {
			return nil
		}
		return fmt.Errorf("%s delete %s: %w: %s", r.name, id, err, strings.TrimSpace(string(out)))
	})
}

// groupPath is the sandbox's control group as OCI runtimes name it: below the
// hierarchy's mount point. It is "" where there is none.
func (r *Runtime) groupPath(id runtime.ID) string {
	if r.cfg.Cgroups == nil {
		return ""
	}
	file := r.cfg.Cgroups.Group(string(id)).Procs()[0]
	path := strings.TrimPrefix(filepath.Dir(file), cgroupRoot)
	if r.cfg.Cgroups.Version() == cgroup.V1 { // the controller's folder comes first
		_, path, _ = strings.Cut(strings.TrimPrefix(path, "/"), "/")
		path = "/" + path
	}
	return path
}

// removeStray removes a group from the version 1 hierarchies that we make none
// in: a runtime that cannot be told to leave groups alone makes its own in all,
// and forgets them when it is killed early. A process of its own may then still be
// in those alone.
func (r *Runtime) removeStray(path string) error {
	if r.cfg.Cgroups == nil || r.hidesCgroups() || r.cfg.Cgroups.Version() != cgroup.V1 {
		return nil
	}
	dirs, err := filepath.Glob(filepath.Join(cgroupRoot, "*", path))
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range dirs {
		err := unix.Rmdir(dir)
		for wait := time.Millisecond; errors.Is(err, unix.EBUSY) && wait < 2*time.Second; wait *= 2 {
			killListed(filepath.Join(dir, "cgroup.procs"))
			time.Sleep(wait) // a group's last end gives no signal
			err = unix.Rmdir(dir)
		}
		if err != nil && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, fmt.Errorf("remove cgroup %s: %w", dir, err))
		}
	}
	return errors.Join(errs...)
}

// killListed kills the processes that a group's file lists.
func killListed(procs string) {
	data, err := os.ReadFile(procs)
	if err != nil {
		return
	}
	for field := range strings.FieldsSeq(string(data)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 1 {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}
