// Command gvisor_sentry is the kernel of one sandbox: gVisor's boot command and
// nothing else.
//
// Apart from being smaller than runsc it carries its seccomp filters compiled
// ahead. gVisor's own build does that too, but its generated code is not part
// of the Go module, and compiling the filter anew costs 13 ms of each start.
package main

import (
	"os"
	"runtime/debug"
	"time"

	"gvisor.dev/gvisor/runsc/cli"
	"gvisor.dev/gvisor/runsc/cmd/sentry/sentrycmd"
	"gvisor.dev/gvisor/runsc/cmd/util"
	"gvisor.dev/gvisor/runsc/gvisorbinaries"
)

func main() {
	postponeGC()
	registerSeccomp()
	os.Args = tellLimits(os.Args)
	cli.Run(&gvisorbinaries.GvisorSentry, map[util.SubCommand]string{
		&boot{inodes: totalMemory(os.Args) / bytesPerInode}: "internal use only",
		new(sentrycmd.Umount):                               "internal use only",
	}, nil)
}

// bytesPerInode gives a file system in memory as many files as Linux would: one
// for every two pages of the memory there is.
const bytesPerInode = 2 * 4096

// bootTime is longer than any boot, and short enough for what a program
// allocates in the kernel meanwhile to stay small.
const bootTime = 2 * time.Second

// postponeGC leaves the garbage of starting up alone: collecting it costs a
// tenth of a sandbox's start and frees little.
func postponeGC() {
	percent := debug.SetGCPercent(400)
	time.AfterFunc(bootTime, func() { debug.SetGCPercent(percent) })
}
