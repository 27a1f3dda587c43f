package oci

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/runtime/state"
)

var _ runtime.Instance = (*Instance)(nil)

// Instance is one sandbox under an OCI runtime.
type Instance struct {
	runtime *Runtime
	id      runtime.ID
	pid     int // of process 1
	limits  runtime.Limits
	proc    *state.Process
	channel runtime.Channel

	mu   sync.Mutex
	last runtime.Usage // guarded by mu; what Usage last read
}

// ID implements runtime.Instance.
func (i *Instance) ID() runtime.ID { return i.id }

// Channel implements runtime.Instance.
func (i *Instance) Channel() runtime.Channel { return i.channel }

// Namespace implements runtime.Instance.
func (i *Instance) Namespace() string { return fmt.Sprintf("/proc/%d/ns/net", i.pid) }

// Done implements runtime.Instance.
func (i *Instance) Done() <-chan struct{} { return i.proc.Done() }

// Usage implements runtime.Instance. Without cgroups it knows nothing.
func (i *Instance) Usage(context.Context) (runtime.Usage, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.runtime.cfg.Cgroups == nil {
		return i.last, nil
	}
	u, err := i.runtime.cfg.Cgroups.Group(string(i.id)).Usage()
	if err == nil {
		i.last = runtime.Usage{CPUSeconds: u.CPUSeconds, Memory: u.Memory, PeakMemory: u.PeakMemory, OOMKills: u.OOMKills}
	}
	return i.last, nil
}

// PeakMemory is a part of Usage that costs next to nothing.
func (i *Instance) PeakMemory() int64 {
	if i.runtime.cfg.Cgroups == nil {
		return 0
	}
	return i.runtime.cfg.Cgroups.Group(string(i.id)).PeakMemory()
}

// Check reports a limit that does not hold the sandbox as it was asked to.
func (i *Instance) Check() error {
	if i.runtime.cfg.Cgroups == nil {
		return nil // it was admitted without
	}
	return i.runtime.cfg.Cgroups.Group(string(i.id)).Check(groupLimits(i.limits), i.pid)
}

// Holders implements runtime.Instance: its programs are the host's processes.
func (i *Instance) Holders() ([]int, error) {
	if i.runtime.cfg.Cgroups == nil {
		return []int{i.pid}, nil
	}
	return i.runtime.cfg.Cgroups.Group(string(i.id)).Processes()
}

// Checkpoint implements runtime.Instance.
func (i *Instance) Checkpoint(context.Context, string) error { return errCheckpoint }

// Resume implements runtime.Instance.
func (i *Instance) Resume(context.Context) error { return errCheckpoint }

// Freeze implements runtime.Instance.
func (i *Instance) Freeze(ctx context.Context) error {
	if i.runtime.cfg.Cgroups == nil {
		return fmt.Errorf("freeze: %w without control groups", runtime.ErrUnsupported)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, freezeTime, fmt.Errorf("its processes have not stopped within %s", freezeTime))
	defer cancel()
	return i.runtime.cfg.Cgroups.Group(string(i.id)).Freeze(ctx)
}

// freezeTime bounds the wait for processes to stop. One whose system call cannot
// be interrupted, on a network file system for one, may never do.
const freezeTime = 5 * time.Second

// Thaw implements runtime.Instance.
func (i *Instance) Thaw(context.Context) error {
	if i.runtime.cfg.Cgroups == nil {
		return nil
	}
	return i.runtime.cfg.Cgroups.Group(string(i.id)).Thaw()
}

// Detach implements runtime.Instance.
func (i *Instance) Detach() error {
	return errors.Join(i.channel.ToGuest.Close(), i.channel.FromGuest.Close(), i.proc.Close())
}

// Destroy implements runtime.Instance.
func (i *Instance) Destroy(ctx context.Context) error {
	_, _ = i.Usage(ctx) // the last chance to read it
	err := i.runtime.Destroy(ctx, i.id)
	_ = i.Detach()
	return err
}
