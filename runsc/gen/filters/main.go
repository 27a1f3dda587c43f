//go:build patched

// Command filters prints the part of gVisor's copy that has been built ahead: see
// filters.go.txt of runsc/patch. It builds only
// with the copy, of which the build tag speaks.
package main

import (
	"log"
	"os"

	"gvisor.dev/gvisor/pkg/sentry/platform/systrap"
)

func main() {
	text, err := systrap.FilterSource()
	if err != nil {
		log.Fatal(err)
	}
	if _, err := os.Stdout.Write(text); err != nil {
		log.Fatal(err)
	}
}
