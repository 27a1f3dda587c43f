package sandbox

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/environmentwire"
)

func (h *Handlers) create(c *httpapi.Call, in *NewSandbox) (out Sandbox, err error) {
	session := sandbox.Default
	if in.Session != nil {
		session = *in.Session
	}
	if err := sandbox.CheckSession(session); err != nil {
		return out, err
	}
	if err := h.enterPool(c, session); err != nil {
		return out, err
	}
	c.Trail.By(c.Caller, session, *in.Name)
	if bound := c.Caller.Environment; in.Environment != nil && *in.Environment != bound.Name && *in.Environment != bound.ID {
		return out, fault.New(fault.Forbidden, "this key is bound to the environment %q, and can use no other", bound.Name)
	}
	spec, err := in.domain(c.Caller)
	if err != nil {
		return out, err
	}
	if err := c.Draining(); err != nil {
		return out, err
	}
	sb, created, err := h.Sandboxes.Ensure(c.Context(), c.Caller, session, *in.Name, spec)
	if err != nil {
		return out, err
	}
	c.Trail.On(sb)
	if created {
		c.W.Header().Set("Location", sandboxesPath+"/"+string(sb.ID))
	} else {
		c.SetStatus(http.StatusOK)
	}
	return sandboxOf(sb), nil
}

func (in *NewSandbox) domain(caller *tenant.Principal) (*sandbox.Spec, error) {
	spec := &sandbox.Spec{Env: wire.StringMap(in.EnvVars)}
	if err := execution.CheckSandboxEnv(spec.Env); err != nil {
		return nil, err
	}
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
	if in.Network != nil {
		policy, err := in.Network.Over(caller.Environment.Permissions.Network)
		if err != nil {
			return nil, err
		}
		spec.Network = &policy
	}
	return spec, nil
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
	if c.Has("session") && c.Text("session") == "" {
		return out, httpapi.Invalid("session must not be empty; leave it out for all sessions")
	}
	if err := h.enterPool(c, c.Text("session")); err != nil {
		return out, err
	}
	all, err := h.Sandboxes.List(c.Context(), c.Caller, c.Text("session"))
	if err != nil {
		return out, err
	}
	return SandboxList{httpapi.Each(all, sandboxOf)}, nil
}

func (h *Handlers) get(c *httpapi.Call) (out Sandbox, err error) {
	sb, err := h.find(c)
	if err != nil {
		return out, err
	}
	return sandboxOf(sb), nil
}

func (h *Handlers) delete(c *httpapi.Call) error {
	p, err := h.place(c)
	if err != nil {
		return err
	}
	return h.Sandboxes.Destroy(c.Context(), c.Caller, p.session, p.name)
}

// update changes a sandbox, and returns it.
func (h *Handlers) update(c *httpapi.Call, change sandbox.Change) (out Sandbox, err error) {
	p, err := h.place(c)
	if err != nil {
		return out, err
	}
	sb, err := h.Sandboxes.Update(c.Context(), c.Caller, p.session, p.name, change)
	if err != nil {
		return out, err
	}
	return sandboxOf(sb), nil
}

func (h *Handlers) setTimeout(c *httpapi.Call, in *SandboxTimeout) (out Sandbox, err error) {
	if in.TimeoutMS == nil && in.SleepAfterMS == nil {
		return out, httpapi.Invalid("give timeout_ms, sleep_after_ms or both")
	}
	var change sandbox.Change
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

func (h *Handlers) setNetwork(c *httpapi.Call, in *environmentwire.NetworkChange) (out Sandbox, err error) {
	policy, err := in.Over(c.Caller.Environment.Permissions.Network)
	if err != nil {
		return out, err
	}
	return h.update(c, sandbox.Change{Network: &policy})
}

// sleep puts a sandbox to sleep at once; its next use wakes it.
func (h *Handlers) sleep(c *httpapi.Call) (out Sandbox, err error) {
	p, err := h.place(c)
	if err != nil {
		return out, err
	}
	sb, err := h.Sandboxes.Sleep(c.Context(), c.Caller, p.session, p.name)
	if err != nil {
		return out, err
	}
	return sandboxOf(sb), nil
}

// restart restarts a sandbox with its environment's current settings.
func (h *Handlers) restart(c *httpapi.Call) (out Sandbox, err error) {
	p, err := h.place(c)
	if err != nil {
		return out, err
	}
	if err := c.Draining(); err != nil {
		return out, err
	}
	sb, err := h.Sandboxes.Restart(c.Context(), c.Caller, p.session, p.name)
	if err != nil {
		return out, err
	}
	return sandboxOf(sb), nil
}

// fork copies a sandbox as it is at one moment.
func (h *Handlers) fork(c *httpapi.Call) (out SandboxList, err error) {
	p, err := h.place(c)
	if err != nil {
		return out, err
	}
	copies, err := h.Sandboxes.Fork(c.Context(), c.Caller, p.session, p.name, int(c.Int("count")))
	if err != nil {
		return out, err
	}
	return SandboxList{httpapi.Each(copies, sandboxOf)}, nil
}

func (h *Handlers) metrics(c *httpapi.Call) (out SandboxMetrics, err error) {
	p, err := h.place(c)
	if err != nil {
		return out, err
	}
	u, err := h.Sandboxes.Usage(c.Context(), c.Caller, p.session, p.name)
	if err != nil {
		return out, err
	}
	return SandboxMetrics{CPUSeconds: u.CPUSeconds, MemoryBytes: u.Memory, PeakMemoryBytes: u.PeakMemory, DiskBytes: u.Disk, OOMKills: u.OOMKills + u.Relieved}, nil
}

func (h *Handlers) ports(c *httpapi.Call) (out SandboxPorts, err error) {
	p, err := h.place(c)
	if err != nil {
		return out, err
	}
	return use(c.Context(), h, p, func(u sandbox.Handle) (SandboxPorts, error) {
		found, err := u.Guest().Listening(c.Context())
		return SandboxPorts{httpapi.Each(found, func(at netip.AddrPort) SandboxPort {
			return SandboxPort{Port: int(at.Port()), Address: at.Addr().String()}
		})}, err
	})
}

func (h *Handlers) listOrphans(c *httpapi.Call) (Orphans, error) {
	return orphansOf(h.Sandboxes.Orphans(c.Context()))
}

func (h *Handlers) reapOrphans(c *httpapi.Call) (Orphans, error) {
	c.Trail.By(c.Caller, "", "")
	return orphansOf(h.Sandboxes.Reap(c.Context()))
}

func orphansOf(ids []runtime.ID, err error) (Orphans, error) {
	return Orphans{httpapi.Each(ids, func(id runtime.ID) string { return string(id) })}, err
}
