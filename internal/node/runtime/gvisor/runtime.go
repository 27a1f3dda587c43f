// Package gvisor runs sandboxes under gVisor, each with a kernel of its own, by
// driving the atoll-runsc binary.
//
// The root file system is an EROFS image that the sandbox's kernel maps, under
// an overlay in memory; there is no file server process beside the sandbox,
// unless it mounts folders of the host. A Runtime owns its state folder; a second
// one on the same folder is refused.
package gvisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/cgroup"
	"github.com/atoll-run/atoll/internal/node/idmap"
	"github.com/atoll-run/atoll/internal/node/runtime/state"
)

var _ runtime.Runtime = (*Runtime)(nil)

// Config is what a Runtime needs to know.
type Config struct {
	Runsc string // path of atoll-runsc; gvisor-bin/gvisor_sentry lies beside it
	Guest string // path of the EROFS file mounted at sandbox.GuestDir
	State string // folder for sandboxes, made if needed

	// Cgroups is where groups are made. Nil means that none can be: then Usage
	// looks at processes for the code that ends a sandbox that has used up its memory,
	// a share of whole processors is held by binding, and others are refused
	// with runtime.ErrUnsupported.
	Cgroups *cgroup.Parent
}

// Runtime makes gVisor sandboxes.
type Runtime struct {
	cfg     Config
	dir     *state.Dir
	users   users
	owners  idmap.Map
	unowned error // why there are no owners, and so no mounts
	cores   cores

	launchers launchers
}

// New checks the configuration and opens the state folder.
func New(cfg Config) (*Runtime, error) {
	for _, path := range []string{cfg.Runsc, filepath.Join(filepath.Dir(cfg.Runsc), "gvisor-bin", "gvisor_sentry"), cfg.Guest} {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("gvisor: %w", err)
		}
	}
	dir, err := state.Open(cfg.State)
	if err != nil {
		return nil, fmt.Errorf("gvisor: open state folder: %w", err)
	}
	r := &Runtime{cfg: cfg, dir: dir, users: findUsers()}
	r.owners, r.unowned = idmap.Find()
	return r, nil
}

// Close lets go of the state folder. Sandboxes live on.
func (r *Runtime) Close() error {
	r.launchers.close()
	return r.dir.Close()
}

// Name implements runtime.Runtime.
func (r *Runtime) Name() string { return "gvisor" }

// Create implements runtime.Runtime.
func (r *Runtime) Create(ctx context.Context, spec runtime.Spec) (runtime.Instance, error) {
	pid, _, err := r.boot(ctx, spec, groupLimits(spec.Limits), "run", "--detach")
	if err != nil {
		return nil, err
	}
	return r.begin(ctx, state.Record{Spec: spec, Pid: pid, Born: spec.ID})
}

// Restore implements runtime.Runtime.
func (r *Runtime) Restore(ctx context.Context, spec runtime.Spec, dir string, share bool) (runtime.Instance, error) {
	p, err := r.prepare(ctx, spec)
	if err != nil {
		return nil, err
	}
	return p.restore(ctx, dir, nil, share)
}

// Admit reports what keeps limits from being held: that they are not valid, or,
// as runtime.ErrUnsupported, that this machine lacks the means.
func (r *Runtime) Admit(l runtime.Limits) error {
	if err := l.Validate(); err != nil {
		return err
	}
	if r.cfg.Cgroups != nil {
		return nil
	}
	return r.cores.check(l.CPU)
}

// AdmitNetwork reports, as runtime.ErrUnsupported, what keeps sandboxes from
// having a network.
func (r *Runtime) AdmitNetwork() error {
	if r.users.alone {
		return fmt.Errorf("%w without subordinate ids: install newuidmap and newgidmap (package uidmap) and give this user a range "+
			"(usermod --add-subuids 100000-165535 --add-subgids 100000-165535 NAME), or run atoll as root", runtime.ErrUnsupported)
	}
	return nil
}

// boot starts a sandbox's kernel by a runsc command, within limits.
func (r *Runtime) boot(ctx context.Context, spec runtime.Spec, limits cgroup.Limits, command ...string) (pid int, group *cgroup.Group, err error) {
	if err := r.Admit(spec.Limits); err != nil {
		return 0, nil, err
	}
	if err := r.checkMounts(spec); err != nil {
		return 0, nil, err
	}
	if spec.Network != nil {
		if err := r.AdmitNetwork(); err != nil {
			return 0, nil, err
		}
	}
	if err := r.dir.Create(spec); err != nil {
		return 0, nil, fmt.Errorf("create state of %s: %w", spec.ID, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Destroy(context.WithoutCancel(ctx), spec.ID))
		}
	}()
	if err := r.writeBundle(spec); err != nil {
		return 0, nil, fmt.Errorf("write bundle of %s: %w", spec.ID, err)
	}
	if r.cfg.Cgroups != nil {
		if group, err = r.cfg.Cgroups.Create(string(spec.ID), limits); err != nil {
			return 0, nil, err
		}
	}
	pid, err = r.launch(ctx, spec, group, command)
	return pid, group, err
}

// begin records a sandbox whose kernel runs, or destroys it. One that was started as
// another gets its name only now, with its record.
func (r *Runtime) begin(ctx context.Context, rec state.Record) (_ *Instance, err error) {
	id := rec.Born
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Destroy(context.WithoutCancel(ctx), id))
		}
	}()
	if rec.Start, err = state.StartTime(rec.Pid); err != nil {
		return nil, fmt.Errorf("sandbox %s ended at once: %w", rec.Spec.ID, err)
	}
	sacrifice(rec.Pid)
	if rec.Born == rec.Spec.ID {
		rec.Born = ""
		err = r.dir.Write(rec)
	} else if err = r.rename(rec); err == nil {
		id = rec.Spec.ID
	}
	if err != nil {
		return nil, err
	}
	return r.open(rec)
}

// headroom is how far the control group's memory limit lies above the
// sandbox's: room for the sandbox's kernel and the code it runs from, without
// which the host would take back and read in again the same pages for ever
// rather than call the memory used up.
const headroom = 64 << 20

// groupLimits gives the host a task limit of ten times the sandbox's own: the
// sandbox's kernel holds the real one, and a kernel that cannot start a thread
// dies.
func groupLimits(l runtime.Limits) cgroup.Limits {
	return cgroup.Limits{Memory: l.Memory + headroom, CPU: l.CPU, Tasks: int64(l.Processes)*10 + 200}
}

// mostKillable is the oom_score_adj of the process that the host's kernel ends first
// (proc(5)).
const mostKillable = "1000"

// sacrifice has the host's kernel end the sandbox's kernel when the group's memory limit is
// reached. It would take the process with the most memory otherwise, which may be the one
// that a child of the program runs in: that child alone would end, without freeing what it
// shares, and the program would go on. The processes that programs run in were made before,
// so that they do not inherit it. Where the host does not allow it, its kernel chooses.
func sacrifice(kernel int) {
	_ = os.WriteFile(procPath(kernel, "oom_score_adj"), []byte(mostKillable), 0)
}

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
	return &Instance{
		runtime: r, id: rec.Spec.ID, born: rec.Origin(), pid: rec.Pid, limits: rec.Spec.Limits, proc: proc, channel: ch, served: served(rec.Spec),
		meter: meter{pid: rec.Pid, server: r.server(rec)},
	}, nil
}

// List implements runtime.Runtime.
func (r *Runtime) List(context.Context) ([]runtime.Info, error) { return r.dir.Infos(r.cfg.Cgroups) }

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
	born := id
	rec, err := r.dir.Read(id)
	if err == nil {
		born = rec.Origin()
		errs = append(errs, endProcess(ctx, rec))
	}
	if err != nil || rec.Pid == 0 || served(rec.Spec) && r.cfg.Cgroups == nil {
		errs = append(errs, r.endStrays(ctx, born))
	}
	if r.cfg.Cgroups != nil {
		// Whatever still is in it: a group that can be removed is empty.
		group := r.cfg.Cgroups.Group(string(born))
		group.Kill()
		errs = append(errs, group.Remove())
	}
	return errors.Join(errs...)
}

// endProcess kills a sandbox's main process, which is process 1 of a PID
// namespace and takes all others along, and waits for it to be gone.
func endProcess(ctx context.Context, rec state.Record) error {
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
	select {
	case <-proc.Done():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the end of sandbox %s: %w", rec.Spec.ID, context.Cause(ctx))
	}
}

// endStrays ends what belongs to a sandbox and is not on record: the processes
// of one that was being started when its maker was killed, and a file server.
// Each has the sandbox's own runsc root on its command line.
func (r *Runtime) endStrays(ctx context.Context, id runtime.ID) error {
	for {
		pids := state.WithArgument(rootFlag + r.dir.Path(id, runscDir))
		if len(pids) == 0 {
			return nil
		}
		// One of them may just have started another.
		for _, pid := range pids {
			start, err := state.StartTime(pid)
			if err != nil {
				continue // it ended
			}
			if err := endProcess(ctx, state.Record{Spec: runtime.Spec{ID: id}, Pid: pid, Start: start}); err != nil {
				return err
			}
		}
	}
}
