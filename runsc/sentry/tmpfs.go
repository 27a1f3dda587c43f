package main

import (
	_ "unsafe" // for go:linkname

	_ "gvisor.dev/gvisor/runsc/boot" // whose variable it is
)

// tmpfsOptions are the options of a specification's tmpfs mounts that gVisor
// hands on. Its tmpfs knows a number of files, its list does not; without it a
// program that makes empty files gets as many as memory has pages for, halved.
//
//go:linkname tmpfsOptions gvisor.dev/gvisor/runsc/boot.tmpfsAllowedData
var tmpfsOptions []string

func init() { tmpfsOptions = append(tmpfsOptions, "nr_inodes") }
