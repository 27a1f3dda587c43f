// Process 1 has one busy thread; the runtime need not look at its cgroup for how
// many it may have.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Command atoll-guest is process 1 of every sandbox. The host speaks to it over
// its standard input and output; docs/contribute/guest-protocol.md describes the protocol.
package main

import (
	"syscall"

	"github.com/atoll-run/atoll/internal/guest/confine"
	"github.com/atoll-run/atoll/internal/guest/init"
)

// version is set by the linker.
var version = "dev"

func main() {
	called, err := confine.Main()
	if !called {
		err = guestinit.Run(version)
	}
	if err != nil {
		syscall.Write(2, []byte("atoll-guest: "+err.Error()+"\n"))
	}
	syscall.Exit(2)
}
