package e2b

import (
	"errors"
	"slices"

	"github.com/atoll-run/atoll/internal/control/filewatch"
	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Timeout is the body that says when the time of a sandbox is over.
type Timeout struct {
	Timeout *int64 `json:"timeout"` // seconds from now
}

// Refresh is the body that extends the time of a sandbox.
type Refresh struct {
	Duration *int64 `json:"duration,omitzero"` // seconds from now
}

// Pause is the body that pauses a sandbox.
type Pause struct {
	Memory  *bool `json:"memory,omitzero"`
	Healthy *bool `json:"requireHealthyGuest,omitzero"`
}

// Connect is the body that resumes a sandbox.
type Connect struct {
	Timeout   *int64 `json:"timeout,omitzero"`
	Memory    *bool  `json:"memory,omitzero"`
	AutoPause *bool  `json:"autoPause,omitzero"` // of older clients
}

// Fork is the body that copies a sandbox.
type Fork struct {
	Timeout *int64 `json:"timeout,omitzero"`
	Count   *int   `json:"count,omitzero"`
}

// KeepSnapshot is the body that makes a snapshot.
type KeepSnapshot struct {
	Name   string `json:"name,omitzero"`
	Memory *bool  `json:"memory,omitzero"`
}

const forkTimeout = 15 // seconds, of copies

func (d *Handlers) setTimeout(c *httpapi.Call, in *Timeout) error {
	r, sb, err := d.on(c)
	if err != nil {
		return err
	}
	if in.Timeout == nil {
		return httpapi.Invalid("timeout is required")
	}
	timeout, err := sandboxes.Seconds(in.Timeout, 0)
	if err != nil {
		return err
	}
	return d.sandboxes.SetDeadline(c.Context(), r, sb, timeout)
}

func (d *Handlers) refresh(c *httpapi.Call, in *Refresh) error {
	r, sb, err := d.on(c)
	if err != nil {
		return err
	}
	timeout, err := sandboxes.Seconds(in.Duration, 15)
	if err != nil {
		return err
	}
	return d.sandboxes.ExtendDeadline(c.Context(), r, sb, timeout)
}

func (d *Handlers) pause(c *httpapi.Call, in *Pause) error {
	r, sb, err := d.on(c)
	if err != nil {
		return err
	}
	if in.Memory != nil && !*in.Memory {
		return unsupported("memory: false is not supported by this server: a sandbox is paused with its memory")
	}
	return d.sandboxes.Pause(c.Context(), r, sb, func() { d.watchers.End(filewatch.Owner{Tenant: c.Caller.Tenant.ID, Sandbox: sb.ID}) })
}

func (d *Handlers) connect(c *httpapi.Call, in *Connect) (out Sandbox, err error) {
	r, sb, err := d.on(c)
	if err != nil {
		return out, err
	}
	if in.Memory != nil && !*in.Memory {
		return out, unsupported("memory: false is not supported by this server: a sandbox continues with its memory")
	}
	timeout, err := sandboxes.Seconds(in.Timeout, defaultTimeout)
	if err != nil {
		return out, err
	}
	if err := d.sandboxes.Resume(c.Context(), r, sb, timeout); err != nil {
		return out, err
	}
	return d.sandboxOf(c, sb)
}

func (d *Handlers) fork(c *httpapi.Call, in *Fork) (out []Forked, err error) {
	r, _, err := d.on(c)
	if err != nil {
		return nil, err
	}
	timeout, err := sandboxes.Seconds(in.Timeout, forkTimeout)
	if err != nil {
		return nil, err
	}
	count := 1
	if in.Count != nil {
		count = *in.Count
	}
	copies, err := d.sandboxes.ForkUntil(c.Context(), r, count, timeout)
	for _, made := range copies {
		if made.Err != nil {
			out = append(out, Forked{Error: new(render(made.Err))})
			continue
		}
		shown, err := d.sandboxOf(c, made.Sandbox)
		if err != nil { // the client is not told of the copy, which would stay
			err = errors.Join(err, d.sandboxes.Delete(c.Context(), refTo(c, made.Sandbox.ID)))
			out = append(out, Forked{Error: new(render(err))})
			continue
		}
		out = append(out, Forked{Sandbox: &shown})
	}
	return out, err
}

// metrics is one entry: what is used now, and of processor time the average since the
// sandbox was made.
func (d *Handlers) metrics(c *httpapi.Call) ([]Metric, error) {
	r, sb, err := d.on(c)
	if err != nil {
		return nil, err
	}
	l, err := d.sandboxes.Load(c.Context(), r, sb)
	if err != nil {
		return nil, err
	}
	return []Metric{{Timestamp: l.At, Unix: l.At.Unix(), CPU: sandboxes.CPUs(sb), CPUUsed: l.CPU, MemUsed: l.Memory, MemTotal: sb.Limits.Memory, DiskUsed: l.Disk, DiskTotal: sb.Disk}}, nil
}

func (d *Handlers) snapshot(c *httpapi.Call, in *KeepSnapshot) (out Snapshot, err error) {
	r, _, err := d.on(c)
	if err != nil {
		return out, err
	}
	switch {
	case in.Name != "":
		return out, unsupported("name is not supported by this server: a snapshot is known by its id")
	case in.Memory != nil && !*in.Memory:
		return out, unsupported("memory: false is not supported by this server: a snapshot has the memory")
	}
	sn, err := d.sandboxes.Snapshot(c.Context(), r, 0)
	if err != nil {
		return out, err
	}
	return snapshotOf(sn), nil
}

func snapshotOf(sn *sandbox.Snapshot) Snapshot { return Snapshot{ID: string(sn.ID), Names: []string{}} }

func (d *Handlers) snapshots(c *httpapi.Call) ([]Snapshot, error) {
	if c.Text("name") != "" {
		return nil, unsupported("name is not supported by this server: a snapshot is known by its id")
	}
	limit, err := limitOf(c)
	if err != nil {
		return nil, err
	}
	page, next, err := d.sandboxes.ListSnapshots(c.Context(), c.Caller, c.Text("nextToken"), limit)
	if err != nil {
		return nil, err
	}
	if next != "" {
		c.W.Header().Set("X-Next-Token", next)
	}
	if c.Has("sandboxID") {
		of := d.known(c.Text("sandboxID"))
		page = slices.DeleteFunc(page, func(sn *sandbox.Snapshot) bool { return sn.Sandbox != of })
	}
	return httpapi.Each(page, snapshotOf), nil
}

// deleteSnapshot deletes a snapshot, which to E2B is a template.
func (d *Handlers) deleteSnapshot(c *httpapi.Call) error {
	return d.sandboxes.DeleteSnapshot(c.Context(), c.Caller, c.Trail, sandbox.SnapshotID(c.Path("snapshot")))
}
