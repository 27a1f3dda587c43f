package oci

import (
	"slices"

	"github.com/moby/profiles/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// guestCalls are what the guest needs beyond what programs of a container are
// commonly allowed. The kernel still asks for the capability, which programs
// do not have.
var guestCalls = []string{"sethostname"}

// sockets are those that programs may make, by family and, where it is not nil,
// protocol. There is no network; these fail in the ways programs know. All
// others are code of the host's kernel that programs do not need.
var sockets = []struct {
	family   uint64
	protocol *uint64
}{
	{family: unix.AF_UNIX},
	{family: unix.AF_INET},
	{family: unix.AF_INET6},
	{family: unix.AF_NETLINK, protocol: new(uint64)}, // NETLINK_ROUTE, which tells of interfaces
}

// filter returns the system calls that a sandbox may make: those of Docker's
// default profile for a container without capabilities, of this machine's own
// architecture only. All others fail with EPERM.
func filter() (*specs.LinuxSeccomp, error) {
	bare := &specs.Spec{Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{}}}
	f, err := seccomp.GetDefaultProfile(bare)
	if err != nil {
		return nil, err
	}
	f.Architectures = f.Architectures[:1] // the native one; 32-bit calls would go round the rules on sockets
	for i := range f.Syscalls {
		f.Syscalls[i].Names = slices.DeleteFunc(f.Syscalls[i].Names, func(name string) bool {
			return name == "socket" || name == "socketcall"
		})
	}
	f.Syscalls = slices.DeleteFunc(f.Syscalls, func(c specs.LinuxSyscall) bool { return len(c.Names) == 0 })
	f.Syscalls = append(f.Syscalls, specs.LinuxSyscall{Names: guestCalls, Action: specs.ActAllow})
	for _, so := range sockets {
		args := []specs.LinuxSeccompArg{{Index: 0, Value: so.family, Op: specs.OpEqualTo}}
		if so.protocol != nil {
			args = append(args, specs.LinuxSeccompArg{Index: 2, Value: *so.protocol, Op: specs.OpEqualTo})
		}
		f.Syscalls = append(f.Syscalls, specs.LinuxSyscall{Names: []string{"socket"}, Action: specs.ActAllow, Args: args})
	}
	return f, nil
}
