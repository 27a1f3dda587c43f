// Command atoll-attendant looks after a sandbox that lives for long. Process 1 of
// the sandbox starts it; docs/guest-protocol.md says what it does.
package main

import (
	"fmt"
	"os"

	"github.com/atoll-run/atoll/internal/guest/attendant"
)

func main() {
	err := attendant.Run()
	fmt.Fprintln(os.Stderr, "atoll-attendant:", err)
	os.Exit(2)
}
