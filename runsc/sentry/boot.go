package main

import (
	"fmt"

	"gvisor.dev/gvisor/runsc/cmd/sentry/sentrycmd"
	"gvisor.dev/gvisor/runsc/flag"
	"gvisor.dev/gvisor/runsc/specutils"
)

// boot is gVisor's boot command with one limit more: the overlay over the root
// file system gets a number of files. gVisor gives it a size only, and a program
// that makes empty files would fill the kernel's own memory instead.
type boot struct {
	sentrycmd.Boot
	inodes int64 // 0 leaves the number unlimited
}

// SetFlags implements subcommands.Command.
func (b *boot) SetFlags(f *flag.FlagSet) {
	b.Boot.SetFlags(f)
	dropCapsInPlace(f)
	fl := f.Lookup("gofer-mount-confs")
	if confs, ok := fl.Value.(*specutils.GoferMountConfFlags); ok && b.inodes > 0 {
		fl.Value = &mountConfs{GoferMountConfFlags: confs, inodes: b.inodes}
	}
}

// mountConfs adds the number of files to the size of each overlay in memory:
// the size is handed to tmpfs as a mount option, and options are separated by
// commas.
type mountConfs struct {
	*specutils.GoferMountConfFlags
	inodes int64
	given  string
}

// Set implements flag.Value.
func (m *mountConfs) Set(s string) error {
	if err := m.GoferMountConfFlags.Set(s); err != nil {
		return err
	}
	m.given = s
	confs := *m.GoferMountConfFlags
	for i := range confs {
		if confs[i].Upper == specutils.MemoryOverlay && confs[i].Size != "" {
			confs[i].Size = fmt.Sprintf("%s,nr_inodes=%d", confs[i].Size, m.inodes)
		}
	}
	return nil
}

// String implements flag.Value. Were the command to start itself anew, it would
// be with the flags it got, so this is what was given.
func (m *mountConfs) String() string {
	if m.GoferMountConfFlags == nil {
		return "" // the flag package asks a zero value
	}
	return m.given
}
