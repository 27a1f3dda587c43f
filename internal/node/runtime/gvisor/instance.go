package gvisor

import (
	"context"
	"errors"
	"sync"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/runtime/state"
)

var _ runtime.Instance = (*Instance)(nil)

// Instance is one gVisor sandbox.
type Instance struct {
	runtime *Runtime
	id      runtime.ID
	born    runtime.ID // what its processes were started as
	pid     int        // of the sandbox's kernel
	limits  runtime.Limits
	proc    *state.Process
	channel runtime.Channel

	pausing sync.Mutex // held while programs are paused or have to go on

	mu    sync.Mutex
	last  runtime.Usage // guarded by mu; what Usage last read
	meter meter         // guarded by mu; for want of control groups

	served bool // it has a file server
	server int  // guarded by mu; its process id, 0 until it was looked up
}

// ID implements runtime.Instance.
func (i *Instance) ID() runtime.ID { return i.id }

// Channel implements runtime.Instance.
func (i *Instance) Channel() runtime.Channel { return i.channel }

// Namespace implements runtime.Instance.
func (i *Instance) Namespace() string { return procPath(i.pid, "ns/net") }

// Done implements runtime.Instance.
func (i *Instance) Done() <-chan struct{} { return i.proc.Done() }

// Usage implements runtime.Instance.
func (i *Instance) Usage(context.Context) (runtime.Usage, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.runtime.cfg.Cgroups == nil {
		if u, err := i.meter.read(); err == nil {
			i.last = u
		}
		return i.last, nil
	}
	u, err := i.runtime.cfg.Cgroups.Group(string(i.born)).Usage()
	if err == nil {
		i.last = runtime.Usage{CPUSeconds: u.CPUSeconds, Memory: u.Memory, PeakMemory: u.PeakMemory, OOMKills: u.OOMKills}
	}
	return i.last, nil
}

// WatchMemory implements runtime.MemoryWatcher.
func (i *Instance) WatchMemory() (runtime.MemoryWatch, error) {
	if i.runtime.cfg.Cgroups == nil || i.limits.Memory <= 0 {
		return nil, errors.ErrUnsupported
	}
	return i.runtime.cfg.Cgroups.Group(string(i.born)).WatchMemory(i.limits.Memory, groupLimits(i.limits).Memory)
}

// PeakMemory is a part of Usage that costs next to nothing.
func (i *Instance) PeakMemory() int64 {
	if i.runtime.cfg.Cgroups != nil {
		return i.runtime.cfg.Cgroups.Group(string(i.born)).PeakMemory()
	}
	u, _ := i.Usage(context.Background())
	return u.PeakMemory
}

// Check reports a limit that does not hold the sandbox as it was asked to.
func (i *Instance) Check() error {
	if i.runtime.cfg.Cgroups != nil {
		return i.runtime.cfg.Cgroups.Group(string(i.born)).Check(groupLimits(i.limits), i.pid)
	}
	return bound(i.pid, i.limits.CPU)
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
