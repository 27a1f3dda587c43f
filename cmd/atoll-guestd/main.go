// Command atoll-guestd looks after a sandbox that lives for long. Process 1 of
// the sandbox starts it; docs/guest-protocol.md says what it does. With the argument
// collect it writes files that a program gives back to its stdout.
package main

import (
	"fmt"
	"os"

	"github.com/atoll-run/atoll/internal/guest/collect"
	"github.com/atoll-run/atoll/internal/guest/daemon"
)

func main() {
	var err error
	if len(os.Args) > 1 && os.Args[1] == collect.Command {
		if err = collect.Write(os.Stdout, os.Args[2:]); err == nil {
			return
		}
	} else {
		err = daemon.Run()
	}
	fmt.Fprintln(os.Stderr, "atoll-guestd:", err)
	os.Exit(2)
}
