package sandbox

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
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
	out.Spec.Env = wire.StringMap(in.EnvVars)
	s := sandboxes.Settings{
		Image: in.Image, Snapshot: in.Snapshot, SleepAfter: in.SleepAfterMS, Timeout: in.TimeoutMS, SubPaths: wire.Strings(in.SubPaths), Disk: in.DiskSize, FilesOnly: in.FilesOnly,
	}
	if in.Limits != nil {
		s.CPU, s.Memory = in.Limits.CPU, in.Limits.Memory
	}
	return out, s.Set(&out.Spec)
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
	change, err := sandboxes.Times(in.TimeoutMS, in.SleepAfterMS)
	if err != nil {
		return out, err
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
