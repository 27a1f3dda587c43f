package e2b

import (
	"errors"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// A sandbox whose time is over is killed, or paused. One that is to be killed never sleeps
// by itself and is destroyed at a time. One that is to be paused sleeps when it was not
// used for so long.

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

const (
	forkTimeout = 15 // seconds, of copies
	maxFork     = 20 // copies
)

// ends is the change that has the time of a sandbox over.
func ends(sb *sandbox.Sandbox, in time.Duration) sandbox.Change {
	if pauses(sb) {
		return sandbox.Change{SleepAfter: &in}
	}
	return sandbox.Change{Timeout: &in}
}

func (d *Handlers) update(c *httpapi.Call, sb *sandbox.Sandbox, change sandbox.Change) error {
	_, err := d.sandboxes.Sandboxes.Update(c.Context(), c.Caller, sandbox.Default, string(sb.ID), change)
	return err
}

func (d *Handlers) setTimeout(c *httpapi.Call, in *Timeout) error {
	sb, err := d.on(c)
	if err != nil {
		return err
	}
	if in.Timeout == nil {
		return httpapi.Invalid("timeout is required")
	}
	timeout, err := seconds(in.Timeout, 0)
	if err != nil {
		return err
	}
	return d.update(c, sb, ends(sb, timeout))
}

func (d *Handlers) refresh(c *httpapi.Call, in *Refresh) error {
	sb, err := d.on(c)
	if err != nil {
		return err
	}
	timeout, err := seconds(in.Duration, 15)
	if err != nil {
		return err
	}
	return d.extend(c, sb, timeout)
}

// extend has the time of a sandbox over so long from now, unless it is over later.
func (d *Handlers) extend(c *httpapi.Call, sb *sandbox.Sandbox, timeout time.Duration) error {
	if pauses(sb) && sb.SleepAfter >= timeout || !pauses(sb) && time.Until(endOf(sb)) >= timeout {
		return nil
	}
	return d.update(c, sb, ends(sb, timeout))
}

func (d *Handlers) pause(c *httpapi.Call, in *Pause) error {
	sb, err := d.on(c)
	if err != nil {
		return err
	}
	if in.Memory != nil && !*in.Memory {
		return unsupported("memory: false is not supported by this server: a sandbox is paused with its memory")
	}
	if sb.State == sandbox.Sleeping {
		return fault.New(fault.Conflict, "Sandbox %s is paused already", sb.ID)
	}
	d.watchers.end(c.Caller.Tenant.ID, sb.ID)
	if _, err := d.sandboxes.Sandboxes.Sleep(c.Context(), c.Caller, sandbox.Default, string(sb.ID)); err != nil {
		return err
	}
	if pauses(sb) {
		return nil
	}
	return d.update(c, sb, ends(sb, 0)) // while it is paused its time does not pass
}

func (d *Handlers) connect(c *httpapi.Call, in *Connect) (out Sandbox, err error) {
	sb, err := d.on(c)
	if err != nil {
		return out, err
	}
	if in.Memory != nil && !*in.Memory {
		return out, unsupported("memory: false is not supported by this server: a sandbox continues with its memory")
	}
	timeout, err := seconds(in.Timeout, defaultTimeout)
	if err != nil {
		return out, err
	}
	slept := sb.State == sandbox.Sleeping
	p := d.sandboxes.At(c, sandbox.Default, string(sb.ID))
	if err := d.sandboxes.Within(c.Context(), p, func(sandbox.Handle) error { return nil }); err != nil {
		return out, err
	}
	if slept && !pauses(sb) {
		err = d.update(c, sb, ends(sb, timeout))
	} else {
		err = d.extend(c, sb, timeout)
	}
	if err != nil {
		return out, err
	}
	return d.sandboxOf(c, sb)
}

func (d *Handlers) fork(c *httpapi.Call, in *Fork) (out []Forked, err error) {
	sb, err := d.on(c)
	if err != nil {
		return nil, err
	}
	timeout, err := seconds(in.Timeout, forkTimeout)
	if err != nil {
		return nil, err
	}
	count := 1
	if in.Count != nil {
		count = *in.Count
	}
	if count < 1 || count > maxFork {
		return nil, httpapi.Invalid("count must be 1 to %d", maxFork)
	}
	copies, err := d.sandboxes.Sandboxes.Fork(c.Context(), c.Caller, sandbox.Default, string(sb.ID), count)
	if err != nil {
		return nil, err
	}
	for _, made := range copies {
		shown, err := d.sandboxOf(c, made)
		if err == nil {
			err = d.update(c, made, ends(made, timeout))
		}
		if err != nil { // the client is not told of the copy, which would stay
			why := render(errors.Join(err, d.sandboxes.Sandboxes.Destroy(c.Context(), c.Caller, sandbox.Default, string(made.ID))))
			out = append(out, Forked{Error: &why})
			continue
		}
		out = append(out, Forked{Sandbox: &shown})
	}
	return out, nil
}

// metrics is one entry: what is used now, and of processor time the average since the
// sandbox was made.
func (d *Handlers) metrics(c *httpapi.Call) ([]Metric, error) {
	sb, err := d.on(c)
	if err != nil {
		return nil, err
	}
	u, err := d.sandboxes.Sandboxes.Usage(c.Context(), c.Caller, sandbox.Default, string(sb.ID))
	if err != nil {
		return nil, err
	}
	now := time.Now().UTC()
	m := Metric{Timestamp: now, Unix: now.Unix(), CPU: cpus(sb.Limits), MemUsed: u.Memory, MemTotal: sb.Limits.Memory, DiskUsed: u.Disk, DiskTotal: sb.Disk}
	if lived := now.Sub(sb.CreatedAt).Seconds(); lived > 0 {
		m.CPUUsed = 100 * u.CPUSeconds / lived / float64(m.CPU)
	}
	return []Metric{m}, nil
}

func (d *Handlers) snapshot(c *httpapi.Call, in *KeepSnapshot) (out Snapshot, err error) {
	sb, err := d.on(c)
	if err != nil {
		return out, err
	}
	switch {
	case in.Name != "":
		return out, unsupported("name is not supported by this server: a snapshot is known by its id")
	case in.Memory != nil && !*in.Memory:
		return out, unsupported("memory: false is not supported by this server: a snapshot has the memory")
	}
	sn, err := d.sandboxes.Sandboxes.Snapshot(c.Context(), c.Caller, sandbox.Default, string(sb.ID), 0)
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
	page, next, err := d.sandboxes.Sandboxes.ListSnapshots(c.Context(), c.Caller, c.Text("nextToken"), limit)
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
	id := sandbox.SnapshotID(c.Path("snapshot"))
	c.Trail.By(c.Caller, "", string(id))
	if !id.Valid() {
		return fault.New(fault.NotFound, "snapshot %.80q not found", id)
	}
	return d.sandboxes.Sandboxes.DeleteSnapshot(c.Context(), c.Caller, id)
}
