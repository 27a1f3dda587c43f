//go:build !amd64

package main

import "gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp"

// On other machines gVisor compiles its filters at each start.
func precompiled() []precompiledseccomp.Program { return nil }
