package main

import (
	"context"
	"fmt"
	"os"

	"github.com/google/subcommands"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"gvisor.dev/gvisor/runsc/config"
	"gvisor.dev/gvisor/runsc/flag"
)

// umount is gVisor's command of that name, with which a file server in a user
// namespace of its own gets rid of /proc once it needs it no longer. gVisor's
// brings the sandbox's whole kernel with it.
type umount struct{ syncFD int }

// Name implements subcommands.Command.
func (*umount) Name() string { return "umount" }

// Synopsis implements subcommands.Command.
func (*umount) Synopsis() string { return "unmount a folder when a byte can be read" }

// Usage implements subcommands.Command.
func (*umount) Usage() string { return "umount --sync-fd=FD FOLDER\n" }

// SetFlags implements subcommands.Command.
func (u *umount) SetFlags(f *flag.FlagSet) { f.IntVar(&u.syncFD, "sync-fd", -1, "") }

// FetchSpec implements util.SubCommand. The command is not about one sandbox.
func (*umount) FetchSpec(*config.Config, *flag.FlagSet) (string, *specs.Spec, error) {
	return "", nil, nil
}

// Execute implements subcommands.Command.
func (u *umount) Execute(_ context.Context, f *flag.FlagSet, _ ...any) subcommands.ExitStatus {
	if f.NArg() != 1 {
		return subcommands.ExitUsageError
	}
	sync := os.NewFile(uintptr(u.syncFD), "sync")
	defer sync.Close()
	if _, err := sync.Read(make([]byte, 1)); err != nil {
		return subcommands.ExitFailure // who wanted it has ended
	}
	if err := unix.Unmount(f.Arg(0), unix.MNT_DETACH); err != nil {
		fmt.Fprintf(os.Stderr, "unmount %s: %v\n", f.Arg(0), err)
		return subcommands.ExitFailure
	}
	return subcommands.ExitSuccess
}
