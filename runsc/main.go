// Command atoll-runsc is gVisor's OCI runtime, built from the Go module proxy.
//
// It lives in a module of its own, so that gVisor's dependency versions never
// fight Atoll's. The sandbox's kernel is the smaller program in sentry/, which
// runsc finds in the folder gvisor-bin beside itself; "atoll-runsc boot" would
// work without it, but start more slowly.
package main

import (
	"fmt"
	"os"
	"syscall"

	"gvisor.dev/gvisor/pkg/log"
	"gvisor.dev/gvisor/runsc/cli"
	"gvisor.dev/gvisor/runsc/cmd"
	"gvisor.dev/gvisor/runsc/cmd/util"
)

func main() {
	// A kernel that dies must not write its programs' memory to the host's disk.
	if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}); err != nil {
		fmt.Fprintln(os.Stderr, "forbid core dumps:", err)
		os.Exit(128)
	}
	openSidecars()
	log.SetLevel(log.Warning) // see sentry/main.go
	if os.Getenv(launchEnv) != "" {
		os.Exit(serveLaunches())
	}
	cli.Run(nil, map[util.SubCommand]string{
		new(cmd.Checkpoint): "",
		new(cmd.Create):     "",
		new(cmd.Delete):     "",
		new(cmd.Do):         "",
		new(cmd.Kill):       "",
		new(cmd.List):       "",
		new(cmd.Pause):      "",
		new(cmd.Restore):    "",
		new(cmd.Resume):     "",
		new(cmd.Run):        "",
		new(cmd.Start):      "",
		new(cmd.State):      "",
		new(cmd.Wait):       "",
		new(cmd.Debug):      "debug",
		new(cmd.Gofer):      "internal use only",
		new(umount):         "internal use only",
	}, nil)
}
