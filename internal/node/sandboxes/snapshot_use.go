package sandboxes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// fetchTime bounds bringing a sandbox back from the blob store.
const fetchTime = 30 * time.Minute

// findSnapshot returns the snapshot that a spec names, or nil.
func (m *Manager) findSnapshot(ctx context.Context, grant *sandbox.Grant, spec *sandbox.Spec) (*sandbox.Snapshot, error) {
	if spec.Snapshot == "" {
		if spec.FilesOnly {
			return nil, fault.New(fault.Invalid, "files_only says how to use a snapshot, and none is named")
		}
		return nil, nil
	}
	return m.cfg.Snapshots.Find(ctx, grant, spec.Snapshot)
}

// applySnapshot makes sb, which was drafted for grant, one that begins with a snapshot. With
// its memory it is what the snapshot is of; with its files alone it is a new one.
func (m *Manager) applySnapshot(grant *sandbox.Grant, sb *sandbox.Sandbox, sn *sandbox.Snapshot, spec *sandbox.Spec) error {
	env := maps.Clone(sn.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, spec.Env)
	sb.Env = env
	if spec.SleepAfter == 0 {
		sb.SleepAfter = sn.SleepAfter
	}
	if spec.Disk == 0 && !spec.FilesOnly {
		sb.Disk = minBound(sb.Disk, sn.DiskLimit)
	}
	if sb.Disk > 0 && sn.Stored.Disk > sb.Disk {
		return fault.Limit("sandbox_disk", time.Time{}, "snapshot %s: its files take %s, and a sandbox can have %s of disk", sn.ID, runtime.FormatBytes(sn.Stored.Disk), runtime.FormatBytes(sb.Disk))
	}
	if spec.FilesOnly {
		if spec.Image == "" {
			sb.Image, sb.ImageAlias = sn.Image, sn.ImageAlias
		}
		return nil
	}
	const instead = "; files_only makes a new sandbox with its files"
	was, now := sn.Permissions, grant.Permissions
	was.Network, now.Network = runtime.NetworkPolicy{}, runtime.NetworkPolicy{}
	switch {
	case !sn.Stored.Checkpoint:
		return fault.New(fault.Conflict, "the snapshot %s has files alone%s", sn.ID, instead)
	case spec.Image != "" && sb.Image != sn.Image:
		return fault.New(fault.Conflict, "the snapshot %s has the memory of a sandbox with another image than %q%s", sn.ID, spec.Image, instead)
	case !was.Equal(now):
		return fault.New(fault.Conflict, "the permissions of the environment %s are not those that the snapshot %s was made with%s", grant.EnvironmentName, sn.ID, instead)
	}
	if err := checkSnapshotSize(sn, spec.Size); err != nil {
		return err
	}
	if err := grant.Allows(sn.Limits); err != nil {
		return err
	}
	if spec.SubPaths != nil && !slices.Equal(sb.Mounts, sn.Mounts) || !covers(grant.Storage, sn.Mounts) {
		return fault.New(fault.Conflict, "the snapshot %s has the memory of a sandbox with other storage than is asked for, or granted to this key (%s)%s", sn.ID, describeMounts(sn.Mounts), instead)
	}
	sb.Mounts = slices.Clone(sn.Mounts)
	sb.Image, sb.ImageAlias, sb.Limits, sb.Own, sb.Connected = sn.Image, sn.ImageAlias, sn.Limits, sn.Own, sn.Connected
	if spec.Network == nil {
		sb.Permissions.Network = sn.Permissions.Network
		if !grant.NetworkEnabled {
			sb.Permissions.Network = runtime.NetworkPolicy{}
		}
	} else if err := setNetwork(grant, sb, *spec.Network); err != nil {
		return err
	}
	if err := m.cfg.SnapshotFiles.Usable(sn.Stored, recipeOf(sb)); err != nil {
		return checkpointError(sn.ID, err)
	}
	return nil
}

// checkpointError is why the memory of a snapshot cannot be used.
func checkpointError(id sandbox.SnapshotID, err error) error {
	if errors.Is(err, ErrCheckpoint) {
		return fault.Wrap(fault.Conflict, err, fmt.Sprintf("the snapshot %s cannot continue with its processes: %v; files_only makes a new sandbox with its files", id, err))
	}
	return err
}

// startFrom makes the sandbox of a recipe from what is kept of another.
func (m *Manager) startFrom(ctx context.Context, sn *sandbox.Snapshot, r Recipe, filesOnly bool) (Live, error) {
	if err := m.cfg.SnapshotFiles.Fetch(ctx, sn.Tenant, sn.Stored, r.ID, filesOnly); err != nil {
		return nil, err
	}
	making, cancel := context.WithTimeout(ctx, makeTime)
	defer cancel()
	var live Live
	var err error
	if filesOnly {
		r.FromFiles = true
		live, err = m.cfg.Engine.Create(making, r)
	} else {
		live, err = m.cfg.Engine.Restore(making, r)
		err = checkpointError(sn.ID, err)
	}
	if err != nil {
		return nil, errors.Join(err, m.cfg.Engine.Remove(context.WithoutCancel(ctx), r.ID))
	}
	return live, nil
}
