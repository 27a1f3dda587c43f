// Programs are held to their share of processors by their control group, and the
// boot command is told how many there are. Go need not find that out by itself,
// and keep the group's files open in the kernel.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Command gvisor_sentry is the kernel of one sandbox: gVisor's boot command and
// nothing else.
//
// Apart from being smaller than runsc it carries its seccomp filters compiled
// ahead. gVisor's own build does that too, but its generated code is not part
// of the Go module, and compiling the filter anew costs 13 ms of each start.
package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"time"

	_ "github.com/atoll-run/atoll/runsc/sentry/umount" // the other command
	"gvisor.dev/gvisor/pkg/log"
	"gvisor.dev/gvisor/runsc/cli"
	"gvisor.dev/gvisor/runsc/cmd/util"
	"gvisor.dev/gvisor/runsc/gvisorbinaries"
)

func main() {
	runtime.GOMAXPROCS(1) // starting up is one thing after the other; the boot command sets its own number
	postponeGC(slices.Contains(os.Args, waiting))
	skipTracePoints()
	log.SetLevel(log.Warning) // what is said below it goes nowhere, unless gVisor's own flag asks for all
	addJoin()
	forgetClosedConnections()
	registerSeccomp()
	allowInodeLimits()
	allowed := readLimits(os.Args)
	os.Args = allowed.tell(os.Args)
	cli.Run(&gvisorbinaries.GvisorSentry, map[util.SubCommand]string{
		&boot{inodes: allowed.inodes}: "internal use only",
	}, nil)
}

// waiting is the flag by which Atoll starts the kernels that wait for a memory, and
// no others: see Prepare in internal/node/runtime/gvisor.
const waiting = "--restore-spec-validation=ignore"

// bootTime is longer than any boot, and short enough for what a program
// allocates in the kernel meanwhile to stay small.
const bootTime = 2 * time.Second

// postponeGC leaves the garbage of starting up alone: collecting it costs a
// tenth of a sandbox's start. A sandbox that is still there when it has long
// started waits in a pool, and gives the memory back. If it is a memory that it
// waits for, the garbage of reading that is left alone, too.
func postponeGC(waits bool) {
	percent := debug.SetGCPercent(400)
	time.AfterFunc(bootTime, func() {
		if waits {
			debug.FreeOSMemory()
			onceFull(func() { debug.SetGCPercent(percent) })
			return
		}
		debug.SetGCPercent(percent)
		debug.FreeOSMemory()
	})
}

// full is how much a kernel has allocated that has begun to live: others do not
// while they wait, in which the collector runs every two minutes.
const full = 8 << 20

// onceFull calls f after the first collection by which so much was allocated.
func onceFull(f func()) {
	began := allocated()
	var arm func()
	arm = func() {
		runtime.AddCleanup(new([64]byte), func(int) {
			if allocated()-began >= full {
				f()
			} else {
				arm()
			}
		}, 0)
	}
	arm()
}

func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
