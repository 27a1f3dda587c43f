package gvisor

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/cgroup"
	"github.com/atoll-run/atoll/internal/node/runtime/state"
)

var _ runtime.Prepared = (*Prepared)(nil)

// Prepared is a kernel that waits for its memory. It has no record of a process
// yet: a sweep that finds its folder destroys it.
type Prepared struct {
	runtime *Runtime
	born    runtime.ID   // the id that it was started with
	spec    runtime.Spec // of the sandbox that it is to be
	pid     int
	group   *cgroup.Group // nil for none
}

// Prepare implements runtime.Runtime. Until programs run, only the kernel's own
// start uses processors, for as long as the memory is large: it is held to no share
// of them, since waiting for the next period would take most of a wake's time.
func (r *Runtime) Prepare(ctx context.Context, spec runtime.Spec) (runtime.Prepared, error) {
	p, err := r.prepare(ctx, spec)
	if err != nil {
		return nil, err // and no Prepared that is nil
	}
	return p, nil
}

func (r *Runtime) prepare(ctx context.Context, spec runtime.Spec) (*Prepared, error) {
	limits := groupLimits(spec.Limits)
	limits.CPU = 0
	// What may differ does, such as where mounts come from; gVisor would refuse some of it.
	pid, group, err := r.boot(ctx, spec, limits, "--restore-spec-validation=ignore", "create")
	if err != nil {
		return nil, err
	}
	p := &Prepared{r, spec.ID, spec, pid, group}
	if err := p.connect(ctx); err != nil {
		return nil, errors.Join(err, p.Destroy(context.WithoutCancel(ctx)))
	}
	return p, nil
}

// Restore implements runtime.Prepared.
func (p *Prepared) Restore(ctx context.Context, dir string, whole func() error) (runtime.Instance, error) {
	return p.restore(ctx, dir, whole, false)
}

func (p *Prepared) restore(ctx context.Context, dir string, whole func() error, share bool) (runtime.Instance, error) {
	err := p.fill(ctx, dir, whole, share)
	if err == nil && p.group != nil {
		err = p.group.Limit(groupLimits(p.spec.Limits))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("restore %s: %w", p.spec.ID, err), p.Destroy(context.WithoutCancel(ctx)))
	}
	return p.runtime.begin(ctx, state.Record{Spec: p.spec, Pid: p.pid, Born: p.born})
}

// Destroy implements runtime.Prepared.
func (p *Prepared) Destroy(ctx context.Context) error { return p.runtime.Destroy(ctx, p.born) }

// connect has the kernel make its network, when it gets its memory.
func (p *Prepared) connect(ctx context.Context) error {
	namespace := ""
	if p.spec.Network != nil {
		namespace = p.spec.Network.Namespace
	}
	args, sockets, err := takeLinks(namespace)
	if err == nil {
		err = errors.Join(p.runtime.control(ctx, p.born, controlNetwork, args, sockets...), closeAll(sockets))
	}
	return err
}

// fill gives the kernel its memory. Kernels that share it read the pages of programs from
// dir for as long as they run (runsc/patch), and keep those alone that are written.
func (p *Prepared) fill(ctx context.Context, dir string, whole func() error, share bool) error {
	files, err := openAll(dir, os.O_RDONLY)
	var h *held
	if err == nil && whole != nil {
		h, err = hold(files, whole)
	}
	if err == nil {
		err = p.runtime.control(ctx, p.born, controlRestore, map[string]any{"HavePagesFile": true, "Background": share}, files...)
	}
	return h.end(errors.Join(err, closeAll(files)))
}
