// Command atoll-guestd looks after a sandbox that lives for long. Process 1 of
// the sandbox starts it; docs/contribute/guest-protocol.md describes its protocol. With the argument
// collect it writes files that a program gives back to its stdout, and with file it does
// what a model asks for of files.
package main

import (
	"fmt"
	"os"

	tool "github.com/atoll-run/atoll/internal/core/filetool"
	"github.com/atoll-run/atoll/internal/guest/collect"
	"github.com/atoll-run/atoll/internal/guest/daemon"
	"github.com/atoll-run/atoll/internal/guest/filetool"
)

func main() {
	command := ""
	if len(os.Args) > 1 {
		command = os.Args[1]
	}
	var ok bool
	var err error
	switch command {
	case collect.Command:
		ok, err = true, collect.Write(os.Stdout, os.Args[2:])
	case tool.Command:
		ok, err = filetool.Run(os.Stdin, os.Stdout)
	default:
		err = daemon.Run()
	}
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "atoll-guestd:", err)
		os.Exit(2)
	case !ok:
		os.Exit(1)
	}
}
