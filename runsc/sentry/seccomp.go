package main

import (
	_ "unsafe" // for go:linkname

	"gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp"
	"gvisor.dev/gvisor/runsc/boot/filter"
)

// programs is filter's map of precompiled filters, which only generated code
// inside that package can reach otherwise. A filter is looked up by a key that
// names every option it depends on, so one that does not fit is never used:
// gVisor then compiles the right one itself.
//
//go:linkname programs gvisor.dev/gvisor/runsc/boot/filter.precompiledPrograms
var programs map[string]precompiledseccomp.Program

func registerSeccomp() {
	filter.ListPrecompiled() // makes the map
	for _, p := range precompiled() {
		programs[p.Name] = p
	}
}
