package main

import _ "unsafe" // for go:linkname

// tmpfsAllowedData are the mount options that gVisor passes on to a file system
// in memory. A number of files is not among them, although that file system
// knows one.
//
//go:linkname tmpfsAllowedData gvisor.dev/gvisor/runsc/boot.tmpfsAllowedData
var tmpfsAllowedData []string

// allowInodeLimits has gVisor hold the number of files of /tmp and the like.
func allowInodeLimits() { tmpfsAllowedData = append(tmpfsAllowedData, "nr_inodes") }
