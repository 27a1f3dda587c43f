package sandbox

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/environmentwire"
)

func (h *Handlers) create(c *httpapi.Call, in *NewSandbox) (out Sandbox, err error) {
	n, err := in.domain()
	if err != nil {
		return out, err
	}
	sb, created, err := h.Service.Create(c.Context(), c.Caller, c.Trail, n)
	if err != nil {
		return out, err
	}
	if created {
		c.W.Header().Set("Location", sandboxesPath+"/"+string(sb.ID))
	} else {
		c.SetStatus(http.StatusOK)
	}
	return sandboxOf(sb), nil
}

func (in *NewSandbox) domain() (*sandboxes.NewSandbox, error) {
	out := &sandboxes.NewSandbox{Session: in.Session, Name: *in.Name, Environment: in.Environment, Network: narrowed(in.Network)}
	spec := &out.Spec
	spec.Env = wire.StringMap(in.EnvVars)
	if in.Image != nil {
		if spec.Image = *in.Image; spec.Image == "" {
			return nil, httpapi.Invalid("image must not be empty; leave it out for that of the key's environment")
		}
	}
	var err error
	if spec.SleepAfter, err = millis("sleep_after_ms", in.SleepAfterMS, -1); err != nil {
		return nil, err
	}
	if spec.Timeout, err = millis("timeout_ms", in.TimeoutMS, 1); err != nil {
		return nil, err
	}
	if in.Snapshot != nil {
		if spec.Snapshot = sandbox.SnapshotID(*in.Snapshot); !spec.Snapshot.Valid() {
			return nil, httpapi.Invalid("snapshot must be the snapshot_id of a snapshot, snap- and 16 hexadecimal digits")
		}
	}
	if spec.SubPaths, err = storage.ParseSubPaths(wire.Strings(in.SubPaths)); err != nil {
		return nil, err
	}
	if spec.Size, err = in.size(); err != nil {
		return nil, err
	}
	spec.FilesOnly = in.FilesOnly != nil && *in.FilesOnly
	return out, nil
}

// narrowed reads which part of its environment's network a sandbox gets.
func narrowed(change *environmentwire.NetworkChange) sandboxes.Narrow {
	if change == nil {
		return nil
	}
	return func(env runtime.NetworkPolicy) (*runtime.NetworkPolicy, error) {
		policy, err := change.Over(env)
		return &policy, err
	}
}

// size reads the sandbox's limits. It rejects 0 cores, because 0 stands for an omitted limit in the
// result.
func (in *NewSandbox) size() (size sandbox.Size, err error) {
	if l := in.Limits; l != nil {
		if l.CPU != nil {
			if size.CPU = *l.CPU; !(size.CPU > 0) {
				return size, httpapi.Invalid("limits.cpu must be above 0 cores, not %g", size.CPU)
			}
		}
		if l.Memory != nil {
			size.Memory = *l.Memory
		}
	}
	if in.DiskSize != nil {
		size.Disk = *in.DiskSize
	}
	return size, nil
}

// millis reads a time in milliseconds that is at least least; 0 if it is omitted.
func millis(name string, ms *wire.Millis, least wire.Millis) (time.Duration, error) {
	const limit = wire.Millis(365 * 24 * time.Hour / time.Millisecond)
	switch {
	case ms == nil:
		return 0, nil
	case *ms < least || *ms > limit:
		return 0, httpapi.Invalid("%s must be a whole number from %d to %d", name, least, limit)
	}
	return ms.Duration(), nil
}

func (h *Handlers) list(c *httpapi.Call) (out SandboxList, err error) {
	all, err := h.Service.List(c.Context(), c.Caller, given(c, "session"))
	if err != nil {
		return out, err
	}
	return SandboxList{httpapi.Each(all, sandboxOf)}, nil
}

// on serves an operation on one sandbox that returns the sandbox.
func (h *Handlers) on(c *httpapi.Call, do func(context.Context, sandboxes.Ref) (*sandbox.Sandbox, error)) (out Sandbox, err error) {
	r, err := h.ref(c)
	if err != nil {
		return out, err
	}
	sb, err := do(c.Context(), r)
	if err != nil {
		return out, err
	}
	return sandboxOf(sb), nil
}

func (h *Handlers) get(c *httpapi.Call) (Sandbox, error) { return h.on(c, h.Service.Get) }

func (h *Handlers) delete(c *httpapi.Call) error {
	r, err := h.ref(c)
	if err != nil {
		return err
	}
	return h.Service.Delete(c.Context(), r)
}

// update changes a sandbox, and returns it.
func (h *Handlers) update(c *httpapi.Call, change sandboxes.Change) (Sandbox, error) {
	return h.on(c, func(ctx context.Context, r sandboxes.Ref) (*sandbox.Sandbox, error) {
		return h.Service.Update(ctx, r, change)
	})
}

func (h *Handlers) setTimeout(c *httpapi.Call, in *SandboxTimeout) (out Sandbox, err error) {
	if in.TimeoutMS == nil && in.SleepAfterMS == nil {
		return out, httpapi.Invalid("give timeout_ms, sleep_after_ms or both")
	}
	var change sandboxes.Change
	for _, f := range []struct {
		name  string
		from  *wire.Millis
		least wire.Millis
		to    **time.Duration
	}{{"timeout_ms", in.TimeoutMS, 0, &change.Timeout}, {"sleep_after_ms", in.SleepAfterMS, -1, &change.SleepAfter}} {
		if f.from != nil {
			d, err := millis(f.name, f.from, f.least)
			if err != nil {
				return out, err
			}
			*f.to = &d
		}
	}
	return h.update(c, change)
}

func (h *Handlers) setNetwork(c *httpapi.Call, in *environmentwire.NetworkChange) (Sandbox, error) {
	return h.update(c, sandboxes.Change{Network: narrowed(in)})
}

// sleep puts a sandbox to sleep at once; its next use wakes it.
func (h *Handlers) sleep(c *httpapi.Call) (Sandbox, error) { return h.on(c, h.Service.Sleep) }

// restart restarts a sandbox with its environment's current settings.
func (h *Handlers) restart(c *httpapi.Call) (Sandbox, error) { return h.on(c, h.Service.Restart) }

// fork copies a sandbox as it is at one moment.
func (h *Handlers) fork(c *httpapi.Call) (out SandboxList, err error) {
	r, err := h.ref(c)
	if err != nil {
		return out, err
	}
	copies, err := h.Service.Fork(c.Context(), r, int(c.Int("count")))
	if err != nil {
		return out, err
	}
	return SandboxList{httpapi.Each(copies, sandboxOf)}, nil
}

func (h *Handlers) metrics(c *httpapi.Call) (out SandboxMetrics, err error) {
	r, err := h.ref(c)
	if err != nil {
		return out, err
	}
	u, err := h.Service.Usage(c.Context(), r)
	if err != nil {
		return out, err
	}
	return SandboxMetrics{CPUSeconds: u.CPUSeconds, MemoryBytes: u.Memory, PeakMemoryBytes: u.PeakMemory, DiskBytes: u.Disk, OOMKills: u.OOMKills + u.Relieved}, nil
}

func (h *Handlers) ports(c *httpapi.Call) (SandboxPorts, error) {
	return use(c, h, func(u *sandboxes.Use) (SandboxPorts, error) {
		found, err := u.Guest().Listening(c.Context())
		return SandboxPorts{httpapi.Each(found, func(at netip.AddrPort) SandboxPort {
			return SandboxPort{Port: int(at.Port()), Address: at.Addr().String()}
		})}, err
	})
}

func (h *Handlers) listOrphans(c *httpapi.Call) (Orphans, error) {
	return orphansOf(h.Service.Orphans(c.Context()))
}

func (h *Handlers) reapOrphans(c *httpapi.Call) (Orphans, error) {
	return orphansOf(h.Service.Reap(c.Context(), c.Caller, c.Trail))
}

func orphansOf(ids []runtime.ID, err error) (Orphans, error) {
	return Orphans{httpapi.Each(ids, func(id runtime.ID) string { return string(id) })}, err
}
