// Command atoll-guestd looks after a sandbox that lives for long. Process 1 of
// the sandbox starts it; docs/guest-protocol.md says what it does.
package main

import (
	"fmt"
	"os"

	"github.com/atoll-run/atoll/internal/guest/daemon"
)

func main() {
	err := daemon.Run()
	fmt.Fprintln(os.Stderr, "atoll-guestd:", err)
	os.Exit(2)
}
