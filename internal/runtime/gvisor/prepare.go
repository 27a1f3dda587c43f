package gvisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/atoll-run/atoll/internal/cgroup"
	"github.com/atoll-run/atoll/internal/runtime/state"
	"github.com/atoll-run/atoll/internal/sandbox"
)

var _ sandbox.Prepared = (*Prepared)(nil)

// Prepared is a kernel that waits for its memory. It has no record of a process
// yet: whoever finds its folder destroys it.
type Prepared struct {
	runtime *Runtime
	born    sandbox.ID   // the id that it was started with
	spec    sandbox.Spec // of the sandbox that it is to be
	pid     int
	group   *cgroup.Group // nil for none
}

// Prepare implements sandbox.Runtime. Until programs run, only the kernel's own
// start uses processors, for as long as the memory is large: it is held to no share
// of them, since waiting for the next period would take most of a wake's time.
func (r *Runtime) Prepare(ctx context.Context, spec sandbox.Spec) (sandbox.Prepared, error) {
	limits := groupLimits(spec.Limits)
	limits.CPU = 0
	// What may differ does, such as where mounts come from; gVisor would refuse some of it.
	pid, group, err := r.boot(ctx, spec, limits, "--restore-spec-validation=ignore", "create")
	if err != nil {
		return nil, err
	}
	return &Prepared{r, spec.ID, spec, pid, group}, nil
}

// Restore implements sandbox.Prepared.
func (p *Prepared) Restore(ctx context.Context, dir string, whole func() error) (sandbox.Instance, error) {
	var err error
	switch {
	case p.spec.Network == nil:
		err = p.fill(ctx, dir, whole)
	case whole != nil:
		err = whole()
		fallthrough
	default:
		if err == nil {
			err = p.connect(ctx, dir)
		}
	}
	if err == nil && p.group != nil {
		err = p.group.Limit(groupLimits(p.spec.Limits))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("restore %s: %w", p.spec.ID, err), p.Destroy(context.WithoutCancel(ctx)))
	}
	return p.runtime.begin(ctx, state.Record{Spec: p.spec, Pid: p.pid, Born: p.born})
}

// Destroy implements sandbox.Prepared.
func (p *Prepared) Destroy(ctx context.Context) error { return p.runtime.Destroy(ctx, p.born) }

// loopback is the network of a sandbox that has none.
var loopback = map[string]any{
	"IsRestore": true,
	"LoopbackLinks": []any{map[string]any{
		"Name": "lo",
		"Addresses": []any{
			map[string]any{"Address": "127.0.0.1", "PrefixLen": 8},
			map[string]any{"Address": "::1", "PrefixLen": 128},
		},
		"Routes": []any{
			map[string]any{"Destination": map[string]any{"IP": "127.0.0.0", "Mask": []byte{255, 0, 0, 0}}},
			map[string]any{"Destination": map[string]any{"IP": "::1", "Mask": []byte(strings.Repeat("\xff", 16))}},
		},
	}},
}

// fill gives the kernel its memory.
func (p *Prepared) fill(ctx context.Context, dir string, whole func() error) error {
	files, err := openAll(dir, os.O_RDONLY)
	var h *held
	if err == nil && whole != nil {
		h, err = hold(files, whole)
	}
	if err == nil {
		err = p.runtime.control(ctx, p.born, controlNetwork, loopback)
	}
	if err == nil {
		err = p.runtime.control(ctx, p.born, controlRestore, map[string]any{"HavePagesFile": true}, files...)
	}
	return h.end(errors.Join(err, closeAll(files)))
}

// connect is fill for a sandbox with a network device, which a runsc command opens
// for it.
func (p *Prepared) connect(ctx context.Context, dir string) error {
	out, err := p.runtime.command(ctx, p.born, "--network=sandbox", "restore", "--detach", "--image-path="+dir, string(p.born)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("runsc restore: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
