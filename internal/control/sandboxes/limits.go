package sandboxes

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// Settings are settings of a sandbox as a client gives them; omitted fields are nil or empty.
type Settings struct {
	Image, Snapshot     *string
	SleepAfter, Timeout *wire.Millis
	SubPaths            []string
	CPU                 *float64
	Memory, Disk        *int64
	FilesOnly           *bool
}

// Set sets the settings in spec.
func (in *Settings) Set(spec *sandbox.Spec) (err error) {
	if in.Image != nil {
		if spec.Image = *in.Image; spec.Image == "" {
			return fault.New(fault.Invalid, "image must not be empty; leave it out for that of the key's environment")
		}
	}
	if spec.SleepAfter, err = Millis("sleep_after_ms", in.SleepAfter, -1); err != nil {
		return err
	}
	if spec.Timeout, err = Millis("timeout_ms", in.Timeout, 1); err != nil {
		return err
	}
	if in.Snapshot != nil {
		if spec.Snapshot = sandbox.SnapshotID(*in.Snapshot); !spec.Snapshot.Valid() {
			return fault.New(fault.Invalid, "snapshot must be the snapshot_id of a snapshot, snap- and 16 hexadecimal digits")
		}
	}
	if spec.SubPaths, err = storage.ParseSubPaths(in.SubPaths); err != nil {
		return err
	}
	if in.CPU != nil { // 0 cores would select the limit of the environment
		if spec.Size.CPU = *in.CPU; !(spec.Size.CPU > 0) {
			return fault.New(fault.Invalid, "limits.cpu must be above 0 cores, not %g", spec.Size.CPU)
		}
	}
	if in.Memory != nil {
		spec.Size.Memory = *in.Memory
	}
	if in.Disk != nil {
		spec.Size.Disk = *in.Disk
	}
	spec.FilesOnly = in.FilesOnly != nil && *in.FilesOnly
	return nil
}

// Millis returns a time in milliseconds that is at least least; 0 if it is omitted.
func Millis(name string, ms *wire.Millis, least wire.Millis) (time.Duration, error) {
	const limit = wire.Millis(365 * 24 * time.Hour / time.Millisecond)
	switch {
	case ms == nil:
		return 0, nil
	case *ms < least || *ms > limit:
		return 0, fault.New(fault.Invalid, "%s must be a whole number from %d to %d", name, least, limit)
	}
	return ms.Duration(), nil
}

// Times returns the change of a sandbox's times. At least one of them is given.
func Times(timeout, sleepAfter *wire.Millis) (c Change, err error) {
	if timeout == nil && sleepAfter == nil {
		return c, fault.New(fault.Invalid, "give timeout_ms, sleep_after_ms or both")
	}
	for _, f := range []struct {
		name  string
		from  *wire.Millis
		least wire.Millis
		to    **time.Duration
	}{{"timeout_ms", timeout, 0, &c.Timeout}, {"sleep_after_ms", sleepAfter, -1, &c.SleepAfter}} {
		if f.from != nil {
			d, err := Millis(f.name, f.from, f.least)
			if err != nil {
				return c, err
			}
			*f.to = &d
		}
	}
	return c, nil
}

// NewProcess is a process as a client describes it; omitted fields are nil or empty.
type NewProcess struct {
	Command, Dir *string
	Argv         []string
	Env          map[string]string
	Timeout      *wire.Millis
	Patient      *bool // the process waits for a reader
	Input        *bool
	Terminal     *process.Size
}

// Spec returns the process to start.
func (in *NewProcess) Spec() (spec process.Spec, err error) {
	switch {
	case (in.Command == nil) == (len(in.Argv) == 0):
		return spec, fault.New(fault.Invalid, "give command or argv, one of them")
	case in.Command != nil && *in.Command == "":
		return spec, fault.New(fault.Invalid, "command must not be empty")
	case in.Command != nil:
		spec.Shell = *in.Command
	default:
		spec.Argv = in.Argv
	}
	if in.Dir != nil {
		spec.Dir = *in.Dir
	}
	if err := CheckProgram(&spec, in.Env, "command, argv and working_dir"); err != nil {
		return spec, err
	}
	if spec.Timeout, err = Millis("timeout_ms", in.Timeout, 1); err != nil {
		return spec, err
	}
	spec.Patient = in.Patient != nil && *in.Patient
	if spec.Input = in.Input != nil && *in.Input; in.Terminal != nil {
		if in.Terminal.Rows == 0 || in.Terminal.Columns == 0 {
			return spec, fault.New(fault.Invalid, "terminal needs rows and columns, both at least 1")
		}
		spec.Input, spec.Terminal = false, in.Terminal
	}
	return spec, nil
}
