package sandboxes

import (
	"strconv"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// The smallest sizes that a caller can choose. The sandbox's kernel needs some memory, and its home
// starts with some files.
const (
	minMemory = 64 << 20
	minDisk   = 1 << 20
)

// setSize applies a requested size. It rejects more than the environment's limits.
func setSize(sb *sandbox.Sandbox, size sandbox.Size) error {
	if size == (sandbox.Size{}) {
		return nil
	}
	most := sandbox.Size{CPU: sb.Limits.CPU, Memory: sb.Limits.Memory, Disk: sb.Disk}
	switch {
	case size.CPU < 0:
		return fault.New(fault.Invalid, "limits.cpu must be above 0 cores, not %g", size.CPU)
	case size.CPU > most.CPU:
		return fault.New(fault.Invalid, "limits.cpu: sandboxes of this environment have at most %g cores, and %g were asked for; ask for less, or have the environment's limit raised", most.CPU, size.CPU)
	case size.Memory > most.Memory:
		return fault.New(fault.Invalid, "limits.memory: sandboxes of this environment have at most %s, and %s were asked for; ask for less, or have the environment's limit raised",
			runtime.FormatBytes(most.Memory), runtime.FormatBytes(size.Memory))
	case size.Memory != 0 && size.Memory < minMemory:
		return fault.New(fault.Invalid, "limits.memory must be at least %s", runtime.FormatBytes(minMemory))
	case size.Disk != 0 && size.Disk < minDisk:
		return fault.New(fault.Invalid, "disk_size must be at least %s", runtime.FormatBytes(minDisk))
	case most.Disk > 0 && size.Disk > most.Disk:
		return fault.Limit("sandbox_disk", time.Time{}, "disk_size: a sandbox can have at most %s of disk, and %s were asked for; ask for less, or have the plan's max_sandbox_disk or the server's sandbox_disk raised",
			runtime.FormatBytes(most.Disk), runtime.FormatBytes(size.Disk))
	}
	if size.CPU > 0 {
		sb.Limits.CPU = size.CPU
	}
	if size.Memory != 0 {
		sb.Limits.Memory = size.Memory
		sb.Limits.ShrinkFiles()
	}
	if size.Disk > 0 {
		sb.Disk = size.Disk
	}
	if err := sb.Limits.Validate(); err != nil {
		return fault.New(fault.Invalid, "limits: %s", err)
	}
	return nil
}

// checkSize returns a Conflict if the existing sandbox sb does not have the requested size.
func checkSize(sb *sandbox.Sandbox, size sandbox.Size) error {
	differs := func(field, has, asked string) error {
		return fault.New(fault.Conflict, "the sandbox %q exists with %s of %s, not %s; omit the field to use the existing sandbox, destroy the sandbox first, or choose another name", sb.Name, field, has, asked)
	}
	switch {
	case size.CPU != 0 && size.CPU != sb.Limits.CPU:
		return differs("limits.cpu", cores(sb.Limits.CPU), cores(size.CPU))
	case size.Memory != 0 && size.Memory != sb.Limits.Memory:
		return differs("limits.memory", runtime.FormatBytes(sb.Limits.Memory), runtime.FormatBytes(size.Memory))
	case size.Disk != 0 && size.Disk != sb.Disk:
		return differs("disk_size", runtime.FormatBytes(sb.Disk), runtime.FormatBytes(size.Disk))
	}
	return nil
}

// checkSnapshotSize returns a Conflict if a sandbox restored from a snapshot's memory cannot have
// the requested size, because its kernel started with the snapshot's limits.
func checkSnapshotSize(sn *sandbox.Snapshot, size sandbox.Size) error {
	const instead = "; leave it out, or use files_only, which makes a new sandbox with its files"
	switch {
	case size.CPU != 0 && size.CPU != sn.Limits.CPU:
		return fault.New(fault.Conflict, "limits.cpu: the snapshot %s has the memory of a sandbox with %s, not %s%s", sn.ID, cores(sn.Limits.CPU), cores(size.CPU), instead)
	case size.Memory != 0 && size.Memory != sn.Limits.Memory:
		return fault.New(fault.Conflict, "limits.memory: the snapshot %s has the memory of a sandbox with %s, not %s%s",
			sn.ID, runtime.FormatBytes(sn.Limits.Memory), runtime.FormatBytes(size.Memory), instead)
	}
	return nil
}

func cores(n float64) string { return strconv.FormatFloat(n, 'g', -1, 64) + " cores" }
