package oci

import (
	"slices"

	"github.com/moby/profiles/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// guestCalls are what the guest needs beyond what programs of a container are
// commonly allowed. The kernel still asks for the capability, which programs
// do not have.
var guestCalls = []string{"sethostname"}

// families are the sockets that programs may make. There is no network; these
// four fail in the ways programs know, all others are code of the host's kernel
// that nobody needs.
var families = []uint64{unixFamily, inetFamily, inet6Family, netlinkFamily}

const (
	unixFamily    = 1
	inetFamily    = 2
	inet6Family   = 10
	netlinkFamily = 16
)

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
	for _, family := range families {
		f.Syscalls = append(f.Syscalls, specs.LinuxSyscall{
			Names: []string{"socket"}, Action: specs.ActAllow,
			Args: []specs.LinuxSeccompArg{{Index: 0, Value: family, Op: specs.OpEqualTo}},
		})
	}
	return f, nil
}
